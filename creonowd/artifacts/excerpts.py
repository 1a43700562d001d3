"""The lines that a search shows: the one that matches, clipped around the match, and its neighbours.

Knows lines and offsets; reads no more of a file than it shows.
"""

from typing import NamedTuple

from creonowd.artifacts.pages import boundary
from creonowd.artifacts.searching import LONGEST_LINE, Place, Query
from creonowd.artifacts.tails import line_start_before
from creonowd.artifacts.tree import OpenFile

LONGEST_SHOWN = 1024
FURTHEST = 64 * 1024

_BLOCK = 4 * 1024


class Shown(NamedTuple):
    """The bytes of a line that are shown, and whether the line goes on at either side."""

    start: int
    end: int
    cut_before: bool
    cut_after: bool

    def marked(self, text: str) -> str:
        """Mark what was cut off."""
        return f"{'…' if self.cut_before else ''}{text}{'…' if self.cut_after else ''}"


class Excerpt(NamedTuple):
    """A line that matches, and lines around it."""

    place: Place
    line: Shown
    before: list[Shown]
    after: list[Shown]

    @property
    def lines(self) -> list[Shown]:
        """All lines, in order."""
        return [*self.before, self.line, *self.after]


def excerpt(file: OpenFile, place: Place, query: Query, context_lines: int) -> Excerpt:
    """Choose what to show of a line that matches."""
    end = line_end(file, place.offset)
    return Excerpt(
        place,
        _around_match(file, place.offset, end, query),
        _lines_before(file, place.offset, context_lines),
        _lines_after(file, end, context_lines),
    )


def line_end(file: OpenFile, start: int) -> int:
    """Find the newline that ends the line at `start`, or the end of the file."""
    size, length = file.size, _BLOCK
    place = start
    while place < size and place - start < LONGEST_LINE:
        newline = file.read_at(place, length).find(b"\n")
        if newline >= 0:
            return place + newline
        place += length
        length = min(2 * length, FURTHEST)
    return min(place, size)


def _around_match(file: OpenFile, start: int, end: int, query: Query) -> Shown:
    if end - start <= LONGEST_SHOWN:
        return _shown(file, start, end, start, end)
    found = start
    if query.sieve is None or not query.sieve.hides(start):
        line = file.read_at(start, min(end - start, query.longest_line))
        found += _match_start(line, query)
    first = boundary(file, max(start, min(found - LONGEST_SHOWN // 4, end - LONGEST_SHOWN)))
    return _shown(file, start, end, first, boundary(file, min(end, first + LONGEST_SHOWN)))


def _match_start(line: bytes, query: Query) -> int:
    """Find the match again; a line that is shown when the time is up is shown from its start."""
    match = None if query.limit.over else query.regex.search(line)
    return 0 if match is None else match.start()


def _lines_before(file: OpenFile, end: int, count: int) -> list[Shown]:
    if count == 0 or end == 0:
        return []
    lowest = max(0, end - FURTHEST)
    start = line_start_before(file, end, count, lowest)
    start = boundary(file, lowest) if start is None else start
    return _split(file, start, file.read_at(start, end - start - 1).split(b"\n"))


def _lines_after(file: OpenFile, end: int, count: int) -> list[Shown]:
    start = end + 1
    if count == 0 or start >= file.size:
        return []
    data = _lines_at(file, start, count)
    return _split(file, start, data.removesuffix(b"\n").split(b"\n", count)[:count])


def _lines_at(file: OpenFile, start: int, count: int) -> bytes:
    """Read about `count` lines, of which the last may be cut between characters."""
    near = file.read_at(start, _BLOCK)
    if near.count(b"\n") >= count or start + len(near) >= file.size:
        return near
    return file.read_at(start, boundary(file, min(file.size, start + FURTHEST)) - start)


def _split(file: OpenFile, start: int, pieces: list[bytes]) -> list[Shown]:
    lines: list[Shown] = []
    for line in pieces:
        length = len(line) - line.endswith(b"\r")
        end = start + length
        last = end if length <= LONGEST_SHOWN else boundary(file, start + LONGEST_SHOWN)
        lines.append(Shown(start, last, cut_before=False, cut_after=last < end))
        start += len(line) + 1
    return lines


def _shown(file: OpenFile, line_start: int, end_of_line: int, start: int, end: int) -> Shown:
    """Show a part of a line; the carriage return of its end is no part of it."""
    if end == end_of_line > start and file.read_at(end - 1, 1) == b"\r":
        end, end_of_line = end - 1, end_of_line - 1
    return Shown(start, end, start > line_start, end < end_of_line)
