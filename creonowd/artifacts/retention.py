"""Which files have to go: lazy ones by age and use, eager ones by age alone.

Knows ages and sizes; deletes nothing.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from creonowd.artifacts.conversation import Conversation
from creonowd.artifacts.refs import Record
from creonowd.settings import Settings

DAY_MS = 24 * 3600 * 1000


class CleaningReason(StrEnum):
    """Why a file was cleaned."""

    LAZY_AGE = "lazy_age"
    LAZY_LRU = "lazy_lru"
    EAGER_AGE = "eager_age"


class Limits(NamedTuple):
    """How much a project may keep, and for how long."""

    bytes: int
    lazy_ms: int
    eager_ms: int

    @classmethod
    def of(cls, settings: Settings) -> "Limits":
        """Read the limits from the settings."""
        return cls(
            settings.context_max_bytes,
            settings.context_lazy_days * DAY_MS,
            settings.context_eager_days * DAY_MS,
        )


class Held(NamedTuple):
    """A file that takes up space."""

    conversation: Conversation
    record: Record
    bytes: int
    last_used_ms: int


def holdings(conversations: Iterable[Conversation]) -> list[Held]:
    """List the files that are there, with their sizes and last uses."""
    return [
        Held(conversation, record, *there)
        for conversation in conversations
        for record in conversation.records()
        if (there := conversation.presence(record)) is not None
    ]


def choose(held: Sequence[Held], limits: Limits, now_ms: int) -> list[tuple[Held, CleaningReason]]:
    """Choose what has to go, in order: what is too old, then lazy files as long as it is too much.

    An eager file never goes before its age, even if too much is left; a lazy one can be made again.
    """
    old = [(one, reason) for one in held if (reason := _too_old(one, limits, now_ms))]
    young = [one for one in held if not _too_old(one, limits, now_ms)]
    excess = sum(one.bytes for one in young) - limits.bytes
    unused: list[tuple[Held, CleaningReason]] = []
    for one in sorted(young, key=lambda one: (one.last_used_ms, one.record.order)):
        if one.record.lazy and excess > 0:
            unused.append((one, CleaningReason.LAZY_LRU))
            excess -= one.bytes
    return old + unused


def _too_old(one: Held, limits: Limits, now_ms: int) -> CleaningReason | None:
    if one.record.lazy:
        return CleaningReason.LAZY_AGE if now_ms - one.last_used_ms > limits.lazy_ms else None
    return CleaningReason.EAGER_AGE if now_ms - one.record.stored_at > limits.eager_ms else None
