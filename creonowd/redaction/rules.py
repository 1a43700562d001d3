"""How a rule is written: anchors to look for, a pattern to match there, a check."""

import re
import string
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

from creonowd.redaction.shape import is_shouted, is_stand_in, is_words

PLACEHOLDER = "***REDACTED***"

MatchSpan = tuple[int, int]
"""Start and end of a part of a text."""

RankedSpan = tuple[int, int, int]
"""Start and end of a secret, and the rank of the rule that found it, the best first."""

Judge = Callable[["re.Match[str]"], Sequence[MatchSpan]]
"""Returns which spans of a match are secret."""


class SecretSpan(NamedTuple):
    """Where in a text a secret is, and which pattern found it."""

    start: int
    end: int
    pattern_id: str


class RedactionRule(NamedTuple):
    """One thing to find.

    Anchors are lower case; the pattern is matched where one begins, or anywhere if there is none.
    What it repeats is bounded or cannot hold another anchor, so that time stays linear.
    `bounded`: the match begins at a token's boundary. `swallows`: anchors inside a match are
    skipped, whatever the judge took of it. `needs`: what must stand somewhere in the text.
    `wraps`: what is found may go on in the lines below it.
    """

    pattern_id: str
    anchors: tuple[str, ...]
    pattern: str
    judge: Judge
    bounded: bool = True
    swallows: bool = True
    needs: str = ""
    wraps: bool = False


ALNUM = "[A-Za-z0-9]"
HEX = "[0-9a-f]"
UUID = f"{HEX}{{8}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{12}}"
WORD = "[A-Za-z0-9_-]"
END = r"(?![A-Za-z0-9]|\*\*\*REDACTED\*\*\*)"
NOTHING: tuple[MatchSpan, ...] = ()


def token(pattern_id: str, prefix: str, body: str) -> RedactionRule:
    """Write the rule of a vendor's token: a literal prefix, then a body that is no word."""
    pattern = f"{re.escape(prefix)}({body}){END}"
    return RedactionRule(pattern_id, (prefix.lower(),), pattern, unless_words, wraps=True)


@cache
def compile_pattern(pattern: str) -> "re.Pattern[str]":
    """Compile a pattern when it is first needed; most never are."""
    return re.compile(pattern, re.ASCII)


def whole(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take everything that matched."""
    return (match.span(),)


def first_group(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the first group only."""
    return (match.span(1),)


def unless_words(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take everything, unless the first group is a stand-in or made of words."""
    body = match[1]
    return NOTHING if is_stand_in(body) or is_words(body) else (match.span(),)


def unless_a_name(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take everything, unless the first group is a stand-in or a name such as `chasing-dots`."""
    body = match[1]
    is_name = is_words(body) and not is_shouted(body)
    return NOTHING if is_stand_in(body) or is_name else (match.span(),)


def short_key(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take a key that is shorter than the vendor's, as tests have them, unless it is a name."""
    body = match[1]
    digits = sum(map(str.isdigit, body))
    is_key = digits >= 2 and not is_words(body) and not is_stand_in(body)
    return (match.span(),) if is_key else NOTHING


def with_head(head: str, longest: int, *, sufficient: bool = False) -> Judge:
    """Take what matched together with the head before it, if there is one.

    `sufficient`: with this head, what follows may be made of words.
    """
    pattern = re.compile(f"{head}\\Z")

    def judge(match: "re.Match[str]") -> Sequence[MatchSpan]:
        end = match.start()
        found = pattern.search(match.string, max(0, end - longest), end)
        if found is None or not begins_token(match.string, found.start()):
            return NOTHING
        if is_words(match[0]) and not sufficient:
            return NOTHING
        return ((found.start(), match.end()),)

    return judge


LETTER_OR_DIGIT = frozenset(string.ascii_letters + string.digits)
MAY_BE_INSIDE = LETTER_OR_DIGIT | {"*"}
"""Characters after which a position may lie inside a token; after all others a token may begin."""

LONGEST_ESCAPE = 16

_ESCAPE_SIGN = re.compile(r"[\\%\x1b]")
_ESCAPE = re.compile(
    r"(?:\\(?:[nrtbfv]|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2})"
    r"|%[0-9a-fA-F]{2}"
    r"|(?:\x1b|\\(?:e|033|x1b|u001b))\[[0-9;]{0,8}m)\Z"
)


def begins_token(text: str, start: int) -> bool:
    """Return whether a token may begin at `start`."""
    return not (start and is_inside_token(text, start))


def is_inside_token(text: str, start: int, *, escapes: bool = True) -> bool:
    """Return whether a token has begun before `start`; `escapes`: whether the text may have any."""
    before = text[start - 1]
    if before == "*":
        return text.endswith(PLACEHOLDER, 0, start)
    return before in LETTER_OR_DIGIT and not (escapes and follows_escape(text, start))


def may_have_escapes(text: str) -> bool:
    """Return whether a text has anything that an escape could begin with."""
    return _ESCAPE_SIGN.search(text) is not None


def follows_escape(text: str, start: int) -> bool:
    r"""Return whether the characters right before `start` are an escape such as `\n` or `%3D`."""
    first = start - LONGEST_ESCAPE if start > LONGEST_ESCAPE else 0
    if _ESCAPE_SIGN.search(text, first, start) is None:
        return False
    return _ESCAPE.search(text[first:start]) is not None
