"""The result of `context:assemble`, as it goes over the wire."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from msgspec import UNSET, Raw, UnsetType

from creonowd.context.assemble import Assembly, BreakPoint, PartName
from creonowd.context.budget import CountCorrection
from creonowd.context.candidates import (
    EncodedEvidence,
    EncodedPart,
    TrimEvidence,
    add_up,
    encode_text,
)
from creonowd.context.fragment import DYNAMIC, Layer, Notice, show
from creonowd.context.stable_prefix import PrefixChange, PrefixComparison
from creonowd.errors import Language
from creonowd.model import Model, Result
from creonowd.redaction import RedactionEvidence
from creonowd.tokens.models import CacheRule, CountKind, cache_facts

# Anthropic's limit.
MOST_MARKS = 4


class LayerSummary(Model):
    """One layer of the prompt after trimming."""

    tokens: int
    """How many tokens it has."""
    token_count: int
    """The same as `tokens`."""
    truncated: bool
    """Whether something is missing for want of room."""
    source: list[str]
    """The names of the sources that are in it."""
    chunks: int
    """How many pieces are in it."""
    warnings: list[str] | UnsetType = UNSET
    """Those warnings of the result that concern this layer; absent if none does."""


class LayerSummaries(Model):
    """The four layers."""

    rules: LayerSummary
    """Style guide, terms, constraints, characters."""
    settings: LayerSummary
    """World and notes."""
    retrieved: LayerSummary
    """The story so far, earlier passages, mentioned characters."""
    immediate: LayerSummary
    """The text around the cursor."""


class BudgetEstimate(Model):
    """What the candidates of each layer would cost untrimmed."""

    rules_tokens: int
    """What all candidates of Rules would cost."""
    settings_tokens: int
    """What all candidates of Settings would cost."""
    retrieved_tokens: int
    """What all candidates of Retrieved would cost."""
    immediate_tokens: int
    """What all candidates of Immediate would cost."""
    total_tokens: int
    """The sum of the four."""


class ContextBudget(Model):
    """The most that a prompt may have, and what it would have had without trimming."""

    max_input_tokens: int
    """The most that the prompt may have."""
    estimate: BudgetEstimate
    """What it would have had without trimming."""


class CacheBreakPoint(Model):
    """A place where parts of the prompt meet that change at different times."""

    after: PartName
    """Behind what it lies: `rules`, `systemPrompt` (rules and settings), `story` (the story so
    far), `passages` (what was retrieved for the text as a whole), `allusions` (what single
    sentences brought) or `window` (a paragraph of the document before the
    cursor; typing behind it leaves it as it is)."""
    hash: str
    """SHA-256 of the bytes up to there."""
    bytes: int
    """How many bytes these are in UTF-8: `prompt` cut at all of the places gives the blocks that
    are sent."""
    tokens: int
    """How many tokens these are."""
    minimum_tokens: int
    """From how many tokens on the provider caches at all."""
    reaches_minimum: bool
    """Whether there are enough tokens before it."""
    rule: CacheRule
    """How the provider caches."""
    marked: bool
    """Whether a request marks this place, or names it as a break point."""


class BoundedCount(Model):
    """The two counts of a text for a model whose table is not public."""

    counted: int
    """Counted with `o200k_base`."""
    bound: int
    """The most that the model's own count can be."""


class Provenance(Result):
    """How a prompt came about, without the prompt."""

    stable_prefix_hash: str
    """SHA-256 of the system prompt; while it stays the same, a prompt cache can be used."""
    prompt_hash: str
    """SHA-256 of the whole prompt."""
    stable_prefix_unchanged: bool
    """Whether the previous call of this project, skill and model had the same stable prefix; false
    at the first."""
    assembly_order: list[Layer]
    """The layers, in the order of the prompt."""
    warnings: list[str]
    """What did not go as it should, each as `CODE` or `CODE: sentence`; `notices` has the same in
    parts."""
    notices: list[Notice]
    """The warnings in parts, in the same order: test `code`, show `message`."""
    budget: ContextBudget
    """The most that the prompt may have, and what it would have had."""
    trim_evidence: list[TrimEvidence]
    """What became of every candidate, kept ones too."""
    redaction_evidence: list[RedactionEvidence]
    """Which kinds of secrets were taken out of this reply, and how often; never the secrets."""
    cache_break_points: list[CacheBreakPoint]
    """Where the prompt can be cached, from its beginning on."""
    tokenizer_id: str
    """The table that tokens are counted with, such as `o200k_base`."""
    tokenizer_version: str
    """The version of that table; a request that names another fails with
    CONTEXT_TOKENIZER_MISMATCH."""
    tokenizer_exact: bool
    """Whether counts are the model's own; the same as `countKind` being `exact`."""
    count_kind: CountKind
    """Whether counts are the model's own, an upper bound or approximate."""
    count_tokens: BoundedCount | UnsetType = UNSET
    """Both figures, if `countKind` is `bound`: what was counted, and the most that it can be."""
    count_correction: CountCorrection | UnsetType = UNSET
    """By how much real runs of this model made the budget smaller or larger; absent if they did
    not."""
    prefix_change: PrefixChange | UnsetType = UNSET
    """Which source changed the stable prefix; absent if the previous call had the same, or if
    there was none."""
    target_tokens: int | UnsetType = UNSET
    """What the skill aims at: Retrieved fills the prompt no further. Absent if it has no aim."""


