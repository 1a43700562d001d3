"""Rank passages that were found: without repetition, with scores from 0 to 1.

Of the current document only what its text says now counts; the index may lag behind it.
"""

import math
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple, Protocol

from creonowd.model import Model
from creonowd.retrieval.passages import LineNumbers

SIMILARITY = 0.5
SKETCH_HASHES = 16

_FULL_SKETCH = struct.Struct(f"<{SKETCH_HASHES}I")


class SearchScope(Model, cache_hash=True):
    """The documents that are searched, and how far one of them is: up to an offset in its file."""

    documents: frozenset[str]
    own: str = ""
    own_end: int = 0


class Nearness(Model, cache_hash=True):
    """The documents of the story up to the author's, in order: the nearer the later."""

    paths: tuple[str, ...]

    @property
    def values(self) -> dict[str, float]:
        """How near each of them is, from 0 to 1, the author's own being 1; no other is near."""
        last = len(self.paths)
        return {path: round(1 / (last - number), 4) for number, path in enumerate(self.paths)}


class CurrentDocument(Model):
    """The document at hand as it is now, and the stretch of it that the query is made of."""

    path: str
    text: str
    query_start: int = 0
    query_end: int = 0


class PassageRow(NamedTuple):
    """A passage of a document: its number in the database, where it stands, its fingerprint."""

    id: int
    start: int
    end: int
    lines: str
    sketch: bytes


class StoredText(NamedTuple):
    """The text of a passage and the headings above it."""

    text: str
    heading: tuple[str, ...]


class PassageRows(Protocol):
    """The passages of an index by row; rows are in the order of path and offset."""

    @property
    def rows(self) -> Sequence[PassageRow]:
        """All passages."""
        ...

    @property
    def is_single(self) -> Sequence[bool]:
        """Whether no other passage has nearly the same text."""
        ...

    def path(self, row: int) -> str:
        """Return the document of a row."""
        ...

    def rows_in(self, path: str) -> range:
        """Return the rows of a document."""
        ...


class Candidate(NamedTuple):
    """A passage that was found: its row in the index, its score, and where it stands now."""

    row: int
    score: float
    start: int
    end: int
    lines: str


class CandidateGroup(NamedTuple):
    """A passage, and those that say nearly the same and scored no better."""

    best: Candidate
    duplicates: tuple[Candidate, ...]
    is_query: bool = False


class FoundPassage(Model):
    """A passage as it stands in its document, and its BM25."""

    row: int
    path: str
    start: int
    end: int
    lines: str
    heading: tuple[str, ...]
    text: str
    score: float


class RankedPassage(Model):
    """A passage and its score; `duplicates` say nearly the same and are not offered."""

    found: FoundPassage
    score: float
    duplicates: tuple[str, ...] = ()


def source_ref(found: FoundPassage) -> str:
    """Return the name of a passage: its path and lines, as in `chapters/07.md#L120-L143`."""
    return f"{found.path}#{found.lines}"


def choose(
    matches: Sequence[tuple[int, float]],
    index: PassageRows,
    current: CurrentDocument | None,
    own_texts: Mapping[int, StoredText],
    limit: int,
) -> list[CandidateGroup]:
    """Group rows that say nearly the same, up to `limit` groups, given rows and scores, best first.

    What the query itself was made of comes first: copies of it elsewhere are its duplicates.
    `own_texts` are those of the current document's passages, by number.
    """
    own = range(0) if current is None else index.rows_in(current.path)
    if current is None or not own:
        return _groups(_candidates(matches, index, {}), index, limit, ())
    moved = _move_to_current(
        [match for match in matches if match[0] in own], index, current, own_texts
    )
    query = [row for row, one in moved.items() if one is not None and _is_query(one, current)]
    first = [one for row in query if (one := moved[row]) is not None]
    others = _candidates(matches, index, moved | dict.fromkeys(query))
    return _groups(chain(first, others), index, limit, query)


