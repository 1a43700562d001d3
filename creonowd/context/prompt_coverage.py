"""The prompt beside its sources: where each part of it comes from, and what of each document is in it.

The spans of a prompt joined are the prompt, and their tokens add up to its count. The ranges of a
document cover all of it. Everything is derived from the decisions of one assembly.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Literal, NamedTuple

from msgspec import UNSET, UnsetType, field
from msgspec.structs import replace

from creonowd.context.assemble import Assembly, PartName
from creonowd.context.candidates import Decision, PromptPart, layer_parts
from creonowd.context.dynamic_layers import INPUT_REF, SELECTION_REF
from creonowd.context.fragment import Action, FragmentKind, Layer, Rule
from creonowd.context.language import FRAMES, WORD
from creonowd.context.numerals import chapter_of
from creonowd.context.plan import Plan
from creonowd.context.result import CacheBreakPoint
from creonowd.context.story import StoryDocument
from creonowd.model import Model
from creonowd.redaction import RedactionEvidence
from creonowd.text import file_stem

# Converts positions in a text from code points to what a client counts in.
Positions = Callable[[str, Iterable[int]], Mapping[int, int]]


SpanLayer = Literal["frame", "rules", "settings", "retrieved", "immediate"]


class PieceKind(StrEnum):
    """What a piece of the prompt is to its author."""

    FRAME = "frame"
    """Fixed words, of no layer."""
    RULE = "rule"
    """A text of the rules."""
    CONSTRAINT = "constraint"
    """One item of the constraints."""
    PERSON = "person"
    """A card of `characters/`."""
    NOTE = "note"
    """A text of the settings."""
    OUTLINE = "outline"
    """An outline, of the story or of the document."""
    THREAD = "thread"
    """A thread that is still open."""
    PREFERENCE = "preference"
    """A rule of the memory."""
    SUMMARY = "summary"
    """A part of the story so far."""
    CHAPTER = "chapter"
    """A whole chapter of the story so far."""
    RELATIONS = "relations"
    """What cards say of each other."""
    PASSAGE = "passage"
    """A passage of a document."""
    RUN = "run"
    """What an accepted run wrote."""
    HOST = "host"
    """What another process gave."""
    DOCUMENT = "document"
    """The text at the cursor."""
    PREVIOUS = "previous"
    """The end of the chapter before."""
    SELECTION = "selection"
    """What is selected."""
    INPUT = "input"
    """The author's instruction."""
    TASK = "task"
    """The skill's own words."""


_KINDS = {
    "rules": PieceKind.RULE,
    "constraints": PieceKind.CONSTRAINT,
    "characters": PieceKind.PERSON,
    "settings": PieceKind.NOTE,
    "outline": PieceKind.OUTLINE,
    "threads": PieceKind.THREAD,
    "memory": PieceKind.PREFERENCE,
    "synopsis": PieceKind.SUMMARY,
    "relations": PieceKind.RELATIONS,
    "retrieval": PieceKind.PASSAGE,
    "recent_summary": PieceKind.RUN,
    SELECTION_REF: PieceKind.SELECTION,
    INPUT_REF: PieceKind.INPUT,
}


def kind_of(decision: Decision, document_id: str) -> PieceKind:
    """Return what a candidate is; `document_id` is the author's document."""
    fragment = decision.fragment
    if fragment.hosted:
        return PieceKind.HOST
    if fragment.source == "document":
        is_current = fragment.extent is None or fragment.extent.path == document_id
        return PieceKind.DOCUMENT if is_current else PieceKind.PREVIOUS
    if fragment.kind is FragmentKind.SYNOPSIS and fragment.extent is not None:
        return PieceKind.CHAPTER
    if fragment.source.startswith("skill:"):
        return PieceKind.TASK
    if fragment.kind is FragmentKind.CONSTRAINT:
        return PieceKind.CONSTRAINT
    return _KINDS.get(fragment.source, PieceKind.HOST)


class PromptSpan(Model):
    """A part of the prompt."""

    start: int = field(name="from")
    """Where it begins in the prompt."""
    end: int = field(name="to")
    """Where it ends."""
    layer: SpanLayer
    """The layer it belongs to; `frame` are the fixed words around the layers."""
    tokens: int
    """Its tokens; those of a task include the selection and the instruction that it shows."""
    kind: PieceKind
    """What it is to its author."""
    source_ref: str | UnsetType = UNSET
    """The candidate; the same as in `trimEvidence`. Fixed words have none."""