class AssembleResult(Provenance):
    """What the model gets to see, and how that came about."""

    prompt: str
    """`systemPrompt` followed by `userContent`."""
    system_prompt: str
    """Rules and Settings: the part that stays the same from call to call."""
    user_content: str
    """Retrieved, Immediate and the task."""
    token_count: int
    """The count of `prompt`: the sum of the layers' tokens and `fixedTokens`. Where `countKind` is
    `bound`, the most that it can be."""
    fixed_tokens: int
    """How many of them are of the frame: titles, separators, the skill's own words."""
    layers: LayerSummaries
    """Each layer in brief."""


class ModelTarget(Model):
    """The model that the prompt is for; `kind` is how counts relate to its own.

    `language` is that of the client which gets the result.
    """

    provider: str = ""
    model: str = ""
    kind: CountKind = CountKind.EXACT
    correction: CountCorrection | None = None
    language: Language = Language.DEFAULT


def answer(assembly: Assembly, comparison: PrefixComparison, target: ModelTarget) -> AssembleResult:
    """Return the full result of an assembly."""
    system, user = assembly.system_prompt.prompt.text, assembly.user_content.text
    evidence = [*chain(*(assembly.layers[layer].evidence for layer in Layer))]
    parts = (system + user, system, user, evidence)
    return _result(_answer_fields(assembly, target), comparison, parts)


class EncodedResult(NamedTuple):
    """An answer whose texts and evidence are encoded, and the rest of its fields.

    What belongs to the system prompt was encoded when that was made; many answers share it.
    """

    stable: EncodedPart
    new: EncodedPart
    fields: dict[str, Any]

    @property
    def weight(self) -> int:
        """About how many bytes it takes to keep it, the stable part aside."""
        return 4000 + self.new.weight

    def result(self, comparison: PrefixComparison) -> AssembleResult:
        """Return the full result."""
        stable, new = self.stable, self.new
        comma = b"," if stable.evidence and new.evidence else b""
        # Each is put together in one copy: there are 200 KB of them in a large project.
        pieces = (
            (b'"', stable.text, new.text, b'"'),
            (b'"', stable.text, b'"'),
            (b'"', new.text, b'"'),
            (b"[", stable.evidence, comma, new.evidence, b"]"),
        )
        raw: Any = tuple(Raw(b"".join(each)) for each in pieces)
        return _result(self.fields, comparison, raw)


def encode_result(assembly: Assembly, target: ModelTarget) -> EncodedResult:
    """Encode what an answer has beside the stable part, and beside what was encoded before."""
    retrieved, layers = assembly.retrieved, assembly.layers
    rest = assembly.user_content.text[len(retrieved.rendered.text) :]
    evidence = [EncodedEvidence([*_untimely(assembly)]), *(layers[one].encoded for one in DYNAMIC)]
    new = EncodedPart(
        retrieved.encoded + encode_text(rest),
        b",".join([part.entries for part in evidence if part.entries]),
    )
    return EncodedResult(assembly.system_prompt.encoded, new, _answer_fields(assembly, target))


def _untimely(assembly: Assembly) -> Iterator[TrimEvidence]:
    """Return the evidence of the stable layers that depends on the place in the story."""
    stable = assembly.system_prompt
    for layer, made in ((Layer.RULES, stable.rules), (Layer.SETTINGS, stable.settings)):
        yield from assembly.layers[layer].evidence[len(made.evidence) :]


def _result(
    fields: dict[str, Any],
    comparison: PrefixComparison,
    parts: tuple[str, str, str, list[TrimEvidence]],
) -> AssembleResult:
    prompt, system, user, evidence = parts
    return AssembleResult(
        **fields,
        stable_prefix_unchanged=comparison.unchanged,
        prefix_change=comparison.change,
        trim_evidence=evidence,
        prompt=prompt,
        system_prompt=system,
        user_content=user,
    )


def _answer_fields(assembly: Assembly, target: ModelTarget) -> dict[str, Any]:
    """Return what an answer has beside its texts, its evidence and the comparison."""
    layers = {layer: summary(assembly, layer, target.language) for layer in Layer}
    return _provenance_fields(assembly, target) | {
        "token_count": assembly.tokens,
        "fixed_tokens": assembly.fixed_tokens,
        "layers": LayerSummaries(**layers),
    }


