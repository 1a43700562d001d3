"""Where in the story a piece of text holds: from, until, and how it progresses.

What does not hold at the cursor leaves before anything is counted, with evidence. A place that
nothing bears yet lies after all that is written.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from msgspec.structs import replace

from creonowd.context.fragment import Caution, Fragment, FragmentKind, Layer, Rule, Stage
from creonowd.context.story_order import NumeralUnit, Story, StoryPlace, whole_number
from creonowd.errors import WarningCode, Wording
from creonowd.text import encode_canonical, join_lines

FROM_KEYS = ("from", "自")
UNTIL_KEYS = ("until", "至")
PROGRESSION_KEYS = ("progressions", "进展")
LONGEST_REFERENCE = 400
MOST_STAGES = 200
MOST_THREADS = 8

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
        warnings += _doubts(fragment, story)
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
    """Add progressions to a text; return also what one of them has replaced."""
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


def _doubts(fragment: Fragment, story: Story) -> Iterator[Caution]:
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
