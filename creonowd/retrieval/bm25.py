"""Search the terms of all passages by BM25, from memory: what a query is about, best first.

Of a common term only the passages where it weighs most are scored; the best passages are then
looked up in the common terms that they contain besides. Passages are numbered by path and offset,
so no score and no order depends on when something was indexed.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from creonowd.memo import Memo
from creonowd.retrieval.postings import (
    IN_TEXT,
    LEVELS,
    TermSegment,
    numbers_beginning_with,
    term_number,
)
from creonowd.retrieval.query import is_single_character

# A term in more passages is common.
COMMON = 512
SATURATION = 1.2

# The weighted frequency assumed for each level; mere presence comes first, in a heading or a text.
_TYPICAL = (1.0, 1.0, 1.6, 2.3, 3.4, 5.2, 7.6, 12.0)
IMPACTS = np.array([f * (SATURATION + 1) / (f + SATURATION) for f in _TYPICAL])

KEPT_BYTES = 8_000_000

_NO_ROWS = np.empty(0, np.int64)
_NO_LEVELS = np.empty(0, np.uint8)

Rows = NDArray[np.int64]
Scores = NDArray[np.float64]
Mask = NDArray[np.bool_]


class TermPostings(NamedTuple):
    """The rows that have a term and the level in each; of a common one those of most impact.

    `present` says of every row whether its text has a common term.
    """

    rows: Rows
    levels: NDArray[np.uint8]
    rarity: float
    present: Mask | None = None


class Matches(NamedTuple):
    """Rows and their scores, best first; ties by path and offset."""

    rows: Rows
    scores: Scores


class TermIndex:
    """The terms of passages that are numbered from zero, in segments.

    `numbering[i]` has the row of each passage of the i-th segment, or -1 for one that is gone.
    """

    def __init__(
        self,
        size: int,
        segments: Sequence[TermSegment],
        numbering: Sequence[NDArray[np.int64]],
        population: int | None = None,
    ) -> None:
        self.size = size
        self.population = size if population is None else population
        self.parts = list(zip(segments, numbering, strict=True))
        self._kept: Memo[tuple[str, int], TermPostings] = Memo(KEPT_BYTES, _weigh)

    def within(self, allowed: Mask) -> "TermIndex":
        """Return the same index as if it had only some rows: nothing shows what the others say."""
        segments = [segment for segment, _ in self.parts]
        numbering = [
            np.where((rows >= 0) & allowed[rows], rows, -1) if len(allowed) else rows
            for _, rows in self.parts
        ]
        return TermIndex(self.size, segments, numbering, int(np.count_nonzero(allowed)))

    def look_up(self, term: str, enough: int) -> TermPostings:
        """Return the postings of a term; of a common one at least `enough`, if there are so many."""
        return self._kept.get((term, enough), lambda: self._look_up(term, enough))

    def _look_up(self, term: str, enough: int) -> TermPostings:
        if is_single_character(term):
            # The index has pairs of characters: a single one is the beginning of some.
            rows, _ = self._rows(*numbers_beginning_with(term))
            different = np.unique(rows)
            return TermPostings(different, _level(IN_TEXT, different), self._rarity(different))
        number = term_number(term)
        rows, levels = self._rows(number, number + 1)
        if len(rows) <= COMMON:
            return TermPostings(rows, levels, self._rarity(rows))
        present = np.zeros(self.size, np.bool_)
        present[rows[levels >= IN_TEXT]] = True
        chosen = levels >= _least_level(levels, enough)
        return TermPostings(rows[chosen], levels[chosen], self._rarity(rows), present)

    def _rarity(self, rows: Rows) -> float:
        frequency = len(rows)
        return math.log(1 + (self.population - frequency + 0.5) / (frequency + 0.5))

    def _rows(self, first: int, end: int) -> tuple[Rows, NDArray[np.uint8]]:
        """Return rows and levels of the terms with numbers from `first` up to `end`."""
        rows: list[Rows] = []
        levels: list[NDArray[np.uint8]] = []
        bounds = np.array([first, end], np.uint64)
        for segment, numbering in self.parts:
            low, high = np.searchsorted(segment.terms, bounds).tolist()
            if low == high:
                continue
            part = slice(int(segment.starts[low]), int(segment.starts[high]))
            found = numbering[segment.places[part]]
            alive = found >= 0
            rows.append(found[alive])
            levels.append(segment.levels[part][alive])
        if len(rows) == 1:
            return rows[0], levels[0]
        return np.concatenate([_NO_ROWS, *rows]), np.concatenate([_NO_LEVELS, *levels])


def search(
    index: TermIndex, weights: Mapping[str, float], most: int, factors: Scores | None = None
) -> Matches:
    """Find at least `most` rows if there are so many.

    Weights are factors of terms; only their ratios matter. `factors` are those of rows.
    """
    lookup = _LookUp(index, weights, most)
    values = lookup.values[:, None] * IMPACTS
    scores = _sums(lookup.rows, values[lookup.terms, lookup.levels], index.size)
    if factors is not None:
        scores = scores * factors
    rows = _best(scores, most)
    final = lookup.scores(rows, _rounded(values))
    final = _rounded(final if factors is None else final * factors[rows])
    order = np.lexsort((rows, -final))
    return Matches(rows[order], final[order])


def shares_of(
    index: TermIndex, weights: Mapping[str, float], most: int, rows: Sequence[int]
) -> list[dict[str, float]]:
    """Return how much each term adds to the score of each row, in a search for `most`."""
    wanted = np.array(rows, np.int64)
    shares: list[dict[str, float]] = [{} for _ in rows]
    lookup = _LookUp(index, weights, most)
    values: list[list[float]] = _rounded(lookup.values[:, None] * IMPACTS).tolist()
    place = {row: number for number, row in enumerate(rows)}
    for term, postings, of_term in zip(weights, lookup.postings, values, strict=True):
        for row, level in zip(postings.rows.tolist(), postings.levels.tolist(), strict=True):
            if row in place:
                shares[place[row]][term] = of_term[level]
        if postings.present is not None:
            for number in np.flatnonzero(postings.present[wanted]).tolist():
                shares[number].setdefault(term, of_term[IN_TEXT])
    return shares


class _LookUp:
    """The postings of all terms of a query, one after the other."""

    def __init__(self, index: TermIndex, weights: Mapping[str, float], most: int) -> None:
        alone = len(weights) == 1
        enough = most if alone else COMMON
        self._size = index.size
        self.postings = [index.look_up(term, enough) for term in weights]
        self._lengths = [len(postings.rows) for postings in self.postings]
        self.rows = np.concatenate([postings.rows for postings in self.postings])
        self.levels = np.concatenate([postings.levels for postings in self.postings])
        self.terms = np.repeat(np.arange(len(self._lengths)), self._lengths)
        # A single term has nothing to be compared with.
        self.values = np.array(list(weights.values()))
        if not alone:
            self.values *= np.array([postings.rarity for postings in self.postings])

    def scores(self, rows: Rows, values: Scores) -> Scores:
        """Add up what all terms are worth in some rows, common ones too that stand there besides."""
        place = np.full(self._size, -1, np.int64)
        place[rows] = np.arange(len(rows))
        at = place[self.rows]
        found = at >= 0
        shares = values[self.terms[found], self.levels[found]]
        scores = _sums(at[found], shares, len(rows))
        end = 0
        for term, length in enumerate(self._lengths):
            end += length
            present = self.postings[term].present
            if present is not None:
                more = present[rows]
                counted = at[end - length : end]
                more[counted[counted >= 0]] = False
                scores[more] += values[term, IN_TEXT]
        return scores


def _best(scores: Scores, most: int) -> Rows:
    """Choose the rows with the best scores; those that share the last place by their order."""
    found = np.flatnonzero(scores)
    if len(found) <= most:
        return found
    of_found = scores[found]
    least = np.partition(of_found, len(found) - most)[len(found) - most]
    better = found[of_found > least]
    equal = found[of_found == least]
    return np.concatenate([better, equal[: most - len(better)]])


def _least_level(levels: NDArray[np.uint8], enough: int) -> int:
    """Return the level down to which there are enough; the two of mere presence are one."""
    counts = np.bincount(levels, minlength=LEVELS)
    together = np.cumsum(counts[::-1])[::-1]
    fitting = np.flatnonzero(together >= enough)
    least = int(fitting[-1]) if len(fitting) else 0
    return least if least > IN_TEXT else 0


def _level(level: int, rows: Rows) -> NDArray[np.uint8]:
    return np.full(len(rows), level, np.uint8)


def _sums(at: Rows, amounts: Scores, size: int) -> Scores:
    """Add up amounts by where they belong."""
    return cast("Scores", np.bincount(at, weights=amounts, minlength=size))


def _rounded(values: Scores) -> Scores:
    return np.round(values, 6)


def _weigh(_key: object, postings: TermPostings) -> int:
    present = 0 if postings.present is None else postings.present.nbytes
    return 500 + postings.rows.nbytes + postings.levels.nbytes + present
