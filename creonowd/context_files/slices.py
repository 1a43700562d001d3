"""Cut pages, tails and previews out of a file without splitting a character or leaking a secret.

Each slice is searched for secrets together with what surrounds it: the rest of its lines, a
kibibyte on both sides, and the whole of a key block that it lies in. A secret shows as one
placeholder, in the slice where it begins; a slice that begins inside one shows nothing of the
rest. So the redacted pages of a file, joined, are the redacted file, as long as a secret and what
reveals it lie within `MAX_MARGIN` of each other. The header of a table is found further up, too:
within `MAX_TABLE`, or at the beginning of the file.
"""

import codecs
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from creonowd.redaction import PLACEHOLDER, RedactionEvidence, SecretSpan
from creonowd.redaction.layouts import LONGEST_ROW, header_above
from creonowd.redaction.split_points import LONGEST_KEY_BLOCK, may_be_inside_key, open_private_key
from creonowd.storage.safe_folder import OpenFile

MAX_TAIL_BYTES = 1024 * 1024
MARGIN = 1024
MAX_MARGIN = 64 * 1024
MAX_TABLE = 256 * 1024

_MAX_WINDOW = 256 * 1024

Slice = tuple[int, int]

_MAX_CHARACTER_BYTES = 4
_FIRST_BLOCK = 8 * 1024
_LARGEST_BLOCK = 64 * 1024
_HALF = (0, True)
_WHOLE = (1, False)

_MIN_CHARACTERS_PER_ERROR = 20

_SHARES = (1.0, 0.8, 0.6, 0.4, 0.2)
_ROOM_FOR_NOTE = 240
_REVERSIBLE = "surrogateescape"


class SecretFinder(Protocol):
    """Finds secrets in a text."""

    def find(self, text: str) -> Sequence[SecretSpan]:
        """List the stretches to take out, in order, none overlapping another."""
        ...


class FilePage(NamedTuple):
    """A page: `[offset, next_offset)` are bytes of the file, `content` is what may be shown of them."""

    offset: int
    next_offset: int
    done: bool
    content: str
    evidence: tuple[RedactionEvidence, ...]


class FileTail(NamedTuple):
    """The last lines; `truncated` if they were too long to return all of them."""

    lines: int
    offset: int
    truncated: bool
    content: str
    evidence: tuple[RedactionEvidence, ...]


class RedactedSlices(NamedTuple):
    """The texts of slices without secrets, and what was taken out of them."""

    texts: list[str]
    evidence: tuple[RedactionEvidence, ...]


class Reader(NamedTuple):
    """Reads slices of a file with the secrets taken out, or raw if there is no `finder`."""

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
                [decode(file.read_at(start, end - start)) for start, end in slices], ()
            )
        texts: list[str] = []
        counts: Counter[str] = Counter()
        for group in _groups(slices):
            low, high = window_around(file, group[0][0], max(end for _, end in group))
            window = file.read_at(low, high - low)
            text = decode(window)
            secrets = find_secrets(self.finder, file, low, text)
            index = _character_index(window, [place - low for piece in group for place in piece])
            pieces = [(index[start - low], index[end - low]) for start, end in group]
            texts += [_redact(text, secrets, piece, joined=joined) for piece in pieces]
            counts.update(
                secret.pattern_id
                for secret in secrets
                if any(_overlap(secret, piece) for piece in pieces)
            )
        return RedactedSlices(texts, self._evidence(counts))

    def _evidence(self, counts: "Counter[str]") -> tuple[RedactionEvidence, ...]:
        return tuple(
            RedactionEvidence(pattern_id=name, source_ref=self.source_ref, match_count=counts[name])
            for name in sorted(counts)
        )


def read_page(file: OpenFile, offset: int, limit: int, reader: Reader) -> FilePage:
    """Read a page; pages that follow each other join up."""
    page = page_range(file, offset, limit)
    redacted = reader.read(file, [(page.start, page.end)], joined=True)
    return FilePage(page.start, page.end, page.done, redacted.texts[0], redacted.evidence)


def read_bytes(file: OpenFile, offset: int, limit: int) -> tuple[FilePage, bytes]:
    """Read a page byte for byte."""
    start = min(offset, file.size)
    data = file.read_at(start, limit)
    end = start + len(data)
    return FilePage(start, end, end >= file.size, "", ()), data


def read_tail(file: OpenFile, lines: int, reader: Reader) -> FileTail:
    """Read the last lines."""
    tail = tail_range(file, lines, MAX_TAIL_BYTES)
    redacted = reader.read(file, [(tail.start, tail.end)])
    count = count_lines(file.read_at(tail.start, tail.end - tail.start))
    return FileTail(count, tail.start, not tail.done, redacted.texts[0], redacted.evidence)


