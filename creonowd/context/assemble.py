"""One assembly from the plan to the hash: the table of contents of this package.

plan ─► gather ─► guard ─► redact ─► count ─► trim ─► render ─► hash. Gathering is the only
await; the rest is a pure function of what was gathered, done in a thread.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from anyio import CapacityLimiter, to_thread
from msgspec.structs import replace

from creonowd.context.budget import BudgetProfile
from creonowd.context.evidence import Decision, LayerOutcome, absent_decisions, summarise_layer
from creonowd.context.fragment import DYNAMIC, STABLE, Action, Fragment, Layer, Rule
from creonowd.context.gather import Failure, Gathered, gather
from creonowd.context.manuscript import Manuscript
from creonowd.context.plan import Plan, Source, asked, figures_of, shows_document
from creonowd.context.render import Rendered
from creonowd.context.rules_layer import mentioned_entities
from creonowd.context.system_prompt import (
    ReadySettings,
    SystemPrompt,
    SystemPromptInput,
    prepare_rules,
    settings_ahead,
    system_prompt,
)
from creonowd.context.text_tools import TextTools, TokenizerFailedError
from creonowd.context.units import Tally, Unit, candidates, prepare_all, refuse_long, visible_ref
from creonowd.context.user_content import DynamicInput, pin, raw_input, user_content
from creonowd.context.window import Surroundings, surroundings_of
from creonowd.errors import WarningCode, warning_text
from creonowd.model import Model
from creonowd.tokens.tokenizer import ByteTokenizer, Tokenizer

Warned = tuple[Layer | None, str]


def trimming_warnings(
    plan: Plan, layers: Mapping[Layer, LayerOutcome], *, rules_over: bool
) -> Iterator[Warned]:
    """Walk the warnings that trimming gives rise to."""
    rules, retrieved = layers[Layer.RULES], layers[Layer.RETRIEVED]
    if rules_over:
        yield Layer.RULES, WarningCode.CONTEXT_RULES_OVERBUDGET
    if Rule.CONSTRAINT_LIMIT in rules.rules:
        yield Layer.RULES, WarningCode.CONTEXT_CONSTRAINT_LIMIT
    if Rule.CHUNK_LIMIT in retrieved.rules:
        yield Layer.RETRIEVED, WarningCode.CONTEXT_RETRIEVED_CHUNK_LIMIT
    if plan.skill.rules is None and retrieved.truncated and not retrieved.chunks:
        yield Layer.RETRIEVED, warning_text(WarningCode.CONTEXT_RETRIEVED_STARVED)
    for layer, judged in layers.items():
        if judged.falls_short(plan.figures.minimum(layer)):
            yield layer, f"{WarningCode.CONTEXT_MINIMUM_UNMET}: {layer}"


class Assembly(Model):
    """The result of one pass. `warnings` name the layer they belong to, if one."""

    plan: Plan
    stable: SystemPrompt
    user: Rendered
    prompt_hash: str
    layers: dict[Layer, LayerOutcome]
    warnings: tuple[Warned, ...]
    failures: tuple[Failure, ...]
    tokenizer: Tokenizer

    @property
    def tokens(self) -> int:
        """The exact count of the prompt."""
        return self.stable.prompt.tokens + self.user.tokens

    @property
    def fixed_tokens(self) -> int:
        """The tokens that belong to no layer."""
        return self.stable.prompt.fixed + self.user.fixed

    def count(self, action: Action) -> int:
        """Tell of how many candidates something became."""
        return sum(judged.actions.get(action, 0) for judged in self.layers.values())

    def all_verdicts(self) -> Iterator[Decision]:
        """Walk every candidate."""
        for layer in Layer:
            yield from self.layers[layer].verdicts


AT_ONCE = 500


class Concurrency(NamedTuple):
    """How many assemblies read and compose at once; more only get in each other's way."""

    reading: CapacityLimiter
    composing: CapacityLimiter


async def assemble(
    plan: Plan, sources: Sequence[Source], instruments: TextTools, lanes: Concurrency | None = None
) -> Assembly:
    """Gather what the plan asks for and make a prompt of it."""
    gathered = await gather(plan, asked(plan, sources), lanes and lanes.reading)
    limiter = lanes and lanes.composing
    return await to_thread.run_sync(compose, plan, gathered, instruments, limiter=limiter)


