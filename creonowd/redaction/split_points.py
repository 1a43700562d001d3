"""Where a text can be split so that its parts can be redacted one by one, and where private keys lie.

A safe split point is the start of a line, after a line that ended a sentence. It lies outside of
private keys, whose comments may end like a sentence, and outside of tables, and the sentence names
no secret that may stand below it. No secret reaches across it and no token is merged across it. One
in eight such places is used, chosen by the characters before it, so that typing at one place leaves
the parts at all others as they were. Where there is no safe point for long, points on a fixed grid
are used. A secret may lie across those, and counts need not add up there.
"""

import re
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from creonowd.redaction.rules import MatchSpan
from creonowd.tokens.boundaries import LINE_START, additive_points, splits_after

ONE_IN = 8
GRID = 8192
SHORT_TEXT = 4 * GRID
KEPT_TEXTS = 256
SLACK = 1024
LONGEST_LINE = 400
LONGEST_KEY = 65_536
"""How far a private key without an end reaches at most."""
LONGEST_KEY_BLOCK = 262_144
"""How far from its first line the last line of a private key may be."""

KEY_NAME = "(?:[A-Z0-9 ]{0,24}PRIVATE KEY(?: BLOCK)?|OpenVPN Static key V1)"
_KEY_WORDS = (
    "PRIVATE KEY",
    "private key",
    "Private Key",
    "Private key",
    "Static key",
    "static key",
    "STATIC KEY",
    "Private-Lines: ",
)
_KEY_BEGIN = re.compile(rf"-{{4,5}} ?(?i:BEGIN {KEY_NAME})|Private-Lines: [0-9]".encode())
_KEY_END = re.compile(rf"-{{4,5}} ?(?i:END {KEY_NAME}) ?-{{4,5}}[^-]|Private-MAC: ".encode())
# Each choice begins with one of four signs, which is ten times as fast as any other beginning.
_KEY_LINE = re.compile(
    rf"BEGIN {KEY_NAME}[ –—-]{{0,6}}|END {KEY_NAME}[ –—-]{{0,6}}"
    rf"|-----? ?(?i:(?:BEGIN|END) {KEY_NAME})[ –—-]{{0,6}}"
    r"|Private-Lines: [0-9]{1,6}|Private-MAC: "
)
_SIGNS = rb"[ \t!-*,.:;<>?@\[-`{-~-]"
# What may stand before and behind each line of a key: in YAML, a quotation, a comment, a list.
_AROUND_KEY_LINE = re.compile(
    rb"^%b++|(?<!%b)%b++(?=\r?$)" % (_SIGNS, _SIGNS, _SIGNS), re.MULTILINE
)
_LINE_WITH_BASE64 = re.compile(rb"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{20}[^\n]*+")
_BASE64_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\r\n"

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


@lru_cache(maxsize=KEPT_TEXTS)
def all_split_points(text: str) -> tuple[SplitPoint, ...]:
    """List all split points of a text that is no longer than `SHORT_TEXT`."""
    return tuple(split_points(text, 0, len(text) + 1))


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


def private_keys(text: str, start: int = 0, end: int = sys.maxsize) -> list[MatchSpan]:
    """List from where to where the private keys between two positions reach, PEM lines included.

    A key without an end reaches as far as the longest such key would.
    """
    keys: list[MatchSpan] = []
    if all(text.find(words, start, end) < 0 for words in _KEY_WORDS):
        return keys
    for line in _KEY_LINE.finditer(text, start, end):
        if "BEGIN" in line[0].upper() or line[0].startswith("Private-Lines"):
            # Any six characters before it will do, so that a disguised dash does not hide a key.
            nearest = max(start, line.start() - 6)
            first = max(nearest, text.rfind("\n", nearest, line.start()) + 1)
            first = line.start() if line[0].startswith(("-", "P")) else first
            keys.append((first, first + LONGEST_KEY))
        elif keys:
            first, last = keys[-1]
            is_near = line.end() - first <= LONGEST_KEY_BLOCK
            keys[-1] = first, line.end() if is_near else min(last, line.end())
    return keys


def open_private_key(data: bytes) -> int | None:
    """Return where the private key begins that the end of `data` lies in; None if in no key."""
    if all(words.encode() not in data for words in _KEY_WORDS):
        return None
    begins = [match.start() for match in _KEY_BEGIN.finditer(data)]
    if not begins or _KEY_END.search(data, begins[-1]) is not None:
        return None
    return begins[-1]


def may_be_inside_key(data: bytes) -> bool:
    """Return whether bytes look as the middle of a private key does.

    That is Base64 without spaces, but for what stands before and behind each line; or Base64 in
    nearly every line, whatever else a log says in it.
    """
    # The last lines of prose say enough; to count those with Base64 in 64 KB takes 0.6 ms.
    if _LINE_WITH_BASE64.search(data[-SLACK:]) is not None:
        lines = data.count(b"\n")
        if lines > 2 and 16 * (lines - sum(1 for _ in _LINE_WITH_BASE64.finditer(data))) < lines:
            return True
    size, others, spaces = len(data), len(data.translate(None, _BASE64_BYTES)), data.count(b" ")
    # Counted match by match: the lines themselves would take forty bytes for each.
    for around in _AROUND_KEY_LINE.finditer(data):
        length = around.end() - around.start()
        size, others, spaces = size - length, others - length, spaces - around[0].count(b" ")
    return 16 * others < size and 64 * spaces < size
