"""What a rule is: literal anchors to look for, a pattern to match there, a judge of the match.

Knows how rules are written; knows none of them.
"""

import re
import string
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate
from typing import NamedTuple

from creonowd.redaction.shape import is_shouted, is_stand_in, is_words

PLACEHOLDER = "***REDACTED***"


class Stretch(NamedTuple):
    """Where in a text a secret stands, and which pattern found it."""

    start: int
    end: int
    pattern_id: str


Finding = tuple[int, int, int]
"""Start and end of a stretch to replace, and the rank of the rule that found it, the best first."""


def replaced(text: str, found: Sequence[Finding]) -> str:
    """Put the placeholder in place of every stretch."""
    if not found:
        return text
    kept: list[str] = []
    done = 0
    for start, end, _ in found:
        kept.append(text[done:start])
        done = end
    return PLACEHOLDER.join([*kept, text[done:]])


def placeholders(found: Sequence[Finding]) -> list[int]:
    """List where the placeholders begin once `found` is replaced."""
    return [start + move for (start, _, _), move in zip(found, _moved(found), strict=False)]


def _moved(found: Sequence[Finding]) -> list[int]:
    """Tell how far the text before, between and after the stretches moves when they are replaced."""
    growth = (len(PLACEHOLDER) - (end - start) for start, end, _ in found)
    return list(accumulate(growth, initial=0))


def united(found: Sequence[Finding], more: Sequence[Finding]) -> list[Finding]:
    """Add stretches that were found in a text where `found` is replaced, at their original places."""
    joined: list[Finding] = []
    for start, end, rank in sorted([*found, *_placed(found, more)]):
        if joined and start < joined[-1][1]:
            first, last, named = joined[-1]
            joined[-1] = first, max(last, end), named
        else:
            joined.append((start, end, rank))
    return joined


def _placed(found: Sequence[Finding], more: Sequence[Finding]) -> list[Finding]:
    moved, starts = _moved(found), placeholders(found)
    return [
        (
            _origin(start, bisect_right(starts, start), starts, found, moved)[0],
            _origin(end, bisect_left(starts, end), starts, found, moved)[1],
            rank,
        )
        for start, end, rank in more
    ]


def _origin(
    place: int,
    before: int,
    starts: Sequence[int],
    found: Sequence[Finding],
    moved: Sequence[int],
) -> tuple[int, int]:
    """Give the original place, or both ends of the stretch whose placeholder it lies in."""
    if before and place < starts[before - 1] + len(PLACEHOLDER):
        return found[before - 1][:2]
    return place - moved[before], place - moved[before]


LONGEST_ESCAPE = 16

LETTER_OR_DIGIT = frozenset(string.ascii_letters + string.digits)
MAY_BE_INSIDE = LETTER_OR_DIGIT | {"*"}
"""What a token may have begun with right before a place; after all else it begins there."""
_MAY_ESCAPE = re.compile(r"[\\%\x1b]")
_ESCAPE = re.compile(
    r"(?:\\(?:[nrtbfv]|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2})"
    r"|%[0-9a-fA-F]{2}"
    r"|(?:\x1b|\\(?:e|033|x1b|u001b))\[[0-9;]{0,8}m)\Z"
)


def begins(text: str, start: int) -> bool:
    """Tell whether a token may begin at `start`."""
    return not (start and inside(text, start))


def inside(text: str, start: int, *, escapes: bool = True) -> bool:
    """Tell whether a token has begun before `start`; `escapes`: whether the text has any."""
    before = text[start - 1]
    if before == "*":
        return text.endswith(PLACEHOLDER, 0, start)
    return before in LETTER_OR_DIGIT and not (escapes and follows_escape(text, start))


def may_escape(text: str) -> bool:
    """Tell whether there is anything in a text that an escape could begin with."""
    return _MAY_ESCAPE.search(text) is not None


def follows_escape(text: str, start: int) -> bool:
    r"""Tell whether the characters right before `start` spell an escape such as `\n` or `%3D`."""
    first = start - LONGEST_ESCAPE if start > LONGEST_ESCAPE else 0
    if _MAY_ESCAPE.search(text, first, start) is None:
        return False
    return _ESCAPE.search(text[first:start]) is not None


Span = tuple[int, int]
Judge = Callable[["re.Match[str]"], Sequence[Span]]

ALNUM = "[A-Za-z0-9]"
HEX = "[0-9a-f]"
WORD = "[A-Za-z0-9_-]"
END = r"(?![A-Za-z0-9]|\*\*\*REDACTED\*\*\*)"
NOTHING: tuple[Span, ...] = ()


class RedactionRule(NamedTuple):
    """One thing to find.

    Anchors are lower case; the pattern is matched where one begins, or anywhere if there is none.
    What it repeats is bounded or cannot hold another anchor, so that time stays linear.
    `bounded`: the match begins at a token's boundary. `swallows`: anchors inside a match need no
    second look, whatever the judge took of it. `needs`: what must stand somewhere in the text.
    """

    pattern_id: str
    anchors: tuple[str, ...]
    pattern: str
    judge: Judge
    bounded: bool = True
    swallows: bool = True
    needs: str = ""


@cache
def compiled(pattern: str) -> "re.Pattern[str]":
    """Compile a pattern when it is first needed; most never are."""
    return re.compile(pattern, re.ASCII)


def whole(match: "re.Match[str]") -> Sequence[Span]:
    """Take everything that matched."""
    return (match.span(),)


def first_group(match: "re.Match[str]") -> Sequence[Span]:
    """Take the first group, and leave what only leads to it."""
    return (match.span(1),)


def unless_words(match: "re.Match[str]") -> Sequence[Span]:
    """Take everything, unless the first group is a stand-in or made of words."""
    body = match[1]
    return NOTHING if is_stand_in(body) or is_words(body) else (match.span(),)


def unless_a_name(match: "re.Match[str]") -> Sequence[Span]:
    """Take everything, unless the first group is a stand-in or a name such as `chasing-dots`."""
    body = match[1]
    named = is_words(body) and not is_shouted(body)
    return NOTHING if is_stand_in(body) or named else (match.span(),)


def with_head(head: str, longest: int, *, telling: bool = False) -> Judge:
    """Take what matched together with its head, where the anchor is not the beginning.

    `telling`: the head is enough of a sign, whatever the rest may look like.
    """
    pattern = re.compile(f"{head}\\Z")

    def judge(match: "re.Match[str]") -> Sequence[Span]:
        end = match.start()
        found = pattern.search(match.string, max(0, end - longest), end)
        if found is None or not begins(match.string, found.start()):
            return NOTHING
        if is_words(match[0]) and not telling:
            return NOTHING
        return ((found.start(), match.end()),)

    return judge


def token(pattern_id: str, prefix: str, body: str) -> RedactionRule:
    """Write the rule of a vendor's token: a literal prefix, then a body that is no word."""
    pattern = f"{re.escape(prefix)}({body}){END}"
    return RedactionRule(pattern_id, (prefix.lower(),), pattern, unless_words)
