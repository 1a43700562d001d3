"""The story: its documents in order, places in it, and which pieces of text hold at a place.

The order is that of the names, unless `.creonow/story.json` or a document's own `order` says
otherwise. Documents outside of it have no place in time: notes, outlines. A piece may hold from a
place and until another, and progress between; what does not hold at the cursor leaves before
anything is counted, with evidence. A place that nothing bears yet lies after all that is written.
"""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Annotated, Any, NamedTuple, cast

from msgspec import Meta
from msgspec.structs import replace

from creonowd.context.fragment import Caution, Fragment, FragmentKind, Layer, Rule, Stage
from creonowd.context.numerals import (
    KeyPart,
    NameKey,
    Numeral,
    NumeralUnit,
    chapter_of,
    has_place,
    is_number,
    name_key,
    number_part,
    volume_of,
    whole_number,
)
from creonowd.errors import WarningCode, Wording
from creonowd.model import Model
from creonowd.text import encode_canonical, file_stem, join_lines, normal_form

STORY_VERSION = 1
MOST_ENTRIES = 10_000
OUTSIDE = "outside"
FROM_KEYS = ("from", "自")
UNTIL_KEYS = ("until", "至")
PROGRESSION_KEYS = ("progressions", "进展")
LONGEST_REFERENCE = 400
MOST_STAGES = 200
MOST_THREADS = 8

# Folders and files of these names are no part of the story, unless an order names them.
_OUTSIDE_NAMES = frozenset(
    str.split(
        "note notes outline outlines readme license changelog todo ideas research worldbuilding"
        " characters settings synopsis glossary 笔记 大纲 提纲 细纲 总纲 章纲 设定 资料 人物 角色 灵感"
        " 素材 备忘 世界观 人物设定 世界设定 写作计划"
    )
)
_HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+(.+?)[ \t]*#*[ \t]*\r?$")
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)")
_PROGRESSION = re.compile(
    r"(?:自从|自|从|from\b)\s*(?P<reference>.+?)\s*(?:起|开始|以来|onwards|onward|on)?"
    r"\s*(?:[(（]\s*(?P<mark>[^()（）]*?)\s*[)）])?\s*(?:[:：].*)?",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"[「『《“\"'`](.+)[」』》”\"'`]")
_PATH = re.compile(r"\S.*\.(?:md|markdown|txt)(?:#.+)?", re.IGNORECASE)
_REPLACES = re.compile(r"替换|取代|替代|replace", re.IGNORECASE)
_UNKNOWN = Wording(
    "{0}: nothing in the story is called “{1}”; it counts as not written yet.",
    "{0}：故事中没有“{1}”，按尚未写到处理。",
)
_SEVERAL = Wording(
    "{0}: “{1}” is the name of several places ({2}); the first counts.",
    "{0}：“{1}”对应多处（{2}），取第一处。",
)
_NEVER = Wording(
    "{0}: “{2}” does not lie after “{1}”, so it holds nowhere; what ends with a chapter is not"
    " injected in it.",
    "{0}：“{2}”不在“{1}”之后，因此永远不会注入；until 所指的那一章本身已不算在内。",
)
_MOST_NAMED = 3
_SHOWN = Wording("{} of {} open threads shown", "未收的伏笔 {1} 条，示 {0} 条")


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
        documents: Iterable[StoryDocument] = (),
        outside: Iterable[StoryDocument] = (),
        doubts: Iterable[StoryDoubt] = (),
    ) -> None:
        self.documents = tuple(documents)
        self.outside = tuple(outside)
        self.doubts = tuple(doubts)
        self.paths = tuple(document.path for document in self.documents)
        self.paths_outside = tuple(document.path for document in self.outside)
        self._numbers = {path: at for at, path in enumerate(self.paths)}
        self._found: dict[str, FoundPlace] = {}

    def with_changed(self, changed: Mapping[str, StoryDocument]) -> "Story":
        """Return the story with newer texts of some documents whose `order` is what it was."""

        def newer(document: StoryDocument) -> StoryDocument:
            found = changed.get(document.path)
            return document if found is None else replace(found, decided_by=document.decided_by)

        return Story(map(newer, self.documents), map(newer, self.outside), self.doubts)

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
    """Return the names of a heading: all of it, and the part behind its number."""
    title = _normal(heading)
    counted = chapter_of(title)
    rest = "" if counted is None else title[counted.end :].strip(" \t\u3000.:：、-–—·")
    return {title, rest} - {""}


