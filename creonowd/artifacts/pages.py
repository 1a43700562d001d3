"""Pages of a file, by bytes, cut between characters, so that pages joined give the file.

Knows UTF-8 and offsets; knows nothing of refs or secrets.
Bytes that are no UTF-8 read as U+FFFD, one for each piece that Python's decoder replaces; a cut
never falls inside such a piece either, so the texts of pages join exactly as well.
"""

import codecs
from typing import NamedTuple

from creonowd.artifacts.tree import OpenFile

LONGEST_CHARACTER = 4

_SLIPS_ARE_RARE = 20
_HALF = (0, True)
_WHOLE = (1, False)


class Cut(NamedTuple):
    """The bytes `[start, end)` of a file, both between characters; `done` if nothing follows."""

    start: int
    end: int
    done: bool


def page(file: OpenFile, offset: int, limit: int) -> Cut:
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
        return Cut(start, half, done=False)
    return Cut(start, end, done=end >= size)


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