class PromptBreak(Model):
    """A cache break point as a position in the prompt."""

    at: int
    """Where it lies in the prompt."""
    after: PartName
    """Behind which part it lies."""
    tokens: int
    """The tokens before it."""
    marked: bool
    """Whether a request marks this place."""
    reaches_minimum: bool
    """Whether there are enough tokens before it for the provider to cache them."""


class PromptText(Model):
    """The prompt and where each part of it comes from."""

    text: str
    """The prompt, redacted as it is sent."""
    spans: list[PromptSpan]
    """Its parts in order: without gaps, up to its end."""
    break_points: list[PromptBreak]
    """Where the cache break points lie in it."""


def prompt_text(
    assembly: Assembly, points: Sequence[CacheBreakPoint], positions: Positions
) -> PromptText:
    """Return the prompt of an assembly with where each part of it comes from."""
    text = assembly.system_prompt.prompt.text + assembly.user_content.text
    spans = list(_spans(assembly))
    encoded = text.encode()
    breaks = [len(encoded[: point.bytes].decode()) for point in points]
    at = positions(text, {*breaks, *(span.start for span in spans), len(text)})
    return PromptText(
        text=text,
        spans=[
            PromptSpan(
                start=at[span.start],
                end=at[span.end],
                layer=span.layer,
                tokens=span.tokens,
                kind=span.kind,
                source_ref=span.source_ref,
            )
            for span in spans
        ],
        break_points=[
            PromptBreak(
                at=at[place],
                after=point.after,
                tokens=point.tokens,
                marked=point.marked,
                reaches_minimum=point.reaches_minimum,
            )
            for place, point in zip(breaks, points, strict=True)
        ],
    )


def _spans(assembly: Assembly) -> Iterator[PromptSpan]:
    start = carried = 0
    for layer, (text, decision) in _parts(assembly):
        end = start + len(text)
        if decision is None or layer is None:
            tokens = assembly.tokenizer.count(text)
            yield PromptSpan(
                start=start, end=end, layer="frame", tokens=tokens, kind=PieceKind.FRAME
            )
        elif not text:
            # What a task shows is counted by itself and rendered there.
            carried += decision.tokens
        else:
            yield PromptSpan(
                start=start,
                end=end,
                layer=layer.value,
                tokens=decision.tokens + carried,
                kind=kind_of(decision, assembly.plan.document_id),
                source_ref=decision.evidence.source_ref,
            )
            carried = 0
        start = end


def _parts(assembly: Assembly) -> Iterator[tuple[Layer | None, PromptPart]]:
    """Walk over the prompt as it was rendered."""
    frame = FRAMES[assembly.plan.language]
    yield None, PromptPart(frame.head)
    for layer in Layer:
        decisions = assembly.layers[layer].decisions
        for part in layer_parts(layer, decisions, frame):
            yield layer, part
        if layer is Layer.SETTINGS:
            yield None, PromptPart(frame.closing)


class CoverageState(StrEnum):
    """What became of a part of a document."""

    SEEN = "seen"
    """It stands in the prompt word by word."""
    LEFT_OUT = "left_out"
    """It was considered, and something else took its room."""
    NEVER = "never"
    """It was not considered: the skill's window does not reach it, or no passage was found there."""
    FUTURE = "future"
    """It lies after the cursor in the story."""
    FRONT_MATTER = "front_matter"
    """It is no text of the story."""


class CoverageRange(Model):
    """A part of a document, and what became of it."""

    start: int = field(name="from")
    """Where it begins in the document."""
    end: int = field(name="to")
    """Where it ends."""
    state: CoverageState
    """What became of it."""
    source_ref: str | UnsetType = UNSET
    """The candidate that shows or would have shown it, if there was one."""


class DocumentCoverage(Model):
    """What the model sees of one document."""

    document_id: str
    """The document."""
    title: str
    """The heading that it begins with, else the name of its file."""
    length: int
    """How long it is, in the connection's position encoding."""
    place: Literal["before", "here", "after", "outside"]
    """Where it stands in the story as seen from the cursor; `outside` has no place in time."""
    ranges: list[CoverageRange]
    """Its parts; they lie side by side and cover all of it."""
    number: int | UnsetType = UNSET
    """What its name or first heading calls it, else its place in the story from 1."""
    told: Literal["full", "brief", "left_out"] | UnsetType = UNSET
    """How the story so far sums it up: by its whole summary, by a line, or not although it
    would have."""


