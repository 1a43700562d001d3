"""An index in memory: the passages of a project in order, and their terms; never their texts.

What the database has is read once. After a change only the documents that differ are read again,
and their passages stand in a small segment beside the large one until that is worth merging. The
large one is kept in the database as it is in memory, so that a restart reads it in one piece.
"""

import contextlib
import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from creonowd.memo import Memo
from creonowd.redaction import PLACEHOLDER
from creonowd.retrieval.allusions import (
    AlludingText,
    Allusion,
    Allusions,
    DocumentRows,
)
from creonowd.retrieval.bm25 import (
    Mask,
    Scores,
    TermIndex,
    TermSegment,
    merge,
    no_passages,
    segment_of,
)
from creonowd.retrieval.passages import DamagedIndexError, text_digest
from creonowd.retrieval.ranking import (
    SKETCH_HASHES,
    Nearness,
    PassageRow,
    RankedPassage,
    SearchScope,
    first_hashes,
)

# The small segment is merged into the large one when it is an eighth of it.
LEAST_TO_MERGE = 256
SMALL_SHARE = 8

# For masks and factors: one of each for every place where authors are.
KEPT_BYTES = 4_000_000
KEPT_CHARACTERS = 4_000_000
# Five hundred authors ask in two scopes each; with half as much each asked anew.
KEPT_ALLUSIONS_BYTES = 18_000_000
KEPT_TEXTS = 2048
KEPT_ENDS = 100_000
KEPT_EXCERPTS = 2048
# How much of a score depends on how near the document stands to the author's.
NEAR_SHARE = 0.15

_NUMBERS = count()


class LoadedDocument(NamedTuple):
    """The passages of a document, in order; the mark changes with its text."""

    mark: tuple[int, bytes]
    rows: tuple[PassageRow, ...]


