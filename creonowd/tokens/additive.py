"""Where a text can be split so that the token counts of the parts add up exactly.

An additive point lies after a letter or digit that is followed by punctuation or white space, and
at the start of a line that begins with neither white space nor a slash. In both encodings a
pre-token ends there whatever stands on either side, so no merge reaches across; a property test
proves it. Only characters of old Unicode versions count: one that is unassigned today may be a
letter to another version.
"""

import re
from collections.abc import Iterator

BLOCK = 512
SHORT = 256
LONG = 2048
ONE_IN = 4
FULL_LINE = 64

_LETTERS = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u00ff\u0391-\u03a1\u03a3-\u03a9\u03b1-\u03c9"
    "\u0410-\u044f\u3041-\u3093\u30a1-\u30f6\u4e00-\u9fa5\uac00-\ud7a3"
)
_STOPS = (
    r" \t\n\r\u3000!-&(-/:-@\[-`{-~"
    r"\u2010-\u2027\u2030-\u205e\u3001-\u3003\u3008-\u3011\u3014-\u301b"
    r"\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff64"
)
_POINT = re.compile(rf"[{_LETTERS}](?=[0-9{_STOPS}])|[0-9](?=[{_STOPS}])|\n(?=[^\s/])")
_PLAIN = re.compile(rf"[{_LETTERS}0-9{_STOPS}]")

LINE_START = r"[ \t\u3000]*+[^\s/]"
"""How a line begins before which counts add up, its indentation included."""
_LINE_START = re.compile(LINE_START)
_LINE_END = re.compile(rf"\n(?={LINE_START})")


def additive_points(text: str, start: int, end: int) -> list[int]:
    """List the additive points strictly between two positions, in order."""
    found = (match.end() for match in _POINT.finditer(text, start, end))
    return [position for position in found if start < position < end]


def adds_up(left: str, right: str) -> bool:
    """Return whether two neighbouring texts have together as many tokens as each by itself."""
    if left.endswith("\n") and _LINE_START.match(right):
        return True
    return bool(additive_points(left[-1:] + right[:1], 0, 2))


def additive_parts(text: str) -> Iterator[str]:
    """Split a text into parts whose counts add up; typing changes only the parts nearby."""
    if len(text) < SHORT:
        yield text
        return
    start = line = 0
    for match in _LINE_END.finditer(text):
        end = match.end()
        if end - line >= FULL_LINE or splits_after(text, end - 1, ONE_IN):
            yield from _split_long(text[start:end])
            start = end
        line = end
    yield from _split_long(text[start:])


def _split_long(part: str) -> Iterator[str]:
    if len(part) <= LONG:
        yield part
        return
    start = 0
    for at in additive_points(part, 0, len(part)):
        if at - start >= SHORT and splits_after(part, at, ONE_IN):
            yield part[start:at]
            start = at
    yield part[start:]


def splits_after(text: str, at: int, one_in: int) -> bool:
    """Choose about one in so many positions, by the two characters before each.

    Because the text itself decides, typing at one place leaves the choice at all others as it was.
    """
    return at >= 2 and (ord(text[at - 1]) * 31 + ord(text[at - 2])) % one_in == 0


def block_ends(text: str, *, forward: bool) -> Iterator[int]:
    """Walk over blocks that end at additive points, to the end of the text or back to its start.

    The blocks lie on a fixed grid, so that typing at one place leaves the others as they were.
    """
    grid = range(BLOCK, len(text), BLOCK)
    for mark in grid if forward else reversed(grid):
        match = _POINT.search(text, mark, min(mark + BLOCK, len(text)))
        if match is not None:
            yield match.end()
    yield len(text) if forward else 0


def is_plain(character: str) -> bool:
    """Return whether a character can neither extend a grapheme nor be extended by a plain one."""
    return character != "\r" and _PLAIN.match(character) is not None
