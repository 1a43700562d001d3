"""Where a text can be taken apart so that the counts of its parts add up exactly.

A part ends with a line, if the next begins with something that no newline merges with; in a long
line, before the stop of a sentence. Which of those places are used depends on the characters
beside them alone, so that typing at one place leaves the parts at every other place as they were.
"""

import re
from collections.abc import Iterator

from creonowd.tokens.joints import joints

SHORT = 256
LONG = 2048
ONE_IN = 4
FULL_LINE = 64

_BEGINNING = re.compile(r"[ \t\u3000]*+[^\s/]")
_LINE = re.compile(rf"\n(?={_BEGINNING.pattern})")


def parts(text: str) -> Iterator[str]:
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
