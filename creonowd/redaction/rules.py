"""What a rule is: literal anchors to look for, a pattern to match there, a judge of the match.

Knows how rules are written; knows none of them.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

from creonowd.redaction.boundary import begins
from creonowd.redaction.shape import is_shouted, is_stand_in, is_words

Span = tuple[int, int]
Judge = Callable[["re.Match[str]"], Sequence[Span]]

ALNUM = "[A-Za-z0-9]"
HEX = "[0-9a-f]"
WORD = "[A-Za-z0-9_-]"
END = r"(?![A-Za-z0-9]|\*\*\*REDACTED\*\*\*)"
NOTHING: tuple[Span, ...] = ()


class Rule(NamedTuple):
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


def token(pattern_id: str, prefix: str, body: str) -> Rule:
    """Write the rule of a vendor's token: a literal prefix, then a body that is no word."""
    pattern = f"{re.escape(prefix)}({body}){END}"
    return Rule(pattern_id, (prefix.lower(),), pattern, unless_words)
