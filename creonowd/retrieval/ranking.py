"""Rank passages that were found: without repetition, with scores from 0 to 1.

Of the current document only what its text says now counts; the index may lag behind it.
"""

import math
import struct
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from creonowd.model import Model
from creonowd.retrieval.bm25 import FoundPassage
from creonowd.retrieval.index_writer import SKETCH_HASHES
from creonowd.retrieval.passages import LineNumbers

SIMILARITY = 0.5

_FULL_SKETCH = struct.Struct(f"<{SKETCH_HASHES}I")


class CurrentDocument(Model):
    """The document at hand as it is now, and the stretch of it that the query is made of."""

    path: str
    text: str
    query_start: int = 0
    query_end: int = 0


class RankedPassage(Model):
    """A passage and its score; `duplicates` say nearly the same and are not offered."""

    found: FoundPassage
    score: float
    duplicates: tuple[str, ...] = ()


def source_ref(found: FoundPassage) -> str:
    """Return the name of a passage: its path and lines, as in `chapters/07.md#L120-L143`."""
    return f"{found.path}#{found.lines}"


def rank(
    found: Iterable[FoundPassage], current: CurrentDocument | None, limit: int
) -> list[RankedPassage]:
    """Rank the best passages; a score is the share of the best one's.

    What the query itself was made of is its own best match: it does not count as the best one,
    and copies of it elsewhere are its duplicates.
    """
    present = list(found) if current is None else _present(found, current)
    groups = _groups(present, current, limit)
    best = max(
        (group[0].score for group in groups if not _is_query(group[0], current)), default=1.0
    )
    ranked = [
        RankedPassage(
            found=group[0],
            score=round(min(1.0, group[0].score / best), 4),
            duplicates=tuple(map(source_ref, group[1:])),
        )
        for group in groups
    ]
    return sorted(ranked, key=lambda one: (-one.score, one.found.path, one.found.start))


def _present(found: Iterable[FoundPassage], current: CurrentDocument) -> list[FoundPassage]:
    """Move passages of the current document to where they stand now; drop those that are gone."""
    present: list[FoundPassage] = []
    numbers: LineNumbers | None = None
    for one in found:
        if one.path != current.path or current.text.startswith(one.text, one.start):
            present.append(one)
        elif (start := current.text.find(one.text)) >= 0:
            numbers = numbers or LineNumbers(current.text)
            end = start + len(one.text)
            present.append(replace(one, start=start, end=end, lines=numbers.spell(start, end)))
    return present


def _groups(
    found: Sequence[FoundPassage], current: CurrentDocument | None, limit: int
) -> list[list[FoundPassage]]:
    """Group passages that say nearly the same, the best of each first, up to `limit` groups."""
    groups: list[list[FoundPassage]] = []
    duplicates = Duplicates()
    for one in sorted(found, key=lambda one: not _is_query(one, current)):
        number = duplicates.find(one.sketch)
        if number is not None:
            groups[number].append(one)
        elif len(groups) == limit:
            break
        else:
            groups.append([one])
    return groups


def _is_query(one: FoundPassage, current: CurrentDocument | None) -> bool:
    """Return whether the query was made of a part of this passage."""
    if current is None or one.path != current.path:
        return False
    return max(one.start, current.query_start) < min(one.end, current.query_end)


class Duplicates:
    """Recognises passages that say nearly the same, by their fingerprints."""

    def __init__(self) -> None:
        self._sketches: list[tuple[int, ...]] = []
        self._by_hash: dict[int, list[int]] = {}

    def find(self, fingerprint: bytes) -> int | None:
        """Return the number of the first similar fingerprint, else add this one.

        Numbers count those that were added, from zero.
        """
        hashes = _hashes(fingerprint)
        # Two sorted lists that share so many hashes share one among the first few of each.
        first = hashes[: len(hashes) - math.ceil(SIMILARITY * len(hashes)) + 1]
        by_hash = self._by_hash
        candidates = [by_hash[value] for value in first if value in by_hash]
        if candidates and (number := self._similar(hashes, candidates)) is not None:
            return number
        for value in first:
            by_hash.setdefault(value, []).append(len(self._sketches))
        self._sketches.append(hashes)
        return None

    def _similar(self, hashes: tuple[int, ...], candidates: list[list[int]]) -> int | None:
        own = frozenset(hashes)
        for number in sorted({number for numbers in candidates for number in numbers}):
            other = self._sketches[number]
            if len(own.intersection(other)) >= SIMILARITY * max(len(own), len(other)):
                return number
        return None


def _hashes(fingerprint: bytes) -> tuple[int, ...]:
    if len(fingerprint) == _FULL_SKETCH.size:
        return _FULL_SKETCH.unpack(fingerprint)
    return struct.unpack(f"<{len(fingerprint) // 4}I", fingerprint)