class SeenWords(Model):
    """Words of the document at the cursor; a Han character is one."""

    seen: int
    """Those that the model sees."""
    not_seen: int
    """Those that it does not see."""


class UnseenChapters(Model):
    """Chapters in a row, all before the cursor, of which nothing is shown or summarised."""

    first: str
    """The first document of the row."""
    last: str
    """The last document of the row."""
    count: int
    """How many these are."""
    first_number: int
    """The number of the first one."""
    last_number: int
    """The number of the last one."""


class Headline(Model):
    """The figures of the sentence that says what the model sees."""

    skill_id: str
    """The skill; blank without one."""
    skill_name: str
    """What the skill is called."""
    words_before: SeenWords
    """The words of the document before the cursor."""
    words_after: SeenWords
    """The words of the document after the cursor."""
    people: int
    """How many cards are in the prompt."""
    notes: int
    """How many texts of the settings are in the prompt."""
    rules: int
    """How many rules and constraints are in the prompt."""
    passages: int
    """How many passages of documents are in the prompt."""
    passage_chapters: int
    """From how many documents these passages come."""
    told_chapters: int
    """How many chapters a summary stands for."""
    previous_words: int
    """How many words of the chapter before are in the prompt."""
    unseen: list[UnseenChapters]
    """The chapters of which nothing is shown or summarised."""
    secrets: list[RedactionEvidence]
    """What was kept out of the prompt, by kind and source."""


class Coverage(Model):
    """Every document in the order of the story, then those outside of it; and the headline."""

    documents: list[DocumentCoverage]
    """The documents that can be read."""
    headline: Headline
    """What a sentence about all this is made of."""


class DocumentText(NamedTuple):
    """A document's whole text, how much of it is front matter, and the name that may be shown."""

    text: str
    front_matter: int
    name: str


class _Stretch(NamedTuple):
    """A stretch of a document that a decision is about."""

    start: int
    end: int
    state: CoverageState
    source_ref: str


_STRENGTH = (CoverageState.SEEN, CoverageState.LEFT_OUT)


def coverage(
    assembly: Assembly,
    texts: Mapping[str, DocumentText],
    secrets: list[RedactionEvidence],
    positions: Positions,
    *,
    chinese: bool = False,
) -> Coverage:
    """Return what an assembly shows of the documents whose texts are given."""
    plan, summaries = assembly.plan, _summaries_by_document(assembly)
    marks = _marks(assembly)
    every = (*plan.story.documents, *plan.story.outside)
    listed = [
        _cover(plan, document, texts[document.path], marks.get(document.path, ()), summaries)
        for document in every
        if document.path in texts
    ]
    if plan.document_id in texts and plan.document_id not in {one.path for one in every}:
        here = StoryDocument(path=plan.document_id)
        text = texts[plan.document_id]
        listed.append(_cover(plan, here, text, marks.get(plan.document_id, ()), summaries))
    paths = [one.path for one in every if one.path in texts] + [plan.document_id]
    pairs = list(zip(paths, listed, strict=False))
    return Coverage(
        documents=[_convert(one, texts[path].text, positions) for path, one in pairs],
        headline=replace(
            _headline(assembly, dict(pairs), texts, secrets),
            skill_name=plan.skill.names.text(chinese=chinese) or plan.skill.name,
        ),
    )


def chapter_number(document: StoryDocument, place: int) -> int:
    """Return what a chapter's name or first heading calls it, else its place from 1."""
    heading = document.headings[0].title if document.headings else ""
    for name in (file_stem(document.path), heading):
        counted = chapter_of(name)
        if counted is not None:
            return counted.value
    return place + 1


def chapter_title(document: StoryDocument) -> str:
    """Return the heading that a document begins with, else the name of its file."""
    first = document.headings[0] if document.headings else None
    return first.title if first is not None and first.at == 0 else file_stem(document.path)


