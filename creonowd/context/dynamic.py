"""The dynamic side of a prompt: Retrieved beside Immediate, in the room that is left.

The stable side is given and never touched. Knows the order in which things yield: Retrieved,
then the document after the cursor, then the document before it; what is pinned never does.
"""

from collections.abc import Sequence
from typing import NoReturn

from creonowd.context.fragment import Layer, Rule
from creonowd.context.immediate import Scene, View, look, take_notes
from creonowd.context.instruments import Instruments
from creonowd.context.pinned import Pinned
from creonowd.context.plan import Plan
from creonowd.context.render import Set, join, set_layer
from creonowd.context.retrieved import choose
from creonowd.context.stable import Stable
from creonowd.context.template import title
from creonowd.context.units import Unit
from creonowd.context.verdict import Verdict, keep
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model


class Dynamic(Model):
    """Retrieved and Immediate, set and judged."""

    prompt: Set
    retrieved: tuple[Verdict, ...]
    immediate: tuple[Verdict, ...]


class Offered(Model):
    """What the dynamic side is made of, made ready; `scene` is None where nothing can be shown."""

    pinned: Pinned
    chunks: Sequence[Unit]
    notes: Sequence[Unit]
    scene: Scene | None = None


def dynamic_side(plan: Plan, stable: Stable, offered: Offered, instruments: Instruments) -> Dynamic:
    """Fill what the stable side leaves, the document before everything that was retrieved."""
    room = _room(plan, stable, offered.pinned, instruments)
    notes = take_notes(offered.notes, room)
    view = View()
    if offered.scene is not None:
        left = room - sum(note.tokens for note in notes)
        view = look(offered.scene, left, plan.figures.total)
    immediate = _in_order(view, offered.pinned, notes)
    set_immediate = set_layer(Layer.IMMEDIATE, immediate, instruments)
    beside = stable.prompt.tokens + set_immediate.tokens
    heading = instruments.count(title(Layer.RETRIEVED, empty=False))
    retrieved = choose(offered.chunks, plan.figures.total - beside - heading, view.span)
    set_retrieved = set_layer(Layer.RETRIEVED, retrieved, instruments)
    return Dynamic(
        prompt=join([set_retrieved, set_immediate]), retrieved=retrieved, immediate=immediate
    )


def _room(plan: Plan, stable: Stable, pinned: Pinned, instruments: Instruments) -> int:
    """Tell what is left for the document and Retrieved, or refuse if even what is pinned is too much."""
    nothing_retrieved = instruments.count(title(Layer.RETRIEVED, empty=True))
    spare = plan.figures.total - stable.prompt.tokens - nothing_retrieved - pinned.tokens
    if spare < instruments.count(title(Layer.IMMEDIATE, empty=not pinned.units)):
        _refuse(plan, stable, pinned)
    return spare - instruments.count(title(Layer.IMMEDIATE, empty=False))


def _in_order(view: View, pinned: Pinned, notes: Sequence[Verdict]) -> tuple[Verdict, ...]:
    document = [] if view.verdict is None else [view.verdict]
    selection = [keep(pinned.selection, Rule.PINNED)] if pinned.selection else []
    rest = [keep(unit, Rule.PINNED) for unit in (pinned.input, pinned.task) if unit]
    return (*document, *selection, *notes, *rest)


def _refuse(plan: Plan, stable: Stable, pinned: Pinned) -> NoReturn:
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
