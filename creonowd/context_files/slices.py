"""Slices of a file without its secrets: a secret that a slice cuts does not leak from either side.

Knows where to look around a slice; knows no secret, only who finds them.

Each slice is judged together with what surrounds it: the rest of its lines, a kibibyte on both
sides, and the whole of a key block that it lies in. A secret shows as one placeholder, in
the slice where it begins; a slice that begins inside one has nothing to show for the rest. So the
redacted pages of a file, joined, are the redacted file, as long as a secret and what gives it
away lie within `FAR` of each other.
"""

import codecs
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from creonowd.redaction import PLACEHOLDER, RedactionEvidence, SecretSpan
from creonowd.storage.safe_folder import OpenFile

LONGEST_CHARACTER = 4

_SLIPS_ARE_RARE = 20
_HALF = (0, True)
_WHOLE = (1, False)


class ByteRange(NamedTuple):
    """The bytes `[start, end)` of a file, both between characters; `done` if nothing follows."""

    start: int
    end: int
    done: bool


def page(file: OpenFile, offset: int, limit: int) -> ByteRange:
    """Find the page of about `limit` bytes at `offset`: at least one character, unless at the end.

    An offset inside a character moves back to its start, and so does the end: pages asked for at
    multiples of the limit join up as those asked for at the end of the last one do. Half a character at the end of a file
    that may still grow is kept for a page of its own.
    """
    size = file.size
    start = boundary(file, min(offset, size))
    end = boundary(file, min(offset + limit, size))
    if end <= start:
        end = _next_boundary(file, start, size)
    if end == size and start < (half := _half_character(file, size)) < size:
        return ByteRange(start, half, done=False)
    return ByteRange(start, end, done=end >= size)


def boundary(file: OpenFile, offset: int) -> int:
    """Move an offset back to the start of the character that it would cut."""
    start = max(0, offset - LONGEST_CHARACTER + 1)
    around = file.read_at(start, offset - start + 1)
    place = offset - start
    if place >= len(around) or around[place] & 0xC0 != 0x80:
        return offset
    for back in range(1, place + 1):
        if _progress(around[place - back : place + 1]) in {_HALF, _WHOLE}:
            return offset - back
    return offset


def text(data: bytes) -> str:
    """Read bytes as UTF-8; what is none becomes U+FFFD."""
    return data.decode("utf-8", "replace")


def whole_text(data: bytes) -> str | None:
    """Read bytes that are UTF-8 throughout; None if they are not."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def spoilt_text(data: bytes) -> str | None:
    """Read bytes that are text but for a slip here and there; None if they are no text at all."""
    read = text(data)
    no_text = b"\0" in data or _SLIPS_ARE_RARE * read.count("\ufffd") > len(read)
    return None if no_text else read


def _next_boundary(file: OpenFile, start: int, size: int) -> int:
    for end in range(start + 1, min(start + LONGEST_CHARACTER, size)):
        if boundary(file, end) == end:
            return end
    return min(start + LONGEST_CHARACTER, size)


def _half_character(file: OpenFile, size: int) -> int:
    last = file.read_at(max(0, size - LONGEST_CHARACTER + 1), LONGEST_CHARACTER - 1)
    halves = (back for back in range(1, len(last) + 1) if _progress(last[-back:]) == _HALF)
    return size - next(halves, 0)


def _progress(data: bytes) -> tuple[int, bool] | None:
    """Tell how many characters are whole and whether one more has begun; None if it is no UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        return len(decoder.decode(data)), bool(decoder.getstate()[0])
    except UnicodeDecodeError:
        return None


_FIRST_BLOCK = 8 * 1024
_LARGEST_BLOCK = 64 * 1024


def tail(file: OpenFile, lines: int, most_bytes: int) -> ByteRange:
    """Find the last `lines` lines as `tail(1)` does; `done` is False if `most_bytes` cut them."""
    size = file.size
    start = line_start_before(file, size, lines, max(0, size - most_bytes))
    if start is not None:
        return ByteRange(start, size, done=True)
    return ByteRange(boundary(file, size - most_bytes), size, done=False)


def line_start_before(file: OpenFile, end: int, lines: int, lowest: int) -> int | None:
    """Find where the last `lines` lines before `end` begin; None if that is below `lowest`.

    A newline right before `end` closes the last line and opens no further one.
    """
    place = end
    length = _FIRST_BLOCK
    while place > lowest:
        start = max(lowest, place - length)
        length = min(2 * length, _LARGEST_BLOCK)
        block = file.read_at(start, place - start)
        search_end = len(block) - (1 if place == end else 0)
        while (newline := block.rfind(b"\n", 0, max(0, search_end))) >= 0:
            lines -= 1
            if lines == 0:
                return start + newline + 1
            search_end = newline
        place = start
    return 0 if lowest == 0 else None