def _normal(text: str) -> str:
    return normal_form("NFKC", text).strip()


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
    """Return the place of the entry for a document: its own path, else the first that fits."""
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


class UntimelyFragment(NamedTuple):
    """A candidate that does not hold at the cursor, and why."""

    fragment: Fragment
    rule: Rule


class TimelyFragments(NamedTuple):
    """What holds at a place, what does not, and by `source_ref` where each piece stands in time."""

    fragments: tuple[Fragment, ...]
    untimely: tuple[UntimelyFragment, ...] = ()
    states: tuple[tuple[str, str], ...] = ()
    warnings: tuple[Caution, ...] = ()


def at_place(
    fragments: tuple[Fragment, ...], story: Story, here: StoryPlace | None
) -> TimelyFragments:
    """Keep what holds at a place, each with the progressions that have begun there.

    Outside of the story there is no time: everything holds.
    """
    if not any(fragment.is_timed for fragment in fragments):
        return TimelyFragments(fragments)
    kept: list[Fragment] = []
    untimely: list[UntimelyFragment] = []
    states: list[tuple[str, str]] = []
    warnings: list[Caution] = []
    for fragment in fragments:
        if not fragment.is_timed:
            kept.append(fragment)
            continue
        warnings += _reference_doubts(fragment, story)
        rule = fragment.excluded or _rule(fragment, story, here)
        if rule is not None:
            untimely.append(UntimelyFragment(fragment, rule))
            states.append((fragment.source_ref, rule))
            continue
        begun, waiting = _stages(fragment, story, here)
        whole, replaced = _with_stages(fragment, begun)
        kept.append(whole)
        untimely += [
            UntimelyFragment(_stage_fragment(fragment, one), Rule.NOT_YET) for one in waiting
        ]
        untimely += [UntimelyFragment(one, Rule.NO_LONGER) for one in replaced]
        states.append((fragment.source_ref, f"{len(begun)} begun"))
    return TimelyFragments(
        tuple(kept), tuple(untimely), tuple(states), tuple(dict.fromkeys(warnings))
    )


def limit_threads(timely: TimelyFragments, story: Story) -> TimelyFragments:
    """Keep the open threads that are pinned or due first; the cursor has no say in that."""
    threads = [one for one in timely.fragments if one.kind is FragmentKind.THREAD]
    if len(threads) <= MOST_THREADS:
        return timely
    end = StoryPlace(len(story.documents) + 1)

    def rank(thread: Fragment) -> tuple[object, ...]:
        due = story.find(thread.due).place if thread.due else end
        # Chapters that are not written yet have one place; their numbers tell them apart.
        counted = whole_number(thread.due)
        number = 0 if counted is None else counted.value
        return (not thread.pinned, due, number, thread.source_ref)

    extra = sorted(threads, key=rank)[MOST_THREADS:]
    left_out = {one.source_ref for one in extra}
    figures = (("shown", MOST_THREADS), ("open", len(threads)))
    warning = Caution(
        code=WarningCode.CONTEXT_THREAD_LIMIT,
        wording=_SHOWN.format(MOST_THREADS, len(threads)),
        layer=Layer.SETTINGS,
        details=figures,
    )
    return TimelyFragments(
        tuple(one for one in timely.fragments if one.source_ref not in left_out),
        (*timely.untimely, *(UntimelyFragment(one, Rule.THREAD_LIMIT) for one in extra)),
        timely.states,
        (*timely.warnings, warning),
    )


