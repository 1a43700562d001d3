"""Where a text can be taken apart so that the counts of the parts add up exactly.

A joint lies after a letter or digit that is followed by punctuation or white space, and at the
start of a line that begins with neither white space nor a slash. In both encodings a pre-token
ends there whatever stands on either side, so no merge reaches across; a property test holds it.
Only old, settled characters count: an unassigned one may be a letter to another Unicode version.
"""

import re
from collections.abc import Iterator

BLOCK = 512

_LETTERS = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u00ff\u0391-\u03a1\u03a3-\u03a9\u03b1-\u03c9"
    "\u0410-\u044f\u3041-\u3093\u30a1-\u30f6\u4e00-\u9fa5\uac00-\ud7a3"
)
_STOPS = (
    r" \t\n\r\u3000!-&(-/:-@\[-`{-~"
    r"\u2010-\u2027\u2030-\u205e\u3001-\u3003\u3008-\u3011\u3014-\u301b"
    r"\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff64"
)
_JOINT = re.compile(rf"[{_LETTERS}](?=[0-9{_STOPS}])|[0-9](?=[{_STOPS}])|\n(?=[^\s/])")
_PLAIN = re.compile(rf"[{_LETTERS}0-9{_STOPS}]")


def joints(text: str, start: int, end: int) -> list[int]:
    """List the joints strictly between two positions, in order."""
    found = (match.end() for match in _JOINT.finditer(text, start, end))
    return [position for position in found if start < position < end]


def stations(text: str, *, forward: bool) -> Iterator[int]:
    """Walk the text in blocks that end at joints, to its end or back to its start.

    The blocks lie on a fixed grid, so that typing at one place leaves the others as they were.
    """
    grid = range(BLOCK, len(text), BLOCK)
    for mark in grid if forward else reversed(grid):
        match = _JOINT.search(text, mark, min(mark + BLOCK, len(text)))
        if match is not None:
            yield match.end()
    yield len(text) if forward else 0


def is_plain(character: str) -> bool:
    """Tell whether a character can neither extend a grapheme nor be extended by a plain one."""
    return character != "\r" and _PLAIN.match(character) is not None


SHORT = 256
LONG = 2048
ONE_IN = 4
FULL_LINE = 64

_BEGINNING = re.compile(r"[ \t\u3000]*+[^\s/]")
_LINE = re.compile(rf"\n(?={_BEGINNING.pattern})")


def additive_parts(text: str) -> Iterator[str]:
    """Take a text apart; the counts of the parts add up to its own."""
    if len(text) < SHORT:
        yield text
        return
    start = line = 0
    for match in _LINE.finditer(text):
        end = match.end()
        if end - line >= FULL_LINE or _chosen(text, end - 1):
            yield from _finer(text[start:end])
            start = end
        line = end
    yield from _finer(text[start:])


def adds_up(left: str, right: str) -> bool:
    """Tell whether two neighbouring texts have together as many tokens as each by itself."""
    if left.endswith("\n") and _BEGINNING.match(right):
        return True
    return bool(joints(left[-1:] + right[:1], 0, 2))


def _finer(part: str) -> Iterator[str]:
    if len(part) <= LONG:
        yield part
        return
    start = 0
    for at in joints(part, 0, len(part)):
        if at - start >= SHORT and _chosen(part, at):
            yield part[start:at]
            start = at
    yield part[start:]


def _chosen(text: str, at: int) -> bool:
    return at >= 2 and (ord(text[at - 1]) * 31 + ord(text[at - 2])) % ONE_IN == 0
