"""Slices of a file without its secrets: a secret that a slice cuts does not leak from either side.

Knows where to look around a slice; knows no secret, only who finds them.

Each slice is judged together with what surrounds it: the rest of its lines, a kibibyte on both
sides, and the whole of a key block that it lies in. A secret shows as one placeholder, in
the slice where it begins; a slice that begins inside one has nothing to show for the rest. So the
redacted pages of a file, joined, are the redacted file, as long as a secret and what gives it
away lie within `FAR` of each other.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from creonowd.artifacts.pages import boundary, text
from creonowd.artifacts.tree import OpenFile
from creonowd.redaction import PLACEHOLDER, RedactionEvidence, Stretch

NEAR = 1024
FAR = 64 * 1024

_KEY_BEGINS = re.compile(rb"-{4,5} ?BEGIN [A-Z0-9 ]{0,24}PRIVATE KEY")
_KEY_ENDS = re.compile(rb"-{4,5} ?END [A-Z0-9 ]{0,24}PRIVATE KEY(?: BLOCK)? ?-{4,5}[^-]")
_LONGEST_WINDOW = 256 * 1024

Slice = tuple[int, int]


class Finder(Protocol):
    """Finds secrets in a text."""

    def find(self, text: str) -> Sequence[Stretch]:
        """List the stretches to take out, in order, none overlapping another."""
        ...


class Clean(NamedTuple):
    """The texts of slices without secrets, and what was taken out of them."""

    texts: list[str]
    evidence: tuple[RedactionEvidence, ...]


class Reader(NamedTuple):
    """Reads slices for someone: with the secrets taken out, or raw if there is no `finder`."""

    finder: Finder | None
    source_ref: str = ""

    def read(self, file: OpenFile, slices: Sequence[Slice], *, joined: bool = False) -> Clean:
        """Read slices, sorted by their starts.

        `joined` slices are meant to be put together; others show a placeholder for a secret that
        began before them.
        """
        if self.finder is None:
            return Clean([text(file.read_at(start, end - start)) for start, end in slices], ())
        texts: list[str] = []
        counts: Counter[str] = Counter()
        for low, high, inside in _windows(file, slices):
            window = file.read_at(low, high - low)
            decoded = text(window)
            stretches = self.finder.find(decoded)
            places = _characters(window, [place - low for piece in inside for place in piece])
            pairs = [(places[start - low], places[end - low]) for start, end in inside]
            texts += [_without(decoded, stretches, pair, joined=joined) for pair in pairs]
            counts.update(s.pattern_id for s in stretches if any(_touches(s, p) for p in pairs))
        return Clean(texts, self._evidence(counts))

    def _evidence(self, counts: "Counter[str]") -> tuple[RedactionEvidence, ...]:
        return tuple(
            RedactionEvidence(pattern_id=name, source_ref=self.source_ref, match_count=counts[name])
            for name in sorted(counts)
        )


def _without(decoded: str, stretches: Sequence[Stretch], piece: Slice, *, joined: bool) -> str:
    pieces: list[str] = []
    start, end = piece
    place = start
    for stretch in stretches:
        if not _touches(stretch, piece):
            continue
        pieces.append(decoded[place : max(place, stretch.start)])
        if stretch.start >= start or not joined:
            pieces.append(PLACEHOLDER)
        place = min(stretch.end, end)
    return "".join([*pieces, decoded[place:end]])


def _touches(stretch: Stretch, piece: Slice) -> bool:
    return stretch.start < piece[1] and stretch.end > piece[0]


def _windows(file: OpenFile, slices: Sequence[Slice]) -> Iterator[tuple[int, int, list[Slice]]]:
    """Look around every slice, and at neighbours together."""
    for inside in _neighbours(slices):
        yield *surroundings(file, inside[0][0], max(end for _, end in inside)), inside


def _neighbours(slices: Sequence[Slice]) -> Iterator[list[Slice]]:
    inside: list[Slice] = []
    for piece in slices:
        near = inside and piece[0] - inside[-1][1] <= NEAR
        if inside and not (near and piece[1] - inside[0][0] <= _LONGEST_WINDOW):
            yield inside
            inside = []
        inside.append(piece)
    if inside:
        yield inside


def surroundings(file: OpenFile, start: int, end: int) -> Slice:
    """Tell what to look at together with a slice to know which of it is secret."""
    lowest = max(0, start - FAR)
    before = file.read_at(lowest, start - lowest)
    left = _lines_before(before)
    begin = _open_key_block(before)
    if begin is not None:
        left, right = min(left, begin), FAR
    else:
        right = _lines_after(file, end)
    return boundary(file, lowest + left), boundary(file, min(file.size, end + right))


def _open_key_block(before: bytes) -> int | None:
    """Find where the key block begins that is not at its end yet."""
    if b"PRIVATE KEY" not in before:
        return None
    begins = [match.start() for match in _KEY_BEGINS.finditer(before)]
    if not begins or _KEY_ENDS.search(before, begins[-1]) is not None:
        return None
    return begins[-1]


def _lines_before(before: bytes) -> int:
    """Find the start of the line that lies `NEAR` before the end, or give up at the first byte."""
    near = max(0, len(before) - NEAR)
    return before.rfind(b"\n", 0, near) + 1


def _lines_after(file: OpenFile, end: int) -> int:
    """Find the end of the line that lies `NEAR` after `end`, or give up at `FAR`."""
    for length in (2 * NEAR, FAR):
        newline = file.read_at(end, length).find(b"\n", NEAR)
        if newline >= 0:
            return newline + 1
    return FAR


def _characters(window: bytes, places: Iterable[int]) -> dict[int, int]:
    """Tell of byte offsets, all between characters, which character each is."""
    found: dict[int, int] = {}
    done = count = 0
    for place in sorted(set(places)):
        count += len(text(window[done:place]))
        done = place
        found[place] = count
    return found
