"""Whether the stable prefix is that of last time and, if not, which source made it change.

Knows digests, not texts.
"""

from collections import OrderedDict
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from creonowd.context.verdict import Verdict
from creonowd.model import Model

KEPT = 256


class Change(StrEnum):
    """What happened to a source of the stable prefix."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    REORDERED = "reordered"


class PrefixChange(Model):
    """Why a prompt cache misses: the first source that differs from the previous call."""

    source_ref: str
    change: Change


class Imprint(Model):
    """A stable prefix: its hash, and its sources in order with a digest of each.

    The digests of one process mean nothing to another, and are never shown.
    """

    hash: str
    sources: tuple[tuple[str, int], ...] = ()


class PrefixKey(NamedTuple):
    """Whose previous call counts."""

    project_id: str
    skill_id: str
    provider: str
    model: str
    encoding: str


class PrefixMemory:
    """The last stable prefix of each caller, until the daemon ends."""

    def __init__(self, capacity: int = KEPT) -> None:
        self._capacity = capacity
        self._last: OrderedDict[PrefixKey, Imprint] = OrderedDict()

    def recall(self, key: PrefixKey) -> Imprint | None:
        """Give the stable prefix of the previous call."""
        return self._last.get(key)

    def remember(self, key: PrefixKey, imprint: Imprint) -> None:
        """Make this the previous call."""
        self._last[key] = imprint
        self._last.move_to_end(key)
        while len(self._last) > self._capacity:
            self._last.popitem(last=False)


def imprint(hashed: str, verdicts: Iterable[Verdict]) -> Imprint:
    """Take down the sources of a stable prefix."""
    staying = (verdict for verdict in verdicts if verdict.stays)
    return Imprint(
        hash=hashed,
        sources=tuple(
            (v.evidence.source_ref, hash((v.evidence.layer, v.rendered))) for v in staying
        ),
    )


def first_change(before: Imprint, after: Imprint) -> PrefixChange | None:
    """Name the first source in which two stable prefixes differ."""
    old, new = before.sources, after.sources
    index = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), None)
    if index is None:
        return _at_the_end(old, new)
    (gone, _), (come, _) = old[index], new[index]
    if gone == come:
        return PrefixChange(source_ref=come, change=Change.CHANGED)
    if come not in dict(old):
        return PrefixChange(source_ref=come, change=Change.ADDED)
    if gone not in dict(new):
        return PrefixChange(source_ref=gone, change=Change.REMOVED)
    return PrefixChange(source_ref=come, change=Change.REORDERED)


def _at_the_end(
    old: tuple[tuple[str, int], ...], new: tuple[tuple[str, int], ...]
) -> PrefixChange | None:
    if len(old) == len(new):
        return None
    if len(old) < len(new):
        return PrefixChange(source_ref=new[len(old)][0], change=Change.ADDED)
    return PrefixChange(source_ref=old[len(new)][0], change=Change.REMOVED)
