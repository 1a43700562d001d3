"""What a text is searched by: bigrams where words have no spaces, words everywhere else.

A text is folded first (NFKC, then case), so that full-width letters, compatibility ideographs
and capitals make no difference; accents do. Knows no document and no index.
"""

import re
import unicodedata
from functools import lru_cache

LONGEST_WORD = 64

# Han of every plane, kana, Hangul, bopomofo; Thai, Lao, Burmese and Khmer have no spaces either.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035"
    "\u3038-\u303c\u3041-\u3096\u3099-\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f"
    "\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c\uac00-\ud7fb"
    "\uf900-\ufaff\U00016fe0-\U00018cff\U0001b000-\U0001b2ff\U00020000-\U0003ffff"
)
# Marks that belong to the word they stand in, though Python counts them as no letters.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0dff"

# At the end of a run the lookahead gives its last character alone: with that, and with prefixes,
# a single character can be found wherever it stands.
_BIGRAM = re.compile(rf"(?=([{UNSPACED}]{{1,2}}))")
_UNSPACED_RUN = re.compile(rf"[{UNSPACED}]+")
_WORD = re.compile(rf"(?:[^\W_]|[{_MARKS}])+")
_OF_A_WORD = rf"(?:[^\W_{UNSPACED}]|[{_MARKS}])"


def fold(text: str) -> str:
    """Make spellings equal that mean the same."""
    return unicodedata.normalize("NFKC", text).casefold()


def terms_of(text: str) -> list[str]:
    """List every term of a text, as often as it occurs."""
    folded = fold(text)
    if folded.isascii():
        return _words(folded)
    return _BIGRAM.findall(folded) + _words(_UNSPACED_RUN.sub(" ", folded))


def stands_in(term: str, text: str) -> bool:
    """Tell whether a text has a term, looking quickly: what folding alone makes equal is missed."""
    if is_word(term):
        return _whole(term).search(text) is not None
    return term in text


def is_lone(term: str) -> bool:
    """Tell whether a term is a single character of a script without spaces."""
    return len(term) == 1 and not is_word(term)


def is_word(term: str) -> bool:
    """Tell whether a term is a word of a script with spaces."""
    return _UNSPACED_RUN.match(term) is None


@lru_cache(maxsize=256)
def _whole(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!{_OF_A_WORD}){re.escape(word)}(?!{_OF_A_WORD})", re.IGNORECASE)


def _words(text: str) -> list[str]:
    return [word[:LONGEST_WORD] for word in _WORD.findall(text)]
