"""An assembly told over the wire: summaries, estimates and evidence read off its verdicts.

Adds nothing: what is not in the assembly is not in the answer.
"""

from itertools import chain

from msgspec import UNSET, UnsetType

from creonowd.context.assembly import Assembly
from creonowd.context.break_points import break_points
from creonowd.context.fragment import Layer
from creonowd.context.prefix import PrefixChange
from creonowd.context.redactions import merged
from creonowd.context.result import (
    AssembleResult,
    BudgetEstimate,
    ContextBudget,
    LayerSummaries,
    LayerSummary,
)
from creonowd.model import Model
from creonowd.redaction import RedactionEvidence


class Compared(Model):
    """How the stable prefix compares with that of the previous call."""

    unchanged: bool = False
    change: PrefixChange | UnsetType = UNSET


class Target(Model):
    """Whom the prompt is for; `exact` says whether we count as that model does."""

    provider: str = ""
    model: str = ""
    exact: bool = True


def answer(assembly: Assembly, compared: Compared, target: Target) -> AssembleResult:
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
