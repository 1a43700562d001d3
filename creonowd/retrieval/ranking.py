"""What a search asks for, and how the passages that it finds are ranked.

A term is a word, or two neighbouring characters of a script without spaces. In a query names count
most, then what the author asks for or selects, then the text before the cursor, of which function
words are left out. What is found comes without repetition, with scores from 0 to 1; of the current
document only what its text says now counts, as the index may lag behind it.
"""

import math
import re
import struct
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from operator import add
from typing import NamedTuple, Protocol

from creonowd.model import Model
from creonowd.text import LineNumbers, normal_form

SIMILARITY = 0.5
SKETCH_HASHES = 16
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
_FULL_SKETCH = struct.Struct(f"<{SKETCH_HASHES}I")


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
    return normal_form("NFKC", text).casefold()


def search_terms(text: str) -> list[str]:
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
    search_terms(
        "a an and are as at be been but by can could did do for from had has have he her hers him"
        " his how i if in into is it its me my no not of on or our she should so than that the"
        " their them then there they this those to upon very was we were what when which who whom"
        " will with would you your"
    )
)


class SearchScope(Model, cache_hash=True):
    """The documents that are searched, and how far one of them is: up to an offset in its file."""

    documents: frozenset[str]
    own: str = ""
    own_end: int = 0


class Nearness(Model, cache_hash=True):
    """The documents of the story up to the author's, in order: the nearer the later."""

    paths: tuple[str, ...]

    @property
    def values(self) -> dict[str, float]:
        """How near each of them is, from 0 to 1, the author's own being 1; no other is near."""
        last = len(self.paths)
        return {path: round(1 / (last - number), 4) for number, path in enumerate(self.paths)}


class CurrentDocument(Model):
    """The current document as it is now, and the stretch of it that the query is made of."""

    path: str
    text: str
    query_start: int = 0
    query_end: int = 0


class PassageRow(NamedTuple):
    """A passage of a document: its number in the database, where it stands, its fingerprint."""

    id: int
    start: int
    end: int
    lines: str
    sketch: bytes


class StoredText(NamedTuple):
    """The text of a passage and the headings above it."""

    text: str
    heading: tuple[str, ...]


class PassageRows(Protocol):
    """The passages of an index by row; rows are in the order of path and offset."""

    @property
    def rows(self) -> Sequence[PassageRow]:
        """All passages."""
        ...

    @property
    def is_single(self) -> Sequence[bool]:
        """Whether no other passage has nearly the same text."""
        ...

    def path(self, row: int) -> str:
        """Return the document of a row."""
        ...

    def rows_in(self, path: str) -> range:
        """Return the rows of a document."""
        ...


class PassageMatch(NamedTuple):
    """A passage that was found: its row in the index, its score, and where it stands now."""

    row: int
    score: float
    start: int
    end: int
    lines: str


class PassageGroup(NamedTuple):
    """A passage, and those that say nearly the same and scored no better."""

    best: PassageMatch
    duplicates: tuple[PassageMatch, ...]
    is_query: bool = False


class FoundPassage(Model):
    """A passage as it stands in its document, and its BM25."""

    row: int
    path: str
    start: int
    end: int
    lines: str
    heading: tuple[str, ...]
    text: str
    score: float


class RankedPassage(Model):
    """A passage and its score; `duplicates` say nearly the same and are not offered."""

    found: FoundPassage
    score: float
    duplicates: tuple[str, ...] = ()


def source_ref(found: FoundPassage) -> str:
    """Return the name of a passage: its path and lines, as in `chapters/07.md#L120-L143`."""
    return f"{found.path}#{found.lines}"


class OwnPassages(NamedTuple):
    """The matches in the current document by row as they stand now, None for one that is gone.

    `asked` are the rows of those that the query was made of.
    """

    moved: Mapping[int, PassageMatch | None]
    asked: tuple[int, ...] = ()


NO_OWN_PASSAGES = OwnPassages({})


def own_passages(
    matches: Iterable[tuple[int, float]],
    index: PassageRows,
    current: CurrentDocument,
    own_texts: Mapping[int, StoredText],
) -> OwnPassages:
    """Find where the matches in the current document stand now; `own_texts` are theirs, by number."""
    place = _PassageFinder(current)
    moved: dict[int, PassageMatch | None] = {}
    for row, score in matches:
        passage = index.rows[row]
        stored = own_texts.get(passage.id)
        one = PassageMatch(row, score, *passage[1:4])
        moved[row] = None if stored is None else place.find(one, stored.text)
    asked = (row for row, one in moved.items() if one is not None and _is_query(one, current))
    return OwnPassages(moved, tuple(asked))


def choose(
    matches: Sequence[tuple[int, float]],
    index: PassageRows,
    limit: int,
    own: OwnPassages = NO_OWN_PASSAGES,
) -> list[PassageGroup]:
    """Group rows that say nearly the same, up to `limit` groups, given rows and scores, best first.

    What the query itself was made of comes first: copies of it elsewhere are its duplicates.
    """
    first = [one for row in own.asked if (one := own.moved[row]) is not None]
    others = _candidates(matches, index, {**own.moved, **dict.fromkeys(own.asked)})
    return _groups(chain(first, others), index, limit, own.asked)


