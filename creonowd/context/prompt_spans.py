"""The prompt as a text with spans: which layer and which source each part of it comes from.

The spans joined are the prompt, and their tokens add up to its count.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Literal

from msgspec import UNSET, UnsetType, field

from creonowd.context.assemble import Assembly, PartName
from creonowd.context.candidates import Decision, PromptPart, layer_parts
from creonowd.context.fragment import FragmentKind, Layer
from creonowd.context.language import FRAMES
from creonowd.context.result import CacheBreakPoint
from creonowd.context.user_content import INPUT_REF, SELECTION_REF
from creonowd.model import Model

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
