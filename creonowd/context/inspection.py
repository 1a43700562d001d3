"""An assembly opened up for the viewer: every candidate's text, kept or not, and why.

The same assembly as `answer`, showing more of it; never a prompt. Everything is redacted.
"""

from typing import TypeVar

from msgspec import UNSET, UnsetType

from creonowd.context.assemble import Assembly
from creonowd.context.budget import LARGEST_TOTAL
from creonowd.context.evidence import Decision
from creonowd.context.fragment import Action, Layer, Reason, Rule
from creonowd.context.plan import Figures
from creonowd.context.result import Compared, LayerSummary, ModelTarget, Provenance, answer
from creonowd.model import Model

T = TypeVar("T")

_GROWING = {
    Rule.RULES_LINE,
    Rule.NOT_MENTIONED,
    Rule.SETTINGS_SHARE,
    Rule.WINDOW,
    Rule.SCORE,
}
_TURNS = (
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
    """A layer's summary, its text as it stands in the prompt, and all of its candidates."""

    content: str
    fragments: list[FragmentDetail]
    budget_tokens: int
    minimum_tokens: int


class LayerDetails(Model):
    """The four layers, opened up."""

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
    """Who looked, when, and whether at something that only might be."""

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
    assembly: Assembly, compared: Compared, target: ModelTarget, meta: InspectMeta
) -> InspectResult:
    """Open an assembly up."""
    told = answer(assembly, compared, target)
    same = {name: getattr(told, name) for name in Provenance.__struct_fields__}
    short = _first_short(assembly)
    details = {
        layer: _detail(assembly, layer, getattr(told.layers, layer), short) for layer in Layer
    }
    return InspectResult(
        layers_detail=LayerDetails(**details),
        totals=_totals(assembly),
        inspect_meta=meta,
        **same,
    )


def _detail(assembly: Assembly, layer: Layer, told: LayerSummary, first_short: int) -> LayerDetail:
    verdicts = assembly.layers[layer].verdicts
    figures = assembly.plan.figures
    return LayerDetail(
        **{name: getattr(told, name) for name in LayerSummary.__struct_fields__},
        content="".join(verdict.rendered for verdict in verdicts),
        fragments=[
            _fragment(verdict, _fits_with(figures, verdict, first_short)) for verdict in verdicts
        ],
        budget_tokens=figures.share(layer),
        minimum_tokens=figures.minimum(layer),
    )


def _fits_with(figures: Figures, verdict: Decision, first_short: int) -> int | None:
    """Tell how much more budget keeps all of a candidate, if nobody else takes it first."""
    if verdict.fits_with is None or _turn(verdict) > first_short:
        return None
    in_rules = verdict.evidence.layer is Layer.RULES
    more = figures.more_for_rules(verdict.fits_with) if in_rules else verdict.fits_with
    return None if more is None or figures.total + more > LARGEST_TOTAL else more


def _first_short(assembly: Assembly) -> int:
    short = (v for v in assembly.all_verdicts() if v.ran_short and v.evidence.rule in _GROWING)
    return min(map(_turn, short), default=len(_TURNS))


def _turn(verdict: Decision) -> int:
    """Tell whose turn it is when a budget grows: Rules, Settings, notes, the document, the rest."""
    layer, rule = verdict.evidence.layer, verdict.evidence.rule
    return _TURNS.index((layer, rule is Rule.WINDOW))


def _fragment(verdict: Decision, fits_with: int | None) -> FragmentDetail:
    evidence = verdict.evidence
    return FragmentDetail(
        source_ref=evidence.source_ref,
        content=verdict.text,
        tokens=verdict.tokens if verdict.stays else evidence.before_tokens,
        action=evidence.action,
        reason=evidence.reason,
        rule=evidence.rule,
        score=_or_unset(verdict.score),
        confidence=_or_unset(verdict.confidence),
        priority=_or_unset(verdict.priority),
        fits_with=_or_unset(fits_with),
    )


def _totals(assembly: Assembly) -> InspectTotals:
    kept, trimmed, dropped = (assembly.count(action) for action in Action)
    total = assembly.plan.figures.total
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
