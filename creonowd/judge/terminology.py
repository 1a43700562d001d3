"""Where any of many words stands in a text, whatever its case. Knows no rule and no file."""

from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from string import ascii_letters, digits
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec
import regex

from creonowd.judge.bans import BannedSpan

if TYPE_CHECKING:
    from ahocorasick_rs import AhoCorasick, BytesAhoCorasick

Place = tuple[int, int, int]

# All that becomes an ASCII letter in lower case and is none itself.
_ALMOST_ASCII = ("\N{KELVIN SIGN}", "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}")
_LATIN = frozenset(ascii_letters + digits)
_IN_A_WORD = _LATIN | {"_"}
_IN_A_WORD_ENCODED = frozenset("".join(_IN_A_WORD).encode())


class WordFinder:
    """Looks for words, overlapping ones too, in one pass over a text.

    Within Chinese a word is found anywhere, in Latin script not inside another word.
    """

    def __init__(self, words: tuple[str, ...]) -> None:
        self._words = words
        self._cased = any(word.lower() != word.upper() for word in words)
        self._edges = [(_is_latin(word[0]), _is_latin(word[-1])) for word in words]
        beyond = {char for word in words for char in word if not char.isascii()}
        self._plain = all(char == char.lower() == char.upper() for char in beyond)

    def places(self, text: str) -> list[Place]:
        """Tell the number of each word that is there, where it begins and where it ends."""
        if not self._words:
            return []
        if self._plain and not (self._cased and any(odd in text for odd in _ALMOST_ASCII)):
            return self._in_bytes(text)
        lower = text.lower()
        if len(lower) == len(text):
            found = self._automaton.find_matches_as_indexes(lower, overlapping=True)
        else:
            found = self._one_by_one(text)
        return [place for place in found if stands_alone(text, *place[1:])]

    def _in_bytes(self, text: str) -> list[Place]:
        """Look through bytes, of which only ASCII letters have two cases: several times as fast."""
        data = _encoded(text)
        sought = data.lower() if self._cased else data
        found = self._byte_automaton.find_matches_as_indexes(sought, overlapping=True)
        alone = [place for place in found if self._stands_alone(data, place)]
        if not alone or len(data) == len(text):
            return alone
        at = _code_points(data, {start for _, start, _ in alone})
        return [(number, at[s], at[s] + len(self._words[number])) for number, s, _ in alone]

    def _stands_alone(self, data: bytes, place: Place) -> bool:
        number, start, end = place
        first, last = self._edges[number]
        before = first and start > 0 and data[start - 1] in _IN_A_WORD_ENCODED
        return not before and not (last and end < len(data) and data[end] in _IN_A_WORD_ENCODED)

    def _one_by_one(self, text: str) -> list[Place]:
        return [
            (number, *match.span())
            for number, word in enumerate(self._words)
            for match in regex.finditer(regex.escape(word), text, regex.IGNORECASE)
        ]

    @cached_property
    def _byte_automaton(self) -> "BytesAhoCorasick":
        from ahocorasick_rs import BytesAhoCorasick

        return BytesAhoCorasick([_encoded(word.lower()) for word in self._words])

    @cached_property
    def _automaton(self) -> "AhoCorasick":
        from ahocorasick_rs import AhoCorasick

        return AhoCorasick([word.lower() for word in self._words])


def stands_alone(text: str, start: int, end: int) -> bool:
    """Tell whether a stretch that begins or ends in Latin script or a digit is no part of a word."""
    before = start > 0 and text[start] in _LATIN and text[start - 1] in _IN_A_WORD
    after = end < len(text) and text[end - 1] in _LATIN and text[end] in _IN_A_WORD
    return not before and not after


def _is_latin(char: str) -> bool:
    return char in _LATIN


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _code_points(data: bytes, places: Iterable[int]) -> dict[int, int]:
    """Tell which code points the bytes at some places begin."""
    at: dict[int, int] = {}
    before = count = 0
    for place in sorted(places):
        count += len(data[before:place].decode("utf-8", "surrogatepass"))
        at[place] = count
        before = place
    return at


REF = ".creonow/rules/terminology.json"
AVOIDED = ("avoid", "avoids", "forbidden", "banned", "wrong", "deprecated")
PREFERRED = ("preferred", "term", "name")


class Term(NamedTuple):
    """A word to avoid, and the one to use instead; empty if there is none."""

    avoided: str
    preferred: str = ""

    @property
    def says(self) -> str:
        """The rule in words."""
        instead = f"用「{self.preferred}」，" if self.preferred else ""
        return f"{instead}不用「{self.avoided}」"


@lru_cache(maxsize=64)
def read_terms(data: bytes) -> tuple[Term, ...] | None:
    """Read the terms to avoid; None if the file cannot be read at all."""
    try:
        content = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return None
    if not isinstance(content, dict):
        return ()
    told = cast("dict[str, Any]", content)
    banned = [Term(word) for word in _words(told.get("banned"))]
    entries = told.get("terms")
    listed = cast("list[Any]", entries) if isinstance(entries, list) else []
    return (*banned, *(term for entry in listed for term in _terms(entry)))


def misuses(terms: tuple[Term, ...], text: str, most: int) -> list[tuple[Term, BannedSpan]]:
    """Find the words to avoid, except where they are part of the words to use instead.

    In the order of the terms; of each no more than the first `most`.
    """
    found: dict[int, list[BannedSpan]] = {}
    ends = [0] * len(terms)
    finder, nested = _search(terms)
    for number, start, end in finder.places(text):
        if start < ends[number]:
            continue
        ends[number] = end
        of_term = found.setdefault(number, [])
        within = nested[number] and _is_part_of(terms[number].preferred, text, start, end)
        if not within and len(of_term) < most:
            of_term.append(BannedSpan(start, end, text[start:end]))
    return [(terms[number], hit) for number in sorted(found) for hit in found[number]]


@lru_cache(maxsize=16)
def _search(terms: tuple[Term, ...]) -> tuple[WordFinder, list[bool]]:
    """Make what finds the words to avoid, and tell which may be a part of the word to use."""
    nested = [
        regex.search(regex.escape(avoided), preferred, regex.IGNORECASE) is not None
        for avoided, preferred in terms
    ]
    return WordFinder(tuple(term.avoided for term in terms)), nested


def _is_part_of(preferred: str, text: str, start: int, end: int) -> bool:
    """Tell whether a stretch lies within the word to use."""
    size = len(preferred)
    first = max(0, end - size)
    return size >= end - start and text.find(preferred, first, start + size) >= 0


def _terms(entry: Any) -> Iterator[Term]:
    if not isinstance(entry, dict):
        return
    told = cast("dict[str, Any]", entry)
    named = [word for key in PREFERRED for word in _words(told.get(key))]
    preferred = named[0] if named else ""
    avoided = [word for key in AVOIDED for word in _words(told.get(key))]
    if "preferred" in told:
        avoided += named[1:]
    yield from (Term(word, preferred) for word in avoided if word != preferred)


def _words(value: Any) -> list[str]:
    listed = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [word.strip() for word in listed if isinstance(word, str) and word.strip()]