def count_lines(data: bytes) -> int:
    """Count lines; the last one need not end in a newline."""
    return data.count(b"\n") + (1 if data and not data.endswith(b"\n") else 0)


NEAR = 1024
FAR = 64 * 1024

_KEY_BEGINS = re.compile(rb"-{4,5} ?BEGIN [A-Z0-9 ]{0,24}PRIVATE KEY")
_KEY_ENDS = re.compile(rb"-{4,5} ?END [A-Z0-9 ]{0,24}PRIVATE KEY(?: BLOCK)? ?-{4,5}[^-]")
_LONGEST_WINDOW = 256 * 1024

Slice = tuple[int, int]


class SecretFinder(Protocol):
    """Finds secrets in a text."""

    def find(self, text: str) -> Sequence[SecretSpan]:
        """List the stretches to take out, in order, none overlapping another."""
        ...


class RedactedSlices(NamedTuple):
    """The texts of slices without secrets, and what was taken out of them."""

    texts: list[str]
    evidence: tuple[RedactionEvidence, ...]


class Reader(NamedTuple):
    """Reads slices for someone: with the secrets taken out, or raw if there is no `finder`."""

    finder: SecretFinder | None
    source_ref: str = ""

    def read(
        self, file: OpenFile, slices: Sequence[Slice], *, joined: bool = False
    ) -> RedactedSlices:
        """Read slices, sorted by their starts.

        `joined` slices are meant to be put together; others show a placeholder for a secret that
        began before them.
        """
        if self.finder is None:
            return RedactedSlices(
                [text(file.read_at(start, end - start)) for start, end in slices], ()
            )
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
        return RedactedSlices(texts, self._evidence(counts))

    def _evidence(self, counts: "Counter[str]") -> tuple[RedactionEvidence, ...]:
        return tuple(
            RedactionEvidence(pattern_id=name, source_ref=self.source_ref, match_count=counts[name])
            for name in sorted(counts)
        )


def _without(decoded: str, stretches: Sequence[SecretSpan], piece: Slice, *, joined: bool) -> str:
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


def _touches(stretch: SecretSpan, piece: Slice) -> bool:
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


_SHARES = (1.0, 0.8, 0.6, 0.4, 0.2)
_ROOM_FOR_NOTE = 240
_ESCAPE = "surrogateescape"


class Amount(NamedTuple):
    """So much text, counted both ways."""

    characters: int
    bytes: int


def fits(content: str, limits: Amount) -> bool:
    """Tell whether a text may stand in a conversation whole."""
    return len(content) <= limits.characters and len(content.encode()) <= limits.bytes


class Preview(NamedTuple):
    """Head and tail of a text without secrets, and how much of the original is not shown."""

    text: str
    missing_characters: int
    missing_bytes: int
    evidence: tuple[RedactionEvidence, ...]


def preview(
    file: OpenFile, ref_id: str, limits: Amount, reader: Reader, characters: int
) -> Preview:
    """Show the head and the tail of a text of so many `characters`, within the limits.

    Placeholders may be longer than the secrets they stand for, hence the shrinking shares.
    """
    size = file.size
    for share in _SHARES:
        head, tail = _ends(file, limits, share)
        clean = reader.read(file, [(0, head), (tail, size)])
        ends = file.read_at(0, head), file.read_at(tail, size - tail)
        missing = Amount(characters - sum(len(text(end)) for end in ends), tail - head)
        shown = f"{clean.texts[0]}\n{_note(ref_id, missing)}\n{clean.texts[1]}"
        if fits(shown, limits):
            return Preview(shown, missing.characters, missing.bytes, clean.evidence)
    return Preview(_note(ref_id, Amount(characters, size)), characters, size, ())


def binary_preview(ref_id: str, size: int) -> Preview:
    """Say of bytes that are no text that they are there."""
    return Preview(_note(ref_id, Amount(0, size)), 0, size, ())


def _ends(file: OpenFile, limits: Amount, share: float) -> tuple[int, int]:
    """Find where the head ends and the tail begins, between characters."""
    characters = int((limits.characters - _ROOM_FOR_NOTE) * share / 2)
    most = int((limits.bytes - _ROOM_FOR_NOTE) * share / 2)
    head = _escaped(file.read_at(0, most))[:characters]
    tail = _escaped(file.read_at(max(0, file.size - most), most))[-characters:]
    return (
        boundary(file, len(head.encode("utf-8", _ESCAPE))),
        boundary(file, file.size - len(tail.encode("utf-8", _ESCAPE))),
    )


def _escaped(data: bytes) -> str:
    """Read bytes so that each character can be turned back into those that it was."""
    return data.decode("utf-8", _ESCAPE)


def _note(ref_id: str, missing: Amount) -> str:
    what = f"{missing.characters} characters, " if missing.characters else ""
    return (
        f"[… {what}{missing.bytes} bytes left out; the whole is context file {ref_id}: "
        "context.read, context.tail or context.grep …]"
    )
