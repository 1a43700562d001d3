"""The story: its documents in order, places in it, and what an author calls a place.

The order is that of the names, unless `.creonow/story.json` or a document's own `order` says
otherwise. Documents outside of it have no place in time: notes, outlines. Names are compared by
the numbers in them, as authors write them: 12, １２, 十二, XII or twelve.
"""

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from typing import Annotated, NamedTuple

from msgspec import Meta
from msgspec.structs import replace

from creonowd.model import Model
from creonowd.text import file_stem

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
    """What a number counts: chapters and what they hold, what holds chapters, or nothing said.

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
    return unicodedata.normalize("NFKC", name).strip()


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


STORY_VERSION = 1
MOST_ENTRIES = 10_000
OUTSIDE = "outside"

# Folders and files of these names are no part of the story, unless an order names them.
_OUTSIDE_NAMES = frozenset(
    str.split(
        "note notes outline outlines readme license changelog todo ideas research worldbuilding"
        " characters settings synopsis glossary 笔记 大纲 提纲 细纲 总纲 章纲 设定 资料 人物 角色 灵感"
        " 素材 备忘 世界观 人物设定 世界设定 写作计划"
    )
)


class OrderReason(StrEnum):
    """What decided where a document stands: its name, the story file, or its front matter."""

    NAME = "name"
    """The number in its name, else the name itself."""
    STORY_FILE = "story_file"
    """`.creonow/story.json` lists it."""
    FRONT_MATTER = "front_matter"
    """Its own `order`."""


class DoubtKind(StrEnum):
    """What is unclear about the order."""

    SAME_PLACE = "same_place"
    """Documents of one folder whose names have the same number."""
    NO_NUMBER = "no_number"
    """Documents without a number among numbered ones."""
    NO_MATCH = "no_match"
    """An entry of the story file that fits no document."""
    INVALID_ORDER = "invalid_order"
    """Front matter whose `order` is no number."""
    INVALID_FILE = "invalid_file"
    """A story file that cannot be used."""


class StoryDoubt(Model):
    """Something unclear about the order, and the documents or the entry that it is about."""

    kind: DoubtKind
    """What is unclear."""
    paths: tuple[str, ...]
    """The documents, or the entry of the story file, that it is about."""


class StoryFile(Model):
    """`.creonow/story.json`: paths and globs in the order of the story, and those outside of it.

    A path or glob also stands for everything below the folder that it names. Documents that
    `order` does not name come after those that it does.
    """

    version: int = STORY_VERSION
    order: Annotated[tuple[str, ...], Meta(max_length=MOST_ENTRIES)] = ()
    outside: Annotated[tuple[str, ...], Meta(max_length=MOST_ENTRIES)] = ()


class StoryHeading(NamedTuple):
    """A heading and where its part begins in the text below the front matter.

    A heading with nothing above it begins with the text.
    """

    title: str
    at: int


class StoryDocument(Model, cache_hash=True):
    """A document of the project; `length` counts the code points below its front matter.

    `order` is what its front matter says: a number, `outside`, or something that makes no sense.
    A document that cannot be read has no length. `digest` is the hash of its text, line ends aside.
    """

    path: str
    length: int | None = None
    digest: str = ""
    headings: tuple[StoryHeading, ...] = ()
    order: float | str | None = None
    decided_by: OrderReason = OrderReason.NAME


class StoryPlace(NamedTuple):
    """A place in the story: the number of a document from zero, and an offset in its text.

    Places compare as they follow each other.
    """

    document: int
    offset: int = 0


class FoundPlace(Model):
    """The place that a reference means; not `known` if nothing has that name.

    A place that is not known lies after everything that is written; the number of a chapter that
    is not written yet is known. `candidates` has more than one path if the reference fits
    several places, of which the first counts.
    """

    place: StoryPlace
    known: bool = True
    candidates: tuple[str, ...] = ()


class Story:
    """The documents of a project in the order of the story, and those outside of it."""

    def __init__(
        self,
        documents: Sequence[StoryDocument] = (),
        outside: Sequence[StoryDocument] = (),
        doubts: Sequence[StoryDoubt] = (),
    ) -> None:
        self.documents = tuple(documents)
        self.outside = tuple(outside)
        self.doubts = tuple(doubts)
        self.paths = tuple(document.path for document in self.documents)
        self.paths_outside = tuple(document.path for document in self.outside)
        self._numbers = {path: at for at, path in enumerate(self.paths)}
        self._found: dict[str, FoundPlace] = {}

    def number_of(self, path: str) -> int | None:
        """Return the number of a document in story order, from zero; None if it has no place."""
        return self._numbers.get(path)

    def place_of(self, path: str, offset: int = 0) -> StoryPlace | None:
        """Return a place in a document; None if the document is outside of the story."""
        number = self.number_of(path)
        return None if number is None else StoryPlace(number, offset)

    def before(self, path: str) -> tuple[StoryDocument, ...]:
        """Return the documents before one, in order; none for one outside of the story."""
        return self.documents[: self.number_of(path) or 0]

    def previous(self, path: str) -> StoryDocument | None:
        """Return the document right before one that can be read; None if there is none."""
        readable = (one for one in reversed(self.before(path)) if one.length)
        return next(readable, None)

    def is_future(self, path: str, here: StoryPlace | None) -> bool:
        """Return whether a whole document lies after a place; what has no place never does."""
        number = self.number_of(path)
        return here is not None and number is not None and number > here.document

    def find(self, reference: str) -> FoundPlace:
        """Return the place that an author means: a path, a chapter number, or a heading.

        `path#heading` is a heading of one document. A number that no chapter bears yet lies
        behind the last lower one.
        """
        found = self._found.get(reference)
        if found is None:
            found = self._found[reference] = self._find(reference)
        return found

    def _find(self, reference: str) -> FoundPlace:
        wanted = _normal(reference)
        if (number := self._paths.get(wanted)) is not None:
            return FoundPlace(place=StoryPlace(number))
        path, hash_sign, title = wanted.rpartition("#")
        if hash_sign and (number := self._paths.get(path.rstrip())) is not None:
            return self._heading_in(number, title.strip())
        counted = whole_number(wanted)
        if counted is None and (places := self._titles.get(wanted)):
            return self._choose(places)
        if counted is None:
            return self._unknown
        return self._find_number(counted)

    def _find_number(self, counted: Numeral) -> FoundPlace:
        """Find a number: what bears it with a word such as 章 counts before bare numbers."""
        if counted.unit is NumeralUnit.VOLUME:
            places = self._volumes.get(counted.value)
            return self._choose(places) if places else self._gap(self._volumes, counted.value)
        families = [family for family in self._chapters if family]
        for family in families:
            if places := family.get(counted.value):
                return self._choose(places)
        if families:
            return self._gap(families[0], counted.value)
        if 1 <= counted.value <= len(self.documents):
            return FoundPlace(place=StoryPlace(counted.value - 1))
        return self._unknown

    def _gap(self, family: Mapping[int, Sequence[StoryPlace]], value: int) -> FoundPlace:
        """Return the place where a number would stand that nothing bears: before the next one."""
        lower = [place for number, places in family.items() if number < value for place in places]
        every = sorted(place for places in family.values() for place in places)
        after = max(lower, default=None)
        following = [place for place in every if after is None or place > after]
        place = following[0] if following else self._end
        return FoundPlace(place=place)

    def _heading_in(self, number: int, title: str) -> FoundPlace:
        counted = whole_number(title)
        for heading in self.documents[number].headings:
            fits = title in _titles(heading.title)
            if not fits and counted is not None:
                bears = chapter_of(heading.title)
                fits = bears is not None and bears.value == counted.value
            if fits:
                return FoundPlace(place=StoryPlace(number, heading.at))
        return self._unknown

    def _choose(self, places: Sequence[StoryPlace]) -> FoundPlace:
        paths = [self.documents[place.document].path for place in places]
        return FoundPlace(place=places[0], candidates=tuple(dict.fromkeys(paths)))

    @property
    def _end(self) -> StoryPlace:
        return StoryPlace(len(self.documents))

    @property
    def _unknown(self) -> FoundPlace:
        return FoundPlace(place=self._end, known=False)

    @cached_property
    def _paths(self) -> dict[str, int]:
        """Every path, also without its suffix or its folders where that is no mere number."""
        exact: dict[str, int] = {}
        shorter: dict[str, int] = {}
        for at, document in enumerate(self.documents):
            path = _normal(document.path)
            folder, stem = path.rpartition("/")[0], file_stem(path)
            exact[path] = at
            for name in (f"{folder}/{stem}" if folder else stem, path.rpartition("/")[2], stem):
                if whole_number(name) is None:
                    shorter.setdefault(name, at)
        return shorter | exact

    @cached_property
    def _titles(self) -> dict[str, list[StoryPlace]]:
        places: dict[str, list[StoryPlace]] = defaultdict(list)
        for number, heading in self._headings():
            for title in _titles(heading.title):
                places[title].append(StoryPlace(number, heading.at))
        return places

    @cached_property
    def _chapters(self) -> tuple[dict[int, list[StoryPlace]], ...]:
        """Places by chapter number: of names and headings with a word for it, then of bare ones."""
        named: dict[int, list[StoryPlace]] = defaultdict(list)
        titled: dict[int, list[StoryPlace]] = defaultdict(list)
        bare: dict[int, list[StoryPlace]] = defaultdict(list)
        for number, document in enumerate(self.documents):
            counted = chapter_of(file_stem(document.path))
            if counted is not None:
                family = named if counted.unit is NumeralUnit.CHAPTER else bare
                family[counted.value].append(StoryPlace(number))
        for number, heading in self._headings():
            counted = chapter_of(heading.title)
            if counted is not None and counted.unit is NumeralUnit.CHAPTER:
                titled[counted.value].append(StoryPlace(number, heading.at))
        return named, titled, bare

    @cached_property
    def _volumes(self) -> dict[int, list[StoryPlace]]:
        """The first place of each volume that a folder, a document or a heading names."""
        places: dict[int, list[StoryPlace]] = {}
        for number, document in enumerate(self.documents):
            for name in document.path.split("/"):
                if (counted := volume_of(file_stem(name))) is not None:
                    places.setdefault(counted.value, [StoryPlace(number)])
        for number, heading in self._headings():
            if (counted := volume_of(heading.title)) is not None:
                places.setdefault(counted.value, [StoryPlace(number, heading.at)])
        return places

    def _headings(self) -> Iterator[tuple[int, StoryHeading]]:
        for number, document in enumerate(self.documents):
            for heading in document.headings:
                yield number, heading


def _titles(heading: str) -> set[str]:
    """Return what a heading may be called: all of it, or what follows its number."""
    title = _normal(heading)
    counted = chapter_of(title)
    rest = "" if counted is None else title[counted.end :].strip(" \t\u3000.:：、-–—·")
    return {title, rest} - {""}


def _normal(text: str) -> str:
    return unicodedata.normalize("NFKC", text).strip()


def arrange(documents: Iterable[StoryDocument], file: StoryFile | None = None) -> Story:
    """Put documents into the order of the story, and report what is unclear about it."""
    rules = file or StoryFile()
    everything = sorted(documents, key=lambda document: document.path)
    ranks = {document.path: _rank(document.path, rules.order) for document in everything}
    placed = [_decide(document, ranks[document.path], rules) for document in everything]
    inside = [document for document, is_outside in placed if not is_outside]
    outside = [document for document, is_outside in placed if is_outside]
    usual = _usual_beginnings(inside)
    keys = {document.path: _path_key(document, usual) for document in everything}
    unlisted = len(rules.order)

    def place(document: StoryDocument) -> tuple[object, ...]:
        rank = ranks[document.path]
        return (unlisted if rank is None else rank, keys[document.path], document.path)

    return Story(
        sorted(inside, key=place),
        sorted(outside, key=place),
        tuple(_doubts(inside, everything, keys, rules)),
    )


def fits(entry: str, path: str) -> bool:
    """Return whether an entry of the story file names a document or a folder that it lies in."""
    pattern = entry.removeprefix("./").rstrip("/").split("/")
    names = path.split("/")
    return any(_fits(pattern, names[:depth]) for depth in range(len(names), 0, -1))


def _fits(pattern: Sequence[str], names: Sequence[str]) -> bool:
    """Match part by part; `**` is any number of folders."""
    reached = {0}
    for part in pattern:
        if part == "**":
            reached = set(range(min(reached, default=len(names) + 1), len(names) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(names) and fnmatchcase(names[at], part)}
    return len(names) in reached


def _rank(path: str, order: Sequence[str]) -> int | None:
    """Return the entry that places a document: the one that is its path, else the first to fit."""
    if path in order:
        return order.index(path)
    return next((at for at, entry in enumerate(order) if fits(entry, path)), None)


def _decide(
    document: StoryDocument, rank: int | None, rules: StoryFile
) -> tuple[StoryDocument, bool]:
    """Return a document with what decided its place, and whether it is outside of the story."""
    path, own = document.path, document.order
    exact = path in rules.order
    if not exact and any(fits(entry, path) for entry in rules.outside):
        return replace(document, decided_by=OrderReason.STORY_FILE), True
    if own == OUTSIDE:
        return replace(document, decided_by=OrderReason.FRONT_MATTER), True
    if exact or rank is not None:
        numbered = is_order(own) and not exact
        reason = OrderReason.FRONT_MATTER if numbered else OrderReason.STORY_FILE
        return replace(document, decided_by=reason), False
    if is_order(own):
        return replace(document, decided_by=OrderReason.FRONT_MATTER), False
    return replace(document, decided_by=OrderReason.NAME), _is_outside_by_name(path)


def is_order(value: object) -> bool:
    """Return whether a value can be the `order` of a document: a number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return math.isfinite(value)


