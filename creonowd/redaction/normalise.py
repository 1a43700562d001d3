r"""The text as the rules read it: without invisible characters, wide letters and `\u` escapes."""

import re
from bisect import bisect_right
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from creonowd.text import encode_well_formed, well_formed

_INVISIBLE = (
    "\x00-\x08\x0e-\x1a\x1c-\x1f\x7f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
)
_TAGS = "\U000e0000-\U000e01ef"
_TAGS_ENCODED = b"\xf3\xa0"
_SUSPECT = re.compile(f"[{_INVISIBLE}０-９Ａ-Ｚａ-ｚ]")
_CONTROLS = bytes(code for code in range(128) if _SUSPECT.match(chr(code)))
_HIDDEN = f"[{_INVISIBLE}{_TAGS}]+"
_ALL_HIDDEN = re.compile(_HIDDEN)
_ESCAPED = r"\\(?<!\\\\)\\*+u[0-9a-fA-F]{4}"
_AFTER_DRIVE = re.compile(r"[A-Za-z]:\Z")
_CONCATENATION = "|".join(
    rf"{quote}(?<=[\w-]{quote})[ \t]{{0,4}}\+\s{{0,16}}{quote}(?=[\w-])" for quote in "\"'"
)
_WIDE_TO_NARROW = {
    **{0xFF10 + i: 0x30 + i for i in range(10)},
    **{0xFF21 + i: 0x41 + i for i in range(26)},
    **{0xFF41 + i: 0x61 + i for i in range(26)},
    ord("－"): "-",
    ord("＿"): "_",
    ord("．"): ".",
}


class NormalisedText(NamedTuple):
    """A text without disguises, the text before, and the pattern of what was replaced in it."""

    text: str
    before: str
    disguise: "re.Pattern[str] | None" = None


def normalise(text: str) -> NormalisedText:
    """Undo disguises; a text without any is returned as it is."""
    text, encoded = encode_well_formed(text)
    disguises: list[str] = []
    if _has_hidden(text, encoded):
        text = text.translate(_WIDE_TO_NARROW)
        disguises.append(_HIDDEN)
    if "\\u" in text:
        disguises.append(_ESCAPED)
    if '" +' in text or "' +" in text:
        disguises.append(_CONCATENATION)
    if not disguises:
        return NormalisedText(text, text)
    disguise = _any_of(tuple(disguises))
    plain = disguise.sub(_reveal if "\\u" in text else "", text)
    return NormalisedText(text, text) if plain == text else NormalisedText(plain, text, disguise)


def original_position(normalised: NormalisedText) -> Callable[[int], int]:
    """Make the function from a position in the normalised text to the original one."""
    ends: list[int] = []
    shifts: list[int] = []
    removed = 0
    for match in normalised.disguise.finditer(normalised.before) if normalised.disguise else ():
        start, end = match.span()
        kept = len(_reveal(match))
        ends.append(start - removed + kept)
        removed += end - start - kept
        shifts.append(removed)
    return lambda at: at + (shifts[last - 1] if (last := bisect_right(ends, at)) else 0)


def _has_hidden(text: str, encoded: bytes) -> bool:
    if text.isascii():
        return len(encoded.translate(None, _CONTROLS)) < len(encoded)
    return _TAGS_ENCODED in encoded or _SUSPECT.search(text) is not None


@cache
def _any_of(patterns: tuple[str, ...]) -> "re.Pattern[str]":
    return re.compile("|".join(patterns))


def _reveal(match: "re.Match[str]") -> str:
    r"""Return what a disguise stands for.

    The backslashes of `\\\u94a5` are a separator and an escape.
    """
    hidden, start = match[0], match.start()
    slashes = len(hidden) - len("u94a5")
    if hidden[0] != "\\":
        return ""
    if slashes <= 2 and _AFTER_DRIVE.search(match.string, max(0, start - 2), start):
        return hidden
    char = chr(int(hidden[-4:], 16))
    kept = hidden[: slashes - 2 + slashes % 2]
    if _ALL_HIDDEN.match(char):
        return kept
    return kept + well_formed(char).translate(_WIDE_TO_NARROW)
