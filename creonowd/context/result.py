"""The answer of `context:assemble`, as it goes over the wire. Judges nothing."""

from itertools import chain

from msgspec import UNSET, UnsetType

from creonowd.context.assemble import Assembly
from creonowd.context.evidence import TrimEvidence, merged
from creonowd.context.fragment import Layer
from creonowd.context.system_prompt import PrefixChange, SystemPrompt
from creonowd.model import Model, Result
from creonowd.redaction import RedactionEvidence


class LayerSummary(Model):
    """One layer of the prompt after trimming.

    `tokenCount` is an alias of `tokens`; `truncated` says that something is missing for want of
    room; `source` names the sources that are in it and `chunks` counts their pieces.
    """

    tokens: int
    token_count: int
    truncated: bool
    source: list[str]
    chunks: int
    warnings: list[str] | UnsetType = UNSET


class LayerSummaries(Model):
    """The four layers."""

    rules: LayerSummary
    settings: LayerSummary
    retrieved: LayerSummary
    immediate: LayerSummary


class BudgetEstimate(Model):
    """What the candidates of each layer would cost untrimmed."""

    rules_tokens: int
    settings_tokens: int
    retrieved_tokens: int
    immediate_tokens: int
    total_tokens: int


class ContextBudget(Model):
    """The most that a prompt may have, and what it would have had without trimming."""

    max_input_tokens: int
    estimate: BudgetEstimate


class CacheBreakPoint(Model):
    """A place up to which a provider could cache the prompt.

    `hash` is the SHA-256 of the bytes up to there; `reachesMinimum` says whether they are enough
    tokens for the provider to cache them at all.
    """

    after: str
    hash: str
    tokens: int
    minimum_tokens: int
    reaches_minimum: bool


class Provenance(Result):
    """How a prompt came about, without the prompt.

    `trimEvidence` has an entry for every candidate, kept ones too. `prefixChange` is there when
    a previous call had another stable prefix. `targetTokens` is what the skill aims at.
    """

    stable_prefix_hash: str
    prompt_hash: str
    stable_prefix_unchanged: bool
    assembly_order: list[Layer]
    warnings: list[str]
    budget: ContextBudget
    trim_evidence: list[TrimEvidence]
    redaction_evidence: list[RedactionEvidence]
    cache_break_points: list[CacheBreakPoint]
    tokenizer_id: str
    tokenizer_version: str
    tokenizer_exact: bool
    prefix_change: PrefixChange | UnsetType = UNSET
    target_tokens: int | UnsetType = UNSET


class AssembleResult(Provenance):
    """What the model gets to see, and how that came about.

    `prompt` is `systemPrompt` followed by `userContent`; `tokenCount` is its exact count, the sum
    of the layers' tokens and `fixedTokens`. `prefixChange` is there when a previous call had
    another stable prefix. `targetTokens` is what the skill aims at.
    """

    prompt: str
    system_prompt: str
    user_content: str
    token_count: int
    fixed_tokens: int
    layers: LayerSummaries


USUAL_MINIMUM = 1024

_MINIMUMS = (
    ("haiku-3", 2048),
    ("3-haiku", 2048),
    ("3-5-haiku", 2048),
    ("haiku", 4096),
    ("opus-4-5", 4096),
    ("opus-4-6", 4096),
)


def minimum_tokens(model: str) -> int:
    """Tell from how many tokens on a model's provider caches; unknown ones the usual number."""
    name = model.lower()
    return next((minimum for part, minimum in _MINIMUMS if part in name), USUAL_MINIMUM)


def break_points(stable: SystemPrompt, model: str) -> list[CacheBreakPoint]:
    """List the places where the stable prefix may be cached: after Rules, and after all of it."""
    minimum = minimum_tokens(model)
    places = (
        ("rules", stable.rules_hash, stable.up_to_rules.tokens),
        ("systemPrompt", stable.hash, stable.prompt.tokens),
    )
    return [
        CacheBreakPoint(
            after=after,
            hash=hashed,
            tokens=tokens,
            minimum_tokens=minimum,
            reaches_minimum=tokens >= minimum,
        )
        for after, hashed, tokens in places
    ]


class Compared(Model):
    """How the stable prefix compares with that of the previous call."""

    unchanged: bool = False
    change: PrefixChange | UnsetType = UNSET


class ModelTarget(Model):
    """Whom the prompt is for; `exact` says whether we count as that model does."""

    provider: str = ""
    model: str = ""
    exact: bool = True


def answer(assembly: Assembly, compared: Compared, target: ModelTarget) -> AssembleResult:
    """Tell an assembly in full."""
    stable, skill = assembly.stable, assembly.plan.skill
    return AssembleResult(
        prompt=stable.prompt.text + assembly.user.text,
        system_prompt=stable.prompt.text,
        user_content=assembly.user.text,
        token_count=assembly.tokens,
        fixed_tokens=assembly.fixed_tokens,
        stable_prefix_hash=stable.hash,
        prompt_hash=assembly.prompt_hash,
        stable_prefix_unchanged=compared.unchanged,
        prefix_change=compared.change,
        assembly_order=list(Layer),
        layers=LayerSummaries(**{layer: summary(assembly, layer) for layer in Layer}),
        warnings=[text for _, text in assembly.warnings],
        budget=budget(assembly),
        trim_evidence=[*chain(*(assembly.layers[layer].evidence for layer in Layer))],
        redaction_evidence=redaction_evidence(assembly),
        cache_break_points=break_points(stable, target.model),
        tokenizer_id=assembly.tokenizer.id,
        tokenizer_version=assembly.tokenizer.version,
        tokenizer_exact=assembly.tokenizer.exact and target.exact,
        target_tokens=UNSET if skill.target_tokens is None else skill.target_tokens,
    )


def summary(assembly: Assembly, layer: Layer) -> LayerSummary:
    """Sum up one layer."""
    judged = assembly.layers[layer]
    return LayerSummary(
        tokens=judged.tokens,
        token_count=judged.tokens,
        truncated=judged.truncated,
        source=list(judged.sources),
        chunks=judged.chunks,
        warnings=[text for about, text in assembly.warnings if about is layer] or UNSET,
    )


def budget(assembly: Assembly) -> ContextBudget:
    """Tell the limit and what the candidates would have cost."""
    costs = [assembly.layers[layer].before_tokens for layer in Layer]
    estimate = BudgetEstimate(
        rules_tokens=costs[0],
        settings_tokens=costs[1],
        retrieved_tokens=costs[2],
        immediate_tokens=costs[3],
        total_tokens=sum(costs),
    )
    return ContextBudget(max_input_tokens=assembly.plan.figures.total, estimate=estimate)


def redaction_evidence(assembly: Assembly) -> list[RedactionEvidence]:
    """Account for everything that was taken out of a candidate."""
    found = [judged.redactions for judged in assembly.layers.values() if judged.redactions]
    return list(merged(chain.from_iterable(found)))
