"""What stays of Read: the text itself with line numbers, of the range that was read only."""

import re
from typing import NamedTuple

from creonowd.conversations.excerpts import clip, first_lines, lines_of
from creonowd.conversations.seen import Seen

_NUMBERED = re.compile(r"\s*(\d+)(?:\t|→|: |:\t| ?\| ?)(.*)")
_STARTS = ("start_line", "startLine", "offset", "line_start", "lineStart")
_ENDS = ("end_line", "endLine", "line_end", "lineEnd")
_TOTALS = ("total_lines", "totalLines", "line_count", "lineCount")


class Line(NamedTuple):
    """A line and its number in the file."""

    number: int
    text: str


def read_file(seen: Seen) -> list[str]:
    """Keep the lines of the range read, each with its number."""
    lines = _wanted(seen, _numbered(lines_of(seen.text), _start(seen)))
    kept = [f"{line.number}: {clip(line.text, seen.limits.line)}" for line in lines]
    return [_headline(seen, lines), *first_lines(kept, seen.limits.read, "lines")]


def _headline(seen: Seen, lines: list[Line]) -> str:
    total = seen.number(*_TOTALS)
    of = f" of {total}" if total else ""
    place = seen.path or "(no path)"
    return (
        f"{place}: lines {lines[0].number}-{lines[-1].number}{of}" if lines else f"{place}: empty"
    )


def _start(seen: Seen) -> int:
    return max(1, seen.number(*_STARTS) or 1)


def _numbered(lines: list[str], start: int) -> list[Line]:
    """Take over the numbers that a tool has put before its lines, else count from `start`."""
    found = [_NUMBERED.fullmatch(line) for line in lines]
    if lines and all(found):
        return [Line(int(match[1]), match[2]) for match in found if match]
    return [Line(number, line) for number, line in enumerate(lines, start=start)]


def _wanted(seen: Seen, lines: list[Line]) -> list[Line]:
    """Leave out what a tool gave beyond the range that was asked for."""
    first = _start(seen)
    limit = seen.arguments.get("limit")
    last = seen.number(*_ENDS)
    if last is None and isinstance(limit, int) and limit > 0:
        last = first + limit - 1
    within = [
        line for line in lines if line.number >= first and (last is None or line.number <= last)
    ]
    return within or lines