def _candidates(
    matches: Iterable[tuple[int, float]], index: PassageRows, moved: Mapping[int, Candidate | None]
) -> Iterator[Candidate]:
    """Make candidates one by one, with what is known of those that moved or are gone."""
    rows = index.rows
    for row, score in matches:
        one = moved[row] if row in moved else Candidate(row, score, *rows[row][1:4])
        if one is not None:
            yield one


def _move_to_current(
    matches: Iterable[tuple[int, float]],
    index: PassageRows,
    current: CurrentDocument,
    own_texts: Mapping[int, StoredText],
) -> dict[int, Candidate | None]:
    """Move passages of the current document to where they stand now; None if one is gone."""
    place = _Places(current)
    moved: dict[int, Candidate | None] = {}
    for row, score in matches:
        passage = index.rows[row]
        stored = own_texts.get(passage.id)
        one = Candidate(row, score, *passage[1:4])
        moved[row] = None if stored is None else place.find(one, stored.text)
    return moved


def _is_query(one: Candidate, current: CurrentDocument) -> bool:
    """Return whether the query was made of a part of this passage."""
    return max(one.start, current.query_start) < min(one.end, current.query_end)


class _Places:
    """Finds where passages stand in the current text."""

    def __init__(self, current: CurrentDocument) -> None:
        self._text = current.text
        self._numbers: LineNumbers | None = None

    def find(self, one: Candidate, text: str) -> Candidate | None:
        """Move a passage to where it stands now; None if it is gone."""
        if self._text.startswith(text, one.start):
            return one
        start = self._text.find(text)
        if start < 0:
            return None
        self._numbers = self._numbers or LineNumbers(self._text)
        end = start + len(text)
        return one._replace(start=start, end=end, lines=self._numbers.spell(start, end))


def _groups(
    found: Iterable[Candidate], index: PassageRows, limit: int, query: Iterable[int]
) -> list[CandidateGroup]:
    groups: list[tuple[Candidate, list[Candidate]]] = []
    numbers: list[int] = []
    duplicates = Duplicates()
    is_single, rows = index.is_single, index.rows
    for one in found:
        number = None
        if not is_single[one.row]:
            known = duplicates.find(rows[one.row].sketch)
            number = None if known is None else numbers[known]
        if number is not None:
            groups[number][1].append(one)
        elif len(groups) == limit:
            break
        else:
            if not is_single[one.row]:
                numbers.append(len(groups))
            groups.append((one, []))
    own = frozenset(query)
    return [CandidateGroup(best, tuple(more), best.row in own) for best, more in groups]


def rank(
    groups: Sequence[CandidateGroup], index: PassageRows, texts: Mapping[int, StoredText]
) -> list[RankedPassage]:
    """Rank groups by the share that each has of the best one's score.

    What the query was made of is its own best match: it does not count as the best one. `texts`
    are those of the best of each group, by number.
    """
    best = max((group.best.score for group in groups if not group.is_query), default=1.0)
    scored = sorted(
        (
            (-round(min(1.0, group.best.score / best), 4), index.path(group.best.row), group)
            for group in groups
        ),
        key=lambda one: (one[0], one[1], one[2].best.start),
    )
    return [
        RankedPassage(
            found=_found_passage(group.best, path, texts[index.rows[group.best.row].id]),
            score=-negative,
            duplicates=tuple(f"{index.path(one.row)}#{one.lines}" for one in group.duplicates),
        )
        for negative, path, group in scored
    ]


def _found_passage(one: Candidate, path: str, stored: StoredText) -> FoundPassage:
    return FoundPassage(
        row=one.row,
        path=path,
        start=one.start,
        end=one.end,
        lines=one.lines,
        heading=stored.heading,
        text=stored.text,
        score=one.score,
    )


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
        first = hashes[: first_hashes(len(hashes))]
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


def first_hashes(count: int) -> int:
    """Return among how many first hashes two similar fingerprints of so many share one."""
    return count - math.ceil(SIMILARITY * count) + 1


def _hashes(fingerprint: bytes) -> tuple[int, ...]:
    if len(fingerprint) == _FULL_SKETCH.size:
        return _FULL_SKETCH.unpack(fingerprint)
    return struct.unpack(f"<{len(fingerprint) // 4}I", fingerprint)
