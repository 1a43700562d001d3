"""Which names announce a secret: of variables, fields, headers, flags and keys of a log line.

Knows words of English and Chinese; knows nothing of the values behind them.
"""

import re
from enum import IntEnum
from functools import lru_cache

from creonowd.redaction.vocabulary import (
    ABOUT_A_SECRET,
    CHINESE_NAMES,
    FAINT_WORDS,
    HEADERS_THAT_HOLD_SECRETS,
    LOCKED_BY_KEY,
    NAME_TAILS,
    OPEN_KINDS,
    PASSWORD_ENDINGS,
    PASSWORD_WORDS,
    SECRET_ENDINGS,
    SECRET_WORDS,
)


class Strength(IntEnum):
    """How much a name promises, and so how little its value has to look like a secret."""

    NONE = 0
    WEAK = 1
    SECRET = 2
    PASSWORD = 3


LONGEST_NAME = 96

_PROMISING = FAINT_WORDS.union(SECRET_ENDINGS, PASSWORD_ENDINGS)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")


@lru_cache(maxsize=1024)
def strength_of(name: str) -> Strength:
    """Judge a name by its last word, and a `key` by what it opens."""
    if name.rstrip().endswith(CHINESE_NAMES):
        return Strength.PASSWORD
    words = [word.lower() for word in _WORD.findall(name[-LONGEST_NAME:])]
    while len(words) > 1 and (words[-1].isdigit() or words[-1] in NAME_TAILS):
        words.pop()
    return _judge(words) if words else Strength.NONE


def is_secret_name(name: str) -> bool:
    """Tell whether whatever stands under this name has to go."""
    return strength_of(name) >= Strength.SECRET or name.lower().endswith(HEADERS_THAT_HOLD_SECRETS)


def _judge(words: list[str]) -> Strength:
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last in ABOUT_A_SECRET:
        return Strength.NONE
    if last.endswith(PASSWORD_ENDINGS) or last in PASSWORD_WORDS:
        return Strength.PASSWORD
    if last == "key" and before in LOCKED_BY_KEY:
        return Strength.SECRET
    if before in OPEN_KINDS:
        return Strength.NONE
    if last.endswith(SECRET_ENDINGS) or last in SECRET_WORDS:
        return Strength.SECRET
    return Strength.NONE if _PROMISING.isdisjoint(words) else Strength.WEAK