def compose(plan: Plan, gathered: Gathered, instruments: TextTools) -> Assembly:
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


def _compose(plan: Plan, gathered: Gathered, instruments: TextTools) -> Assembly:
    given = gathered.fragments
    refuse_long(_sent(plan, given), instruments)
    with settings_ahead(given[Layer.SETTINGS], instruments) as settings:
        offered = _offered(plan, given, settings, instruments)
        stable = system_prompt(_stable_input(plan, gathered, instruments), settings, instruments)
    dynamic = user_content(plan, stable, offered, instruments)
    hasher = stable.hasher.copy()
    hasher.update(dynamic.prompt.text.encode())
    absent = absent_decisions(
        (item for item in (*gathered.left_out, *plan.left_out) if item.layer not in STABLE),
        instruments,
    )
    layers = {
        Layer.RULES: stable.rules,
        Layer.SETTINGS: stable.settings,
        Layer.RETRIEVED: summarise_layer((*dynamic.retrieved, *_of(Layer.RETRIEVED, absent))),
        Layer.IMMEDIATE: summarise_layer((*dynamic.immediate, *_of(Layer.IMMEDIATE, absent))),
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


def _opened(plan: Plan, instruments: TextTools) -> Manuscript | None:
    if plan.document is None:
        return None
    return Manuscript(plan.document.text, plan.document.here.start, instruments)


def _offered(
    plan: Plan,
    given: Mapping[Layer, tuple[Fragment, ...]],
    settings: ReadySettings,
    instruments: TextTools,
) -> DynamicInput:
    """Make the dynamic side ready, refusing as early as possible what is too large."""
    rules = prepare_rules(given[Layer.RULES], instruments)
    tally = Tally(lambda: [*given[Layer.RULES], *_sent(plan, given)], instruments)
    tally.add(rules.before_tokens)
    manuscript = _opened(plan, instruments)
    pinned = pin(plan, manuscript, instruments)
    tally.add(pinned.tokens)
    offered = DynamicInput(
        pinned=pinned,
        chunks=_ready(given[Layer.RETRIEVED], tally, instruments),
        notes=_ready(given[Layer.IMMEDIATE], tally, instruments),
        scene=None if manuscript is None else _seen(plan, manuscript, instruments),
    )
    if any(fragment.hosted for fragment in given[Layer.SETTINGS]):
        tally.add(_hosted_tokens(settings().units))
    return offered


def _seen(plan: Plan, manuscript: Manuscript, instruments: TextTools) -> Surroundings | None:
    return surroundings_of(plan, manuscript, instruments) if shows_document(plan) else None


def _ready(fragments: Sequence[Fragment], tally: Tally, instruments: TextTools) -> list[Unit]:
    units: list[Unit] = []
    given = candidates(fragments)
    for start in range(0, len(given), AT_ONCE):
        some = prepare_all(given[start : start + AT_ONCE], instruments)
        units += some
        tally.add(_hosted_tokens(some))
    return units


def _hosted_tokens(units: Iterable[Unit]) -> int:
    return sum(unit.before_tokens for unit in units if unit.fragment.hosted)


def _stable_input(plan: Plan, gathered: Gathered, instruments: TextTools) -> SystemPromptInput:
    given = gathered.fragments[Layer.RULES]
    rules = prepare_rules(given, instruments)
    mentioned: frozenset[str] = frozenset()
    if plan.document is not None and rules.tokens > plan.figures.rules_line:
        mentions = instruments.memory.mentions
        mentioned = mentioned_entities(rules.entities, plan.document.text, mentions)
    return SystemPromptInput(
        rules=given,
        settings=gathered.fragments[Layer.SETTINGS],
        left_out=tuple(item for item in gathered.left_out if item.layer in STABLE),
        figures=plan.figures,
        mentioned=mentioned,
    )


def _said(plan: Plan, gathered: Gathered, instruments: TextTools) -> Iterator[Warned]:
    for warning in plan.warnings:
        yield None, warning
    for layer, warning in gathered.warnings:
        yield layer, visible_ref(warning, instruments)


def _of(layer: Layer, verdicts: Iterable[Decision]) -> Iterator[Decision]:
    return (verdict for verdict in verdicts if verdict.evidence.layer is layer)
