"""Where a document can be split so that its parts can be redacted one by one.

A safe split point is the start of a line after one that ended a sentence, outside of private
keys, whose comments may end so too, and of tables; nor does that sentence name a secret, which may
stand below it. No secret reaches across it and no token is merged across it.
One in eight such places is used, chosen by the characters before it, so that typing at one place
leaves the parts at all others as they were. Where there is no safe point for long, points on a
fixed grid are used. A secret may lie across those, and counts need not add up there.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from creonowd.redaction.formats import LONGEST_KEY_BLOCK, private_keys
from creonowd.redaction.rules import MatchSpan
from creonowd.tokens.boundaries import LINE_START, additive_points, splits_after

ONE_IN = 8
GRID = 8192
SLACK = 1024
LONGEST_LINE = 400

_ENDS = r"。！？…」』”.!?"
_SENTENCE_END = re.compile(rf"\n(?:(?<=[{_ENDS}]\n)|(?<=[{_ENDS}]\r\n))(?={LINE_START})")


_NAMES_WHAT_FOLLOWS = re.compile(
    r"pass(?:w|phrase|code)|\bp(?:wd?|ass)\b|secret|token|\bkey|mnemonic|seed|recovery|backup"
    r"|密[码碼钥鑰]|口令|令牌|助[记記][词詞]|パス|秘密鍵|비밀번호|비번|암호",
    re.IGNORECASE,
)
_COMMA_ALONE = re.compile(r"[,;](?=[^\s,;])")


class SplitPoint(NamedTuple):
    """Where one part ends and the next begins; `key` is where a private key begins around it."""

    at: int
    may_cut_secret: bool = False
    key: int | None = None


def split_points(text: str, start: int, end: int) -> list[SplitPoint]:
    """List the split points strictly between two positions, in order.

    They do not depend on the two positions: any other call finds the same ones.
    """
    first = max(0, start - GRID - SLACK)
    keys = private_keys(text, max(0, first - LONGEST_KEY_BLOCK - SLACK), end + LONGEST_KEY_BLOCK)
    safe = [at for at in _sentence_ends(text, first, end) if _key_around(keys, at) is None]
    points = [SplitPoint(at) for at in safe]
    for mark in range((max(0, start - SLACK) // GRID + 1) * GRID, end, GRID):
        if bisect_right(safe, mark) == bisect_left(safe, mark - GRID):
            additive = additive_points(text, mark, min(len(text), mark + SLACK))
            at = additive[0] if additive else mark
            points.append(SplitPoint(at, may_cut_secret=True, key=_key_around(keys, at)))
    return sorted(point for point in points if start < point.at < end)


def _sentence_ends(text: str, start: int, end: int) -> list[int]:
    found: list[int] = []
    for match in _SENTENCE_END.finditer(text, start):
        at = match.end()
        if at >= end:
            break
        # The character before the full stop and the line end says more than these two do.
        if splits_after(text, at - 2, ONE_IN) and not _belong_together(text, at):
            found.append(at)
    return found


def _belong_together(text: str, at: int) -> bool:
    """Return whether the line before may name what stands below, or both are rows of one table."""
    before = text[max(0, at - LONGEST_LINE) : at - 1].rpartition("\n")[2]
    if _NAMES_WHAT_FOLLOWS.search(before):
        return True
    after = text[at : at + LONGEST_LINE].partition("\n")[0]
    return any(sign in before and sign in after for sign in "|\t") or (
        _COMMA_ALONE.search(before) is not None and _COMMA_ALONE.search(after) is not None
    )


def _key_around(keys: Sequence[MatchSpan], at: int) -> int | None:
    """Return where the private key begins that a position lies in."""
    before = bisect_left(keys, (at, at))
    if before and at < keys[before - 1][1]:
        return keys[before - 1][0]
    return None