def provenance(assembly: Assembly, comparison: PrefixComparison, target: ModelTarget) -> Provenance:
    """Return how a prompt came about, without the prompt."""
    evidence = [*chain(*(assembly.layers[layer].evidence for layer in Layer))]
    return Provenance(
        **_provenance_fields(assembly, target),
        stable_prefix_unchanged=comparison.unchanged,
        prefix_change=comparison.change,
        trim_evidence=evidence,
    )


def _provenance_fields(assembly: Assembly, target: ModelTarget) -> dict[str, Any]:
    """Return what a `Provenance` has beside the evidence and the comparison."""
    skill = assembly.plan.skill
    shown = show(assembly.warnings, target.language)
    kind = target.kind if assembly.tokenizer.exact else CountKind.APPROXIMATE
    return {
        "stable_prefix_hash": assembly.system_prompt.hash,
        "prompt_hash": assembly.prompt_hash,
        "assembly_order": list(Layer),
        "warnings": shown.warnings,
        "notices": shown.notices,
        "budget": budget(assembly),
        "redaction_evidence": redaction_evidence(assembly),
        "cache_break_points": break_points(assembly, target.model),
        "tokenizer_id": assembly.tokenizer.id,
        "tokenizer_version": assembly.tokenizer.version,
        "tokenizer_exact": kind is CountKind.EXACT,
        "count_kind": kind,
        "count_tokens": _both_counts(assembly),
        "count_correction": target.correction or UNSET,
        "target_tokens": UNSET if skill.target_tokens is None else skill.target_tokens,
    }


def _both_counts(assembly: Assembly) -> BoundedCount | UnsetType:
    base = assembly.tokenizer.base
    if base is None:
        return UNSET
    texts = (assembly.system_prompt.prompt.text, assembly.user_content.text)
    return BoundedCount(counted=sum(map(base.count, texts)), bound=assembly.tokens)


def summary(assembly: Assembly, layer: Layer, language: Language) -> LayerSummary:
    """Return the summary of one layer."""
    outcome = assembly.layers[layer]
    warnings = [each for each in assembly.warnings if each.layer is layer]
    return LayerSummary(
        tokens=outcome.tokens,
        token_count=outcome.tokens,
        truncated=outcome.truncated,
        source=list(outcome.sources),
        chunks=outcome.chunks,
        warnings=show(warnings, language).warnings if warnings else UNSET,
    )


def budget(assembly: Assembly) -> ContextBudget:
    """Return the limit and what the candidates would have cost."""
    costs = [assembly.layers[layer].before_tokens for layer in Layer]
    estimate = BudgetEstimate(
        rules_tokens=costs[0],
        settings_tokens=costs[1],
        retrieved_tokens=costs[2],
        immediate_tokens=costs[3],
        total_tokens=sum(costs),
    )
    return ContextBudget(max_input_tokens=assembly.plan.allowances.total, estimate=estimate)


def redaction_evidence(assembly: Assembly) -> list[RedactionEvidence]:
    """Return evidence for everything that was taken out of a candidate."""
    found = [outcome.redactions for outcome in assembly.layers.values() if outcome.redactions]
    return list(add_up(chain.from_iterable(found)))


def break_points(assembly: Assembly, model: str) -> list[CacheBreakPoint]:
    """Return where the prompt is cut into blocks, in its order, and which ends are marked."""
    rule, minimum = cache_facts(model)
    points = assembly.break_points
    marked = _points_to_mark([point for point in points if point.tokens >= minimum], rule)
    return [
        CacheBreakPoint(
            after=point.after,
            hash=point.hash,
            bytes=point.bytes,
            tokens=point.tokens,
            minimum_tokens=minimum,
            reaches_minimum=point.tokens >= minimum,
            rule=rule,
            marked=point in marked,
        )
        for point in points
    ]


def _points_to_mark(points: Sequence[BreakPoint], rule: CacheRule) -> list[BreakPoint]:
    """Choose the break points to mark: where parts that change at different times meet, as many as allowed."""
    by_name = {point.after: point for point in points}
    window = [point for point in points if point.after == "window"]
    stable = [by_name[name] for name in ("systemPrompt", "story") if name in by_name]
    dynamic = [by_name[name] for name in ("passages", "allusions") if name in by_name]
    if rule is CacheRule.MARKS:
        rules = [by_name[name] for name in ("rules",) if name in by_name]
        return [*window[-1:], *stable, *_longer_part(stable, dynamic), *rules][:MOST_MARKS]
    if rule is CacheRule.BREAK_POINTS:
        # A break point matches only what was written exactly there, so the one before is named too.
        return [*window[-2:], *stable, *dynamic]
    return []


def _longer_part(stable: Sequence[BreakPoint], dynamic: Sequence[BreakPoint]) -> list[BreakPoint]:
    """Return the end of the passages or of the allusions behind them, whichever has more tokens."""
    starts = [*stable[-1:], *dynamic]
    lengths = [point.tokens - start.tokens for start, point in zip(starts, dynamic, strict=False)]
    return (
        [dynamic[lengths.index(max(lengths))]]
        if len(lengths) == len(dynamic) > 0
        else [*dynamic[-1:]]
    )
