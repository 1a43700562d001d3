"""Where a reader would cut a text: between paragraphs, sentences and graphemes."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from creonowd.tokens.additive import is_plain

CONTEXT = 256

_PARAGRAPH = re.compile(r"[\r\n\u2029](?=[^\S\r\n]*+\S)")
_CLOSERS = r"」』”’\"'）)】》〉\]"
# Begins with a set of characters, which is what `re` can look for quickly.
_SENTENCE = re.compile(
    r"[。！？｡．」』.!?](?:"
    rf"(?<=[。！？｡．])[。！？｡．]*+[{_CLOSERS}]*+|(?<=[」』])[」』]*+"
    rf"|(?<=[.!?])(?<![.!?].)[.!?]*+[{_CLOSERS}]*+(?=\s|\Z)"
    r")[^\S\r\n]*+",
    re.DOTALL,
)


def paragraphs(text: str, start: int, end: int) -> Iterator[int]:
    """Walk the positions in `(start, end]` at which a line with something on it begins."""
    return _ends(_PARAGRAPH, text, start, end)


def sentences(text: str, start: int, end: int) -> Iterator[int]:
    """Walk the positions in `(start, end]` at which a sentence has ended, its spaces included."""
    found = _ends(_SENTENCE, text, start, end)
    return (position for position in found if grapheme_floor(text, position) == position)


def grapheme_floor(text: str, position: int) -> int:
    """Return the last grapheme boundary at or before a position."""
    if _is_obvious_boundary(text, position):
        return position
    start, end = next(span for span in _graphemes(text, position) if span[1] >= position)
    return position if end == position else start


def grapheme_ceiling(text: str, position: int) -> int:
    """Return the first grapheme boundary at or after a position."""
    if _is_obvious_boundary(text, position):
        return position
    return next(end for _, end in _graphemes(text, position) if end >= position)


def _ends(pattern: re.Pattern[str], text: str, start: int, end: int) -> Iterator[int]:
    for match in pattern.finditer(text, max(0, start - CONTEXT), end + CONTEXT):
        if match.end() > end:
            return
        if match.end() > start:
            yield match.end()


def _is_obvious_boundary(text: str, position: int) -> bool:
    if position <= 0 or position >= len(text) or text[position - 1] == "\n":
        return True
    return is_plain(text[position - 1]) and is_plain(text[position])


def _graphemes(text: str, position: int) -> Iterator[tuple[int, int]]:
    """Walk the graphemes around a position, from a sure boundary before it."""
    found = _patterns().cluster.finditer(text, _sure_boundary(text, position))
    return (match.span() for match in found)


def _sure_boundary(text: str, position: int) -> int:
    """Find the nearest place before a position that is a boundary whatever surrounds it."""
    before_flags = _patterns().no_flag.search(text, 0, position)
    flags = before_flags.end() if before_flags else 0
    if position - flags > 2:
        return flags + (position - flags - 1) // 2 * 2
    anchor = _patterns().anchor.search(text, 0, position)
    return anchor.start() if anchor else 0


class _Patterns(NamedTuple):
    cluster: Any
    no_flag: Any
    anchor: Any


@cache
def _patterns() -> _Patterns:
    import regex

    extending = r"\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=SpacingMark}\p{GCB=Regional_Indicator}"
    letters = r"\p{Latin}\p{Greek}\p{Cyrillic}\p{Han}\p{Hiragana}\p{Katakana}"
    any_other = (
        rf"(?<![\p{{GCB=ZWJ}}\p{{GCB=Extend}}\p{{GCB=L}}])[^{extending}\p{{GCB=V}}\p{{GCB=T}}]"
    )
    return _Patterns(
        regex.compile(r"\X"),
        regex.compile(r"(?r)[^\p{GCB=Regional_Indicator}]"),
        regex.compile(
            rf"(?r)(?<![\p{{GCB=Prepend}}\p{{GCB=CR}}])(?:{any_other}|(?![{extending}])[{letters}])"
        ),
    )
