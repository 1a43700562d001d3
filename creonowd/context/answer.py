"""An assembly told over the wire: summaries, estimates and evidence read off its verdicts.

Adds nothing: what is not in the assembly is not in the answer.
"""

from collections.abc import Sequence
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
from creonowd.context.verdict import TrimEvidence, Verdict
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
        trim_evidence=trim_evidence(assembly),
        redaction_evidence=redaction_evidence(assembly),
        cache_break_points=break_points(stable, target.model),
        tokenizer_id=assembly.tokenizer.id,
        tokenizer_version=assembly.tokenizer.version,
        tokenizer_exact=assembly.tokenizer.exact and target.exact,
        target_tokens=UNSET if skill.target_tokens is None else skill.target_tokens,
    )


def summary(assembly: Assembly, layer: Layer) -> LayerSummary:
    """Sum up one layer."""
    verdicts = assembly.verdicts(layer)
    staying = [verdict for verdict in verdicts if verdict.stays]
    tokens = sum(verdict.tokens for verdict in staying)
    return LayerSummary(
        tokens=tokens,
        token_count=tokens,
        truncated=any(verdict.ran_short for verdict in verdicts),
        source=_sources(staying),
        chunks=len(staying),
        warnings=[text for about, text in assembly.warnings if about is layer] or UNSET,
    )


def budget(assembly: Assembly) -> ContextBudget:
    """Tell the limit and what the candidates would have cost."""
    costs = [sum(v.evidence.before_tokens for v in assembly.verdicts(layer)) for layer in Layer]
    estimate = BudgetEstimate(
        rules_tokens=costs[0],
        settings_tokens=costs[1],
        retrieved_tokens=costs[2],
        immediate_tokens=costs[3],
        total_tokens=sum(costs),
    )
    return ContextBudget(max_input_tokens=assembly.plan.figures.total, estimate=estimate)


def trim_evidence(assembly: Assembly) -> list[TrimEvidence]:
    """Account for every candidate."""
    return [verdict.evidence for verdict in assembly.all_verdicts()]


def redaction_evidence(assembly: Assembly) -> list[RedactionEvidence]:
    """Account for everything that was taken out of a candidate."""
    found = (verdict.redactions for verdict in assembly.all_verdicts() if verdict.redactions)
    return list(merged(chain.from_iterable(found)))


def _sources(staying: Sequence[Verdict]) -> list[str]:
    """Name each source once, without the part of it that a piece comes from."""
    return list(dict.fromkeys(v.evidence.source_ref.partition("#")[0] for v in staying))
