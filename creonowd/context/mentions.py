"""Which names stand in a text.

Chinese names need no boundaries, Latin ones do; where names overlap the longest one counts.
Knows no entity: names in, names out.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from creonowd.memo import Memo
from creonowd.tokens.additive import additive_parts

if TYPE_CHECKING:
    from ahocorasick_rs import AhoCorasick

Found = frozenset[str]
_FIRST_IDEOGRAPH = "\u2e80"


class Mentions:
    """Finds names in texts, looking only at the parts of a text that are new."""

    def __init__(self, capacity: int = 8_000_000) -> None:
        self._found: Memo[tuple[tuple[str, ...], str], Found] = Memo(capacity, _weigh)

    def find(self, names: Iterable[str], text: str) -> Found:
        """Tell which of the names stand in a text."""
        wanted = tuple(sorted({name for name in names if name.strip()}))
        if not wanted:
            return frozenset()
        return frozenset[str]().union(*(self._in(wanted, part) for part in additive_parts(text)))

    def _in(self, names: tuple[str, ...], part: str) -> Found:
        return self._found.get((names, part), lambda: _in(names, part))


def _in(names: tuple[str, ...], text: str) -> Found:
    matches = _automaton(names).find_matches_as_indexes(text, overlapping=True)
    found: set[str] = set()
    done = 0
    for start, end in sorted(((s, e) for _, s, e in matches), key=lambda m: (m[0], -m[1])):
        if start >= done and _stands_alone(text, start, end):
            found.add(text[start:end])
            done = end
    return frozenset(found)


@lru_cache(maxsize=32)
def _automaton(names: tuple[str, ...]) -> "AhoCorasick":
    from ahocorasick_rs import AhoCorasick

    return AhoCorasick(names)


def _stands_alone(text: str, start: int, end: int) -> bool:
    inside_left = start > 0 and _latin(text[start - 1]) and _latin(text[start])
    inside_right = end < len(text) and _latin(text[end - 1]) and _latin(text[end])
    return not inside_left and not inside_right


def _latin(character: str) -> bool:
    return character.isalnum() and character < _FIRST_IDEOGRAPH


def _weigh(key: tuple[tuple[str, ...], str], found: Found) -> int:
    return 200 + len(key[1]) + len(found)