def window_around(file: OpenFile, start: int, end: int) -> Slice:
    """Return the part of a file in which to look for the secrets of a slice."""
    lowest = max(0, start - MAX_MARGIN)
    before = file.read_at(lowest, start - lowest)
    left = lowest + before.rfind(b"\n", 0, max(0, len(before) - MARGIN)) + 1
    key_start = _key_around(file, start, before)
    if key_start is None:
        right = _margin_after(file, end)
    else:
        left, right = min(left, key_start), MAX_MARGIN
    return (
        character_start(file, left),
        character_start(file, min(file.size, end + right)),
    )


def find_secrets(finder: SecretFinder, file: OpenFile, low: int, text: str) -> Sequence[SecretSpan]:
    """Find the secrets of a text that begins at `low`, also by the header of a table around it."""
    row = text[:LONGEST_ROW].partition("\n")[0]
    header = _header_above(file, low, row) if any(sign in row for sign in ",;|\t") else ""
    if not header:
        return finder.find(text)
    shift = len(header) + 1
    return [
        secret._replace(start=max(0, secret.start - shift), end=secret.end - shift)
        for secret in finder.find(f"{header}\n{text}")
        if secret.end > shift
    ]


def _header_above(file: OpenFile, low: int, row: str) -> str:
    lowest = max(0, low - MAX_TABLE)
    above = decode(file.read_at(lowest, low - lowest))
    if not above.endswith("\n"):
        return ""
    if not lowest:
        return header_above(above, row)
    whole_lines = above.partition("\n")[2]
    return header_above(whole_lines, row, decode(file.read_at(0, 2 * LONGEST_ROW)))


def _key_around(file: OpenFile, start: int, before: bytes) -> int | None:
    """Find where the private key begins that `start` lies in; `before` is what stands before it.

    As long as that looks like the middle of a key, what stands further up is read too.
    """
    key_start = open_private_key(before)
    lowest = start - len(before)
    while key_start is None and lowest > 0 and start - lowest < LONGEST_KEY_BLOCK:
        if not may_be_inside_key(before):
            return None
        lowest = max(0, lowest - MAX_MARGIN)
        before = file.read_at(lowest, start - lowest)
        key_start = open_private_key(before)
    return None if key_start is None else lowest + key_start


def _margin_after(file: OpenFile, end: int) -> int:
    """Measure up to the end of the line that lies `MARGIN` after `end`, but at most `MAX_MARGIN`."""
    for length in (2 * MARGIN, MAX_MARGIN):
        newline = file.read_at(end, length).find(b"\n", MARGIN)
        if newline >= 0:
            return newline + 1
    return MAX_MARGIN


def _groups(slices: Sequence[Slice]) -> Iterator[list[Slice]]:
    """Group slices that lie close together, so that their surroundings are searched once."""
    group: list[Slice] = []
    for piece in slices:
        near = group and piece[0] - group[-1][1] <= MARGIN
        if group and not (near and piece[1] - group[0][0] <= _MAX_WINDOW):
            yield group
            group = []
        group.append(piece)
    if group:
        yield group


def _character_index(window: bytes, offsets: Iterable[int]) -> dict[int, int]:
    """Map byte offsets, all between characters, to the number of characters before each."""
    index: dict[int, int] = {}
    last = count = 0
    for offset in sorted(set(offsets)):
        count += len(decode(window[last:offset]))
        last = offset
        index[offset] = count
    return index


def _redact(text: str, secrets: Sequence[SecretSpan], piece: Slice, *, joined: bool) -> str:
    parts: list[str] = []
    start, end = piece
    place = start
    for secret in secrets:
        if not _overlap(secret, piece):
            continue
        parts.append(text[place : max(place, secret.start)])
        if secret.start >= start or not joined:
            parts.append(PLACEHOLDER)
        place = min(secret.end, end)
    return "".join([*parts, text[place:end]])


def _overlap(secret: SecretSpan, piece: Slice) -> bool:
    return secret.start < piece[1] and secret.end > piece[0]


class ByteRange(NamedTuple):
    """The bytes `[start, end)` of a file, both between characters; `done` if nothing follows."""

    start: int
    end: int
    done: bool


def page_range(file: OpenFile, offset: int, limit: int) -> ByteRange:
    """Find the page of about `limit` bytes at `offset`: at least one character, unless at the end.

    An offset inside a character moves back to its start, and so does the end: pages at multiples of
    the limit join up as well as pages that each begin at the end of the last one. Half a character
    at the end of a file that may still grow gets a page of its own.
    """
    size = file.size
    start = character_start(file, min(offset, size))
    end = character_start(file, min(offset + limit, size))
    if end <= start:
        end = _character_end(file, start, size)
    if end == size and start < (half := _last_half_character(file, size)) < size:
        return ByteRange(start, half, done=False)
    return ByteRange(start, end, done=end >= size)


def tail_range(file: OpenFile, lines: int, max_bytes: int) -> ByteRange:
    """Find the last `lines` lines as `tail(1)` does; `done` is False if `max_bytes` cut them."""
    size = file.size
    start = line_start_before(file, size, lines, max(0, size - max_bytes))
    if start is not None:
        return ByteRange(start, size, done=True)
    return ByteRange(character_start(file, size - max_bytes), size, done=False)


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


