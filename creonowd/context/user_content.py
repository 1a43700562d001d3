"""The dynamic side of a prompt: Retrieved beside Immediate, in the room that is left.

The stable side is given and never touched. Knows the order in which things yield: Retrieved,
then the document after the cursor, then the document before it; what is pinned never does.
"""

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import NoReturn

from creonowd.context.evidence import Decision, drop, keep
from creonowd.context.fragment import Fragment, Layer, Rule, Span, rank_key, reading_key
from creonowd.context.manuscript import Manuscript
from creonowd.context.plan import CHUNK_LIMIT, Plan
from creonowd.context.render import Rendered, join, render_layer
from creonowd.context.system_prompt import SystemPrompt
from creonowd.context.template import INPUT, SELECTION, TASK, title
from creonowd.context.text_tools import RedactedText, TextTools
from creonowd.context.units import Unit, visible_ref
from creonowd.context.window import DocumentWindow, Surroundings, fit_window, take_notes
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model


def choose(units: Sequence[Unit], room: int, shown: Span | None) -> tuple[Decision, ...]:
    """Take chunks by falling score; the verdicts stand in the order of the prompt.

    That is the order of the documents, with the chunks that fill a gap behind all others.
    `shown` is what the window already shows of the current document: what lies there is no
    candidate, and what says the same elsewhere is a duplicate.
    """
    verdicts: dict[int, Decision] = {}
    hidden = [i for i, unit in enumerate(units) if not _lies_in(unit.fragment.span, shown)]
    seen = {unit.text for unit in units if _lies_in(unit.fragment.span, shown)}
    counted = wanted = 0
    left = room
    gap: set[int] | None = None
    for index in sorted(hidden, key=lambda i: rank_key(units[i].fragment)):
        unit = units[index]
        rule = Rule.DUPLICATE if unit.text in seen else None
        counted += rule is None
        if rule is None and counted > CHUNK_LIMIT:
            rule = Rule.CHUNK_LIMIT
        wanted += 0 if rule else unit.tokens
        if rule is not None:
            verdicts[index] = drop(unit, rule)
        elif unit.tokens <= left:
            verdicts[index] = keep(unit, Rule.SCORE)
            left -= unit.tokens
            if gap is not None:
                gap.add(index)
        else:
            # Sure to be kept only where all that ranks above it is.
            verdicts[index] = drop(unit, Rule.SCORE, wanted - room)
            gap = gap or set()
        seen.add(unit.text)
    late = gap or ()
    order = sorted(verdicts, key=lambda i: (i in late, *reading_key(units[i].fragment)))
    return tuple(verdicts[index] for index in order)


def _lies_in(span: Span | None, shown: Span | None) -> bool:
    if span is None or shown is None:
        return False
    return max(span.start, shown.start) < min(span.end, shown.end)


INPUT_REF = "additionalInput"
SELECTION_REF = "selection"


class Pinned(Model):
    """The units that stay whatever happens; None where there is nothing to say."""

    selection: Unit | None = None
    input: Unit | None = None
    task: Unit | None = None

    @property
    def units(self) -> list[Unit]:
        """All of them, in the order of the prompt."""
        return [unit for unit in (self.selection, self.input, self.task) if unit is not None]

    @property
    def tokens(self) -> int:
        """What all of them cost."""
        return sum(unit.tokens for unit in self.units)


def pin(plan: Plan, manuscript: Manuscript | None, instruments: TextTools) -> Pinned:
    """Make ready what may never be cut; what stands in the task is not shown a second time."""
    task = plan.skill.task
    selected = _selected(plan, manuscript)
    added = instruments.clean(plan.additional_input)
    values = {
        "text": selected,
        "selection": selected,
        "instruction": added.text,
        "title": _title(plan, instruments),
    }
    return Pinned(
        selection=None
        if task.holds_selection
        else _unit(SELECTION_REF, SELECTION, RedactedText(selected), instruments),
        input=None if task.holds_instruction else _unit(INPUT_REF, INPUT, added, instruments),
        task=_task(plan, values, instruments),
    )


def raw_input(plan: Plan) -> list[Fragment]:
    """Give selection and additional input as the client sent them, to be weighed."""
    document = plan.document
    selected = document.text[slice(*document.selection)] if document and document.selection else ""
    texts = ((SELECTION_REF, selected), (INPUT_REF, plan.additional_input))
    return [
        Fragment(layer=Layer.IMMEDIATE, source=ref, source_ref=ref, text=text)
        for ref, text in texts
        if text
    ]


