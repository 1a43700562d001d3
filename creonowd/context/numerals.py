"""Numbers in names as authors write them: 12, １２, 十二, XII or twelve, and what they count.

Names are sorted by them, and chapters known by them.
"""

import re
from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from creonowd.text import normal_form

_DIGITS = "〇零一二三四五六七八九"
_FORMAL = "〇零壹贰叁肆伍陆柒捌玖"
_TENS = {"十": 10, "百": 100, "千": 1000, "拾": 10, "佰": 100, "仟": 1000}
_VALUES = {
    **{digit: max(0, value - 1) for value, digit in enumerate(_DIGITS)},
    **{digit: max(0, value - 1) for value, digit in enumerate(_FORMAL)},
    "○": 0,
    "两": 2,
}
_SHORT_TENS = {"廿": "二十", "卅": "三十"}
_ROMAN = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100, "d": 500, "m": 1000}
_PROPER_ROMAN = re.compile(
    r"m{0,3}(?:cm|cd|d?c{0,3})(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})", re.IGNORECASE
)
_TEENS = str.split(
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen"
)
_DECADES = str.split("twenty thirty forty fifty sixty seventy eighty ninety")
_WORDS = {word: number for number, word in enumerate(_TEENS, start=1)} | {
    word: number for number, word in zip(range(20, 100, 10), _DECADES, strict=True)
}
_HIGHEST = 10**9

_HAN = "[〇零○一二三四五六七八九十百千万两廿卅壹贰叁肆伍陆柒捌玖拾佰仟]{1,12}"
_COUNTED = (
    rf"(?:{'|'.join(_DECADES)})(?:[ -](?:{'|'.join(_TEENS[:9])}))?|{'|'.join(reversed(_TEENS))}"
)
_SPELT = rf"[0-9]{{1,9}}|[ivxlcdm]{{1,15}}(?![a-z])|(?:{_COUNTED})(?![a-z])"
_GAP = r"[\s._\-–—]*"
_END = r"(?=\Z|[\s、.．:：,，_\-–—·（(])"
_INNER = "章回话幕节场"
_OUTER = "卷部篇集册"
_PART = re.compile(
    rf"""
    第\s*(?P<han>[0-9]{{1,9}}|{_HAN})\s*(?P<unit>[{_INNER}{_OUTER}])?
    | (?<!\w)(?P<unit_before>[{_INNER}{_OUTER}])\s*(?P<han_after>[0-9]{{1,9}}|{_HAN}){_END}
    | (?<![a-z])(?P<word>chapter|chap|ch|scene|act|episode|ep|section|part|pt|book|bk|volume|vol)
      {_GAP}(?P<spelt>{_SPELT})
    | \A(?P<bare>{_HAN}){_END}
    | \A(?P<roman>(?-i:[IVXLCDM]{{1,15}}))(?=\Z|[.:：、_–—-])
    | (?P<digits>[0-9]{{1,9}})
    | (?P<half>[上中下])(?=\Z|[)\]】]|[{_OUTER}])
    """,
    re.VERBOSE | re.IGNORECASE,
)
_SPELLINGS = ("han", "han_after", "spelt", "bare", "roman", "digits", "half")
_OUTER_WORDS = {"part", "pt", "book", "bk", "volume", "vol"}
_HALVES = {"上": 1, "中": 2, "下": 3}
_EDGES = " \t\u3000._-–—:：、,，·()[]【】"
_OPENING = re.compile(
    rf"(?:序章|序幕|序言|自序|序|楔子|引子|引言|前言|开篇|prologue|preface|foreword|introduction){_END}",
    re.IGNORECASE,
)
_ENDING = re.compile(
    rf"(?:尾声|终章|后记|跋|结语|番外|epilogue|afterword|appendix|postscript){_END}", re.IGNORECASE
)

KeyPart = tuple[int, float, str]
NameKey = tuple[KeyPart, ...]

_FIRST, _NUMBER, _TEXT, _LAST = -1, 0, 1, 2


class NumeralUnit(StrEnum):
    """What a number counts: chapters or parts of them, what holds chapters, or nothing named.

    `half` is the first, second or last part of something.
    """

    CHAPTER = "chapter"
    VOLUME = "volume"
    HALF = "half"
    NONE = "none"


class Numeral(NamedTuple):
    """A number in a name, what it counts, and where it stands."""

    value: int
    unit: NumeralUnit
    start: int
    end: int


