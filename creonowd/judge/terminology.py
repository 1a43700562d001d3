"""The terms of `.creonow/rules/terminology.json`, and where an output uses one that it should not."""

from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from string import ascii_letters, digits
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec
import regex

from creonowd.errors import Wording
from creonowd.judge.bans import BannedSpan
from creonowd.text import has_too_many_values

if TYPE_CHECKING:
    from ahocorasick_rs import AhoCorasick, BytesAhoCorasick

AVOID_KEYS = ("avoid", "avoids", "forbidden", "banned", "wrong", "deprecated")
PREFERRED_KEYS = ("preferred", "term", "name")

WordPlace = tuple[int, int, int]
"""The number of a word, and where it begins and ends."""

# The only characters beyond ASCII that have an ASCII letter in lower case.
_ALMOST_ASCII = ("\N{KELVIN SIGN}", "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}")
_LATIN = frozenset(ascii_letters + digits)
_WORD_CHARACTERS = _LATIN | {"_"}
_WORD_BYTES = frozenset("".join(_WORD_CHARACTERS).encode())


class Term(NamedTuple):
    """A word to avoid, and the one to use instead; empty if there is none."""

    avoid: str
    preferred: str = ""

    @property
    def rule(self) -> Wording:
        """The rule in words."""
        if self.preferred:
            return _PREFER.format(self.preferred, self.avoid)
        return _AVOID.format(self.avoid)


_PREFER = Wording("use “{}”, not “{}”", "用「{}」，不用「{}」")
_AVOID = Wording("do not use “{}”", "不用「{}」")


@lru_cache(maxsize=64)
def read_terms(data: bytes) -> tuple[Term, ...] | None:
    """Read the terms to avoid; None if the file is not JSON, or of a shape that prompts leave out."""
    if has_too_many_values(data):
        return None
    try:
        content = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return None
    if not isinstance(content, dict):
        return None
    fields = cast("dict[str, Any]", content)
    entries, banned = fields.get("terms", []), fields.get("banned", [])
    words = cast("list[Any]", banned) if isinstance(banned, list) else [banned]
    if not _are(entries, (dict, str)) or not _are(words, str):
        return None
    found = (term for entry in cast("list[Any]", entries) for term in _terms(entry))
    return (*map(Term, _words(words)), *found)


def _are(values: Any, kind: type | tuple[type, ...]) -> bool:
    listed = cast("list[Any]", values) if isinstance(values, list) else [None]
    return all(isinstance(value, kind) for value in listed)


def _terms(entry: Any) -> Iterator[Term]:
    if not isinstance(entry, dict):
        return
    fields = cast("dict[str, Any]", entry)
    names = [word for key in PREFERRED_KEYS for word in _words(fields.get(key))]
    preferred = names[0] if names else ""
    avoid = [word for key in AVOID_KEYS for word in _words(fields.get(key))]
    if "preferred" in fields:
        avoid += names[1:]
    yield from (Term(word, preferred) for word in avoid if word != preferred)


def _words(value: Any) -> list[str]:
    values = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [word.strip() for word in values if isinstance(word, str) and word.strip()]


def misuses(terms: tuple[Term, ...], text: str, most: int) -> list[tuple[Term, BannedSpan]]:
    """Find the words to avoid, except where they are part of the words to use instead.

    In the order of the terms; of each no more than the first `most`.
    """
    found: dict[int, list[BannedSpan]] = {}
    ends = [0] * len(terms)
    finder, nested = _finder(terms)
    for number, start, end in finder.places(text):
        if start < ends[number]:
            continue
        ends[number] = end
        of_term = found.setdefault(number, [])
        allowed = nested[number] and _is_part_of(terms[number].preferred, text, start, end)
        if not allowed and len(of_term) < most:
            of_term.append(BannedSpan(start, end, text[start:end]))
    return [(terms[number], span) for number in sorted(found) for span in found[number]]