def _rule(fragment: Fragment, story: Story, here: StoryPlace | None) -> Rule | None:
    if here is None:
        return None
    if fragment.since and here < story.find(fragment.since).place:
        return Rule.NOT_YET
    if fragment.until and here >= story.find(fragment.until).place:
        return Rule.NO_LONGER
    return None


def _stages(
    fragment: Fragment, story: Story, here: StoryPlace | None
) -> tuple[list[Stage], list[Stage]]:
    """Return the progressions that have begun, in the order of the story, and the others."""
    ordered = sorted(fragment.stages, key=lambda stage: story.find(stage.since).place)
    if here is None:
        return ordered, []
    begun = [stage for stage in ordered if here >= story.find(stage.since).place]
    return begun, ordered[len(begun) :]


def _with_stages(fragment: Fragment, begun: Sequence[Stage]) -> tuple[Fragment, list[Fragment]]:
    """Add progressions to a text; return also the texts that a progression replaces."""
    last = max((at for at, stage in enumerate(begun) if stage.replaces), default=None)
    if not begun:
        return replace(fragment, stages=()), []
    if fragment.whole:
        value = json.loads(fragment.text)
        for stage in begun:
            value |= json.loads(stage.text)
        return replace(fragment, text=encode_canonical(value), stages=()), []
    if last is None:
        return replace(fragment, text=_join([fragment.text, *_texts(begun)]), stages=()), []
    title = fragment.text.lstrip().partition("\n")[0]
    kept = [title] if _HEADING.match(title) else []
    text = _join([*kept, *_texts(begun[last:])])
    replaced = [replace(fragment, source_ref=f"{fragment.source_ref}#base", stages=())]
    replaced += [_stage_fragment(fragment, stage) for stage in begun[:last]]
    return replace(fragment, text=text, stages=()), replaced


def _texts(stages: Iterable[Stage]) -> list[str]:
    return [stage.text for stage in stages]


def _join(texts: Iterable[str]) -> str:
    return "\n\n".join(stripped for text in texts if (stripped := text.strip("\r\n"))) + "\n"


def _stage_fragment(fragment: Fragment, stage: Stage) -> Fragment:
    ref = f"{fragment.source_ref}#{stage.title or stage.since}"
    return replace(fragment, source_ref=ref, text=stage.text, stages=(), title="")


def _reference_doubts(fragment: Fragment, story: Story) -> Iterator[Caution]:
    if fragment.since and fragment.until and _is_backward(fragment, story):
        yield Caution(
            code=WarningCode.STORY_PLACE_UNCLEAR,
            wording=_NEVER.format(fragment.source_ref, fragment.since, fragment.until),
            layer=fragment.layer,
            source_ref=fragment.source_ref,
            details=(("place", fragment.until),),
        )
    stages = (stage.since for stage in fragment.stages)
    for reference in filter(None, (fragment.since, fragment.until, fragment.due, *stages)):
        found = story.find(reference)
        several = len(found.candidates) > 1
        if found.known and not several:
            continue
        named = ", ".join(found.candidates[:_MOST_NAMED])
        wording = _SEVERAL if several else _UNKNOWN
        yield Caution(
            code=WarningCode.STORY_PLACE_UNCLEAR,
            wording=wording.format(fragment.source_ref, reference, named),
            layer=fragment.layer,
            source_ref=fragment.source_ref,
            details=(("place", reference),),
        )


def _is_backward(fragment: Fragment, story: Story) -> bool:
    """Return whether a piece ends before it begins; chapters that are not written yet have no order."""
    end = story.find(fragment.until).place
    return end.document < len(story.documents) and end <= story.find(fragment.since).place


class Bounds(NamedTuple):
    """From where to where a piece holds, as the author wrote it; blank is without end."""

    since: str = ""
    until: str = ""