class LoadedIndex:
    """The index at one moment. Rows are numbered by path and offset; nothing in it changes.

    `is_single` says of each row that no other one has nearly the same text.
    """

    def __init__(
        self, documents: Mapping[str, LoadedDocument], segments: list[TermSegment]
    ) -> None:
        # Another for every index: what was found can be kept by it without keeping the index.
        self.number = next(_NUMBERS)
        self.paths = sorted(documents)
        self.rows: list[PassageRow] = [row for path in self.paths for row in documents[path].rows]
        lengths = [len(documents[path].rows) for path in self.paths]
        starts = accumulate(lengths, initial=0)
        self._rows_in = {
            path: range(start, start + length)
            for path, start, length in zip(self.paths, starts, lengths, strict=False)
        }
        self._documents = np.repeat(np.arange(len(self.paths)), lengths)
        self.documents: list[int] = self._documents.tolist()
        firsts = np.flatnonzero(np.diff(self._documents, prepend=-1))
        self._document_rows = DocumentRows(self._documents, firsts)
        self._ends = np.array([row.end for row in self.rows], np.int64)
        self._digests = {path: documents[path].mark[1] for path in self.paths}
        self._has_text: Memo[tuple[str, str], bool] = Memo(
            KEPT_CHARACTERS, lambda key, _has: 500 + len(key[1])
        )
        self._ends_in: Memo[str, list[int]] = Memo(KEPT_ENDS, lambda _path, ends: 1 + len(ends))
        self.is_single = _single_rows([row.sketch for row in self.rows])
        numbers = np.array([row.id for row in self.rows], np.int64)
        order = np.argsort(numbers)
        numbering = [_numbering(segment, numbers, order) for segment in segments]
        self.terms = TermIndex(len(self.rows), segments, numbering)
        self._chosen: Memo[frozenset[str], Mask] = Memo(KEPT_BYTES, _weigh)
        self._factors: Memo[Nearness, Scores] = Memo(KEPT_BYTES, _weigh)
        # Nothing here refers back to the index, so that its arrays are freed when another replaces it.
        size = len(self.rows)
        self._allusions: Memo[SearchScope, Allusions] = Memo(
            KEPT_ALLUSIONS_BYTES, lambda _scope, _allusions: 20_000 + size
        )
        self._alluding: Memo[tuple[SearchScope, tuple[str, ...]], AlludingText] = Memo(KEPT_TEXTS)
        self.excerpts: Memo[tuple[int, str], RankedPassage] = Memo(KEPT_EXCERPTS)
        """What is shown of a passage to which a sentence alludes."""

    def terms_in(self, scope: SearchScope | None) -> TermIndex:
        """Return the terms of all rows, or of those in a scope as if there were no others."""
        return self.terms if scope is None else self.terms.within(self._rows_in_scope(scope))

    def allusions_in(self, scope: SearchScope) -> Allusions:
        """Return what sentences allude to in a scope, kept for as long as the scope is."""

        def make() -> Allusions:
            documents = sum(path in self._rows_in for path in scope.documents)
            return Allusions(self.terms_in(scope), self._document_rows, documents)

        return self._allusions.get(scope, make)

    def allusions_after(
        self, scope: SearchScope, text: tuple[str, ...], added: tuple[str, ...] = ()
    ) -> list[Allusion]:
        """Return what a text alludes to in a scope once these sentences are added to it."""

        def begin() -> AlludingText:
            return AlludingText(self.documents, self.allusions_in(scope), text, added)

        alluding = self._alluding.get((scope, text), begin)
        return alluding.allusions_after(added, lambda: self.allusions_in(scope))

    def _rows_in_scope(self, scope: SearchScope) -> Mask:
        documents = scope.documents
        allowed = self._chosen.get(documents, lambda: self.rows_of(documents)).copy()
        own = self.rows_in(scope.own)
        allowed[own.start : own.stop] = self._ends[own.start : own.stop] <= scope.own_end
        return allowed

    def factors(self, nearness: Nearness) -> Scores:
        """Return by how much nearness raises the score of each row."""
        return self._factors.get(nearness, lambda: self._make_factors(nearness.values))

    def _make_factors(self, near: Mapping[str, float]) -> Scores:
        by_document = [1 - NEAR_SHARE + NEAR_SHARE * near.get(path, 0.0) for path in self.paths]
        return np.array(by_document)[self._documents] if by_document else np.ones(0)

    def has_text(self, path: str, text: str) -> bool:
        """Return whether a document was indexed with this text, as it is."""

        def compare() -> bool:
            return PLACEHOLDER not in text and self._digests.get(path) == text_digest(text)

        return self._has_text.get((path, text), compare)

    def ends_in(self, path: str) -> list[int]:
        """Return where the passages of a document begin and end, in order."""

        def sort() -> list[int]:
            rows = (self.rows[row] for row in self.rows_in(path))
            return sorted({at for row in rows for at in (row.start, row.end)})

        return self._ends_in.get(path, sort)

    def path(self, row: int) -> str:
        """Return the document of a row."""
        return self.paths[self.documents[row]]

    def rows_in(self, path: str) -> range:
        """Return the rows of a document; none if it is not in the index."""
        return self._rows_in.get(path, range(0))

    def rows_of(self, paths: Iterable[str]) -> Mask:
        """Return which rows belong to some documents."""
        chosen = np.zeros(len(self.rows), np.bool_)
        for path in paths:
            rows = self.rows_in(path)
            chosen[rows.start : rows.stop] = True
        return chosen


def _weigh(_key: object, array: NDArray[Any]) -> int:
    return 500 + array.nbytes