def _marks(assembly: Assembly) -> dict[str, list[_Stretch]]:
    """Return by document what the decisions say of its parts."""
    marks: dict[str, list[_Stretch]] = {}
    for decision in assembly.decisions():
        extent, evidence = decision.fragment.extent, decision.evidence
        if extent is None or evidence.rule is Rule.FUTURE:
            continue
        is_window = kind_of(decision, assembly.plan.document_id) is PieceKind.DOCUMENT
        state = CoverageState.SEEN if decision.is_kept else CoverageState.LEFT_OUT
        found = marks.setdefault(extent.path, [])
        if decision.is_kept or not is_window:
            found.append(_Stretch(extent.start, extent.end, state, evidence.source_ref))
        if is_window and evidence.rule is Rule.WINDOW and evidence.action is not Action.KEPT:
            # The budget cut it: all of the document was a candidate.
            whole = _length(assembly.plan)
            found.append(_Stretch(0, whole, CoverageState.LEFT_OUT, evidence.source_ref))
    return marks


def _length(plan: Plan) -> int:
    document = plan.document
    return 0 if document is None else len(document.front_matter) + len(document.text)


def _summaries_by_document(assembly: Assembly) -> dict[str, Literal["full", "brief", "left_out"]]:
    """Return by document how the story so far sums it up."""
    summaries: dict[str, Literal["full", "brief", "left_out"]] = {}
    parts = [one for one in assembly.decisions() if one.fragment.kind is FragmentKind.SYNOPSIS]
    # Chapters that stand there as a whole have no line.
    whole = sum(one.is_kept for one in parts if one.fragment.extent is not None)
    for decision in parts:
        fragment = decision.fragment
        if fragment.source_ref.endswith("#summary"):
            summaries |= dict.fromkeys(
                fragment.chapters, "full" if decision.is_kept else "left_out"
            )
            continue
        listed = fragment.chapters[: len(fragment.chapters) - whole]
        lines = decision.text.count("\n") + 1 if decision.is_kept else 0
        for number, path in enumerate(listed):
            summaries[path] = "brief" if number >= len(listed) - lines else "left_out"
    return summaries


def _cover(
    plan: Plan,
    document: StoryDocument,
    text: DocumentText,
    marks: Iterable[_Stretch],
    summaries: Mapping[str, Literal["full", "brief", "left_out"]],
) -> DocumentCoverage:
    number = plan.story.number_of(document.path)
    return DocumentCoverage(
        document_id=text.name,
        title=chapter_title(document),
        length=len(text.text),
        place=_place(plan, document.path),
        ranges=list(_ranges(plan, document.path, text, marks)),
        number=UNSET if number is None else chapter_number(document, number),
        told=summaries.get(document.path, UNSET),
    )


def _place(plan: Plan, path: str) -> Literal["before", "here", "after", "outside"]:
    if path == plan.document_id:
        return "here"
    number = plan.story.number_of(path)
    if number is None or plan.here is None:
        return "outside"
    return "before" if number < plan.here.document else "after"


def _ranges(
    plan: Plan, path: str, text: DocumentText, marks: Iterable[_Stretch]
) -> Iterator[CoverageRange]:
    """Cut a document where anything about it changes, and join what is alike."""
    length, front = len(text.text), min(text.front_matter, len(text.text))
    ahead = _future_from(plan, path, length)
    within = [
        mark._replace(start=max(front, mark.start), end=min(mark.end, length)) for mark in marks
    ]
    within = sorted(
        (mark for mark in within if mark.start < mark.end),
        key=lambda mark: (_STRENGTH.index(mark.state), mark.end - mark.start, mark.source_ref),
    )
    edges = {0, front, length, min(max(front, ahead), length)}
    edges.update(edge for mark in within for edge in mark[:2])
    last: CoverageRange | None = None
    for start, end in pairwise(sorted(edges)):
        mark = next((one for one in within if one.start <= start < one.end), None)
        if start < front:
            state = CoverageState.FRONT_MATTER
        elif mark is not None:
            state = mark.state
        else:
            state = CoverageState.FUTURE if start >= ahead else CoverageState.NEVER
        ref = UNSET if mark is None or start < front else mark.source_ref
        # The blank lines between two passages say nothing by themselves.
        is_blank = state is CoverageState.NEVER and text.text[start:end].isspace()
        if last is not None and (is_blank or (last.state, last.source_ref) == (state, ref)):
            last = replace(last, end=end)
            continue
        if last is not None:
            yield last
        last = CoverageRange(start=start, end=end, state=state, source_ref=ref)
    if last is not None:
        yield last


