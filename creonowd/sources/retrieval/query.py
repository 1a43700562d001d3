"""What to search with: the words an author is about to need, each with its weight.

Names count most, then what the author says or selects, then the text before the cursor, of
which function words are left out. A pure function of strings; knows no index.
"""

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from creonowd.model import Model
from creonowd.sources.retrieval.terms import is_lone, is_word, terms_of

MOST_TERMS = 64
NAME = 3.0
WISH = 2.0
TEXT = 1.0
MOST_REPEATS = 3
KEPT = 128

_FUNCTION_CHARACTERS = frozenset(
    "的了着过是在有和与及或也都就才又还再便却而但若如因所以于之其此这那哪们我你您他她它"
    "不没无很更最太已将把被让给对向从到得地么吗呢吧啊呀罢来去上下里中说道个一些只可要会能"
    "のはがをにでとへもやからまでたてだですまするないいる"
)
_FUNCTION_WORDS = frozenset(
    terms_of(
        "a an and are as at be been but by can could did do for from had has have he her hers him"
        " his how i if in into is it its me my no not of on or our she should so than that the"
        " their them then there they this those to upon very was we were what when which who whom"
        " will with would you your"
    )
)


class Query(Model):
    """Terms with their weights, and the names among what was asked."""

    weights: dict[str, float]
    names: tuple[str, ...] = ()


def make_query(text: str, wish: str = "", names: Iterable[str] = ()) -> Query:
    """Weigh the terms of a text, of what the author wishes for, and of the names in both."""
    return _made(text, wish, tuple(sorted(set(names))))


# The text moves in steps, so that most questions of an author at work are the one before.
@lru_cache(maxsize=KEPT)
def _made(text: str, wish: str, named: tuple[str, ...]) -> Query:
    weights: dict[str, float] = {}
    for name in named:
        _add(weights, _plain(terms_of(name)), NAME)
    _add(weights, _plain(terms_of(wish)), WISH)
    terms = terms_of(text)
    plain = Counter(_plain(terms))
    counted = {term: number for term, number in plain.items() if not _is_function(term)}
    latest = {term: place for place, term in enumerate(terms)}
    ranked = sorted(counted, key=lambda term: (-min(counted[term], MOST_REPEATS), -latest[term]))
    for term in ranked:
        weights.setdefault(term, TEXT * (1 + min(counted[term], MOST_REPEATS)) / 2)
    return Query(weights=dict(list(weights.items())[:MOST_TERMS]), names=named)


def _add(weights: dict[str, float], terms: Iterable[str], weight: float) -> None:
    for term in terms:
        weights.setdefault(term, weight)


def _plain(terms: list[str]) -> list[str]:
    """Leave single characters out, unless there is nothing else."""
    return [term for term in terms if not is_lone(term)] or terms


def _is_function(term: str) -> bool:
    if is_word(term):
        return term in _FUNCTION_WORDS
    return not _FUNCTION_CHARACTERS.isdisjoint(term)
