"""The language of a manuscript, which decides the language of the words around it in a prompt.

A pure function of the texts, so that the same texts have the same language on any machine. It
looks at the beginning of a document and asks for a clear majority: typing does not change it.
"""

import re
from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

# Of each text so many code points are looked at.
SAMPLE = 4000
KEPT_BEGINNINGS = 256
# Fewer words say nothing clear.
ENOUGH = 100
# A text is clear if at most one word in so many is of the other language.
CLEAR = 4

_HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"([{_HAN}])|[^\W\d_{_HAN}]+")


class ManuscriptLanguage(StrEnum):
    """The languages that a prompt is framed in."""

    CHINESE = "zh"
    ENGLISH = "en"


class WordCount(NamedTuple):
    """The Han characters of a text and its words in other scripts."""

    han: int = 0
    other: int = 0

    @property
    def clear(self) -> ManuscriptLanguage | None:
        """The language, if there is enough text and it is nearly all in one."""
        total = self.han + self.other
        if total < ENOUGH or min(self) * CLEAR > total:
            return None
        return self.majority

    @property
    def majority(self) -> ManuscriptLanguage:
        """The language of most words; Chinese if there is none."""
        return ManuscriptLanguage.CHINESE if self.han >= self.other else ManuscriptLanguage.ENGLISH


def count_words(text: str) -> WordCount:
    """Count the words at the beginning of a text."""
    return _count_words(text[:SAMPLE])


# Typing behind it leaves the beginning of a document as it is.
@lru_cache(maxsize=KEPT_BEGINNINGS)
def _count_words(text: str) -> WordCount:
    found = [bool(match[1]) for match in _WORD.finditer(text)]
    return WordCount(sum(found), len(found) - sum(found))


def choose_language(document: WordCount, texts: Iterable[str]) -> ManuscriptLanguage:
    """Choose by the document if it is clear, else by the project's texts, else by all of them."""
    if (clear := document.clear) is not None:
        return clear
    counts = [count_words(text) for text in texts]
    together = WordCount(sum(one.han for one in counts), sum(one.other for one in counts))
    if (clear := together.clear) is not None:
        return clear
    return WordCount(together.han + document.han, together.other + document.other).majority