def _future_from(plan: Plan, path: str, length: int) -> int:
    """Return from where on a document lies in the future of the author."""
    document = plan.document
    if plan.sees_future or plan.here is None:
        return length
    if path == plan.document_id:
        if document is None:
            return length
        return len(document.front_matter) + document.here.end
    return 0 if plan.story.is_future(path, plan.here) else length


def _convert(one: DocumentCoverage, text: str, positions: Positions) -> DocumentCoverage:
    at = positions(text, {one.length, *(each.start for each in one.ranges)})
    if at[one.length] == one.length:
        return one
    ranges = [replace(each, start=at[each.start], end=at[each.end]) for each in one.ranges]
    return replace(one, length=at[one.length], ranges=ranges)


_NOTES = (PieceKind.NOTE, PieceKind.OUTLINE, PieceKind.PREFERENCE)


def _headline(
    assembly: Assembly,
    documents: Mapping[str, DocumentCoverage],
    texts: Mapping[str, DocumentText],
    secrets: list[RedactionEvidence],
) -> Headline:
    plan = assembly.plan
    kept: dict[PieceKind, list[Decision]] = {kind: [] for kind in PieceKind}
    for decision in assembly.decisions():
        if decision.is_kept:
            kept[kind_of(decision, plan.document_id)].append(decision)
    passages = [one.fragment.extent for one in kept[PieceKind.PASSAGE]]
    notes = [one for kind in _NOTES for one in kept[kind]]
    before, after = _words(plan, documents.get(plan.document_id), texts)
    return Headline(
        skill_id=plan.skill.skill_id,
        skill_name=plan.skill.name,
        words_before=before,
        words_after=after,
        people=len({one.evidence.source_ref for one in kept[PieceKind.PERSON]}),
        notes=len({one.evidence.source_ref.partition("#")[0] for one in notes}),
        rules=len(kept[PieceKind.RULE]) + len(kept[PieceKind.CONSTRAINT]),
        passages=len(passages),
        passage_chapters=len({extent.path for extent in passages if extent is not None}),
        told_chapters=sum(one.told in {"full", "brief"} for one in documents.values()),
        previous_words=sum(_count(one.text, 0, len(one.text)) for one in kept[PieceKind.PREVIOUS]),
        unseen=_unseen_runs([one for one in documents.values() if one.place == "before"]),
        secrets=secrets,
    )


def _count(text: str, start: int, end: int) -> int:
    return sum(1 for _ in WORD.finditer(text, start, end))


def _words(
    plan: Plan, here: DocumentCoverage | None, texts: Mapping[str, DocumentText]
) -> tuple[SeenWords, SeenWords]:
    """Count the words before and after the cursor that are seen, and those that are not."""
    document = plan.document
    if document is None or here is None:
        return SeenWords(seen=0, not_seen=0), SeenWords(seen=0, not_seen=0)
    text, above = texts[plan.document_id].text, len(document.front_matter)
    cursor = above + document.here.start
    shown = [each for each in here.ranges if each.state is CoverageState.SEEN]

    def words(start: int, end: int) -> SeenWords:
        spans = ((max(start, each.start), min(end, each.end)) for each in shown)
        seen = sum(_count(text, *span) for span in spans if span[0] < span[1])
        return SeenWords(seen=seen, not_seen=max(0, _count(text, start, end) - seen))

    return words(above, cursor), words(cursor, len(text))


def _unseen_runs(documents: Sequence[DocumentCoverage]) -> list[UnseenChapters]:
    """Return the runs of chapters of which nothing is shown or summarised."""
    runs: list[list[DocumentCoverage]] = []
    was_unseen = False
    for one in documents:
        is_seen = any(each.state is CoverageState.SEEN for each in one.ranges)
        is_unseen = not is_seen and one.told not in {"full", "brief"} and one.length > 0
        if is_unseen and was_unseen:
            runs[-1].append(one)
        elif is_unseen:
            runs.append([one])
        was_unseen = is_unseen
    return [
        UnseenChapters(
            first=run[0].document_id,
            last=run[-1].document_id,
            count=len(run),
            first_number=run[0].number or 0,
            last_number=run[-1].number or 0,
        )
        for run in runs
    ]
