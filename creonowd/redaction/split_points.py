"""Where a document can be taken apart so that its parts can be redacted by themselves.

A seam is the start of a line after one that ended a sentence, outside of private keys: those
have comments. No secret reaches over it and no token merges across it. Of all seams one in eight
is used, chosen by the characters beside it, so that typing at one place leaves the parts at every
other place as they were.
Where there are no seams for long, edges on a fixed grid stand in, at a joint if there is one.
Those a secret may cross; whoever joins parts again asks whether their tokens add up.
"""

import re
from bisect import bisect_left, bisect_right
from typing import NamedTuple

from creonowd.tokens.additive import joints

ONE_IN = 8
GRID = 8192
SLACK = 1024
LONGEST_KEY = 65_536

_ENDS = r"。！？…」』”.!?"
_BEGINS = r"[ \t\u3000]*+[^\s/]"
_SEAM = re.compile(rf"\n(?:(?<=[{_ENDS}]\n)|(?<=[{_ENDS}]\r\n))(?={_BEGINS})")
_KEY = "PRIVATE KEY"
_MARKER = re.compile(rf".{{0,6}}(BEGIN|END) [A-Z0-9 ]{{0,24}}{_KEY}")


class SplitPoint(NamedTuple):
    """Where one part ends and the next begins; `torn` if a secret may lie across it.

    Inside a private key, `key` is where that begins.
    """

    at: int
    torn: bool = False
    key: int | None = None


def split_points(text: str, start: int, end: int) -> list[SplitPoint]:
    """List the edges strictly between two positions; what lies elsewhere does not change them."""
    first = max(0, start - GRID - SLACK)
    keys = _keys(text, max(0, first - LONGEST_KEY), end)
    sure = [at for at in _seams(text, first, end) if _key_around(keys, at) is None]
    torn = [at for mark in _marks(start, end) if (at := _tear(text, mark, sure)) is not None]
    found = [SplitPoint(at) for at in sure]
    found += [SplitPoint(at, torn=True, key=_key_around(keys, at)) for at in torn]
    return sorted((edge for edge in found if start < edge.at < end), key=lambda edge: edge.at)


def _keys(text: str, start: int, end: int) -> list["re.Match[str]"]:
    """List where private keys begin and end."""
    if text.find(_KEY, start, end) < 0:
        return []
    return list(_MARKER.finditer(text, start, end))


def _key_around(keys: list["re.Match[str]"], at: int) -> int | None:
    """Tell where the private key begins that a position lies in."""
    before = bisect_right(keys, at, key=lambda marker: marker.end())
    marker = keys[before - 1] if before else None
    if marker is None or marker[1] == "END" or at - marker.start(1) > LONGEST_KEY - SLACK:
        return None
    return marker.start()


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
