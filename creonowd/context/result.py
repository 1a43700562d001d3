"""The answer of `context:assemble`, as it goes over the wire. Judges nothing."""

from msgspec import UNSET, UnsetType

from creonowd.context.fragment import Layer
from creonowd.context.prefix import PrefixChange
from creonowd.context.verdict import TrimEvidence
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
