"""The result of `context:inspect`: every candidate of an assembly, kept or not, and why.

It is made from the same assembly as the result of `context:assemble`; everything is redacted.
"""

from typing import TypeVar

from msgspec import UNSET, UnsetType
from msgspec.structs import asdict

from creonowd.context.assemble import Assembly
from creonowd.context.budget import LARGEST_TOTAL, Allowances
from creonowd.context.evidence import Decision, layer_content
from creonowd.context.fragment import Action, Layer, Reason, Rule
from creonowd.context.language import FRAMES
from creonowd.context.result import LayerSummary, ModelTarget, Provenance, provenance, summary
from creonowd.context.system_prompt import PrefixComparison
from creonowd.errors import Language
from creonowd.model import Model

T = TypeVar("T")

_GROWS_WITH_BUDGET = {
    Rule.RULES_LINE,
    Rule.NOT_MENTIONED,
    Rule.SETTINGS_SHARE,
    Rule.WINDOW,
    Rule.SCORE,
}
_FILL_ORDER = (
    (Layer.RULES, False),
    (Layer.SETTINGS, False),
    (Layer.IMMEDIATE, False),
    (Layer.IMMEDIATE, True),
    (Layer.RETRIEVED, False),
)


class FragmentDetail(Model):
    """One candidate: its redacted text, what became of it and why.

    `tokens` is what it costs in the prompt, or would; `fitsWith` is how many more tokens of
    budget would have kept all of it.
    """

    source_ref: str
    content: str
    tokens: int
    action: Action
    reason: Reason
    rule: Rule
    score: float | UnsetType = UNSET
    confidence: float | UnsetType = UNSET
    priority: int | UnsetType = UNSET
    fits_with: int | UnsetType = UNSET


class LayerDetail(LayerSummary):
    """A layer's summary, its text as it stands in the prompt, and all of its candidates.

    `content` is all that stands below the layer's title, the heading of the constraints included;
    empty where the prompt says `(none)`.
    """

    content: str
    fragments: list[FragmentDetail]
    budget_tokens: int
    minimum_tokens: int


class LayerDetails(Model):
    """The four layers in detail."""

    rules: LayerDetail
    settings: LayerDetail
    retrieved: LayerDetail
    immediate: LayerDetail


class InspectTotals(Model):
    """The sums: kept, trimmed and dropped make up the candidates."""

    token_count: int
    fixed_tokens: int
    budget_tokens: int
    left_tokens: int
    candidates: int
    kept: int
    trimmed: int
    dropped: int
    warnings_count: int


class InspectMeta(Model):
    """Who inspected, when, and whether `whatIf` changed anything."""

    debug_mode: bool
    requested_by: str
    requested_at: int
    what_if: bool


class InspectResult(Provenance):
    """What an assembly is made of. It never holds a prompt."""

    layers_detail: LayerDetails
    totals: InspectTotals
    inspect_meta: InspectMeta


def inspect(
    assembly: Assembly, comparison: PrefixComparison, target: ModelTarget, meta: InspectMeta
) -> InspectResult:
    """Return what an assembly is made of."""
    short = (
        d for d in assembly.decisions() if d.is_short and d.evidence.rule in _GROWS_WITH_BUDGET
    )
    first_short = min(map(_growth_order, short), default=len(_FILL_ORDER))
    return InspectResult(
        **asdict(provenance(assembly, comparison, target)),
        layers_detail=LayerDetails(
            **{layer: _detail(assembly, layer, target.language, first_short) for layer in Layer}
        ),
        totals=_totals(assembly),
        inspect_meta=meta,
    )


def _detail(assembly: Assembly, layer: Layer, language: Language, first_short: int) -> LayerDetail:
    decisions = assembly.layers[layer].decisions
    allowances = assembly.plan.allowances
    return LayerDetail(
        **asdict(summary(assembly, layer, language)),
        content=layer_content(decisions, FRAMES[assembly.plan.language]),
        fragments=[
            _fragment(decision, _fits_with(allowances, decision, first_short))
            for decision in decisions
        ],
        budget_tokens=allowances.share(layer),
        minimum_tokens=allowances.minimum(layer),
    )


def _fits_with(allowances: Allowances, decision: Decision, first_short: int) -> int | None:
    """Return how much more budget keeps all of a candidate, if nothing else takes it first."""
    if decision.fits_with is None or _growth_order(decision) > first_short:
        return None
    in_rules = decision.evidence.layer is Layer.RULES
    more = allowances.more_for_rules(decision.fits_with) if in_rules else decision.fits_with
    return None if more is None or allowances.total + more > LARGEST_TOTAL else more


def _growth_order(decision: Decision) -> int:
    """Order in which layers grow with the budget."""
    in_window = decision.evidence.rule is Rule.WINDOW
    return _FILL_ORDER.index((decision.evidence.layer, in_window))


def _fragment(decision: Decision, fits_with: int | None) -> FragmentDetail:
    evidence = decision.evidence
    return FragmentDetail(
        source_ref=evidence.source_ref,
        content=decision.text,
        tokens=decision.tokens if decision.is_kept else evidence.before_tokens,
        action=evidence.action,
        reason=evidence.reason,
        rule=evidence.rule,
        score=_or_unset(decision.score),
        confidence=_or_unset(decision.confidence),
        priority=_or_unset(decision.priority),
        fits_with=_or_unset(fits_with),
    )


def _totals(assembly: Assembly) -> InspectTotals:
    kept, trimmed, dropped = (assembly.count(action) for action in Action)
    total = assembly.plan.allowances.total
    return InspectTotals(
        token_count=assembly.tokens,
        fixed_tokens=assembly.fixed_tokens,
        budget_tokens=total,
        left_tokens=total - assembly.tokens,
        candidates=kept + trimmed + dropped,
        kept=kept,
        trimmed=trimmed,
        dropped=dropped,
        warnings_count=len(assembly.warnings),
    )


def _or_unset(value: T | None) -> T | UnsetType:
    return UNSET if value is None else value
