"""Constraints as part of Rules: one fragment each, in the order of their file. Pure."""

from collections.abc import Sequence
from typing import Literal, Protocol

from creonowd.context.fragment import (
    ConstraintOrigin,
    Fragment,
    FragmentKind,
    Layer,
    LeftOut,
    Place,
    Reason,
)
from creonowd.context.plan import Fetched
from creonowd.errors import DaemonError, ErrorCode
from creonowd.sources.rules_files import CONSTRAINTS

GROUP = 2

_ORIGINS = {"user": ConstraintOrigin.USER, "kg": ConstraintOrigin.KG}


class Constraint(Protocol):
    """What is needed of a constraint."""

    @property
    def id(self) -> str:
        """Its own name."""
        ...

    @property
    def text(self) -> str:
        """What it demands."""
        ...

    @property
    def source(self) -> Literal["user", "kg"]:
        """Who laid it down."""
        ...

    @property
    def priority(self) -> int:
        """Which leaves last."""
        ...

    @property
    def degradable(self) -> bool:
        """Whether it may leave at all."""
        ...


def constraint_list(constraints: Sequence[Constraint]) -> Fetched:
    """Make a fragment of every constraint."""
    return Fetched(
        fragments=tuple(_fragment(index, each) for index, each in enumerate(constraints))
    )


def unreadable(error: DaemonError) -> LeftOut:
    """Account for a file that could not be read or made no sense."""
    failed = error.code is ErrorCode.IO_ERROR
    return LeftOut(
        layer=Layer.RULES,
        source="constraints",
        source_ref=CONSTRAINTS,
        reason=Reason.READ_ERROR if failed else Reason.INVALID_FORMAT,
        place=Place(GROUP),
    )


def _fragment(index: int, constraint: Constraint) -> Fragment:
    return Fragment(
        layer=Layer.RULES,
        source="constraints",
        source_ref=f"{CONSTRAINTS}#{constraint.id}",
        text=constraint.text,
        kind=FragmentKind.CONSTRAINT,
        origin=_ORIGINS[constraint.source],
        degradable=constraint.degradable,
        priority=constraint.priority,
        place=Place(GROUP, "", index),
    )
