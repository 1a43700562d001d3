"""What may never be cut: the skill's task, the selection and the additional input.

Knows how each is set; whether they fit is decided elsewhere.
"""

from collections.abc import Mapping
from pathlib import PurePosixPath

from creonowd.context.fragment import Fragment, Layer
from creonowd.context.instruments import Clean, Instruments
from creonowd.context.manuscript import Manuscript
from creonowd.context.plan import Plan
from creonowd.context.template import INPUT, SELECTION, TASK
from creonowd.context.units import Unit, visible_ref
from creonowd.model import Model

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


def pin(plan: Plan, manuscript: Manuscript | None, instruments: Instruments) -> Pinned:
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
        else _unit(SELECTION_REF, SELECTION, Clean(selected), instruments),
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


def _title(plan: Plan, instruments: Instruments) -> str:
    return PurePosixPath(visible_ref(plan.document_id, instruments)).stem


def _task(plan: Plan, values: Mapping[str, str], instruments: Instruments) -> Unit | None:
    filled = instruments.clean(plan.skill.task.fill(values))
    return _unit(f"skill:{plan.skill.skill_id}", TASK, filled, instruments)


def _unit(ref: str, heading: str, clean: Clean, instruments: Instruments) -> Unit | None:
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
