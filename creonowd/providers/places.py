"""Where any of many words stands in a text, whatever its case. Knows no rule and no file."""

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

import regex

if TYPE_CHECKING:
    from ahocorasick_rs import AhoCorasick, BytesAhoCorasick

Place = tuple[int, int, int]

# All that becomes an ASCII letter in lower case and is none itself.
_ALMOST_ASCII = ("\N{KELVIN SIGN}", "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}")


class Finder:
    """Looks for words, overlapping ones too, in one pass over a text."""

    def __init__(self, words: tuple[str, ...]) -> None:
        self._words = words
        self._cased = any(word.lower() != word.upper() for word in words)
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
            return self._automaton.find_matches_as_indexes(lower, overlapping=True)
        return [
            (number, *match.span())
            for number, word in enumerate(self._words)
            for match in regex.finditer(regex.escape(word), text, regex.IGNORECASE)
        ]

    def _in_bytes(self, text: str) -> list[Place]:
        """Look through bytes, of which only ASCII letters have two cases: several times as fast."""
        data = _encoded(text)
        sought = data.lower() if self._cased else data
        found = self._byte_automaton.find_matches_as_indexes(sought, overlapping=True)
        if not found or len(data) == len(text):
            return found
        at = _code_points(data, {start for _, start, _ in found})
        return [(number, at[s], at[s] + len(self._words[number])) for number, s, _ in found]

    @cached_property
    def _byte_automaton(self) -> "BytesAhoCorasick":
        from ahocorasick_rs import BytesAhoCorasick

        return BytesAhoCorasick([_encoded(word.lower()) for word in self._words])

    @cached_property
    def _automaton(self) -> "AhoCorasick":
        from ahocorasick_rs import AhoCorasick

        return AhoCorasick([word.lower() for word in self._words])


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
