"""One assembly from the plan to the hash: the table of contents of this package.

plan ─► gather ─► guard ─► redact ─► count ─► trim ─► render ─► hash. Gathering is the only
await; the rest is a pure function of what was gathered, done in a thread.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from anyio import CapacityLimiter, to_thread
from msgspec.structs import replace

from creonowd.context.assembly import Assembly
from creonowd.context.budget import BudgetProfile
from creonowd.context.dynamic import Offered, dynamic_side
from creonowd.context.figures import figures_of
from creonowd.context.fragment import DYNAMIC, STABLE, Fragment, Layer
from creonowd.context.gather import Gathered, gather
from creonowd.context.guard import Tally, refuse_long
from creonowd.context.immediate import Scene, scene_of
from creonowd.context.instruments import Instruments, TokenizerFailedError
from creonowd.context.judged import judged
from creonowd.context.manuscript import Manuscript
from creonowd.context.pinned import pin, raw_input
from creonowd.context.plan import Plan, asked, shows_document
from creonowd.context.relevance import mentioned_entities
from creonowd.context.source import Source
from creonowd.context.stable import (
    ReadySettings,
    StableInput,
    ready_rules,
    settings_ahead,
    stable_side,
)
from creonowd.context.units import Unit, candidates, prepare_all, visible_ref
from creonowd.context.verdict import Verdict, absent_verdicts
from creonowd.context.warnings import Warned, trimming_warnings
from creonowd.errors import WarningCode
from creonowd.tokens.tokenizer import ByteTokenizer

AT_ONCE = 500


class Lanes(NamedTuple):
    """How many assemblies read and compose at once; more only get in each other's way."""

    reading: CapacityLimiter
    composing: CapacityLimiter


async def assemble(
    plan: Plan, sources: Sequence[Source], instruments: Instruments, lanes: Lanes | None = None
) -> Assembly:
    """Gather what the plan asks for and make a prompt of it."""
    gathered = await gather(plan, asked(plan, sources), lanes and lanes.reading)
    limiter = lanes and lanes.composing
    return await to_thread.run_sync(compose, plan, gathered, instruments, limiter=limiter)


def compose(plan: Plan, gathered: Gathered, instruments: Instruments) -> Assembly:
    """Make a prompt of what was gathered; with bytes for tokens if the tokenizer fails."""
    try:
        return _compose(plan, gathered, instruments)
    except TokenizerFailedError:
        return _compose(without_tokenizer(plan), gathered, instruments.counting(ByteTokenizer()))


def without_tokenizer(plan: Plan) -> Plan:
    """Fall back to the default profile, and say so."""
    return replace(
        plan,
        figures=figures_of(BudgetProfile()),
        warnings=(*plan.warnings, WarningCode.CONTEXT_BUDGET_FALLBACK),
    )


def _compose(plan: Plan, gathered: Gathered, instruments: Instruments) -> Assembly:
    given = gathered.fragments
    refuse_long(_sent(plan, given), instruments)
    with settings_ahead(given[Layer.SETTINGS], instruments) as settings:
        offered = _offered(plan, given, settings, instruments)
        stable = stable_side(_stable_input(plan, gathered, instruments), settings, instruments)
    dynamic = dynamic_side(plan, stable, offered, instruments)
    hasher = stable.hasher.copy()
    hasher.update(dynamic.prompt.text.encode())
    absent = absent_verdicts(
        (item for item in (*gathered.left_out, *plan.left_out) if item.layer not in STABLE),
        instruments,
    )
    layers = {
        Layer.RULES: stable.rules,
        Layer.SETTINGS: stable.settings,
        Layer.RETRIEVED: judged((*dynamic.retrieved, *_of(Layer.RETRIEVED, absent))),
        Layer.IMMEDIATE: judged((*dynamic.immediate, *_of(Layer.IMMEDIATE, absent))),
    }
    trimmed = trimming_warnings(plan, layers, rules_over=stable.rules_over)
    return Assembly(
        plan=plan,
        stable=stable,
        user=dynamic.prompt,
        prompt_hash=hasher.hexdigest(),
        layers=layers,
        warnings=tuple(dict.fromkeys((*_said(plan, gathered, instruments), *trimmed))),
        failures=gathered.failures,
        tokenizer=instruments.tokenizer,
    )


def _sent(plan: Plan, given: Mapping[Layer, tuple[Fragment, ...]]) -> list[Fragment]:
    """List what hosts and the author sent, rules aside."""
    layers = (Layer.SETTINGS, *DYNAMIC)
    return [*(f for layer in layers for f in given[layer] if f.hosted), *raw_input(plan)]


def _opened(plan: Plan, instruments: Instruments) -> Manuscript | None:
    if plan.document is None:
        return None
    return Manuscript(plan.document.text, plan.document.here.start, instruments)


def _offered(
    plan: Plan,
    given: Mapping[Layer, tuple[Fragment, ...]],
    settings: ReadySettings,
    instruments: Instruments,
) -> Offered:
    """Make the dynamic side ready, refusing as early as possible what is too large."""
    rules = ready_rules(given[Layer.RULES], instruments)
    tally = Tally(lambda: [*given[Layer.RULES], *_sent(plan, given)], instruments)
    tally.add(rules.before_tokens)
    manuscript = _opened(plan, instruments)
    pinned = pin(plan, manuscript, instruments)
    tally.add(pinned.tokens)
    offered = Offered(
        pinned=pinned,
        chunks=_ready(given[Layer.RETRIEVED], tally, instruments),
        notes=_ready(given[Layer.IMMEDIATE], tally, instruments),
        scene=None if manuscript is None else _seen(plan, manuscript, instruments),
    )
    if any(fragment.hosted for fragment in given[Layer.SETTINGS]):
        tally.add(_hosted_tokens(settings().units))
    return offered


def _seen(plan: Plan, manuscript: Manuscript, instruments: Instruments) -> Scene | None:
    return scene_of(plan, manuscript, instruments) if shows_document(plan) else None


def _ready(fragments: Sequence[Fragment], tally: Tally, instruments: Instruments) -> list[Unit]:
    units: list[Unit] = []
    given = candidates(fragments)
    for start in range(0, len(given), AT_ONCE):
        some = prepare_all(given[start : start + AT_ONCE], instruments)
        units += some
        tally.add(_hosted_tokens(some))
    return units


def _hosted_tokens(units: Iterable[Unit]) -> int:
    return sum(unit.before_tokens for unit in units if unit.fragment.hosted)


def _stable_input(plan: Plan, gathered: Gathered, instruments: Instruments) -> StableInput:
    given = gathered.fragments[Layer.RULES]
    rules = ready_rules(given, instruments)
    mentioned: frozenset[str] = frozenset()
    if plan.document is not None and rules.tokens > plan.figures.rules_line:
        mentions = instruments.memory.mentions
        mentioned = mentioned_entities(rules.entities, plan.document.text, mentions)
    return StableInput(
        rules=given,
        settings=gathered.fragments[Layer.SETTINGS],
        left_out=tuple(item for item in gathered.left_out if item.layer in STABLE),
        figures=plan.figures,
        mentioned=mentioned,
    )


def _said(plan: Plan, gathered: Gathered, instruments: Instruments) -> Iterator[Warned]:
    for warning in plan.warnings:
        yield None, warning
    for layer, warning in gathered.warnings:
        yield layer, visible_ref(warning, instruments)


def _of(layer: Layer, verdicts: Iterable[Verdict]) -> Iterator[Verdict]:
    return (verdict for verdict in verdicts if verdict.evidence.layer is layer)
