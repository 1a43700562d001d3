"""Search the terms of all passages by BM25, from memory: what a query is about, best first.

Of a common term only the passages where it weighs most are scored; the best passages are then
looked up in the common terms that they contain besides. Passages are numbered by path and offset,
so no score and no order depends on when something was indexed.

The terms stand in arrays, packed for the disk, and for each term the passages that have it. A term
is a number here: two characters of a script without spaces as they are, a word by its hash. Beside
each passage stands the step that the term's weighted frequency reaches in it, which is all that
BM25 needs to know of the two.
"""

import math
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from creonowd.memo import Memo
from creonowd.retrieval.query import is_single_character, is_word, terms_of

# The lower ends of the steps; below the first a term is only present.
STEPS = (1.35, 1.9, 2.8, 4.2, 6.5, 9.5)
NOMINAL_LENGTH = 200
LENGTH_SHARE = 0.75

# What stands beside a passage: its heading alone has the term, its text has it, or a step above.
IN_HEADING, IN_TEXT = 0, 1
LEVELS = IN_TEXT + len(STEPS) + 1

_CHARACTER_BITS = 21
_WORD = 1 << 63
_PLACE_BITS, _LEVEL_BITS = 32, 3
_COMPRESSION = 1
_CHECKSUM_BYTES = 8

# A term in more passages is common.
COMMON = 512
SATURATION = 1.2

# The weighted frequency assumed for each level; mere presence comes first, in a heading or a text.
_TYPICAL = (1.0, 1.0, 1.6, 2.3, 3.4, 5.2, 7.6, 12.0)
IMPACTS = np.array([f * (SATURATION + 1) / (f + SATURATION) for f in _TYPICAL])

KEPT_BYTES = 8_000_000

_NO_ROWS = np.empty(0, np.int64)
_NO_LEVELS = np.empty(0, np.uint8)

Numbers = NDArray[np.uint64]
Places = NDArray[np.uint32]
Levels = NDArray[np.uint8]
Rows = NDArray[np.int64]
Scores = NDArray[np.float64]
Mask = NDArray[np.bool_]


@lru_cache(maxsize=8192)
def term_number(term: str) -> int:
    """Return the number of a term; those that begin with the same character lie side by side."""
    return _number(term)


def numbers_beginning_with(character: str) -> tuple[int, int]:
    """Return the first number of the terms that begin with a character, and the first after them."""
    first = ord(character)
    return first << _CHARACTER_BITS, (first + 1) << _CHARACTER_BITS


def _number(term: str) -> int:
    if is_word(term):
        digest = blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "little") >> 2 | _WORD
    second = ord(term[1]) if len(term) > 1 else 0
    return ord(term[0]) << _CHARACTER_BITS | second


def pack_terms(terms: Iterable[str], heading: str) -> bytes:
    """Return the terms of a passage and of the headings above it with their levels, packed."""
    counts = Counter(terms)
    ratio = 1 - LENGTH_SHARE + LENGTH_SHARE * counts.total() / NOMINAL_LENGTH
    levels = {count: _level(count / ratio) for count in set(counts.values())}
    found = {_number(term): levels[count] for term, count in counts.items()}
    for term in terms_of(heading):
        found.setdefault(_number(term), IN_HEADING)
    numbers = np.fromiter(sorted(found), np.uint64, len(found))
    steps = np.diff(numbers, prepend=np.uint64(0)).tobytes()
    return zlib.compress(steps + bytes(map(found.__getitem__, sorted(found))), _COMPRESSION)


def _level(frequency: float) -> int:
    return IN_TEXT + sum(frequency >= least for least in STEPS)


def _unpack(packed: bytes) -> tuple[Numbers, Levels]:
    data = zlib.decompress(packed)
    count = len(data) // 9
    numbers = np.cumsum(np.frombuffer(data, np.uint64, count), dtype=np.uint64)
    return numbers, np.frombuffer(data, np.uint8, count, 8 * count)


class TermSegment(NamedTuple):
    """The terms of some passages: `passages[places[starts[t]:starts[t + 1]]]` have `terms[t]`.

    Passages are named by their number in the database and ascend. Of each term those of the
    highest level come first.
    """

    passages: NDArray[np.int64]
    terms: Numbers
    starts: NDArray[np.uint32]
    places: Places
    levels: Levels

    @property
    def size(self) -> int:
        """How many bytes this takes."""
        return sum(array.nbytes for array in self)

    def to_bytes(self) -> bytes:
        """Return all arrays as they are in memory behind a checksum; reading them costs one copy."""
        counts = np.array([len(self.passages), len(self.terms), len(self.places)], np.int64)
        data = b"".join(array.tobytes() for array in (counts, *self))
        return _checksum(data) + data

    @classmethod
    def from_bytes(cls, data: bytes) -> "TermSegment":
        """Read what `to_bytes` returned; ValueError if it is anything else."""
        if _checksum(memoryview(data)[_CHECKSUM_BYTES:]) != data[:_CHECKSUM_BYTES]:
            raise ValueError("The arrays are damaged.")
        counts = np.frombuffer(data, np.int64, 3, _CHECKSUM_BYTES).tolist()
        passages, terms, places = counts
        lengths = ((np.int64, passages), (np.uint64, terms), (np.uint32, terms + 1))
        start = _CHECKSUM_BYTES + 24
        arrays: list[NDArray[np.generic]] = []
        for kind, length in (*lengths, (np.uint32, places), (np.uint8, places)):
            arrays.append(np.frombuffer(data, kind, length, start))
            start += arrays[-1].nbytes
        return cls(*arrays)  # pyright: ignore[reportArgumentType]


