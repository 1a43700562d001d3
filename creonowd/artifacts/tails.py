"""The last lines of a file, read from its end. Knows newlines; knows nothing of refs or secrets."""

from creonowd.artifacts.pages import Cut, boundary
from creonowd.artifacts.tree import OpenFile

_FIRST_BLOCK = 8 * 1024
_LARGEST_BLOCK = 64 * 1024


def tail(file: OpenFile, lines: int, most_bytes: int) -> Cut:
    """Find the last `lines` lines as `tail(1)` does; `done` is False if `most_bytes` cut them."""
    size = file.size
    start = line_start_before(file, size, lines, max(0, size - most_bytes))
    if start is not None:
        return Cut(start, size, done=True)
    return Cut(boundary(file, size - most_bytes), size, done=False)


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