def _candidates(
    matches: Iterable[tuple[int, float]],
    index: PassageRows,
    moved: Mapping[int, PassageMatch | None],
) -> Iterator[PassageMatch]:
    """Make candidates one by one, with what is known of those that moved or are gone."""
    rows = index.rows
    for row, score in matches:
        one = moved[row] if row in moved else PassageMatch(row, score, *rows[row][1:4])
        if one is not None:
            yield one


def _is_query(one: PassageMatch, current: CurrentDocument) -> bool:
    """Return whether the query was made of a part of this passage."""
    return max(one.start, current.query_start) < min(one.end, current.query_end)


class _PassageFinder:
    """Finds where passages stand in the current text."""

    def __init__(self, current: CurrentDocument) -> None:
        self._text = current.text
        self._numbers: LineNumbers | None = None

    def find(self, one: PassageMatch, text: str) -> PassageMatch | None:
        """Move a passage to where it stands now; None if it is gone."""
        if self._text.startswith(text, one.start):
            return one
        start = self._text.find(text)
        if start < 0:
            return None
        self._numbers = self._numbers or LineNumbers(self._text)
        end = start + len(text)
        return one._replace(start=start, end=end, lines=self._numbers.spell(start, end))


def _groups(
    found: Iterable[PassageMatch], index: PassageRows, limit: int, query: Iterable[int]
) -> list[PassageGroup]:
    groups: list[tuple[PassageMatch, list[PassageMatch]]] = []
    numbers: list[int] = []
    duplicates = Duplicates()
    is_single, rows = index.is_single, index.rows
    for one in found:
        number = None
        if not is_single[one.row]:
            known = duplicates.find(rows[one.row].sketch)
            number = None if known is None else numbers[known]
        if number is not None:
            groups[number][1].append(one)
        elif len(groups) == limit:
            break
        else:
            if not is_single[one.row]:
                numbers.append(len(groups))
            groups.append((one, []))
    own = frozenset(query)
    return [PassageGroup(best, tuple(more), best.row in own) for best, more in groups]


def rank(
    groups: Sequence[PassageGroup], index: PassageRows, texts: Mapping[int, StoredText]
) -> list[RankedPassage]:
    """Rank groups by the share that each has of the best one's score.

    What the query was made of is its own best match: it does not count as the best one. `texts`
    are those of the best of each group, by number.
    """
    best = max((group.best.score for group in groups if not group.is_query), default=1.0)
    scored = sorted(
        (
            (-round(min(1.0, group.best.score / best), 4), index.path(group.best.row), group)
            for group in groups
        ),
        key=lambda one: (one[0], one[1], one[2].best.start),
    )
    return [
        RankedPassage(
            found=_found_passage(group.best, path, texts[index.rows[group.best.row].id]),
            score=-negative,
            duplicates=tuple(f"{index.path(one.row)}#{one.lines}" for one in group.duplicates),
        )
        for negative, path, group in scored
    ]


def _found_passage(one: PassageMatch, path: str, stored: StoredText) -> FoundPassage:
    return FoundPassage(
        row=one.row,
        path=path,
        start=one.start,
        end=one.end,
        lines=one.lines,
        heading=stored.heading,
        text=stored.text,
        score=one.score,
    )


class Duplicates:
    """Recognises passages that say nearly the same, by their fingerprints."""

    def __init__(self) -> None:
        self._sketches: list[tuple[int, ...]] = []
        self._by_hash: dict[int, list[int]] = {}

    def find(self, fingerprint: bytes) -> int | None:
        """Return the number of the first similar fingerprint, else add this one.

        Numbers count those that were added, from zero.
        """
        hashes = _hashes(fingerprint)
        first = hashes[: first_hashes(len(hashes))]
        by_hash = self._by_hash
        candidates = [by_hash[value] for value in first if value in by_hash]
        if candidates and (number := self._similar(hashes, candidates)) is not None:
            return number
        for value in first:
            by_hash.setdefault(value, []).append(len(self._sketches))
        self._sketches.append(hashes)
        return None

    def _similar(self, hashes: tuple[int, ...], candidates: list[list[int]]) -> int | None:
        own = frozenset(hashes)
        for number in sorted({number for numbers in candidates for number in numbers}):
            other = self._sketches[number]
            if len(own.intersection(other)) >= SIMILARITY * max(len(own), len(other)):
                return number
        return None


def first_hashes(count: int) -> int:
    """Return among how many first hashes two similar fingerprints of so many share one."""
    return count - math.ceil(SIMILARITY * count) + 1


def _hashes(fingerprint: bytes) -> tuple[int, ...]:
    if len(fingerprint) == _FULL_SKETCH.size:
        return _FULL_SKETCH.unpack(fingerprint)
    return struct.unpack(f"<{len(fingerprint) // 4}I", fingerprint)
