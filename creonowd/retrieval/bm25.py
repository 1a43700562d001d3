"""Search the terms of all passages by BM25, from memory: what a query is about, best first.

Of a common term only the passages where it weighs most are scored; the best passages are then
looked up in the common terms that they contain besides. Passages are numbered by path and offset,
so no score and no order depends on when something was indexed. All terms of a query are looked up
together, in a few passes of numpy: one after the other they took fifteen times as long.

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
from creonowd.retrieval.ranking import is_single_character, is_word, search_terms

# The lower ends of the steps; below the first a term is only present.
STEPS = (1.35, 1.9, 2.8, 4.2, 6.5, 9.5)
NOMINAL_LENGTH = 200
LENGTH_SHARE = 0.75

# What stands beside a passage: its heading alone has the term, its text has it, or a step above.
IN_HEADING, IN_TEXT = 0, 1
LEVELS = IN_TEXT + len(STEPS) + 1

_CHARACTER_BITS = 21
_WORD = 1 << 63
_FIRST_HAN, _LAST_HAN = 0x4E00, 0x9FFF
_PLACE_BITS, _LEVEL_BITS = 32, 3
_COMPRESSION = 1
_CHECKSUM_BYTES = 8

# A term in more passages is common.
COMMON = 512
SATURATION = 1.2

# The weighted frequency assumed for each level; mere presence comes first, in a heading or a text.
_TYPICAL = (1.0, 1.0, 1.6, 2.3, 3.4, 5.2, 7.6, 12.0)
IMPACTS = np.array([f * (SATURATION + 1) / (f + SATURATION) for f in _TYPICAL])

KEPT_BYTES = 4_000_000
# Short queries are asked together as long as there are no more scores to compute than that.
MOST_CELLS = 1_000_000

Numbers = NDArray[np.uint64]
Places = NDArray[np.unsignedinteger]
Levels = NDArray[np.uint8]
Rows = NDArray[np.int64]
Scores = NDArray[np.float64]
Mask = NDArray[np.bool_]


@lru_cache(maxsize=32_768)
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


def numbers_of(terms: Sequence[str]) -> Numbers:
    """Return the numbers of terms; all at once if they are pairs of common Han characters."""
    joined = "".join(terms)
    if len(joined) == 2 * len(terms):
        characters = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), "<u4")
        if ((characters >= _FIRST_HAN) & (characters <= _LAST_HAN)).all():
            first, second = characters.astype(np.uint64).reshape(-1, 2).T
            return first << np.uint64(_CHARACTER_BITS) | second
    return np.array([term_number(term) for term in terms], np.uint64)


def pack_terms(terms: Iterable[str], heading: str) -> bytes:
    """Return the terms of a passage and of the headings above it with their levels, packed."""
    counts = Counter(terms)
    ratio = 1 - LENGTH_SHARE + LENGTH_SHARE * counts.total() / NOMINAL_LENGTH
    levels = {count: _level(count / ratio) for count in set(counts.values())}
    found = {_number(term): levels[count] for term, count in counts.items()}
    for term in search_terms(heading):
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
        for kind, length in (*lengths, (_place_kind(passages), places), (np.uint8, places)):
            arrays.append(np.frombuffer(data, kind, length, start))
            start += arrays[-1].nbytes
        if start != len(data):
            raise ValueError("The arrays are those of another version.")
        return cls(*arrays)  # pyright: ignore[reportArgumentType]


def _place_kind(passages: int) -> type[np.unsignedinteger]:
    """Return the narrowest type for the places of so many passages: half of an index are places."""
    return np.uint16 if passages <= 1 << 16 else np.uint32


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
    terms, term_of_posting = np.unique(numbers, return_inverse=True)
    places = np.repeat(np.arange(len(passages), dtype=np.uint32), lengths)
    return _sorted_segment(np.array(passages, np.int64), terms, term_of_posting, places, levels)


def merge(one: TermSegment, other: TermSegment, alive: NDArray[np.int64]) -> TermSegment:
    """Put two segments together, leaving out passages that are not among `alive`, which ascend."""
    terms = np.union1d(one.terms, other.terms)
    parts = [_renumber(segment, terms, alive) for segment in (one, other)]
    term_of_posting, places, levels = (
        np.concatenate(arrays) for arrays in zip(*parts, strict=True)
    )
    return _sorted_segment(alive, terms, term_of_posting, places, levels)


def _renumber(
    segment: TermSegment, terms: Numbers, alive: NDArray[np.int64]
) -> tuple[NDArray[np.uint32], Places, Levels]:
    """Return the new number of the term, the place and the level of each posting that is kept."""
    at = np.searchsorted(alive, segment.passages)
    stays = at < len(alive)
    stays[stays] = alive[at[stays]] == segment.passages[stays]
    kept = stays[segment.places]
    numbered = np.searchsorted(terms, segment.terms).astype(np.uint32)
    term_of_posting = np.repeat(numbered, np.diff(segment.starts))
    places = at[segment.places[kept]].astype(np.uint32)
    return term_of_posting[kept], places, segment.levels[kept]


def _sorted_segment(
    passages: NDArray[np.int64],
    terms: Numbers,
    term_of_posting: NDArray[np.integer],
    places: Places,
    levels: Levels,
) -> TermSegment:
    """Sort postings by term, then by falling level, then by place; one number holds all three."""
    order = term_of_posting.astype(np.uint64)
    order <<= np.uint64(_LEVEL_BITS)
    order |= LEVELS - 1 - levels
    order <<= np.uint64(_PLACE_BITS)
    order |= places
    order.sort()
    used = (
        np.bincount(term_of_posting, minlength=len(terms))
        if len(term_of_posting)
        else np.zeros(len(terms), np.int64)
    )
    is_used = used > 0
    starts = np.concatenate([[0], np.cumsum(used[is_used])]).astype(np.uint32)
    level = LEVELS - 1 - (order >> np.uint64(_PLACE_BITS)).astype(np.uint8) % (1 << _LEVEL_BITS)
    return TermSegment(
        passages=passages,
        terms=terms[is_used],
        starts=starts,
        places=order.astype(_place_kind(len(passages))),
        levels=level.astype(np.uint8),
    )


class Postings(NamedTuple):
    """The rows that have a term, for all terms of a query, one after the other.

    `steps[i]` is `LEVELS` times the number of the term that `rows[i]` has, plus its level there.
    """

    rows: Rows
    steps: NDArray[np.int64]

    @property
    def levels(self) -> NDArray[np.int64]:
        """The level of each."""
        return self.steps % LEVELS


class NumberedPostings(NamedTuple):
    """The rows that have a term, for all of some terms, one after the other.

    `term_of_posting[i]` is the term that `rows[i]` has, and `levels[i]` its level there.
    """

    rows: Rows
    term_of_posting: NDArray[np.int64]
    levels: NDArray[np.int64]

    def only(self, chosen: Mask) -> "NumberedPostings":
        """Return some of them."""
        return NumberedPostings(
            self.rows[chosen], self.term_of_posting[chosen], self.levels[chosen]
        )


class Matches(NamedTuple):
    """Rows and their scores, best first; ties by path and offset."""

    rows: Rows
    scores: Scores

    @property
    def weight(self) -> int:
        """How many bytes it takes to keep them."""
        return 500 + self.rows.nbytes + self.scores.nbytes


class TermIndex:
    """The terms of passages that are numbered from zero, in segments.

    `numbering[i]` has the row of each passage of the i-th segment, or -1 for one that is gone.
    """

    def __init__(
        self, size: int, segments: Sequence[TermSegment], numbering: Sequence[NDArray[np.int64]]
    ) -> None:
        self.size = self.population = size
        self.allowed: Mask | None = None
        self.parts = list(zip(segments, numbering, strict=True))
        self._kept: Memo[tuple[str, ...], Postings] = Memo(KEPT_BYTES, _weigh)
        self._numbered: Memo[bytes, NumberedPostings] = Memo(KEPT_BYTES, _weigh_numbered)

    def within(self, allowed: Mask) -> "TermIndex":
        """Return an index of only some rows, which scores as if the others did not exist."""
        some = TermIndex(self.size, (), ())
        some.allowed, some.population = allowed, int(np.count_nonzero(allowed))
        some.parts, some._kept, some._numbered = self.parts, self._kept, self._numbered
        return some

    def look_up(self, terms: Iterable[str]) -> Postings:
        """Return the postings of terms, those that are not allowed too."""
        wanted = tuple(terms)
        return self._kept.get(wanted, lambda: self._look_up(wanted))

    def postings_by_number(self, terms: Numbers) -> "NumberedPostings":
        """Return the postings of terms that are given by their numbers, those not allowed too."""
        return self._numbered.get(terms.tobytes(), lambda: self._find_numbered(terms))

    def _find_numbered(self, terms: Numbers) -> "NumberedPostings":
        every = np.arange(len(terms))
        found = _join_postings([_find(part, rows, terms, every) for part, rows in self.parts])
        return NumberedPostings(found.rows, *np.divmod(found.steps, LEVELS))

    def _look_up(self, terms: tuple[str, ...]) -> Postings:
        single = [number for number, term in enumerate(terms) if is_single_character(term)]
        found = [self._beginning_with(terms[number], number) for number in single]
        longer = [number for number in range(len(terms)) if number not in single]
        numbers = np.array([term_number(terms[number]) for number in longer], np.uint64)
        places = np.array(longer, np.int64)
        found += [_find(part, rows, numbers, places) for part, rows in self.parts]
        return _join_postings(found)

    def _beginning_with(self, character: str, number: int) -> Postings:
        """Return the rows with a single character: it is the beginning of some pairs."""
        bounds = np.array(numbers_beginning_with(character), np.uint64)
        rows: list[Rows] = [np.empty(0, np.int64)]
        for segment, numbering in self.parts:
            low, high = np.searchsorted(segment.terms, bounds).tolist()
            part = slice(int(segment.starts[low]), int(segment.starts[high]))
            rows.append(numbering[segment.places[part]])
        different = np.unique(np.concatenate(rows))
        alive = different[different >= 0]
        return Postings(alive, np.full(len(alive), number * LEVELS + IN_TEXT, np.int64))


def _find(
    segment: TermSegment, numbering: Rows, numbers: NDArray[np.uint64], terms: Rows
) -> Postings:
    """Find the postings of many terms, given their numbers and their places in the query."""
    at = segment.terms.searchsorted(numbers)
    at[at == len(segment.terms)] = 0
    has = segment.terms[at] == numbers if len(segment.terms) else np.zeros(len(at), np.bool_)
    at = at[has]
    starts = segment.starts[at].astype(np.int64)
    lengths = segment.starts[at + 1] - starts
    ends = lengths.cumsum()
    total = int(ends[-1]) if len(ends) else 0
    places = np.arange(total) + (starts - (ends - lengths)).repeat(lengths)
    rows = numbering[segment.places[places]]
    steps = (terms[has] * LEVELS).repeat(lengths) + segment.levels[places]
    alive = rows >= 0
    return Postings(rows, steps) if alive.all() else Postings(rows[alive], steps[alive])


def _join_postings(parts: Sequence[Postings]) -> Postings:
    """Put postings together; those of one row stay in the order of the terms."""
    if len(parts) == 1:
        return parts[0]
    none = np.empty(0, np.int64)
    rows = np.concatenate([none, *(part.rows for part in parts)])
    steps = np.concatenate([none, *(part.steps for part in parts)])
    order = np.argsort(steps // LEVELS, kind="stable")
    return Postings(rows[order], steps[order])


def search(
    index: TermIndex, weights: Mapping[str, float], most: int, factors: Scores | None = None
) -> Matches:
    """Find at least `most` rows if there are so many.

    Weights are factors of terms; only their ratios matter. `factors` are those of rows.
    """
    lookup = _LookUp(index, weights, most)
    values = lookup.values.ravel()
    scores = _sums(lookup.scored.rows, values[lookup.scored.steps], index.size)
    if factors is not None:
        scores = scores * factors
    rows = _best(scores, most)
    final = lookup.scores(rows, _round(values))
    final = _round(final if factors is None else final * factors[rows])
    order = np.lexsort((rows, -final))
    return Matches(rows[order], final[order])


class LeadingRow(NamedTuple):
    """The row with the best score, and how far that is before those of all other documents."""

    row: int
    lead: float


class AskedTerms(NamedTuple):
    """The terms of many short queries."""

    queries: int
    """How many queries there are."""
    terms: Numbers
    """Each term once."""
    query_index: NDArray[np.int64]
    """The query of each use of a term."""
    term_index: NDArray[np.int64]
    """The term of each use."""


def leading_rows(
    index: TermIndex, found: NumberedPostings, terms: AskedTerms, firsts: Rows
) -> list[LeadingRow | None]:
    """Return the best row of each of many short queries; None for a query that finds nothing.

    `found` are the postings of the terms that are allowed, and `firsts` the first rows of the
    documents. Terms that are too common to set passages apart are skipped.
    """
    frequencies = np.bincount(found.term_of_posting, minlength=len(terms.terms))
    rarity = np.log(1 + (index.population - frequencies + 0.5) / (frequencies + 0.5))
    worth = rarity[found.term_of_posting] * IMPACTS[found.levels]
    use_frequencies = frequencies[terms.term_index]
    is_rare = (use_frequencies > 0) & (use_frequencies <= COMMON)
    query_of_use, term_of_use = terms.query_index[is_rare], terms.term_index[is_rare]
    lengths = use_frequencies[is_rare]
    # Methods of arrays: for a sentence numpy's functions take two to four times as long.
    ends = lengths.cumsum()
    starts = frequencies.cumsum()[term_of_use] - ends
    at = np.arange(int(ends[-1]) if len(ends) else 0) + starts.repeat(lengths)
    cells = (query_of_use * index.size).repeat(lengths) + found.rows[at]
    leading: list[LeadingRow | None] = []
    at_once = max(1, MOST_CELLS // max(1, index.size))
    for start in range(0, terms.queries, at_once):
        most = min(at_once, terms.queries - start)
        low, high = 0, len(cells)
        if most < terms.queries:
            bounds = np.array([start, start + most]) * index.size
            low, high = np.searchsorted(cells // index.size * index.size, bounds).tolist()
        part = cells[low:high] - start * index.size
        table = _sums(part, worth[at[low:high]], most * index.size)
        leading += _leading_rows(table.reshape(most, -1), firsts)
    return leading


def _leading_rows(table: Scores, firsts: Rows) -> list[LeadingRow | None]:
    """Return the leading row of each line of scores."""
    if not table.size:
        return [None] * len(table)
    of_documents = _round(np.maximum.reduceat(table, firsts, axis=1))
    lines, leading = np.arange(len(table)), of_documents.argmax(axis=1)
    best = of_documents[lines, leading]
    of_documents[lines, leading] = 0.0
    leads = (best - of_documents.max(axis=1)).tolist()
    ends = np.empty_like(firsts)
    ends[:-1], ends[-1] = firsts[1:], table.shape[1]
    starts = firsts[leading]
    rows = _first_best(table, best, starts, ends[leading] - starts)
    columns = zip(rows, best.tolist(), leads, strict=True)
    return [LeadingRow(row, lead) if score > 0 else None for row, score, lead in columns]


def _first_best(table: Scores, best: Scores, starts: Rows, lengths: Rows) -> list[int]:
    """Return in each line the first place that has its best score, after rounding.

    Only the first document with that score is searched: searching whole lines took a quarter of the
    time of `leading_rows`.
    """
    ends = lengths.cumsum()
    before = ends - lengths
    places = np.arange(int(ends[-1])) + (starts - before).repeat(lengths)
    of_places = _round(table[np.arange(len(best)).repeat(lengths), places])
    (same,) = (of_places == best.repeat(lengths)).nonzero()
    return places[same[same.searchsorted(before)]].tolist()


def shares_of(
    index: TermIndex, weights: Mapping[str, float], most: int, rows: Sequence[int]
) -> list[dict[str, float]]:
    """Return how much each term adds to the score of each row, in a search for `most`."""
    shares: list[dict[str, float]] = [{} for _ in rows]
    lookup = _LookUp(index, weights, most)
    values: list[float] = _round(lookup.values.ravel()).tolist()
    place = {row: number for number, row in enumerate(rows)}
    terms = list(weights)
    for found in (lookup.scored, lookup.secondary):
        for row, step in zip(found.rows.tolist(), found.steps.tolist(), strict=True):
            if row in place:
                shares[place[row]][terms[step // LEVELS]] = values[step]
    return shares


class _LookUp:
    """The postings of all terms of a query that are allowed, and what each is worth.

    Of a common term, the postings of most impact are `scored`. The others are `secondary`: they add
    to rows that other terms have chosen, and only whether they are there counts.
    """

    def __init__(self, index: TermIndex, weights: Mapping[str, float], most: int) -> None:
        alone = len(weights) == 1
        self._size = index.size
        found = index.look_up(weights)
        if index.allowed is not None:
            allowed = index.allowed[found.rows]
            found = Postings(found.rows[allowed], found.steps[allowed])
        counts = np.bincount(found.steps, minlength=len(weights) * LEVELS).reshape(-1, LEVELS)
        frequencies: list[int] = counts.sum(axis=1).tolist()
        self.scored, self.secondary = found, _NOTHING
        common = [
            number
            for number, (term, frequency) in enumerate(zip(weights, frequencies, strict=True))
            if frequency > COMMON and not is_single_character(term)
        ]
        if common:
            self._split_common_terms(counts, common, most if alone else COMMON)
        # A single term has nothing to be compared with.
        worth = np.array(list(weights.values()))
        if not alone:
            worth *= np.array([_rarity(index.population, each) for each in frequencies])
        self.values: Scores = worth[:, None] * IMPACTS

    def _split_common_terms(
        self, counts: NDArray[np.int64], common: Sequence[int], enough: int
    ) -> None:
        """Score of common terms only the levels down to which there are enough rows."""
        found = self.scored
        least = np.zeros(len(counts), np.int64)
        for number in common:
            least[number] = _least_level(counts[number], enough)
        levels = found.levels
        scored = levels >= least[found.steps // LEVELS]
        secondary = ~scored & (levels >= IN_TEXT)
        self.scored = Postings(found.rows[scored], found.steps[scored])
        steps = found.steps[secondary]
        self.secondary = Postings(found.rows[secondary], steps - steps % LEVELS + IN_TEXT)

    def scores(self, rows: Rows, values: Scores) -> Scores:
        """Add up what all terms are worth in some rows, common ones too that stand there besides."""
        place = np.full(self._size, -1, np.int64)
        place[rows] = np.arange(len(rows))
        chosen: list[Rows] = []
        amounts: list[Scores] = []
        for found in (self.scored, self.secondary):
            at = place[found.rows]
            counts = at >= 0
            chosen.append(at[counts])
            amounts.append(values[found.steps[counts]])
        return _sums(np.concatenate(chosen), np.concatenate(amounts), len(rows))


_NOTHING = Postings(np.empty(0, np.int64), np.empty(0, np.int64))


def _rarity(population: int, frequency: int) -> float:
    return math.log(1 + (population - frequency + 0.5) / (frequency + 0.5))


def _best(scores: Scores, most: int) -> Rows:
    """Choose the rows with the best scores; of those with equal scores, the first ones."""
    found = np.flatnonzero(scores)
    if len(found) <= most:
        return found
    of_found = scores[found]
    least = np.partition(of_found, len(found) - most)[len(found) - most]
    better = found[of_found > least]
    equal = found[of_found == least]
    return np.concatenate([better, equal[: most - len(better)]])


def _least_level(counts: NDArray[np.int64], enough: int) -> int:
    """Return the level down to which there are enough; the two of mere presence are one."""
    together = np.cumsum(counts[::-1])[::-1]
    fitting = np.flatnonzero(together >= enough)
    least = int(fitting[-1]) if len(fitting) else 0
    return least if least > IN_TEXT else 0


def _sums(at: Rows, amounts: Scores, size: int) -> Scores:
    """Add up amounts by where they belong."""
    return cast("Scores", np.bincount(at, weights=amounts, minlength=size))


def _round(values: Scores) -> Scores:
    return values.round(6)


def _weigh_numbered(terms: bytes, postings: NumberedPostings) -> int:
    return 500 + len(terms) + sum(array.nbytes for array in postings)


def _weigh(terms: tuple[str, ...], postings: Postings) -> int:
    return 500 + 100 * len(terms) + postings.rows.nbytes + postings.steps.nbytes
