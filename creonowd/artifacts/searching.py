"""What both search engines take and give: places of lines, never their text.

Knows lines and counts; knows no engine.
"""

from typing import Any, NamedTuple

from creonowd.artifacts import patterns
from creonowd.artifacts.refs import Survey
from creonowd.artifacts.stopping import Stop, TimeLimit

LONGEST_LINE = 16 * 1024 * 1024


class Place(NamedTuple):
    """The start of a line: its number from 1, and its offset in bytes."""

    line: int
    offset: int


class Cursor(NamedTuple):
    """Where a search goes on: at a line, after so many that matched."""

    place: Place
    seen: int


TOP = Cursor(Place(1, 0), 0)


class Query(NamedTuple):
    """What to look for, from where on, how many places to keep, and when to give up.

    `survey` tells what is known of the file; None if it has changed since or was never surveyed.
    """

    translated: str
    survey: Survey | None
    start: Cursor
    most: int
    limit: TimeLimit
    stop: Stop

    @property
    def regex(self) -> Any:
        """The pattern, ready for bytes."""
        return patterns.compiled(self.translated)


class Found(NamedTuple):
    """The first places that match, how many lines match at all, and whether time sufficed."""

    places: list[Place]
    total: int
    complete: bool
