"""What the judge says about an output. Judges nothing itself."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType, field

from creonowd.model import Model


class Status(StrEnum):
    """The verdict as a whole; `unchecked` if nothing is violated but not all could be checked."""

    PASSED = "passed"
    VIOLATED = "violated"
    UNCHECKED = "unchecked"


class Checker(StrEnum):
    """Who checked: a program that cannot err, or a model that may."""

    RULES = "rules"
    MODEL = "model"


class Charge(Model):
    """One constraint that an output has to keep."""

    id: str
    text: str


class Violation(Model):
    """Where an output breaks a constraint, and how sure that is.

    `from` and `to` are positions in the output, absent if a model named no passage that is
    there. `confidence` is 1 for rules.
    """

    constraint_id: str
    constraint: str
    by: Checker
    confidence: Annotated[float, Meta(ge=0, le=1)]
    quote: str = ""
    message: str = ""
    start: int | UnsetType = field(default=UNSET, name="from")
    end: int | UnsetType = field(default=UNSET, name="to")


class Unchecked(Model):
    """A constraint of which nobody can say whether it was kept, and why."""

    constraint_id: str
    constraint: str
    reason: str


class Verdict(Model):
    """What became of every constraint: `checked` counts those that somebody could judge."""

    status: Status
    checked: int = 0
    violations: tuple[Violation, ...] = ()
    unchecked: tuple[Unchecked, ...] = ()


def conclude(
    charges: int, violations: Sequence[Violation], unchecked: Sequence[Unchecked]
) -> Verdict:
    """Sum up; what was not checked is never counted as kept."""
    status = Status.UNCHECKED if unchecked else Status.PASSED
    return Verdict(
        status=Status.VIOLATED if violations else status,
        checked=charges - len(unchecked),
        violations=tuple(violations),
        unchecked=tuple(unchecked),
    )


def all_unchecked(charges: Iterable[Charge], reason: str) -> list[Unchecked]:
    """Say of constraints that nobody checked them."""
    return [Unchecked(constraint_id=c.id, constraint=c.text, reason=reason) for c in charges]