def character_start(file: OpenFile, offset: int) -> int:
    """Move an offset back to the start of the character that it would cut."""
    start = max(0, offset - _MAX_CHARACTER_BYTES + 1)
    around = file.read_at(start, offset - start + 1)
    place = offset - start
    if place >= len(around) or around[place] & 0xC0 != 0x80:
        return offset
    for back in range(1, place + 1):
        if _characters(around[place - back : place + 1]) in {_HALF, _WHOLE}:
            return offset - back
    return offset


def _character_end(file: OpenFile, start: int, size: int) -> int:
    for end in range(start + 1, min(start + _MAX_CHARACTER_BYTES, size)):
        if character_start(file, end) == end:
            return end
    return min(start + _MAX_CHARACTER_BYTES, size)


def _last_half_character(file: OpenFile, size: int) -> int:
    """Return where the half character at the end of a file begins; `size` if there is none."""
    last = file.read_at(max(0, size - _MAX_CHARACTER_BYTES + 1), _MAX_CHARACTER_BYTES - 1)
    halves = (back for back in range(1, len(last) + 1) if _characters(last[-back:]) == _HALF)
    return size - next(halves, 0)


def _characters(data: bytes) -> tuple[int, bool] | None:
    """Count whole characters, and whether one more has begun; None if it is no UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        return len(decoder.decode(data)), bool(decoder.getstate()[0])
    except UnicodeDecodeError:
        return None


def decode(data: bytes) -> str:
    """Decode UTF-8; what is none becomes U+FFFD."""
    return data.decode("utf-8", "replace")


def decode_strictly(data: bytes) -> str | None:
    """Decode bytes that are UTF-8 throughout; None if they are not."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def decode_damaged(data: bytes) -> str | None:
    """Decode text with a wrong byte here and there; None if the bytes are no text at all."""
    text = decode(data)
    binary = b"\0" in data or _MIN_CHARACTERS_PER_ERROR * text.count("\ufffd") > len(text)
    return None if binary else text


class TextLength(NamedTuple):
    """A length of text, counted both ways."""

    characters: int
    bytes: int


class Preview(NamedTuple):
    """Head and tail of a text without secrets, and how much of the original is not shown."""

    text: str
    missing_characters: int
    missing_bytes: int
    evidence: tuple[RedactionEvidence, ...]


def fits(content: str, limits: TextLength) -> bool:
    """Return whether a text is short enough to stand in a conversation whole."""
    return len(content) <= limits.characters and len(content.encode()) <= limits.bytes


def preview(
    file: OpenFile, ref_id: str, limits: TextLength, reader: Reader, characters: int
) -> Preview:
    """Show the head and the tail of a text of so many `characters`, within the limits.

    Placeholders may be longer than their secrets: if the result is too long, shorter ends are
    tried.
    """
    size = file.size
    for share in _SHARES:
        head_end, tail_start = _preview_ends(file, limits, share)
        redacted = reader.read(file, [(0, head_end), (tail_start, size)])
        head, tail = file.read_at(0, head_end), file.read_at(tail_start, size - tail_start)
        missing = TextLength(
            characters - len(decode(head)) - len(decode(tail)), tail_start - head_end
        )
        text = f"{redacted.texts[0]}\n{_note(ref_id, missing)}\n{redacted.texts[1]}"
        if fits(text, limits):
            return Preview(text, missing.characters, missing.bytes, redacted.evidence)
    return Preview(_note(ref_id, TextLength(characters, size)), characters, size, ())


def binary_preview(ref_id: str, size: int) -> Preview:
    """Make the preview of bytes that are no text: only how many there are."""
    return Preview(_note(ref_id, TextLength(0, size)), 0, size, ())


def _preview_ends(file: OpenFile, limits: TextLength, share: float) -> tuple[int, int]:
    """Find where the head ends and the tail begins, between characters."""
    characters = int((limits.characters - _ROOM_FOR_NOTE) * share / 2)
    length = int((limits.bytes - _ROOM_FOR_NOTE) * share / 2)
    head = file.read_at(0, length).decode("utf-8", _REVERSIBLE)[:characters]
    tail = file.read_at(max(0, file.size - length), length).decode("utf-8", _REVERSIBLE)
    tail = tail[-characters:]
    return (
        character_start(file, len(head.encode("utf-8", _REVERSIBLE))),
        character_start(file, file.size - len(tail.encode("utf-8", _REVERSIBLE))),
    )


def _note(ref_id: str, missing: TextLength) -> str:
    what = f"{missing.characters} characters, " if missing.characters else ""
    return (
        f"[… {what}{missing.bytes} bytes left out; the whole is context file {ref_id}: "
        "context.read, context.tail or context.grep …]"
    )
