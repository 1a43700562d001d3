"""Find which of some names are mentioned in a text.

Chinese names need no word boundaries, Latin ones do; of names that overlap the longest counts.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from creonowd.memo import Memo
from creonowd.tokens.boundaries import additive_parts

if TYPE_CHECKING:
    from ahocorasick_rs import AhoCorasick

# What a text of so many characters mentions is kept for all of it.
WHOLE = 32_000

Names = frozenset[str]
_FIRST_IDEOGRAPH = "\u2e80"


class Mentions:
    """Find names in texts, searching only those parts of a text that are new."""

    def __init__(self, capacity: int = 8_000_000) -> None:
        self._found: Memo[tuple[tuple[str, ...], str], Names] = Memo(capacity, _weigh)

    def find(self, names: Iterable[str], text: str) -> Names:
        """Return which of the names a text mentions."""
        wanted = _sorted_names(tuple(names))
        if not wanted:
            return frozenset()
        if len(text) > WHOLE:
            return self._find_in_parts(wanted, text)
        return self._found.get((wanted, text), lambda: self._find_in_parts(wanted, text))

    def count(self, names: Iterable[str], text: str) -> Counter[str]:
        """Return how often a text mentions each of the names."""
        wanted = _sorted_names(tuple(names))
        counts: Counter[str] = Counter()
        for part in additive_parts(text) if wanted else ():
            counts.update(name for name, _, _ in _matches(wanted, part))
        return counts

    def _find_in_parts(self, names: tuple[str, ...], text: str) -> Names:
        parts = list(additive_parts(text))
        if len(parts) == 1:
            return _find(names, text)
        return frozenset[str]().union(*(self._find_in_part(names, part) for part in parts))

    def _find_in_part(self, names: tuple[str, ...], part: str) -> Names:
        return self._found.get((names, part), lambda: _find(names, part))


@lru_cache(maxsize=64)
def _sorted_names(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted({name for name in names if name.strip()}))


def _find(names: tuple[str, ...], text: str) -> Names:
    return frozenset(name for name, _, _ in _matches(names, text))


def _matches(names: tuple[str, ...], text: str) -> Iterator[tuple[str, int, int]]:
    """Find whole names from left to right, at each place the longest."""
    matches = _automaton(names).find_matches_as_indexes(text, overlapping=True)
    covered = 0
    for start, end in sorted(((s, e) for _, s, e in matches), key=lambda m: (m[0], -m[1])):
        if start >= covered and _is_whole_name(text, start, end):
            yield text[start:end], start, end
            covered = end


@lru_cache(maxsize=32)
def _automaton(names: tuple[str, ...]) -> "AhoCorasick":
    from ahocorasick_rs import AhoCorasick

    return AhoCorasick(names)


def _is_whole_name(text: str, start: int, end: int) -> bool:
    joined_left = start > 0 and _is_latin(text[start - 1]) and _is_latin(text[start])
    joined_right = end < len(text) and _is_latin(text[end - 1]) and _is_latin(text[end])
    return not joined_left and not joined_right


def _is_latin(character: str) -> bool:
    return character.isalnum() and character < _FIRST_IDEOGRAPH


def _weigh(key: tuple[tuple[str, ...], str], found: Names) -> int:
    return 200 + len(key[1]) + len(found)
