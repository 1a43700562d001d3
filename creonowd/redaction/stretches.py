"""Stretches of a text that have to go: replacing them, and finding the way back afterwards.

Knows places only; knows neither rules nor evidence.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

PLACEHOLDER = "***REDACTED***"


class Stretch(NamedTuple):
    """Where in a text a secret stands, and which pattern found it."""

    start: int
    end: int
    pattern_id: str


Finding = tuple[int, int, int]
"""Start and end of a stretch to replace, and the rank of the rule that found it, the best first."""


def replaced(text: str, found: Sequence[Finding]) -> str:
    """Put the placeholder in place of every stretch."""
    if not found:
        return text
    kept: list[str] = []
    done = 0
    for start, end, _ in found:
        kept.append(text[done:start])
        done = end
    return PLACEHOLDER.join([*kept, text[done:]])


def placeholders(found: Sequence[Finding]) -> list[int]:
    """List where the placeholders begin once `found` is replaced."""
    return [start + move for (start, _, _), move in zip(found, _moved(found), strict=False)]


def _moved(found: Sequence[Finding]) -> list[int]:
    """Tell how far the text before, between and after the stretches moves when they are replaced."""
    growth = (len(PLACEHOLDER) - (end - start) for start, end, _ in found)
    return list(accumulate(growth, initial=0))


def united(found: Sequence[Finding], more: Sequence[Finding]) -> list[Finding]:
    """Add stretches that were found in a text where `found` is replaced, at their original places."""
    joined: list[Finding] = []
    for start, end, rank in sorted([*found, *_placed(found, more)]):
        if joined and start < joined[-1][1]:
            first, last, named = joined[-1]
            joined[-1] = first, max(last, end), named
        else:
            joined.append((start, end, rank))
    return joined


def _placed(found: Sequence[Finding], more: Sequence[Finding]) -> list[Finding]:
    moved, starts = _moved(found), placeholders(found)
    return [
        (
            _origin(start, bisect_right(starts, start), starts, found, moved)[0],
            _origin(end, bisect_left(starts, end), starts, found, moved)[1],
            rank,
        )
        for start, end, rank in more
    ]


def _origin(
    place: int,
    before: int,
    starts: Sequence[int],
    found: Sequence[Finding],
    moved: Sequence[int],
) -> tuple[int, int]:
    """Give the original place, or both ends of the stretch whose placeholder it lies in."""
    if before and place < starts[before - 1] + len(PLACEHOLDER):
        return found[before - 1][:2]
    return place - moved[before], place - moved[before]
