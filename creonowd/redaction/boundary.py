r"""Where a token may begin: beside anything but an ASCII letter or digit, or right after an escape.

Knows characters only; knows no pattern. `\b` is Unicode in Python, so a key beside a Han
character would not be at a boundary for it. A placeholder stands for letters, so that what is
redacted once has the same boundaries as before.
"""

import re
import string

from creonowd.redaction.stretches import PLACEHOLDER

LONGEST_ESCAPE = 16

ALNUM = frozenset(string.ascii_letters + string.digits)
MAY_BE_INSIDE = ALNUM | {"*"}
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
    return before in ALNUM and not (escapes and follows_escape(text, start))


def may_escape(text: str) -> bool:
    """Tell whether there is anything in a text that an escape could begin with."""
    return _MAY_ESCAPE.search(text) is not None


def follows_escape(text: str, start: int) -> bool:
    r"""Tell whether the characters right before `start` spell an escape such as `\n` or `%3D`."""
    first = start - LONGEST_ESCAPE if start > LONGEST_ESCAPE else 0
    if _MAY_ESCAPE.search(text, first, start) is None:
        return False
    return _ESCAPE.search(text[first:start]) is not None
