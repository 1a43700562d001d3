r"""The text as the rules read it: without invisible characters, wide letters or `\u` escapes.

Knows the way back from a folded place to the original one; knows no rule.
"""

import re
from bisect import bisect_right
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

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
_JOINT = "|".join(
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
_SURROGATE = re.compile("[\ud800-\udfff]")


class NormalisedText(NamedTuple):
    """A folded text, and what was taken out of the text before."""

    text: str
    before: str
    disguise: "re.Pattern[str] | None" = None


def normalise(text: str) -> NormalisedText:
    """Undo disguises; a text without any comes back as it is."""
    text, encoded = _encodable(text)
    kinds: list[str] = []
    if _is_suspect(text, encoded):
        text = text.translate(_WIDE_TO_NARROW)
        kinds.append(_HIDDEN)
    if "\\u" in text:
        kinds.append(_ESCAPED)
    if '" +' in text or "' +" in text:
        kinds.append(_JOINT)
    return _undisguised(text, _any_of(tuple(kinds))) if kinds else NormalisedText(text, text)


def way_back(folded: NormalisedText) -> Callable[[int], int]:
    """Make the function that finds the original place of a folded one."""
    folds: list[int] = []
    shifts: list[int] = []
    taken = 0
    for match in folded.disguise.finditer(folded.before) if folded.disguise else ():
        start, end = match.span()
        shown = len(_reveal(match))
        folds.append(start - taken + shown)
        taken += end - start - shown
        shifts.append(taken)
    return lambda place: place + (shifts[last - 1] if (last := bisect_right(folds, place)) else 0)


@cache
def _any_of(kinds: tuple[str, ...]) -> "re.Pattern[str]":
    return re.compile("|".join(kinds))


def _undisguised(text: str, disguise: "re.Pattern[str]") -> NormalisedText:
    shown = _reveal if "\\u" in text else ""
    folded = disguise.sub(shown, text)
    return NormalisedText(text, text) if folded == text else NormalisedText(folded, text, disguise)


def _encodable(text: str) -> tuple[str, bytes]:
    """Give a text without lone surrogates, and its bytes."""
    try:
        return text, text.encode()
    except UnicodeEncodeError:
        whole = _SURROGATE.sub("\ufffd", text)
        return whole, whole.encode()


def _is_suspect(text: str, encoded: bytes) -> bool:
    if text.isascii():
        return len(encoded.translate(None, _CONTROLS)) < len(encoded)
    return _TAGS_ENCODED in encoded or _SUSPECT.search(text) is not None


def _reveal(match: "re.Match[str]") -> str:
    r"""Show what a disguise stands for; the backslashes of `\\\u94a5` are a separator and an escape."""
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
    return kept + ("\ufffd" if _SURROGATE.match(char) else char.translate(_WIDE_TO_NARROW))
