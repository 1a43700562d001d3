"""What the judge says about an output. Judges nothing itself."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType, field
from msgspec.structs import replace

from creonowd.context.assemble import Assembly
from creonowd.context.evidence import Decision as Candidate
from creonowd.context.evidence import LayerOutcome
from creonowd.context.fragment import FragmentKind, Layer
from creonowd.context.template import CONSTRAINTS_FILE
from creonowd.errors import DaemonError, ErrorCode
from creonowd.judge.terminology import REF, Term, read_terms
from creonowd.model import Model
from creonowd.storage.relative_paths import CreonowFolder
from creonowd.workspace.buffer import to_utf16, utf16_length
from creonowd.workspace.creonow_tree import Tree
from creonowd.workspace.projects import Project


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


SOURCE = "constraints"
OFF = "judging is off"
LEFT_OUT = "it was left out of the prompt"
UNREAD = "the file cannot be read"

_LIST = Charge(id=CONSTRAINTS_FILE, text="创作约束")
_TERMS = Charge(id=REF, text="术语表")


class PromptConstraints(Model):
    """The constraints that a prompt holds, and those that it does not for want of room.

    `unread` says that nobody knows them. `terms` are those of the prompt; None if it does not
    hold the project's terminology.
    """

    charges: tuple[Charge, ...] = ()
    left_out: tuple[Charge, ...] = ()
    unread: bool = False
    terms: tuple[Term, ...] | None = None


def constraints_in(assembly: Assembly) -> PromptConstraints:
    """Find the constraints of a prompt, as the model was told them."""
    told = _told_by(_Rules(assembly.layers[Layer.RULES]))
    late = any(failure.source == SOURCE for failure in assembly.failures)
    return replace(told, unread=True) if late else told


class _Rules:
    """The rules of a prompt, known by being the same ones: an unchanged prefix keeps them."""

    def __init__(self, judged: LayerOutcome) -> None:
        self.judged = judged

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Rules) and self.judged is other.judged

    def __hash__(self) -> int:
        return id(self.judged)


@lru_cache(maxsize=16)
def _told_by(rules: _Rules) -> PromptConstraints:
    verdicts = rules.judged.decisions
    told = [v for v in verdicts if v.kind is FragmentKind.CONSTRAINT]
    terminology = next((v.text for v in verdicts if v.evidence.source_ref == REF and v.stays), None)
    return PromptConstraints(
        charges=tuple(_charge(v) for v in told if v.stays),
        left_out=tuple(_charge(v) for v in told if not v.stays),
        unread=any(v.evidence.source_ref == CONSTRAINTS_FILE for v in verdicts),
        terms=None if terminology is None else read_terms(terminology.encode()),
    )


async def terms_of(tree: Tree, project: Project) -> tuple[Term, ...] | None:
    """Read the project's terms; a file that is not there bans nothing, None is one nobody can read."""
    try:
        return read_terms((await tree.read(project, CreonowFolder.RULES, REF)).data)
    except DaemonError as error:
        return () if error.code is ErrorCode.NOT_FOUND else None


def unjudged(told: PromptConstraints) -> Verdict:
    """Say of everything that nobody looked, because nobody was to."""
    charges = (*told.charges, *told.left_out)
    return Verdict(status=Status.UNCHECKED, unchecked=tuple(all_unchecked(charges, OFF)))


def with_rest(verdict: Verdict, told: PromptConstraints, terms: tuple[Term, ...] | None) -> Verdict:
    """Add what was never judged: constraints without room, and files that nobody could read."""
    files = [_LIST] * told.unread + [_TERMS] * (terms is None)
    more = (*all_unchecked(told.left_out, LEFT_OUT), *all_unchecked(files, UNREAD))
    if not more:
        return verdict
    status = Status.UNCHECKED if verdict.status is Status.PASSED else verdict.status
    return replace(verdict, status=status, unchecked=(*verdict.unchecked, *more))


def placed(verdict: Verdict, output: str, *, utf16: bool) -> Verdict:
    """Tell places in the units that the client counts in."""
    if not utf16 or not verdict.violations or utf16_length(output) == len(output):
        return verdict
    ends = (end for violation in verdict.violations for end in (violation.start, violation.end))
    units = to_utf16(output, (end for end in ends if isinstance(end, int)))
    return replace(verdict, violations=tuple(_placed(v, units) for v in verdict.violations))


def _placed(violation: Violation, units: Mapping[int, int]) -> Violation:
    start, end = violation.start, violation.end
    if not isinstance(start, int) or not isinstance(end, int):
        return violation
    return replace(violation, start=units[start], end=units[end])


def _charge(constraint: Candidate) -> Charge:
    return Charge(id=constraint.evidence.source_ref.rpartition("#")[2], text=constraint.text)