def _checksum(data: bytes | memoryview) -> bytes:
    return zlib.crc32(data).to_bytes(_CHECKSUM_BYTES, "little")


def no_passages() -> TermSegment:
    """Return a segment without passages."""
    return segment_of({})


def segment_of(packed: Mapping[int, bytes]) -> TermSegment:
    """Make a segment of passages, given their packed terms by number."""
    passages = sorted(packed)
    unpacked = [_unpack(packed[passage]) for passage in passages]
    numbers = np.concatenate([np.empty(0, np.uint64), *(one for one, _ in unpacked)])
    levels = np.concatenate([np.empty(0, np.uint8), *(one for _, one in unpacked)])
    lengths = [len(one) for one, _ in unpacked]
    terms, which = np.unique(numbers, return_inverse=True)
    places = np.repeat(np.arange(len(passages), dtype=np.uint32), lengths)
    return _sorted_segment(np.array(passages, np.int64), terms, which, places, levels)


def merge(one: TermSegment, other: TermSegment, alive: NDArray[np.int64]) -> TermSegment:
    """Put two segments together, leaving out passages that are not among `alive`, which ascend."""
    terms = np.union1d(one.terms, other.terms)
    parts = [_moved(segment, terms, alive) for segment in (one, other)]
    which, places, levels = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return _sorted_segment(alive, terms, which, places, levels)


def _moved(
    segment: TermSegment, terms: Numbers, alive: NDArray[np.int64]
) -> tuple[NDArray[np.uint32], Places, Levels]:
    """Return which term, place and level each posting of a segment has among others."""
    at = np.searchsorted(alive, segment.passages)
    stays = at < len(alive)
    stays[stays] = alive[at[stays]] == segment.passages[stays]
    kept = stays[segment.places]
    numbered = np.searchsorted(terms, segment.terms).astype(np.uint32)
    which = np.repeat(numbered, np.diff(segment.starts))
    places = at[segment.places[kept]].astype(np.uint32)
    return which[kept], places, segment.levels[kept]


def _sorted_segment(
    passages: NDArray[np.int64],
    terms: Numbers,
    which: NDArray[np.integer],
    places: Places,
    levels: Levels,
) -> TermSegment:
    """Sort postings by term, then by falling level, then by place; one number holds all three."""
    order = which.astype(np.uint64) << np.uint64(_PLACE_BITS + _LEVEL_BITS)
    order |= (LEVELS - 1 - levels).astype(np.uint64) << np.uint64(_PLACE_BITS)
    order |= places
    order.sort()
    used = (
        np.bincount(which, minlength=len(terms)) if len(which) else np.zeros(len(terms), np.int64)
    )
    is_used = used > 0
    starts = np.concatenate([[0], np.cumsum(used[is_used])]).astype(np.uint32)
    level = LEVELS - 1 - (order >> np.uint64(_PLACE_BITS)).astype(np.uint8) % (1 << _LEVEL_BITS)
    return TermSegment(
        passages=passages,
        terms=terms[is_used],
        starts=starts,
        places=order.astype(np.uint32),
        levels=level.astype(np.uint8),
    )


class TermPostings(NamedTuple):
    """The rows that have a term and the level in each; of a common one those of most impact.

    `present` says of every row whether its text has a common term.
    """

    rows: Rows
    levels: Levels
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
            return TermPostings(different, _levels(IN_TEXT, different), self._rarity(different))
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

    def _rows(self, first: int, end: int) -> tuple[Rows, Levels]:
        """Return rows and levels of the terms with numbers from `first` up to `end`."""
        rows: list[Rows] = []
        levels: list[Levels] = []
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


def _least_level(levels: Levels, enough: int) -> int:
    """Return the level down to which there are enough; the two of mere presence are one."""
    counts = np.bincount(levels, minlength=LEVELS)
    together = np.cumsum(counts[::-1])[::-1]
    fitting = np.flatnonzero(together >= enough)
    least = int(fitting[-1]) if len(fitting) else 0
    return least if least > IN_TEXT else 0


def _levels(level: int, rows: Rows) -> Levels:
    return np.full(len(rows), level, np.uint8)


def _sums(at: Rows, amounts: Scores, size: int) -> Scores:
    """Add up amounts by where they belong."""
    return cast("Scores", np.bincount(at, weights=amounts, minlength=size))


def _rounded(values: Scores) -> Scores:
    return np.round(values, 6)


def _weigh(_key: object, postings: TermPostings) -> int:
    present = 0 if postings.present is None else postings.present.nbytes
    return 500 + postings.rows.nbytes + postings.levels.nbytes + present
