"""Where a text can be cut.

A reader would cut it between paragraphs, sentences and graphemes. At an *additive point* the token
counts of both sides add up exactly: after a letter or digit that is followed by punctuation or
white space, and at the start of a line that begins with neither white space nor a slash. In all
encodings a pre-token ends there whatever stands on either side, so no merge reaches across; a
property test proves it. Only characters of old Unicode versions count: one that is unassigned
today may be a letter to another version.

A space is special: for Claude it belongs to the two words between which it stands, and is a token
of its own behind a digit, an ideograph or a line end. So there is a point before a space only
behind other letters.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from creonowd.threads import check_stopped

BLOCK = 512
SHORT_TEXT = 256
LONG_TEXT = 2048
# A longer line is split further: a keystroke makes us count one piece again.
PIECE, LEAST_PIECE = 384, 128
ONE_IN = 4
FULL_LINE = 64
SEARCHED = 64 * 1024

_WORD_LETTERS = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u00ff\u0391-\u03a1\u03a3-\u03a9\u03b1-\u03c9"
    "\u0410-\u044f\u3041-\u3093\u30a1-\u30f6"
)
_LETTERS = rf"{_WORD_LETTERS}\u4e00-\u9fa5\uac00-\ud7a3"
_STOPS = (
    r"\t\n\u3000!-&(-/:-@\[-`{-~"
    r"\u2010-\u2027\u2030-\u205e\u3001-\u3003\u3008-\u3011\u3014-\u301b"
    r"\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff64"
)
_POINT = re.compile(
    rf"[{_LETTERS}](?=[0-9{_STOPS}])|[{_WORD_LETTERS}](?= )|[0-9](?=[{_STOPS}])|\n(?=[^\s/])"
)
_WORD_LETTER = re.compile(rf"[{_WORD_LETTERS}]")
_PLAIN = re.compile(rf"[{_LETTERS}0-9 {_STOPS}]")
_TWO_PLAIN = re.compile(_PLAIN.pattern * 2)

LINE_START = r"(?! \S)[ \t\u3000]*+[^\s/]"
"""How a line begins before which counts add up, its indentation included."""
_LINE_START = re.compile(LINE_START)
_LINE_END = re.compile(rf"\n(?={LINE_START})")
CONTEXT = 256

_PARAGRAPH = re.compile(r"[\r\n\u2029](?=[^\S\r\n]*+\S)")
_CLOSERS = r"」』”’\"'）)】》〉\]"
# Begins with a set of characters, which is what `re` can look for quickly.
_ABBREVIATION = re.compile(r"\b(?:Mrs?|Ms|Dr|St|Prof|Capt|Col|Gen|Lt|Sr|Jr|No|vs|[A-Z])\.\s*\Z")
_SENTENCE = re.compile(
    r"[。！？｡．」』.!?](?:"
    rf"(?<=[。！？｡．])[。！？｡．]*+[{_CLOSERS}]*+|(?<=[」』])[」』]*+"
    rf"|(?<=[.!?])(?<![.!?].)[.!?]*+[{_CLOSERS}]*+(?=\s|\Z)"
    r")[^\S\r\n]*+",
    re.DOTALL,
)


def additive_points(text: str, start: int, end: int) -> list[int]:
    """List the additive points strictly between two positions, in order."""
    found = (match.end() for match in _POINT.finditer(text, start, end))
    return [position for position in found if start < position < end]


def adds_up(left: str, right: str) -> bool:
    """Return whether two neighbouring texts have together as many tokens as each by itself."""
    if left.endswith("\n") and _LINE_START.match(right):
        return True
    return bool(additive_points(left[-1:] + right[:1], 0, 2))


def additive_parts(text: str) -> Iterator[str]:
    """Split a text into parts whose counts add up; typing changes only the parts nearby."""
    if len(text) < SHORT_TEXT:
        yield text
        return
    start = line = 0
    for match in _LINE_END.finditer(text):
        end = match.end()
        if end - line >= FULL_LINE or splits_after(text, end - 1, ONE_IN):
            yield from _split_long(text[start:end])
            start = end
        line = end
    yield from _split_long(text[start:])


def settled_end(text: str) -> int:
    """Return the start of the last line before which no part changes any more; 0 if there is none.

    Those parts stay the same, whatever is typed at the end of the text.
    """
    if len(text) < SHORT_TEXT:
        return 0
    end = text.rfind("\n", 0, -1) + 1
    while end >= SHORT_TEXT:
        line = text.rfind("\n", 0, end - 1) + 1
        is_point = end - line >= FULL_LINE or splits_after(text, end - 1, ONE_IN)
        if is_point and _LINE_START.match(text, end):
            return end
        end = line
    return 0


def _split_long(part: str) -> Iterator[str]:
    if len(part) <= PIECE:
        yield part
        return
    start = 0
    while (end := _piece_end(part, start + LEAST_PIECE)) is not None:
        yield part[start:end]
        start = end
    yield part[start:]


def _piece_end(part: str, least: int) -> int | None:
    """Return the first additive point at or after `least` that `splits_after` selects."""
    # A point looks at the character behind it. A search of millions at once would hold up all threads.
    for start in range(least - 1, len(part), SEARCHED):
        check_stopped()
        for match in _POINT.finditer(part, start, start + SEARCHED + 1):
            at = match.end()
            if at < len(part) and splits_after(part, at, ONE_IN):
                return at
    return None


def splits_after(text: str, at: int, one_in: int) -> bool:
    """Choose about one in so many positions, by the two characters before each.

    The text itself decides, so typing at one place does not change the choice at others.
    """
    return at >= 2 and (ord(text[at - 1]) * 31 + ord(text[at - 2])) % one_in == 0


def block_ends(text: str, *, forward: bool) -> Iterator[int]:
    """Walk over blocks that end at additive points, to the end of the text or back to its start.

    The blocks lie on a fixed grid, so that typing at one place leaves the others as they were.
    """
    grid = range(BLOCK, len(text), BLOCK)
    for mark in grid if forward else reversed(grid):
        match = _POINT.search(text, mark, min(mark + BLOCK, len(text)))
        if match is not None:
            yield match.end()
    yield len(text) if forward else 0


def is_plain(character: str) -> bool:
    """Return whether a character can neither extend a grapheme nor be extended by a plain one."""
    return _PLAIN.match(character) is not None


def is_word_letter(character: str) -> bool:
    """Return whether a character is a letter that makes a word with its neighbours."""
    return _WORD_LETTER.match(character) is not None


def paragraphs(text: str, start: int, end: int) -> Iterator[int]:
    """Walk the positions in `(start, end]` at which a line with something on it begins."""
    return _ends(_PARAGRAPH, text, start, end)


def sentences(text: str, start: int, end: int) -> Iterator[int]:
    """Walk the positions in `(start, end]` at which a sentence has ended, its spaces included."""
    found = _ends(_SENTENCE, text, start, end)
    return (position for position in found if grapheme_floor(text, position) == position)


def is_abbreviation(text: str, position: int) -> bool:
    """Return whether the stop before a position ends an abbreviation, as in `Mr. Darcy`."""
    last = text[position - 1 : position]
    # Hardly any sentence of a script without spaces ends in a full stop: no need to search there.
    if last != "." and not last.isspace():
        return False
    start = max(0, position - CONTEXT)
    if not text[start:position].rstrip().endswith("."):
        return False
    return _ABBREVIATION.search(text, start, position) is not None


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
    return _TWO_PLAIN.match(text, position - 1) is not None


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