def _numbering(
    segment: TermSegment, numbers: NDArray[np.int64], order: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the row of each passage of a segment, -1 where there is none."""
    ordered = numbers[order]
    at = np.searchsorted(ordered, segment.passages)
    at[at == len(ordered)] = 0
    if not len(ordered):
        return np.full(len(segment.passages), -1, np.int64)
    return np.where(ordered[at] == segment.passages, order[at], -1)


def _single_rows(sketches: list[bytes]) -> list[bool]:
    """Return for each fingerprint whether certainly no other is similar.

    Two that share half of their hashes share one among the first few in any order; in the order
    of how rare the hashes are, hardly any others do.
    """
    lengths = np.array([len(sketch) // 4 for sketch in sketches], np.int64)
    padded = b"".join(sketch.ljust(4 * SKETCH_HASHES, b"\0") for sketch in sketches)
    hashes = np.frombuffer(padded, "<u4").reshape(-1, SKETCH_HASHES).astype(np.uint64)
    column = np.arange(SKETCH_HASHES)
    is_hash = column < lengths[:, None]
    _, which, counts = np.unique(hashes, return_inverse=True, return_counts=True)
    rarest = counts[which].reshape(hashes.shape).astype(np.uint64) << np.uint64(32) | hashes
    rarest[~is_hash] = np.iinfo(np.uint64).max
    rarest.sort(axis=1)
    few = np.array([first_hashes(count) for count in range(SKETCH_HASHES + 1)])[lengths]
    is_first = column < np.minimum(few, lengths)[:, None]
    first, owners = rarest[is_first], np.nonzero(is_first)[0]
    order = np.argsort(first)
    same = first[order][1:] == first[order][:-1]
    single = np.ones(len(sketches), np.bool_)
    single[owners[order][1:][same]] = False
    single[owners[order][:-1][same]] = False
    return single.tolist()


class IndexLoader:
    """Reads the index of a database into memory, each time only what is new."""

    def __init__(self) -> None:
        self._documents: dict[str, LoadedDocument] = {}
        self._large: TermSegment | None = None
        self._new: dict[int, bytes] = {}
        self._is_saved = True
        self._loaded: LoadedIndex | None = None

    def load(self, connection: sqlite3.Connection) -> LoadedIndex:
        """Return the index as the database has it now."""
        if self._large is None:
            self._large = _saved_segment(connection)
        documents = dict(self._read_documents(connection))
        if self._loaded is not None and documents == self._documents:
            return self._loaded
        self._documents = documents
        alive = {row.id for document in self._documents.values() for row in document.rows}
        self._read_terms(connection, alive)
        try:
            small = segment_of(self._new)
        except zlib.error as error:
            raise DamagedIndexError("the terms of a passage") from error
        if len(self._new) > max(LEAST_TO_MERGE, len(self._large.passages) // SMALL_SHARE):
            numbers = np.array(sorted(alive), np.int64)
            self._large = merge(self._large, small, numbers)
            self._new, small, self._is_saved = {}, no_passages(), False
        segments = [self._large, small] if self._new else [self._large]
        self._loaded = LoadedIndex(self._documents, segments)
        return self._loaded

    def save(self, connection: sqlite3.Connection) -> None:
        """Keep the large segment in the database."""
        assert self._large is not None
        connection.execute(
            "INSERT OR REPLACE INTO segments (id, data) VALUES (1, ?)", (self._large.to_bytes(),)
        )
        self._is_saved = True

    @property
    def is_saved(self) -> bool:
        """Whether the database has the large segment."""
        return self._is_saved

    def _read_documents(
        self, connection: sqlite3.Connection
    ) -> Iterator[tuple[str, LoadedDocument]]:
        documents = connection.execute("SELECT path, id, digest FROM documents").fetchall()
        for path, number, digest in documents:
            known = self._documents.get(path)
            if known is None or known.mark != (number, digest):
                rows = connection.execute(
                    "SELECT id, start, end, lines, sketch FROM passages WHERE document = ?"
                    " ORDER BY start",
                    (number,),
                )
                known = LoadedDocument((number, digest), tuple(PassageRow(*row) for row in rows))
            yield path, known

    def _read_terms(self, connection: sqlite3.Connection, alive: set[int]) -> None:
        assert self._large is not None
        loose = alive.difference(self._large.passages.tolist())
        kept = {number: terms for number, terms in self._new.items() if number in loose}
        missing = json.dumps(sorted(loose - kept.keys()))
        read = connection.execute(
            "SELECT id, terms FROM passages WHERE id IN (SELECT value FROM json_each(?))",
            (missing,),
        )
        self._new = kept | dict(read.fetchall())


def _saved_segment(connection: sqlite3.Connection) -> TermSegment:
    """Return what `save` kept; without it, or if it is damaged, all terms are read one by one."""
    saved = connection.execute("SELECT data FROM segments WHERE id = 1").fetchone()
    if saved is not None:
        with contextlib.suppress(ValueError):
            return TermSegment.from_bytes(saved[0])
    return no_passages()
