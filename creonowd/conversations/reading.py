"""What stays of Read: the text itself with line numbers, of the range that was read only."""

import re
from bisect import bisect_left, bisect_right
from typing import NamedTuple

from creonowd.conversations.excerpts import clip, lines_of
from creonowd.conversations.observation import Form, as_items
from creonowd.conversations.running import tell_anything
from creonowd.conversations.seen import TEXTS, Seen

_NUMBERED = re.compile(r"\s*(\d+)(?:\t|→|: |:\t| ?\| ?)(.*)")
_STARTS = ("start_line", "startLine", "offset", "line_start", "lineStart")
_ENDS = ("end_line", "endLine", "line_end", "lineEnd")
_SAMPLE = 100
_TOTALS = ("total_lines", "totalLines", "line_count", "lineCount")


def read_file(seen: Seen) -> list[str]:
    """Keep the lines of the range read, each with its number; of JSON that is no text an outline."""
    text = _text(seen)
    if text is None:
        headline, *outline = tell_anything(seen)
        return [f"{seen.path or '(no path)'}: {headline}", *outline]
    page = _wanted(seen, _numbered(lines_of(text), _start(seen)))
    kept = [
        f"{page.number(n)}: {clip(page.text(n), seen.limits.line)}"
        for n in range(min(len(page.lines), seen.limits.read))
    ]
    rest = len(page.lines) - len(kept)
    more = [f"… {rest} more lines"] if rest else []
    return [_headline(seen, page), *kept, *more]


class Page(NamedTuple):
    """Lines of a file from `start` on, or with their own numbers before them."""

    lines: list[str]
    start: int
    own: bool

    def number(self, place: int) -> int:
        """Tell the number of a line in the file."""
        match = _NUMBERED.fullmatch(self.lines[place]) if self.own else None
        return int(match[1]) if match else self.start + place

    def text(self, place: int) -> str:
        """Give a line without its number."""
        match = _NUMBERED.fullmatch(self.lines[place]) if self.own else None
        return match[2] if match else self.lines[place]

    def part(self, first: int, last: int | None) -> "Page":
        """Give the lines within a range, of a file whose numbers rise."""
        places = range(len(self.lines))
        begin = bisect_left(places, first, key=self.number)
        end = len(places) if last is None else bisect_right(places, last, key=self.number)
        return Page(self.lines[begin:end], self.start + begin, self.own)


def _text(seen: Seen) -> str | None:
    """Find the words of the file; JSON of several lines that was given as a text is the file."""
    listed = seen.fields.get("lines")
    if isinstance(listed, list):
        return "\n".join(str(line) for line in as_items(listed))
    if seen.text or seen.observation.form is not Form.JSON or _told(seen):
        return seen.text
    seen_whole = seen.observation.verbatim and "\n" in seen.observation.text
    return seen.observation.text if seen_whole and seen.path else None


def _told(seen: Seen) -> bool:
    """Whether the result has a place for words, though there are none."""
    return any(isinstance(seen.fields.get(name), str) for name in TEXTS)


def _headline(seen: Seen, page: Page) -> str:
    total = seen.number(*_TOTALS)
    of = f" of {total}" if total else ""
    place = seen.path or "(no path)"
    if not page.lines:
        return f"{place}: empty"
    return f"{place}: lines {page.number(0)}-{page.number(len(page.lines) - 1)}{of}"


def _start(seen: Seen) -> int:
    return max(1, seen.number(*_STARTS) or 1)


def _numbered(lines: list[str], start: int) -> Page:
    """Take over the numbers that a tool has put before its lines, else count from `start`."""
    sample = [*lines[:_SAMPLE], *lines[-_SAMPLE:]]
    return Page(lines, start, own=all(map(_NUMBERED.fullmatch, sample)))


def _wanted(seen: Seen, page: Page) -> Page:
    """Leave out what a tool gave beyond the range that was asked for."""
    first = _start(seen)
    limit = seen.arguments.get("limit")
    last = seen.number(*_ENDS)
    if last is None and isinstance(limit, int) and limit > 0:
        last = first + limit - 1
    within = page.part(first, last)
    return within if within.lines else page