def _is_outside_by_name(path: str) -> bool:
    *folders, name = path.split("/")
    names = (_normal(each).casefold() for each in (*folders, file_stem(name)))
    return any(name in _OUTSIDE_NAMES for name in names)


def _usual_beginnings(documents: Iterable[StoryDocument]) -> dict[str, NameKey]:
    """Return by folder what most numbered names have before their number, often nothing."""
    beginnings: dict[str, Counter[NameKey]] = defaultdict(Counter)
    for document in documents:
        folder, _, name = document.path.rpartition("/")
        key = name_key(file_stem(name))
        numbers = [at for at, part in enumerate(key) if is_number(part)]
        if numbers and not is_order(document.order):
            beginnings[folder][key[: numbers[0]]] += 1
    return {folder: counts.most_common(1)[0][0] for folder, counts in beginnings.items()}


def _path_key(document: StoryDocument, usual: Mapping[str, NameKey]) -> tuple[NameKey, ...]:
    folder, _, name = document.path.rpartition("/")
    own: Sequence[KeyPart] = name_key(file_stem(name))
    if is_order(document.order) and isinstance(document.order, (int, float)):
        own = (*usual.get(folder, ()), number_part(document.order))
    above = [name_key(part) for part in folder.split("/")] if folder else []
    return (*above, tuple(own))


