r"""The text as the rules read it: without invisible characters, wide letters or `\u` escapes.

Knows the way back from a folded place to the original one; knows no rule.
"""

import re
from bisect import bisect_right
from typing import NamedTuple

_INVISIBLE = (
    "\x00-\x08\x0e-\x1a\x1c-\x1f\x7f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
)
_SUSPECT = re.compile(f"[{_INVISIBLE}０-９Ａ-Ｚａ-ｚ]")
_ESCAPED = r"(?<![A-Za-z]:)(?:(?<!\\)(?<![A-Za-z]:)\\)?\\u[0-9a-fA-F]{4}"
_JOINT = r"(?<=[\w-])([\"'])[ \t]{0,4}\+\s{0,16}\1(?=[\w-])"
_DISGUISE = re.compile(f"[{_INVISIBLE}]+|{_ESCAPED}|{_JOINT}")
_WIDE_TO_NARROW = {
    **{0xFF10 + i: 0x30 + i for i in range(10)},
    **{0xFF21 + i: 0x41 + i for i in range(26)},
    **{0xFF41 + i: 0x61 + i for i in range(26)},
    ord("－"): "-",
    ord("＿"): "_",
    ord("．"): ".",
}
_SURROGATE = re.compile("[\ud800-\udfff]")


class Folded(NamedTuple):
    """A folded text; behind `folds[i]` the original runs `shifts[i]` characters ahead."""

    text: str
    folds: tuple[int, ...] = ()
    shifts: tuple[int, ...] = ()

    def origin(self, place: int) -> int:
        """Find the place in the original text."""
        last = bisect_right(self.folds, place) - 1
        return place if last < 0 else place + self.shifts[last]


def fold(text: str) -> Folded:
    """Undo disguises; a text without any comes back as it is."""
    text = _without_surrogates(text)
    if _SUSPECT.search(text):
        text = text.translate(_WIDE_TO_NARROW)
    elif "\\u" not in text and '" +' not in text and "' +" not in text:
        return Folded(text)
    return _undisguise(text)


def _without_surrogates(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text)
    return text


def _undisguise(text: str) -> Folded:
    pieces: list[str] = []
    folds: list[int] = []
    shifts: list[int] = []
    done = length = 0
    for match in _DISGUISE.finditer(text):
        start, end = match.span()
        pieces.append(text[done:start])
        length += start - done
        if text[start] == "\\" and (char := _reveal(match[0])):
            pieces.append(char)
            length += 1
        done = end
        folds.append(length)
        shifts.append(done - length)
    pieces.append(text[done:])
    return Folded("".join(pieces), tuple(folds), tuple(shifts))


def _reveal(disguise: str) -> str:
    char = chr(int(disguise[-4:], 16))
    if re.match(f"[{_INVISIBLE}]", char):
        return ""
    return "\ufffd" if _SURROGATE.match(char) else char.translate(_WIDE_TO_NARROW)
