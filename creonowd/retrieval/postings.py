"""The terms of passages as arrays: packed for the disk, and for each term the passages that have it.

A term is a number here: two characters of a script without spaces as they are, a word by its hash.
Besides each passage stands the step that the term's weighted frequency reaches in it, which is all
that BM25 needs to know of the two.
"""

import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from creonowd.retrieval.query import is_word, terms_of

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

Numbers = NDArray[np.uint64]
Places = NDArray[np.uint32]
Levels = NDArray[np.uint8]


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