def _doubts(
    inside: Sequence[StoryDocument],
    everything: Sequence[StoryDocument],
    keys: Mapping[str, tuple[NameKey, ...]],
    rules: StoryFile,
) -> Iterator[StoryDoubt]:
    for entry in (*rules.order, *rules.outside):
        if not any(fits(entry, document.path) for document in everything):
            yield StoryDoubt(kind=DoubtKind.NO_MATCH, paths=(entry,))
    for document in everything:
        if document.order not in {None, OUTSIDE} and not is_order(document.order):
            yield StoryDoubt(kind=DoubtKind.INVALID_ORDER, paths=(document.path,))
    folders: dict[str, list[StoryDocument]] = defaultdict(list)
    for document in inside:
        if document.path not in rules.order:
            folders[document.path.rpartition("/")[0]].append(document)
    for siblings in folders.values():
        yield from _sibling_doubts(siblings, keys)


def _sibling_doubts(
    siblings: Sequence[StoryDocument], keys: Mapping[str, tuple[NameKey, ...]]
) -> Iterator[StoryDoubt]:
    numbers: dict[NameKey, list[str]] = defaultdict(list)
    unnumbered: list[str] = []
    for document in siblings:
        own = keys[document.path][-1]
        counted = tuple(part for part in own if is_number(part))
        if counted:
            until = max(at for at, part in enumerate(own) if is_number(part)) + 1
            numbers[own[:until]].append(document.path)
        elif not has_place(own):
            unnumbered.append(document.path)
    for paths in numbers.values():
        if len(paths) > 1:
            yield StoryDoubt(kind=DoubtKind.SAME_PLACE, paths=tuple(paths))
    if numbers and unnumbered:
        yield StoryDoubt(kind=DoubtKind.NO_NUMBER, paths=tuple(unnumbered))
