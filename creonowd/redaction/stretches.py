"""Stretches of a text that have to go: replacing them, and finding the way back afterwards.

Knows places only; knows neither rules nor evidence.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

PLACEHOLDER = "***REDACTED***"

_MAY_JOIN_A_TOKEN = frozenset(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./\\:@%+=~*()（）[]"
)


class Stretch(NamedTuple):
    """Where in a text a secret stands, and which pattern found it."""

    start: int
    end: int
    pattern_id: str


def replaced(text: str, stretches: Sequence[Stretch]) -> str:
    """Put the placeholder in place of every stretch."""
    pieces: list[str] = []
    done = 0
    for start, end, _ in stretches:
        pieces += (text[done:start], PLACEHOLDER)
        done = end
    return "".join([*pieces, text[done:]])


def reveals_more(text: str, stretches: Sequence[Stretch]) -> bool:
    """Tell whether something beside a stretch could be a token once the stretch is gone."""
    before = {text[start - 1 : start] for start, _, _ in stretches}
    after = {text[end : end + 1] for _, end, _ in stretches}
    return not _MAY_JOIN_A_TOKEN.isdisjoint(before | after)


def united(found: Sequence[Stretch], more: Sequence[Stretch]) -> list[Stretch]:
    """Add stretches that were found in a text where `found` is replaced, at their original places."""
    joined: list[Stretch] = []
    for stretch in sorted([*found, *_placed(found, more)]):
        if joined and stretch.start < joined[-1].end:
            last = joined[-1]
            joined[-1] = last._replace(end=max(last.end, stretch.end))
        else:
            joined.append(stretch)
    return joined


def _placed(found: Sequence[Stretch], more: Sequence[Stretch]) -> list[Stretch]:
    growth = [len(PLACEHOLDER) - (end - start) for start, end, _ in found]
    moved = [0, *accumulate(growth)]
    starts = [stretch.start + moved[i] for i, stretch in enumerate(found)]
    return [
        Stretch(
            _origin(start, bisect_right(starts, start), starts, found, moved)[0],
            _origin(end, bisect_left(starts, end), starts, found, moved)[1],
            name,
        )
        for start, end, name in more
    ]


def _origin(
    place: int,
    before: int,
    starts: Sequence[int],
    found: Sequence[Stretch],
    moved: Sequence[int],
) -> tuple[int, int]:
    """Give the original place, or both ends of the stretch whose placeholder it lies in."""
    if before and place < starts[before - 1] + len(PLACEHOLDER):
        return found[before - 1].start, found[before - 1].end
    return place - moved[before], place - moved[before]
