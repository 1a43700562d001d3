"""The dynamic layers: Retrieved and Immediate, in the room that the system prompt leaves.

Text leaves in this order: Retrieved, then the document after the cursor, then the document before
it. The selection, the additional input and the task never leave.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple, NoReturn

from msgspec.structs import replace

from creonowd.context.budget import LARGEST_TOTAL
from creonowd.context.candidates import (
    MOST_NAMED,
    Decision,
    Unit,
    drop,
    hosted_tokens,
    keep,
    keep_part,
    layer_tokens,
    of_layer,
    visible_ref,
)
from creonowd.context.fragment import Fragment, Layer, Rule, Span, rank_key, reading_key
from creonowd.context.language import TASK, ManuscriptLanguage, heading, title
from creonowd.context.plan import (
    CHUNK_LIMIT,
    FAR_CHAPTERS,
    STEPS,
    Plan,
    minimum_step,
    synopsis_share,
)
from creonowd.context.stable_prefix import SystemPrompt
from creonowd.context.text_tools import RedactedText, TextTools
from creonowd.context.window import (
    DocumentWindow,
    Manuscript,
    Surroundings,
    fit_window,
    measure_window,
)
from creonowd.errors import DaemonError, ErrorCode, Wording
from creonowd.model import Model
from creonowd.text import file_stem

INPUT_REF = "additionalInput"
SELECTION_REF = "selection"
NOTES_SHARE = 4
ALLUSION_SHARE = 3
ALLUSION_TOKENS = 560
# How many sets of decisions on the same chunks are kept.
MOST_DECIDED = 4
# What the window leaves below the target changes with every letter; chunks get whole steps of it.
ROOM_STEP = 256
# A suggested budget is a multiple of this. It is computed as if Rules may have no more than this
# share: with all of it no total would ever be enough.
RAISE_STEP = 500
MOST_RULES = 0.95
# The share of passages in a long budget is small, because no cache keeps them for long.
PASSAGES_OF_LONG = 16
# What the chapters that have a line each may take of the story so far.
FAR_SHARE = 0.35
CHARACTERS_A_TOKEN = {ManuscriptLanguage.CHINESE: 1, ManuscriptLanguage.ENGLISH: 4}


class PinnedTexts(NamedTuple):
    """The redacted texts that stay whatever happens.

    `task` is what is sent; `own_task` is the part of it that belongs to the skill, with a place
    for each of the others that the task shows.
    """

    selection: RedactedText
    input: RedactedText
    task: RedactedText
    own_task: str


class PinnedUnits(Model):
    """The units that stay whatever happens; None where there is no text.

    One that the task shows is rendered there and not by itself, but counted by itself.
    """

    selection: Unit | None = None
    input: Unit | None = None
    task: Unit | None = None

    @property
    def units(self) -> list[Unit]:
        """All of them, in the order of the prompt."""
        return [unit for unit in (self.selection, self.input, self.task) if unit is not None]

    @property
    def tokens(self) -> int:
        """The tokens of all of them."""
        return sum(unit.tokens for unit in self.units)


class UserContentInput(NamedTuple):
    """Everything that the user content consists of; `around` is None if no document is shown.

    `previous` is the end of the chapter before.
    """

    pinned: PinnedUnits
    chunks: "RankedChunks"
    notes: Sequence[Unit]
    synopsis: Sequence[Unit] = ()
    around: Surroundings | None = None
    previous: Unit | None = None


# The chunks that may be kept, and those that may not with the step that says so.
_ChunkChoice = tuple[list[int], list[tuple[int, Rule]]]


class RetrievedRoom(NamedTuple):
    """How many tokens Retrieved may have, and the step that says so."""

    tokens: int
    rule: Rule = Rule.SCORE


class UserContent(Model):
    """The decisions on Retrieved and Immediate, in the order of the prompt.

    `whole_chapters` says that the story so far is the text of chapters. `chunk_room` is what the
    room that chunks wanted is measured against.
    """

    retrieved: tuple[Decision, ...]
    immediate: tuple[Decision, ...]
    chunk_room: int = 0
    whole_chapters: bool = False


def trim_user_content(
    plan: Plan, system_prompt: SystemPrompt, given: UserContentInput, tools: TextTools
) -> UserContent:
    """Fill what the system prompt leaves: first Immediate, then Retrieved."""
    allowances = plan.allowances
    room = _room(plan, system_prompt, given.pinned, tools)
    notes = trim_notes(given.notes, room)
    pinned = given.pinned.tokens + sum(note.tokens for note in notes)
    room -= sum(note.tokens for note in notes)
    least = allowances.minimum(Layer.IMMEDIATE) - pinned
    synopsis = _trim_story(plan, given.synopsis, _synopsis_room(plan, room, least), tools)
    story = sum(chapter.tokens for chapter in synopsis)
    room -= story
    given, repeated = _without_repeats(plan, given, synopsis)
    window, steady_room, before = _fit_document(plan, given, room, least)
    before = (*before, *of_layer(Layer.IMMEDIATE, repeated))
    immediate = _immediate_order(window, before, given.pinned, notes)
    taken = system_prompt.prompt.tokens + layer_tokens(Layer.IMMEDIATE, immediate, tools)
    taken += tools.count(title(Layer.RETRIEVED, empty=False))
    chunks = given.chunks.trim(
        _retrieved_room(plan, taken, story, given.chunks.pinned_tokens), window.span, steady_room
    )
    retrieved = (*synopsis, *chunks.decisions, *of_layer(Layer.RETRIEVED, repeated))
    return UserContent(
        retrieved=retrieved,
        immediate=immediate,
        chunk_room=chunks.room,
        whole_chapters=plan.allowances.long,
    )


class TrimmedStory(NamedTuple):
    """The story so far and the decisions on it, as they are kept between assemblies."""

    units: tuple[Unit, ...]
    decisions: tuple[Decision, ...]

    @property
    def weight(self) -> int:
        """About how many characters it takes to keep it; its texts are kept elsewhere, too."""
        return 500 + 200 * len(self.units)


def _trim_story(
    plan: Plan, units: Sequence[Unit], room: int, tools: TextTools
) -> tuple[Decision, ...]:
    """Trim the story so far, unless the very same was trimmed to this room before."""
    long = plan.allowances.long
    step = room // STEPS * CHARACTERS_A_TOKEN[plan.language] if long else 0
    key = ("story", tools.key, room, step, long, *map(id, units))
    known: TrimmedStory | None = tools.memory.layers.peek(key)
    if known is None:
        trimmed = (
            trim_chapters(units, room, max(1, step), tools)
            if long
            else trim_synopsis(units, room, tools)
        )
        known = TrimmedStory(tuple(units), trimmed)
        tools.memory.layers.put(key, known)
    return known.decisions


def _without_repeats(
    plan: Plan, given: UserContentInput, synopsis: Sequence[Decision]
) -> tuple[UserContentInput, list[Decision]]:
    """Take out what repeats chapters that are there as a whole; return also the decisions on it."""
    whole = {decision.evidence.source_ref for decision in synopsis if decision.is_kept}
    if not plan.allowances.long or not whole:
        return given, []
    repeated = [unit for unit in given.chunks.units if unit.fragment.place.path in whole]
    if repeated:
        rest = (unit for unit in given.chunks.units if unit.fragment.place.path not in whole)
        given = given._replace(chunks=RankedChunks(rest))
    before = given.previous
    if before is not None and plan.previous is not None and plan.previous.source_ref in whole:
        repeated.append(before)
        given = given._replace(previous=None)
    return given, [drop(unit, Rule.DUPLICATE) for unit in repeated]


def _synopsis_room(plan: Plan, room: int, least: int) -> int:
    """Return what the story so far may take: its share, beside that of the document.

    It does not change while the author types, so the story so far stays the same.
    """
    window = max(plan.allowances.share(Layer.IMMEDIATE), least + minimum_step(plan.allowances))
    return min(synopsis_share(plan), room - window)


def trim_synopsis(units: Sequence[Unit], room: int, tools: TextTools) -> tuple[Decision, ...]:
    """Keep chapters from the nearest on as long as they fit; the decisions stand in story order.

    Of the chapters with a line each the earliest lines leave first. Behind a chapter that does
    not fit there is none: the story so far has no holes.
    """
    decisions: list[Decision] = []
    left, wanted = room, 0
    for unit in sorted(units, key=lambda unit: unit.fragment.place, reverse=True):
        wanted += unit.tokens
        if unit.tokens <= left:
            decisions.append(keep(unit, Rule.SYNOPSIS_SHARE))
            left -= unit.tokens
            continue
        rest = _last_lines(unit, left, tools) if unit.fragment.place.group == FAR_CHAPTERS else None
        if rest is None:
            decisions.append(drop(unit, Rule.SYNOPSIS_SHARE, wanted - room))
        else:
            decisions.append(keep_part(rest, Rule.SYNOPSIS_SHARE, wanted - room))
        left = 0
    return tuple(reversed(decisions))


def trim_chapters(
    units: Sequence[Unit], room: int, step: int, tools: TextTools
) -> tuple[Decision, ...]:
    """Keep the whole text of chapters from the nearest on, and a line of each one before them.

    The last lines of the far chapters are those of the whole ones. The first chapter that is given
    as a whole is one in which a multiple of `step` in the story lies, so that one more at the end
    rarely changes what stands before it: a prompt cache keeps that.
    """
    whole = sorted(
        (unit for unit in units if unit.fragment.place.group != FAR_CHAPTERS),
        key=lambda unit: unit.fragment.place,
    )
    far = next((unit for unit in units if unit.fragment.place.group == FAR_CHAPTERS), None)
    first, lines, shown = 0, far, far
    for first in _first_chapters(whole, step):
        lines = shown = _first_lines(far, len(whole) - first, tools)
        far_room = int(room * FAR_SHARE) if first < len(whole) else room
        if lines is not None and lines.tokens > far_room:
            shown = _last_lines(lines, far_room, tools)
        if _tokens_of(shown, *whole[first:]) <= room:
            break
    rule = Rule.SYNOPSIS_SHARE
    missing = max(1, _tokens_of(*whole) - room)
    decisions = [drop(unit, rule, missing) for unit in whole[:first]]
    if shown is not None:
        decisions.append(keep(shown, rule) if shown is lines else keep_part(shown, rule))
    elif lines is not None:
        decisions.append(drop(lines, rule, max(1, lines.tokens - room)))
    return (*decisions, *(keep(unit, rule) for unit in whole[first:]))


def _tokens_of(*units: Unit | None) -> int:
    return sum(unit.tokens for unit in units if unit is not None)


def _first_chapters(whole: Sequence[Unit], step: int) -> Iterator[int]:
    """Yield which chapter may be the first that is given as a whole, the earliest first; then none.

    One that is longer than a step always may, and so may the last: short ones before it never
    keep it out.
    """
    before = -1
    for index, (_, following) in enumerate(pairwise(whole)):
        multiple = following.fragment.place.offset // step
        if multiple > before:
            yield index
            before = multiple
    yield from range(max(0, len(whole) - 1), len(whole) + 1)


def _first_lines(unit: Unit | None, without: int, tools: TextTools) -> Unit | None:
    """Return a unit without that many of its last lines; None if nothing is left."""
    if unit is None or not without:
        return unit
    text = "\n".join(unit.text.split("\n")[:-without])
    if not text:
        return None
    rendered = f"{heading(unit.ref)}{text}\n"
    tokens = tools.count(rendered)
    return replace(
        unit,
        text=text,
        rendered=rendered,
        tokens=tokens,
        before_chars=len(text),
        before_tokens=tokens,
    )


def _last_lines(unit: Unit, room: int, tools: TextTools) -> Unit | None:
    """Return a unit of as many of the last lines as fit; None if not even one does."""
    lines = unit.text.split("\n")
    fits, over = 0, len(lines)
    best: Unit | None = None
    while over - fits > 1:
        middle = (fits + over) // 2
        text = "\n".join(lines[-middle:])
        rendered = f"{heading(unit.ref)}{text}\n"
        tokens = tools.count(rendered)
        if tokens <= room:
            fits, best = middle, replace(unit, text=text, rendered=rendered, tokens=tokens)
        else:
            over = middle
    return best


def _fit_document(
    plan: Plan, given: UserContentInput, room: int, least: int
) -> tuple[DocumentWindow, int | None, tuple[Decision, ...]]:
    """Fit the window, with the end of the chapter before where the window begins with its own.

    The chapter before is farther from the cursor than all of this one, so it yields first.
    """
    previous = given.previous
    if previous is None:
        return (*_fit_window(plan, given, room, least), ())
    left = room - previous.tokens
    if left >= 0:
        window, steady_room = _fit_window(plan, given, left, least - previous.tokens)
        if window.from_start or window.decision is None:
            return window, steady_room, (keep(previous, Rule.WINDOW),)
    window, steady_room = _fit_window(plan, given, room, least)
    return window, steady_room, (drop(previous, Rule.WINDOW, max(1, previous.tokens - room)),)


def _fit_window(
    plan: Plan, given: UserContentInput, room: int, least: int
) -> tuple[DocumentWindow, int | None]:
    """Fit the window into a room; return also the room of chunks that stays as the window moves."""
    allowances = plan.allowances
    if given.around is not None and plan.surrounding is None and given.chunks.units:
        share = min(allowances.share(Layer.IMMEDIATE), room - allowances.minimum(Layer.RETRIEVED))
        share = max(share, least + minimum_step(allowances))
        return _share_room(given.around, given.chunks, room, share, least)
    if given.around is not None:
        return fit_window(given.around, room, least), None
    return DocumentWindow(), None


def _share_room(
    around: Surroundings, chunks: "RankedChunks", room: int, share: int, least: int
) -> tuple[DocumentWindow, int]:
    """Fit a window without a bound of its own beside chunks; return also the least room of those.

    The window first takes its share, then what the chunks leave. Where it cannot show all that
    lies before the cursor its share is kept for it, whatever lies after the cursor.
    """
    first = measure_window(around, min(room, share), least, chunks.own_end)
    steady_room = room - (first.tokens if first.from_start else min(room, share))
    kept = chunks.kept_tokens(steady_room, first.span)
    # A larger budget would bring more chunks, too.
    return fit_window(around, room - kept, least, chunks.tokens - kept), steady_room


def _retrieved_room(plan: Plan, taken: int, story: int, pinned: int) -> "RetrievedRoom":
    """Return what chunks may fill: up to the skill's target, but Retrieved's minimum in any case.

    The story so far has `story` tokens. It has a share of its own and takes none of the chunks'
    room below the target. What the author pinned, `pinned` tokens, is no part of what a skill aims at.
    """
    total, target = plan.allowances.total, plan.skill.target_tokens
    room = total - taken - story
    if plan.allowances.long:
        share = max(total // PASSAGES_OF_LONG, pinned)
        return RetrievedRoom(min(room, share), Rule.PASSAGE_SHARE)
    if target is None or target >= total:
        return RetrievedRoom(room)
    promised = min(room, max(plan.allowances.minimum(Layer.RETRIEVED) - story, pinned))
    left = min(target - taken, room)
    return RetrievedRoom(max(left - left % ROOM_STEP, promised), Rule.TARGET)


def redact_pinned(plan: Plan, manuscript: Manuscript | None, tools: TextTools) -> PinnedTexts:
    """Redact selection, input and task."""
    task = plan.skill.task
    selection = ""
    if manuscript is not None and plan.document is not None and plan.document.selection is not None:
        selection = manuscript.read_span(*plan.document.selection)
    added = tools.redact(plan.additional_input)
    values = {
        "text": selection,
        "selection": selection,
        "instruction": added.text,
        "title": file_stem(visible_ref(plan.document_id, tools)),
    }
    places = {name: f"{{{{{name}}}}}" for name, value in values.items() if value.strip()}
    return PinnedTexts(
        selection=RedactedText(selection),
        input=added,
        task=tools.redact(task.fill(values, tools.frame)),
        own_task=task.fill(values | places | {"title": values["title"]}, tools.frame),
    )


def count_pinned(plan: Plan, texts: PinnedTexts, tools: TextTools) -> PinnedUnits:
    """Count selection, input and task, each where it comes from.

    What the task shows is not shown a second time; its tokens are its own and not the task's.
    """
    skill = plan.skill
    selection = _pinned_unit(SELECTION_REF, tools.frame.selection, texts.selection, tools)
    added = _pinned_unit(INPUT_REF, tools.frame.input, texts.input, tools)
    task = _pinned_unit(f"skill:{skill.skill_id}", TASK, texts.task, tools)
    if task is not None:
        left = task.tokens
        if selection is not None and skill.task.shows_selection:
            selection = _shown_in_task(selection, left, tools)
            left -= selection.tokens
        if added is not None and skill.task.shows_instruction:
            added = _shown_in_task(added, left, tools)
            left -= added.tokens
        own = texts.own_task
        task = replace(task, text=own, tokens=left, before_tokens=left, before_chars=len(own))
    return PinnedUnits(selection=selection, input=added, task=task)


def _shown_in_task(unit: Unit, most: int, tools: TextTools) -> Unit:
    """Count a text by itself that is rendered as a part of the task."""
    tokens = min(tools.count(unit.text), most)
    return replace(unit, rendered="", tokens=tokens, before_tokens=tokens)


def _pinned_unit(
    source: str, heading: str, redacted: RedactedText, tools: TextTools
) -> Unit | None:
    if not redacted.text.strip():
        return None
    text = redacted.text
    rendered = f"{heading}{text}\n"
    tokens = tools.count(rendered)
    ref = visible_ref(source, tools)
    return Unit(
        fragment=Fragment(layer=Layer.IMMEDIATE, source=source, source_ref=source, text=text),
        ref=ref,
        text=text,
        rendered=rendered,
        tokens=tokens,
        before_chars=len(text),
        before_tokens=tokens,
        evidence=redacted.evidence(ref),
    )


def input_fragments(plan: Plan) -> list[Fragment]:
    """Return selection and additional input as the client sent them, for the input guard."""
    document = plan.document
    selected = document.text[slice(*document.selection)] if document and document.selection else ""
    texts = ((SELECTION_REF, selected), (INPUT_REF, plan.additional_input))
    return [
        Fragment(layer=Layer.IMMEDIATE, source=ref, source_ref=ref, text=text)
        for ref, text in texts
        if text
    ]


def trim_notes(units: Sequence[Unit], room: int) -> list[Decision]:
    """Keep the notes of hosts by falling score in a quarter of the room, in that order."""
    left, wanted = room // NOTES_SHARE, 0
    decisions: list[Decision] = []
    for unit in sorted(units, key=lambda unit: rank_key(unit.fragment)):
        wanted += unit.tokens
        if unit.tokens <= left:
            decisions.append(keep(unit, Rule.SCORE))
            left -= unit.tokens
        else:
            decisions.append(drop(unit, Rule.SCORE, wanted * NOTES_SHARE - room))
    return decisions


def _chunk_key(unit: Unit) -> tuple[object, ...]:
    """Sort chunks, the best first; allusions come after the others."""
    return (not unit.fragment.pinned, unit.fragment.is_allusion, *rank_key(unit.fragment))


class _ChosenChunks(NamedTuple):
    """Which chunks are kept, by index: `in_order` first, then those that fill a gap, then allusions.

    `left_out` are those of `asked` that did not fit into `room`.
    """

    in_order: Sequence[int]
    gap_fillers: Sequence[int]
    left_out: Sequence[int]
    asked: Sequence[int]
    room: int
    allusions: Sequence[int] = ()


class TrimmedChunks(NamedTuple):
    """The decisions on chunks, and the room that what was wanted is measured against.

    The room changes with each letter of the author, and the decisions rarely.
    """

    decisions: tuple[Decision, ...]
    room: int


class RankedChunks:
    """Chunks, best first, with the decisions on them that were made before.

    They are kept between assemblies: as long as the same is found, only room and window change.
    """

    def __init__(self, units: Iterable[Unit]) -> None:
        self.units = tuple(sorted(units, key=_chunk_key))
        self.tokens = sum(unit.tokens for unit in self.units)
        self.hosted_tokens = hosted_tokens(self.units)
        keys = [reading_key(unit.fragment) for unit in self.units]
        order = sorted(range(len(keys)), key=keys.__getitem__)
        self._place = sorted(range(len(order)), key=order.__getitem__)
        self._with_span = [n for n, unit in enumerate(self.units) if unit.fragment.span is not None]
        own = [unit.fragment.span.end for unit in self.units if unit.fragment.span is not None]
        # Where the last chunk of the author's document ends.
        self.own_end = max(own, default=0)
        self._tokens = [unit.tokens for unit in self.units]
        self._fewest_tokens = min(self._tokens, default=0)
        self.pinned_tokens = sum(one.tokens for one in self.units if one.fragment.pinned)
        self._allusions = frozenset(
            n for n, unit in enumerate(self.units) if unit.fragment.is_allusion
        )
        all_chunks = self._without_duplicates(range(len(self.units)), set())
        self._last: tuple[frozenset[int], _ChunkChoice] = (frozenset(), all_chunks)
        self._kept: dict[int, Decision] = {}
        self._dropped: dict[tuple[int, Rule, int | None], Decision] = {}
        self._decided: dict[object, tuple[Decision, ...]] = {}

    @property
    def weight(self) -> int:
        """About how many characters it takes to keep it; passages are kept elsewhere, too."""
        return 500 + sum(200 + (unit.weight if unit.fragment.hosted else 0) for unit in self.units)

    def kept_tokens(self, room: int, window: Span | None) -> int:
        """Return the tokens of what `trim` keeps."""
        candidates, _ = self._candidates(window)
        chosen = self._choose(candidates, room, room)
        return self._tokens_of(*chosen.in_order, *chosen.gap_fillers, *chosen.allusions)

    def trim(
        self, room: RetrievedRoom, window: Span | None, steady_room: int | None = None
    ) -> "TrimmedChunks":
        """Keep chunks by falling score; the decisions stand in the order of the prompt.

        What lies in the window on the document is no candidate, and what repeats it elsewhere is a
        duplicate. `steady_room` is how much of the room does not change with the cursor, by default
        all.
        """
        candidates, rejected = self._candidates(window)
        steady = room.tokens if steady_room is None else steady_room
        chosen = self._choose(candidates, room.tokens, steady)
        key = (room.rule, *map(tuple, (*chosen[:4], chosen.allusions, rejected)))
        decisions = self._decided.get(key)
        if decisions is None:
            if len(self._decided) >= MOST_DECIDED:
                self._decided.clear()
                self._dropped.clear()
            decisions = self._decided[key] = self._decide(chosen, rejected, room.rule)
        return TrimmedChunks(decisions, chosen.room)

    def _decide(
        self, chosen: _ChosenChunks, rejected: Sequence[tuple[int, Rule]], rule: Rule
    ) -> tuple[Decision, ...]:
        left_out = self._leave_out(chosen, rule)
        left_out |= {index: self._drop(index, rule) for index, rule in rejected}
        place = self._place.__getitem__
        first = sorted([*chosen.in_order, *left_out], key=place)
        rest = (*sorted(chosen.gap_fillers, key=place), *sorted(chosen.allusions, key=place))
        return tuple([left_out.get(index) or self._keep(index) for index in (*first, *rest)])

    def _leave_out(self, chosen: _ChosenChunks, rule: Rule) -> dict[int, Decision]:
        """Return the decisions on the chunks that did not fit.

        One is sure to fit only where everything that ranks above it does; what the skill's target
        leaves out no larger budget brings back.
        """
        if rule is not Rule.SCORE:
            return {index: self._drop(index, rule) for index in chosen.left_out}
        wanted = accumulate([self._tokens[index] for index in chosen.asked])
        up_to = dict(zip(chosen.asked, wanted, strict=True))
        return {index: self._drop(index, rule, up_to[index]) for index in chosen.left_out}

    def _choose(self, candidates: Sequence[int], room: int, steady_room: int) -> "_ChosenChunks":
        """Fill the room: first chunks that the query found, then allusions in a share of their own.

        Allusions change as the author writes, so they stand behind the others and have their own
        room; what they do not use goes to chunks that did not fit.
        """
        allusions = [index for index in candidates if index in self._allusions]
        if not allusions:
            return self._fill(candidates, room, steady_room)
        found = [index for index in candidates if index not in self._allusions]
        unpinned = max(0, room - self.pinned_tokens)
        less = room - max(unpinned // ALLUSION_SHARE, min(unpinned, ALLUSION_TOKENS))
        first = self._fill(found, less, min(steady_room, less))
        left = room - self._tokens_of(*first.in_order, *first.gap_fillers)
        last = self._fill([*allusions, *first.left_out], left, left)
        return last._replace(
            in_order=first.in_order,
            gap_fillers=first.gap_fillers,
            allusions=[*last.in_order, *last.gap_fillers],
        )

    def _tokens_of(self, *indexes: int) -> int:
        return sum([self._tokens[index] for index in indexes])

    def _candidates(self, window: Span | None) -> _ChunkChoice:
        units = self.units
        shown = frozenset(n for n in self._with_span if _overlaps(units[n].fragment.span, window))
        last, choice = self._last
        if shown != last:
            hidden = (index for index in range(len(units)) if index not in shown)
            choice = self._without_duplicates(hidden, {units[index].text for index in shown})
            self._last = (shown, choice)
        return choice

    def _without_duplicates(self, ranked: Iterable[int], seen: set[str]) -> _ChunkChoice:
        """Drop duplicates of better chunks and of `seen` texts, and all chunks over the limit."""
        candidates: list[int] = []
        rejected: list[tuple[int, Rule]] = []
        for index in ranked:
            text = self.units[index].text
            if text in seen:
                rejected.append((index, Rule.DUPLICATE))
            elif len(candidates) == CHUNK_LIMIT:
                rejected.append((index, Rule.CHUNK_LIMIT))
            else:
                candidates.append(index)
            seen.add(text)
        return candidates, rejected

    def _fill(self, candidates: Sequence[int], room: int, steady_room: int) -> "_ChosenChunks":
        """Keep every chunk that still fits; those kept after one did not are gap fillers.

        They stand behind all others: the gap changes with the cursor, and then other chunks fill it
        without moving those before.
        """
        in_order: list[int] = []
        gap_fillers: list[int] = []
        left_out: list[int] = []
        left, wanted = room, 0
        has_gap = False
        for number, index in enumerate(candidates):
            if left < self._fewest_tokens:
                left_out += candidates[number:]
                break
            tokens = self._tokens[index]
            wanted += tokens
            # From here on the chunk would only fit at this cursor position.
            has_gap = has_gap or wanted > steady_room
            if tokens <= left:
                target = gap_fillers if has_gap else in_order
                target.append(index)
                left -= tokens
            else:
                left_out.append(index)
                has_gap = True
        return _ChosenChunks(in_order, gap_fillers, left_out, candidates, room)

    def _keep(self, index: int) -> Decision:
        if index not in self._kept:
            rule = Rule.PINNED if self.units[index].fragment.pinned else Rule.SCORE
            self._kept[index] = keep(self.units[index], rule)
        return self._kept[index]

    def _drop(self, index: int, rule: Rule, wanted: int | None = None) -> Decision:
        key = (index, rule, wanted)
        if key not in self._dropped:
            dropped = drop(self.units[index], rule)
            if wanted is not None and dropped.evidence.rule is rule:
                dropped = replace(dropped, wanted=wanted)
            self._dropped[key] = dropped
        return self._dropped[key]


def _overlaps(span: Span | None, other: Span | None) -> bool:
    if span is None or other is None:
        return False
    return max(span.start, other.start) < min(span.end, other.end)


def _immediate_order(
    window: DocumentWindow,
    before: Sequence[Decision],
    pinned: PinnedUnits,
    notes: Sequence[Decision],
) -> tuple[Decision, ...]:
    document = [] if window.decision is None else [window.decision]
    selection = [keep(pinned.selection, Rule.PINNED)] if pinned.selection else []
    rest = [keep(unit, Rule.PINNED) for unit in (pinned.input, pinned.task) if unit]
    return (*before, *document, *selection, *notes, *rest)


def _room(plan: Plan, system_prompt: SystemPrompt, pinned: PinnedUnits, tools: TextTools) -> int:
    """Return what is left for the document and Retrieved; fail if not even pinned text fits."""
    empty_retrieved = tools.count(title(Layer.RETRIEVED, empty=True))
    spare = plan.allowances.total - system_prompt.prompt.tokens - empty_retrieved - pinned.tokens
    titles = tools.count(title(Layer.IMMEDIATE, empty=not pinned.units))
    if spare < titles:
        _refuse_budget(plan, system_prompt, pinned, empty_retrieved + titles)
    return spare - tools.count(title(Layer.IMMEDIATE, empty=False))


def _sufficient_total(
    plan: Plan, system_prompt: SystemPrompt, pinned: PinnedUnits, needed: int
) -> dict[str, int]:
    """Return the total of a profile that would do, in round figures; nothing if none would.

    A larger one lets in what is left out now: people as far as the Rules line rises, and settings
    up to what is promised to the other layers.
    """
    allowances, rules, settings = plan.allowances, system_prompt.rules, system_prompt.settings
    promised = allowances.minimum(Layer.RETRIEVED) + allowances.minimum(Layer.IMMEDIATE)
    enough = float(needed - settings.tokens)
    if pinned.tokens > promised:
        enough += sum(one.evidence.before_tokens for one in settings.decisions)
    if any(one.is_short for one in rules.decisions):
        rest = 1 - min(allowances.rules_ratio, MOST_RULES)
        enough = max(enough, (enough - rules.tokens) / rest)
    total = math.ceil(allowances.profile_total(math.ceil(enough)) / RAISE_STEP) * RAISE_STEP
    return {"raiseTo": total} if total <= LARGEST_TOTAL else {}


def _refuse_budget(
    plan: Plan, system_prompt: SystemPrompt, pinned: PinnedUnits, titles: int
) -> NoReturn:
    """Fail with what each part needs, the budget, and the sources that need most."""
    parts = {
        "rules": system_prompt.rules.tokens,
        "selection": pinned.selection.tokens if pinned.selection else 0,
        "input": pinned.input.tokens if pinned.input else 0,
        "task": pinned.task.tokens if pinned.task else 0,
    }
    heaviest = max(parts, key=lambda name: parts[name])
    parts |= {
        "settings": system_prompt.settings.tokens,
        "fixed": system_prompt.prompt.fixed + titles,
    }
    sources = [
        *((d.evidence.source_ref, d.tokens) for d in system_prompt.rules.decisions if d.is_kept),
        *((d.evidence.source_ref, d.tokens) for d in system_prompt.settings.decisions if d.is_kept),
        *((unit.ref, unit.tokens) for unit in pinned.units),
    ]
    longest = sorted(sources, key=lambda source: (-source[1], source[0]))[:MOST_NAMED]
    needed, total = sum(parts.values()), plan.allowances.total
    figures = ", ".join(f"{name} {tokens}" for name, tokens in parts.items() if tokens)
    named = ", ".join(ref for ref, _ in longest)
    raise DaemonError(
        ErrorCode.CONTEXT_INPUT_TOO_LARGE,
        Wording(
            f"What may not be cut needs {needed} tokens and the budget is {total}: {figures}."
            f" Shorten what is heaviest ({named}) or raise the budget.",
            f"不可删减的部分需要 {needed} tokens，而预算为 {total}：{figures}。"
            f"请缩短最大的部分（{named}），或提高预算。",
        ),
        budgetTokens=total,
        neededTokens=needed,
        heaviest=heaviest,
        layer=Layer.RULES if heaviest == "rules" else Layer.IMMEDIATE,
        **_sufficient_total(plan, system_prompt, pinned, needed),
        tokens=parts,
        sources=[{"sourceRef": ref, "tokens": tokens} for ref, tokens in longest],
    )