@lru_cache(maxsize=8192)
def name_key(name: str) -> NameKey:
    """Return the key that sorts names naturally: numbers by value, openings first, endings last."""
    text = _folded_name(name)
    if opening := _OPENING.match(text):
        return ((_FIRST, 0, opening[0].casefold()), *_parts(text[opening.end() :]))
    if ending := _ENDING.match(text):
        return ((_LAST, 0, ending[0].casefold()), *_parts(text[ending.end() :]))
    return tuple(_parts(text))


def number_part(value: float) -> KeyPart:
    """Return the part of a key that a number is."""
    return (_NUMBER, value, "")


def is_number(part: KeyPart) -> bool:
    """Return whether a part of a key is a number."""
    return part[0] == _NUMBER


def has_place(key: NameKey) -> bool:
    """Return whether a name says where it stands among its siblings."""
    return any(part[0] != _TEXT for part in key)


@lru_cache(maxsize=8192)
def chapter_of(name: str) -> Numeral | None:
    """Return the number of the chapter that a name or a heading bears.

    One with a word such as `章` counts before a bare one; the number of a volume is none.
    """
    found = numerals(name)
    named = next((one for one in found if one.unit is NumeralUnit.CHAPTER), None)
    return named or next((one for one in found if one.unit is NumeralUnit.NONE), None)


def volume_of(name: str) -> Numeral | None:
    """Return the number of the volume that a name or a heading bears."""
    return next((one for one in numerals(name) if one.unit is NumeralUnit.VOLUME), None)


@lru_cache(maxsize=8192)
def whole_number(text: str) -> Numeral | None:
    """Return the number if a text says nothing else, as `40`, `第四十章` and `Chapter XL` do."""
    normal = _folded_name(text).strip(_EDGES)
    found = numerals(normal)
    if len(found) == 1 and not normal[: found[0].start] and not normal[found[0].end :]:
        return found[0]
    return None


def numerals(name: str) -> tuple[Numeral, ...]:
    """Return all numbers of a name, in order; a half such as 上 is none."""
    return tuple(one for one in _numerals(_folded_name(name)) if one.unit is not NumeralUnit.HALF)


def value_of(numeral: str) -> int | None:
    """Return the value of one numeral; None if it is none, or too great."""
    text = numeral.lower()
    if text.isascii() and text.isdecimal():
        value: int | None = int(text)
    elif text in _WORDS or re.split(r"[ -]", text)[0] in _DECADES:
        value = sum(_WORDS[word] for word in re.split(r"[ -]", text))
    elif text[0] in _ROMAN:
        value = _roman(text)
    else:
        value = _chinese(text)
    return value if value is not None and value <= _HIGHEST else None


def _roman(text: str) -> int | None:
    if not _PROPER_ROMAN.fullmatch(text):
        return None
    values = [_ROMAN[letter] for letter in text]
    following = [*values[1:], 0]
    return sum(-a if a < b else a for a, b in zip(values, following, strict=True))


def _chinese(text: str) -> int | None:
    """Read 一百二十, 一二〇 or 廿三."""
    for short, long in _SHORT_TENS.items():
        text = text.replace(short, long)
    if not any(character in _TENS or character == "万" for character in text):
        return int("".join(str(_VALUES[character]) for character in text))
    total = section = digit = 0
    for character in text:
        if character in _VALUES:
            digit = _VALUES[character]
        elif character == "万":
            total, section, digit = total + (section + digit or 1) * 10_000, 0, 0
        else:
            section += (digit or 1) * _TENS[character]
            digit = 0
    return total + section + digit


def _folded_name(name: str) -> str:
    return normal_form("NFKC", name).strip()


def _numerals(text: str) -> Iterator[Numeral]:
    for match in _PART.finditer(text):
        spelt = next(match[group] for group in _SPELLINGS if match[group])
        value = _HALVES[spelt] if match["half"] else value_of(spelt)
        if value is not None:
            yield Numeral(value, _unit(match), match.start(), match.end())


def _unit(match: re.Match[str]) -> NumeralUnit:
    if match["half"]:
        return NumeralUnit.HALF
    character = match["unit"] or match["unit_before"]
    if character:
        return NumeralUnit.CHAPTER if character in _INNER else NumeralUnit.VOLUME
    if match["word"]:
        return NumeralUnit.VOLUME if match["word"].lower() in _OUTER_WORDS else NumeralUnit.CHAPTER
    return NumeralUnit.NONE


def _parts(text: str) -> Iterator[KeyPart]:
    done = 0
    for found in _numerals(text):
        if between := text[done : found.start].strip(_EDGES):
            yield (_TEXT, 0, between.casefold())
        yield number_part(found.value)
        done = found.end
    if rest := text[done:].strip(_EDGES):
        yield (_TEXT, 0, rest.casefold())
