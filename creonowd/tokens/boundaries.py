"""Where a reader would cut: between paragraphs, sentences, graphemes. Counts nothing."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from creonowd.tokens.joints import is_plain

LOOK_BACK = 256

_PARAGRAPH = re.compile(r"[\r\n\u2029](?=[^\S\r\n]*+\S)")
_CLOSERS = r"」』”’\"'）)】》〉\]"
_SENTENCE = re.compile(
    rf"(?:[。！？｡．]++[{_CLOSERS}]*+|[」』]++|(?<![.!?])[.!?]++[{_CLOSERS}]*+(?=\s|\Z))[^\S\r\n]*+"
)


def paragraphs(text: str, start: int, end: int) -> Iterator[int]:
    """Walk the positions in `(start, end]` at which a line with something on it begins."""
    return _ends(_PARAGRAPH, text, start, end)


def sentences(text: str, start: int, end: int) -> Iterator[int]:
    """Walk the positions in `(start, end]` at which a sentence has ended, its spaces included."""
    found = _ends(_SENTENCE, text, start, end)
    return (position for position in found if grapheme_floor(text, position) == position)


def grapheme_floor(text: str, position: int) -> int:
    """Tell the last grapheme boundary at or before a position."""
    if _obvious(text, position):
        return position
    for start, end in _graphemes(text, position):
        if end > position:
            return start
    return position


def grapheme_ceiling(text: str, position: int) -> int:
    """Tell the first grapheme boundary at or after a position."""
    if _obvious(text, position):
        return position
    for start, end in _graphemes(text, position):
        if end > position:
            return position if start == position else end
    return position


def _ends(pattern: re.Pattern[str], text: str, start: int, end: int) -> Iterator[int]:
    for match in pattern.finditer(text, max(0, start - LOOK_BACK)):
        if match.end() > end:
            return
        if match.end() > start:
            yield match.end()


def _obvious(text: str, position: int) -> bool:
    if position <= 0 or position >= len(text) or text[position - 1] == "\n":
        return True
    return is_plain(text[position - 1]) and is_plain(text[position])


def _graphemes(text: str, position: int) -> Iterator[tuple[int, int]]:
    start = position
    while not _obvious(text, start):
        start -= 1
    return (match.span() for match in _cluster().finditer(text, start))


@cache
def _cluster() -> Any:
    import regex

    return regex.compile(r"\X")
