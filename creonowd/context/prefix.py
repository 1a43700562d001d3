"""Why a prompt cache misses: the stable prefix compared with that of the caller's previous call.

This names the first source that changed. Two others ask something else of a prefix:
`providers.configured` counts how often one was sent, to decide whether marking it for the
provider's cache pays; `history.build_result` measures how many bytes of a turn repeat the last.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from msgspec import UNSET, UnsetType

from creonowd.context.evidence import Decision
from creonowd.memo import Memo
from creonowd.model import Model

MOST_CALLERS = 512


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


class PrefixComparison(Model):
    """How the stable prefix compares with that of the previous call, if there was one."""

    unchanged: bool = False
    change: PrefixChange | UnsetType = UNSET


class PrefixDigest(Model):
    """A stable prefix: its hash, and its sources in order with a digest of each.

    Digests are Python's own hashes: they mean nothing outside this process and never leave it.
    """

    hash: str
    sources: tuple[tuple[str, int], ...] = ()


class PrefixKey(NamedTuple):
    """The caller whose previous call counts."""

    project_id: str
    skill_id: str
    provider: str
    model: str
    encoding: str


class PrefixMemory:
    """The last stable prefix of each caller, until the daemon ends."""

    def __init__(self, capacity: int = MOST_CALLERS) -> None:
        self._last: Memo[PrefixKey, PrefixDigest] = Memo(capacity)

    def compare(self, key: PrefixKey, digest: PrefixDigest) -> PrefixComparison:
        """Compare a stable prefix with that of the caller's previous call."""
        before = self._last.peek(key)
        if before is None:
            return PrefixComparison()
        if before.hash == digest.hash:
            return PrefixComparison(unchanged=True)
        return PrefixComparison(change=first_change(before, digest) or UNSET)

    def remember(self, key: PrefixKey, digest: PrefixDigest) -> None:
        """Make this the caller's previous call."""
        self._last.put(key, digest)


def digest_of(prefix_hash: str, decisions: Iterable[Decision]) -> PrefixDigest:
    """Return the digest of a stable prefix, given the decisions on its units in order."""
    return PrefixDigest(
        hash=prefix_hash,
        sources=tuple(
            (decision.evidence.source_ref, hash((decision.evidence.layer, decision.rendered)))
            for decision in decisions
            if decision.is_kept
        ),
    )


def first_change(before: PrefixDigest, after: PrefixDigest) -> PrefixChange | None:
    """Return the first source in which two stable prefixes differ."""
    old, new = before.sources, after.sources
    shared = min(len(old), len(new))
    index = next((i for i in range(shared) if old[i] != new[i]), shared)
    if index == len(old) == len(new):
        return None
    if index == len(old):
        change, ref = Change.ADDED, new[index][0]
    elif index == len(new):
        change, ref = Change.REMOVED, old[index][0]
    elif old[index][0] == new[index][0]:
        change, ref = Change.CHANGED, new[index][0]
    elif new[index][0] not in dict(old):
        change, ref = Change.ADDED, new[index][0]
    elif old[index][0] not in dict(new):
        change, ref = Change.REMOVED, old[index][0]
    else:
        change, ref = Change.REORDERED, new[index][0]
    return PrefixChange(source_ref=ref, change=change)