def bounds(values: Mapping[str, Any]) -> Bounds:
    """Read `from` and `until`; ValueError if one is neither a text nor a whole number."""
    return Bounds(_reference(values, FROM_KEYS), _reference(values, UNTIL_KEYS))


def _reference(values: Mapping[str, Any], keys: Iterable[str]) -> str:
    value = next((values[key] for key in keys if values.get(key) is not None), "")
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise ValueError(keys)  # noqa: TRY004 - one error for all that makes no sense
    reference = join_lines(str(value)).strip()
    if len(reference) > LONGEST_REFERENCE:
        raise ValueError(reference)
    return reference


def declared_stages(values: Mapping[str, Any], *, as_json: bool) -> tuple[Stage, ...]:
    """Read the progressions of front matter or of a JSON object; ValueError if they make no sense.

    Each has `from`. In front matter it has a `text`, and `replace: true` if that takes the place
    of what stood before; in JSON its other keys take the place of those of the object.
    """
    given = next((values[key] for key in PROGRESSION_KEYS if key in values), None)
    if given is None:
        return ()
    if not isinstance(given, list):
        raise ValueError(given)  # noqa: TRY004 - one error for all that makes no sense
    items = cast("list[Any]", given)
    if len(items) > MOST_STAGES:
        raise ValueError(len(items))
    return tuple(_declared_stage(item, as_json=as_json) for item in items)


def _declared_stage(item: Any, *, as_json: bool) -> Stage:
    if not isinstance(item, dict):
        raise ValueError(item)  # noqa: TRY004 - one error for all that makes no sense
    values = cast("dict[str, Any]", item)
    since = _reference(values, FROM_KEYS)
    if not since:
        raise ValueError(FROM_KEYS)
    if as_json:
        rest = {key: value for key, value in values.items() if key not in FROM_KEYS}
        return Stage(since=since, text=encode_canonical(rest))
    text, replaces = values.get("text"), values.get("replace", False)
    if not isinstance(text, str) or not isinstance(replaces, bool):
        raise ValueError(since)  # noqa: TRY004 - one error for all that makes no sense
    return Stage(since=since, text=text, replaces=replaces)


def split_stages(text: str) -> tuple[str, tuple[Stage, ...]]:
    """Cut the sections out of a text that begin at a place of the story, as `## 自第40章` does.

    A section ends where a heading of its level, or of a higher one, begins.
    """
    if not _may_have_stages(text):
        return text, ()
    base: list[str] = []
    stages: list[tuple[Stage, list[str]]] = []
    level, fenced = 0, False
    for line in text.splitlines(keepends=True):
        if _FENCE.match(line):
            fenced = not fenced
        heading = None if fenced else _HEADING.match(line.rstrip("\r\n"))
        if heading is not None and (level == 0 or len(heading[1]) <= level):
            stage = _stage_of(heading[2])
            level = len(heading[1]) if stage is not None else 0
            if stage is not None:
                stages.append((stage, []))
        (stages[-1][1] if level else base).append(line)
    made = tuple(replace(stage, text="".join(lines)) for stage, lines in stages)
    return "".join(base), made


def _may_have_stages(text: str) -> bool:
    return "#" in text and re.search(r"#[ \t]+(?:自|从|from\b)", text, re.IGNORECASE) is not None


def _stage_of(title: str) -> Stage | None:
    """Return the progression that a heading begins; None if it names no place."""
    match = _PROGRESSION.fullmatch(title)
    if match is None:
        return None
    reference = match["reference"]
    quoted = _QUOTED.fullmatch(reference)
    counted = whole_number(reference)
    named = quoted is not None or _PATH.fullmatch(reference) is not None
    if not named and (counted is None or counted.unit is NumeralUnit.NONE):
        return None
    since = reference if quoted is None else quoted[1]
    replaces = match["mark"] is not None and _REPLACES.search(match["mark"]) is not None
    return Stage(since=since, text="", title=title, replaces=replaces)
