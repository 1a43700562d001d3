"""The terms of a text, and the query that is made of them.

A term is a word, or two neighbouring characters of a script without spaces. In a query names count
most, then what the author asks for or selects, then the text before the cursor, of which function
words are left out.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from operator import add

from creonowd.model import Model

MOST_TERMS = 64
NAME_WEIGHT = 3.0
WISH_WEIGHT = 2.0
TEXT_WEIGHT = 1.0
MOST_REPEATS = 3
KEPT_QUERIES = 4096
LONGEST_WORD = 64

# Han of every plane, kana, Hangul, bopomofo; Thai, Lao, Burmese and Khmer have no spaces either.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035"
    "\u3038-\u303c\u3041-\u3096\u3099-\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f"
    "\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c\uac00-\ud7fb"
    "\uf900-\ufaff\U00016fe0-\U00018cff\U0001b000-\U0001b2ff\U00020000-\U0003ffff"
)
# Marks that belong to their word, though Python does not count them as letters.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0dff"

# At the end of a run the lookahead matches its last character alone: with that, and with
# prefixes, a single character can be found wherever it stands.
_BIGRAM = re.compile(rf"(?=([{UNSPACED}]{{1,2}}))")
_UNSPACED_RUN = re.compile(rf"[{UNSPACED}]+")
_WORD = re.compile(rf"(?:[^\W_]|[{_MARKS}])+")
_WORD_CHARACTER = rf"(?:[^\W_{UNSPACED}]|[{_MARKS}])"
_SPACED_WORD = re.compile(rf"{_WORD_CHARACTER}+")
_FUNCTION_CHARACTERS = frozenset(
    "的了着过是在有和与及或也都就才又还再便却而但若如因所以于之其此这那哪们我你您他她它"
    "不没无很更最太已将把被让给对向从到得地么吗呢吧啊呀罢来去上下里中说道个一些只可要会能"
    "のはがをにでとへもやからまでたてだですまするないいる"
)
# A text without these mostly is normal already, which Python sees at once: a sentence took 7 µs, now 1.
_WIDE = tuple((mark, unicodedata.normalize("NFKC", mark)) for mark in "，：！？；．（）…\u3000")
_WITHOUT_FUNCTIONS = str.maketrans(dict.fromkeys(_FUNCTION_CHARACTERS, " "))


class Query(Model):
    """Terms with their weights, and the names that are searched for."""

    weights: dict[str, float]
    names: tuple[str, ...] = ()


def make_query(text: str, wish: str = "", names: Iterable[str] = ()) -> Query:
    """Weigh the terms of a text, of what the author wishes for, and of the names in both."""
    return _query(text, wish, tuple(sorted(set(names))))


# The text moves in steps, so that most queries of an author at work repeat the one before.
@lru_cache(maxsize=KEPT_QUERIES)
def _query(text: str, wish: str, names: tuple[str, ...]) -> Query:
    weights: dict[str, float] = {}
    for name in names:
        for term in _longer_terms(name):
            weights.setdefault(term, NAME_WEIGHT)
    for term in _longer_terms(wish):
        weights.setdefault(term, WISH_WEIGHT)
    pairs, words = _pairs_and_words(text)
    longer = [*(pair for pair in pairs if len(pair) > 1), *words]
    # Functions are dropped by script: a pair is no word, and a word no pair.
    is_function = {*filter(_is_function_pair, set(pairs)), *_FUNCTION_WORDS.intersection(words)}
    counts = {
        term: min(count, MOST_REPEATS)
        for term, count in Counter(longer or pairs).items()
        if term not in is_function
    }
    last = {term: position for position, term in enumerate([*pairs, *words])}
    for term in sorted(counts, key=lambda term: (-counts[term], -last[term])):
        weights.setdefault(term, TEXT_WEIGHT * (1 + counts[term]) / 2)
    return Query(weights=dict(list(weights.items())[:MOST_TERMS]), names=names)


def _longer_terms(text: str) -> list[str]:
    """Return the terms of a text without single characters, unless there is nothing else."""
    pairs, words = _pairs_and_words(text)
    return [*(pair for pair in pairs if len(pair) > 1), *words] or pairs


def _is_function_pair(pair: str) -> bool:
    return not _FUNCTION_CHARACTERS.isdisjoint(pair)


def content_terms(text: str) -> set[str]:
    """Return the terms of a text that say what it is about: no single characters, no functions."""
    folded = fold(text)
    found = {word[:LONGEST_WORD] for word in _SPACED_WORD.findall(folded)} - _FUNCTION_WORDS
    if folded.isascii():
        return found
    # Functions part the runs, so that no pair has one: to look at each pair took twice as long.
    for run in _UNSPACED_RUN.findall(folded.translate(_WITHOUT_FUNCTIONS)):
        found.update(map(add, run, run[1:]))
    return found


def fold(text: str) -> str:
    """Make spellings equal that mean the same."""
    for wide, plain in _WIDE:
        text = text.replace(wide, plain)
    return unicodedata.normalize("NFKC", text).casefold()


def terms_of(text: str) -> list[str]:
    """Return every term of a text, as often as it occurs."""
    pairs, words = _pairs_and_words(text)
    return pairs + words


def _pairs_and_words(text: str) -> tuple[list[str], list[str]]:
    folded = fold(text)
    if folded.isascii():
        return [], _words(folded)
    return _BIGRAM.findall(folded), _words(_UNSPACED_RUN.sub(" ", folded))


def contains_term(text: str, term: str) -> bool:
    """Return whether a text has a term, quickly: spellings that only folding makes equal are missed."""
    if is_word(term):
        return _word_pattern(term).search(text) is not None
    return term in text


def is_single_character(term: str) -> bool:
    """Return whether a term is a single character of a script without spaces."""
    return len(term) == 1 and not is_word(term)


def is_word(term: str) -> bool:
    """Return whether a term is a word of a script with spaces."""
    return _UNSPACED_RUN.match(term) is None


@lru_cache(maxsize=256)
def _word_pattern(word: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?<!{_WORD_CHARACTER}){re.escape(word)}(?!{_WORD_CHARACTER})", re.IGNORECASE
    )


def _words(text: str) -> list[str]:
    return [word[:LONGEST_WORD] for word in _WORD.findall(text)]


_FUNCTION_WORDS = frozenset(
    terms_of(
        "a an and are as at be been but by can could did do for from had has have he her hers him"
        " his how i if in into is it its me my no not of on or our she should so than that the"
        " their them then there they this those to upon very was we were what when which who whom"
        " will with would you your"
    )
)
