"""What both search engines take and give: places of lines, never their text.

Knows lines and counts; knows no engine.
"""

from typing import Any, NamedTuple, Protocol

from creonowd.artifacts import patterns
from creonowd.artifacts.refs import BLOCK, Survey
from creonowd.threads import StopSignal, TimeLimit

LONGEST_LINE = 16 * 1024 * 1024

# RE2 takes at worst about five nanoseconds per byte and instruction of its program, and cannot be
# interrupted: a stretch of this size is a quarter of a second.
_STEPS_AT_ONCE = 50_000_000
_SHORTEST_STRETCH = 4 * 1024


class Place(NamedTuple):
    """The start of a line: its number from 1, and its offset in bytes."""

    line: int
    offset: int


class Cursor(NamedTuple):
    """Where a search goes on: at a line, after so many that matched."""

    place: Place
    seen: int


TOP = Cursor(Place(1, 0), 0)


class Sieve(Protocol):
    """Says which of the lines that match may be told."""

    def hides(self, start: int) -> bool:
        """Tell whether something of the line that begins at `start` may not be seen."""
        ...

    def passes(self, start: int) -> bool:
        """Tell whether a line that matches may be told."""
        ...


class Query(NamedTuple):
    """What to look for, from where on, how many places to keep, and when to give up.

    `survey` tells what is known of the file; None if it has changed since or was never surveyed.
    Without a `sieve` all that matches may be told.
    """

    translated: str
    survey: Survey | None
    start: Cursor
    most: int
    limit: TimeLimit
    stop: StopSignal
    sieve: Sieve | None = None

    @property
    def regex(self) -> Any:
        """The pattern, ready for bytes."""
        return patterns.compiled(self.translated)

    @property
    def stretch(self) -> int:
        """How many bytes to search between two looks at the clock."""
        fair = _STEPS_AT_ONCE // self.regex.programsize
        return max(_SHORTEST_STRETCH, min(fair, BLOCK))

    @property
    def longest_line(self) -> int:
        """How much of a line to search at once; beyond that it is searched in pieces."""
        fair = 10 * _STEPS_AT_ONCE // self.regex.programsize
        return max(_SHORTEST_STRETCH, min(fair, LONGEST_LINE))


class Found(NamedTuple):
    """The first places that match, how many lines match at all, and whether time sufficed."""

    places: list[Place]
    total: int
    complete: bool
