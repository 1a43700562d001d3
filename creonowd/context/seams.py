"""Where a document can be taken apart so that its parts can be redacted by themselves.

A seam is the start of a line after one that ended a sentence. No secret reaches over it and no
token merges across it. Of all seams one in eight is used, chosen by the characters beside it,
so that typing at one place leaves the parts at every other place as they were.
Where there are no seams for long, edges on a fixed grid stand in, at a joint if there is one.
Those a secret may cross; whoever joins parts again asks whether their tokens add up.
"""

import re
from bisect import bisect_left, bisect_right
from typing import NamedTuple

from creonowd.tokens.joints import joints

ONE_IN = 8
GRID = 8192
SLACK = 1024

_ENDS = r"。！？…」』”.!?"
_BEGINS = r"[ \t\u3000]*+[^\s/]"
_SEAM = re.compile(rf"\n(?:(?<=[{_ENDS}]\n)|(?<=[{_ENDS}]\r\n))(?={_BEGINS})")


class Edge(NamedTuple):
    """Where one part ends and the next begins; `torn` if a secret may lie across it."""

    at: int
    torn: bool = False


def edges(text: str, start: int, end: int) -> list[Edge]:
    """List the edges strictly between two positions; what lies elsewhere does not change them."""
    sure = _seams(text, max(0, start - GRID - SLACK), end)
    torn = [at for mark in _marks(start, end) if (at := _tear(text, mark, sure)) is not None]
    found = [Edge(at) for at in sure] + [Edge(at, torn=True) for at in torn]
    return sorted(edge for edge in found if start < edge.at < end)


def _seams(text: str, start: int, end: int) -> list[int]:
    found: list[int] = []
    for match in _SEAM.finditer(text, start):
        at = match.end()
        if at >= end:
            break
        if at >= 4 and (ord(text[at - 3]) * 31 + ord(text[at - 4])) % ONE_IN == 0:
            found.append(at)
    return found


def _marks(start: int, end: int) -> range:
    return range((max(0, start - SLACK) // GRID + 1) * GRID, end, GRID)


def _tear(text: str, mark: int, sure: list[int]) -> int | None:
    if bisect_right(sure, mark) > bisect_left(sure, mark - GRID):
        return None
    return next(iter(joints(text, mark, min(len(text), mark + SLACK))), mark)