def _selected(plan: Plan, manuscript: Manuscript | None) -> str:
    if manuscript is None or plan.document is None or plan.document.selection is None:
        return ""
    return manuscript.between(*plan.document.selection)


def _title(plan: Plan, instruments: TextTools) -> str:
    return PurePosixPath(visible_ref(plan.document_id, instruments)).stem


def _task(plan: Plan, values: Mapping[str, str], instruments: TextTools) -> Unit | None:
    filled = instruments.clean(plan.skill.task.fill(values))
    return _unit(f"skill:{plan.skill.skill_id}", TASK, filled, instruments)


def _unit(ref: str, heading: str, clean: RedactedText, instruments: TextTools) -> Unit | None:
    if not clean.text.strip():
        return None
    rendered = f"{heading}{clean.text}\n"
    tokens = instruments.count(rendered)
    shown = visible_ref(ref, instruments)
    return Unit(
        fragment=Fragment(layer=Layer.IMMEDIATE, source=ref, source_ref=ref, text=clean.text),
        ref=shown,
        text=clean.text,
        rendered=rendered,
        tokens=tokens,
        before_chars=len(clean.text),
        before_tokens=tokens,
        evidence=clean.evidence(shown),
    )


class UserContent(Model):
    """Retrieved and Immediate, set and judged."""

    prompt: Rendered
    retrieved: tuple[Decision, ...]
    immediate: tuple[Decision, ...]


class DynamicInput(Model):
    """What the dynamic side is made of, made ready; `scene` is None where nothing can be shown."""

    pinned: Pinned
    chunks: Sequence[Unit]
    notes: Sequence[Unit]
    scene: Surroundings | None = None


def user_content(
    plan: Plan, stable: SystemPrompt, offered: DynamicInput, instruments: TextTools
) -> UserContent:
    """Fill what the stable side leaves, the document before everything that was retrieved."""
    room = _room(plan, stable, offered.pinned, instruments)
    notes = take_notes(offered.notes, room)
    view = DocumentWindow()
    if offered.scene is not None:
        left = room - sum(note.tokens for note in notes)
        view = fit_window(offered.scene, left, plan.figures.total)
    immediate = _in_order(view, offered.pinned, notes)
    set_immediate = render_layer(Layer.IMMEDIATE, immediate, instruments)
    beside = stable.prompt.tokens + set_immediate.tokens
    heading = instruments.count(title(Layer.RETRIEVED, empty=False))
    retrieved = choose(offered.chunks, plan.figures.total - beside - heading, view.span)
    set_retrieved = render_layer(Layer.RETRIEVED, retrieved, instruments)
    return UserContent(
        prompt=join([set_retrieved, set_immediate]), retrieved=retrieved, immediate=immediate
    )


def _room(plan: Plan, stable: SystemPrompt, pinned: Pinned, instruments: TextTools) -> int:
    """Tell what is left for the document and Retrieved, or refuse if even what is pinned is too much."""
    nothing_retrieved = instruments.count(title(Layer.RETRIEVED, empty=True))
    spare = plan.figures.total - stable.prompt.tokens - nothing_retrieved - pinned.tokens
    if spare < instruments.count(title(Layer.IMMEDIATE, empty=not pinned.units)):
        _refuse(plan, stable, pinned)
    return spare - instruments.count(title(Layer.IMMEDIATE, empty=False))


def _in_order(
    view: DocumentWindow, pinned: Pinned, notes: Sequence[Decision]
) -> tuple[Decision, ...]:
    document = [] if view.verdict is None else [view.verdict]
    selection = [keep(pinned.selection, Rule.PINNED)] if pinned.selection else []
    rest = [keep(unit, Rule.PINNED) for unit in (pinned.input, pinned.task) if unit]
    return (*document, *selection, *notes, *rest)


def _refuse(plan: Plan, stable: SystemPrompt, pinned: Pinned) -> NoReturn:
    parts = {
        "rules": stable.rules.tokens,
        "selection": pinned.selection.tokens if pinned.selection else 0,
        "input": pinned.input.tokens if pinned.input else 0,
        "task": pinned.task.tokens if pinned.task else 0,
    }
    heaviest = max(parts, key=lambda name: parts[name])
    total = plan.figures.total
    raise DaemonError(
        ErrorCode.CONTEXT_INPUT_TOO_LARGE,
        f"What may not be cut does not fit into {total} tokens; the heaviest part is "
        f"{heaviest} with {parts[heaviest]}. Shorten it or raise the budget.",
        budgetTokens=total,
        heaviest=heaviest,
        tokens=parts,
    )