@lru_cache(maxsize=16)
def _finder(terms: tuple[Term, ...]) -> tuple["WordFinder", list[bool]]:
    """Return a finder of the words to avoid, and for each if it may be part of the preferred word."""
    nested = [
        regex.search(regex.escape(avoid), preferred, regex.IGNORECASE) is not None
        for avoid, preferred in terms
    ]
    return WordFinder(tuple(term.avoid for term in terms)), nested


def _is_part_of(preferred: str, text: str, start: int, end: int) -> bool:
    """Return whether the text from `start` to `end` lies within the preferred word."""
    size = len(preferred)
    first = max(0, end - size)
    return size >= end - start and text.find(preferred, first, start + size) >= 0


class WordFinder:
    """Finds words of any case, overlapping ones too, in one pass over a text.

    In Chinese a word is found anywhere, in Latin script not inside another word.
    """

    def __init__(self, words: tuple[str, ...]) -> None:
        self._words = words
        self._has_case = any(word.lower() != word.upper() for word in words)
        self._edges = [(word[0] in _LATIN, word[-1] in _LATIN) for word in words]
        beyond = {char for word in words for char in word if not char.isascii()}
        self._only_ascii_has_case = all(char == char.lower() == char.upper() for char in beyond)

    def places(self, text: str) -> list[WordPlace]:
        """List every place where a word stands."""
        if not self._words:
            return []
        almost_ascii = self._has_case and any(char in text for char in _ALMOST_ASCII)
        if self._only_ascii_has_case and not almost_ascii:
            return self._places_in_bytes(text)
        lower = text.lower()
        if len(lower) == len(text):
            found = self._automaton.find_matches_as_indexes(lower, overlapping=True)
        else:
            found = self._places_one_by_one(text)
        return [place for place in found if _stands_alone(text, *place[1:])]

    def _places_in_bytes(self, text: str) -> list[WordPlace]:
        """Search UTF-8, where only ASCII letters have two cases: several times as fast."""
        data = _encode(text)
        lower = data.lower() if self._has_case else data
        found = self._byte_automaton.find_matches_as_indexes(lower, overlapping=True)
        alone = [place for place in found if self._stands_alone_in_bytes(data, place)]
        if not alone or len(data) == len(text):
            return alone
        at = _code_points(data, {start for _, start, _ in alone})
        return [(number, at[s], at[s] + len(self._words[number])) for number, s, _ in alone]

    def _stands_alone_in_bytes(self, data: bytes, place: WordPlace) -> bool:
        number, start, end = place
        first, last = self._edges[number]
        before = first and start > 0 and data[start - 1] in _WORD_BYTES
        return not before and not (last and end < len(data) and data[end] in _WORD_BYTES)

    def _places_one_by_one(self, text: str) -> list[WordPlace]:
        return [
            (number, *match.span())
            for number, word in enumerate(self._words)
            for match in regex.finditer(regex.escape(word), text, regex.IGNORECASE)
        ]

    @cached_property
    def _byte_automaton(self) -> "BytesAhoCorasick":
        from ahocorasick_rs import BytesAhoCorasick

        return BytesAhoCorasick([_encode(word.lower()) for word in self._words])

    @cached_property
    def _automaton(self) -> "AhoCorasick":
        from ahocorasick_rs import AhoCorasick

        return AhoCorasick([word.lower() for word in self._words])


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Return whether what begins or ends in Latin script or a digit is no part of a longer word."""
    before = start > 0 and text[start] in _LATIN and text[start - 1] in _WORD_CHARACTERS
    after = end < len(text) and text[end - 1] in _LATIN and text[end] in _WORD_CHARACTERS
    return not before and not after


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _code_points(data: bytes, places: Iterable[int]) -> dict[int, int]:
    """Map places in bytes to places in code points."""
    at: dict[int, int] = {}
    before = count = 0
    for place in sorted(places):
        count += len(data[before:place].decode("utf-8", "surrogatepass"))
        at[place] = count
        before = place
    return at
