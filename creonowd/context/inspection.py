"""The result of `context:inspect`: every candidate of an assembly, kept or not, and why.

It is made from the same assembly as the result of `context:assemble`; everything is redacted.
"""

from collections.abc import Mapping
from typing import Literal, TypeVar

from msgspec import UNSET, UnsetType, field
from msgspec.structs import asdict, replace

from creonowd.context.assemble import Assembly
from creonowd.context.budget import LARGEST_TOTAL
from creonowd.context.candidates import Decision, layer_content
from creonowd.context.fragment import Action, Extent, Layer, Reason, Rule
from creonowd.context.language import FRAMES
from creonowd.context.prompt_coverage import Coverage, PieceKind, PromptText, kind_of
from creonowd.context.result import LayerSummary, ModelTarget, Provenance, provenance, summary
from creonowd.context.stable_prefix import PrefixComparison
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


class TermShare(Model):
    """A term that passage and query have in common, and its share of the score."""

    term: str
    """The word, or pair of Han characters."""
    share: float
    """Its share of the score, from 0 to 1."""


class ScoreReasons(Model):
    """What the score of a passage is made of."""

    terms: list[TermShare]
    """What passage and query have in common, the weightiest first."""
    names: list[str]
    """Names of the project's entities that occur in the passage."""
    recency: float
    """How near its document stands before the current one in the order of the story, 1 being the
    same document; up to 15 % of the score."""
    sentence: str | UnsetType = UNSET
    """The author's sentence that alludes to the passage, if a single one does."""


class DocumentRange(Model):
    """A part of a document, in the connection's position encoding."""

    document_id: str
    """The document."""
    start: int = field(name="from")
    """Where it begins; front matter counts."""
    end: int = field(name="to")
    """Where it ends."""


class NameMention(Model):
    """A name in the document at the cursor, and whether the model has the card that bears it."""

    start: int = field(name="from")
    """Where it begins in the document."""
    end: int = field(name="to")
    """Where it ends."""
    name: str
    """The name as it stands there."""
    source_ref: str
    """The card of whoever bears it."""
    state: Literal["in", "left_out", "never"]
    """Whether the card is in the prompt; `left_out` was a candidate, `never` was none."""


class FragmentDetail(Model):
    """One candidate: its redacted text, what became of it and why."""

    source_ref: str
    """What it is; the same as in `trimEvidence`."""
    kind: PieceKind
    """What it is to its author."""
    content: str
    """Its text, without secrets; of a trimmed one, what is in the prompt."""
    tokens: int
    """What it costs in the prompt, or would."""
    action: Action
    """Whether it was kept, trimmed or dropped."""
    reason: Reason
    """Why."""
    rule: Rule
    """The step that decided."""
    score: float | UnsetType = UNSET
    """How well it answers the text at the cursor, from 0 to 1; only retrieved text has one."""
    confidence: float | UnsetType = UNSET
    """How sure it is, from 0 to 1; only settings have one."""
    priority: int | UnsetType = UNSET
    """Its priority; only rules have one."""
    fits_with: int | UnsetType = UNSET
    """How many more tokens of budget would have kept all of it; absent if none would."""
    name: str | UnsetType = UNSET
    """What an author calls it; there if `show` asks for anything."""
    document: DocumentRange | UnsetType = UNSET
    """The part of a document that it repeats; with `show: coverage`."""
    why: ScoreReasons | UnsetType = UNSET
    """What found a passage; with `show: why`."""


class LayerDetail(LayerSummary):
    """A layer's summary, its text as it stands in the prompt, and all of its candidates."""

    content: str
    """All that stands below the layer's title, the heading of the constraints included; empty
    where the prompt says `(none)`."""
    fragments: list[FragmentDetail]
    """Every candidate, in the order of the layer."""
    budget_tokens: int
    """The tokens of its share."""
    minimum_tokens: int
    """The tokens that it is promised."""


class LayerDetails(Model):
    """The four layers in detail."""

    rules: LayerDetail
    """Style guide, terms, constraints, characters."""
    settings: LayerDetail
    """World and notes."""
    retrieved: LayerDetail
    """The story so far, earlier passages, mentioned characters."""
    immediate: LayerDetail
    """The text around the cursor."""


class InspectTotals(Model):
    """The sums; `kept`, `trimmed` and `dropped` make up `candidates`."""

    token_count: int
    """How many tokens the prompt has."""
    fixed_tokens: int
    """How many of them are of the frame: titles, separators, the skill's own words."""
    budget_tokens: int
    """The most that it may have."""
    left_tokens: int
    """How many are left."""
    candidates: int
    """How many pieces were considered."""
    kept: int
    """How many are in the prompt whole."""
    trimmed: int
    """How many are in it in part."""
    dropped: int
    """How many are left out."""
    warnings_count: int
    """How many warnings there are."""


class InspectMeta(Model):
    """Who inspected, when, and whether `whatIf` changed anything."""

    debug_mode: bool
    """Always true: inspecting needs it."""
    requested_by: str
    """The connection that asked."""
    requested_at: int
    """When it asked, in milliseconds since 1970 (UTC)."""
    what_if: bool
    """Whether `whatIf` changed anything."""


class HeldTokens(Model):
    """What is left of the budget; the three together are `totals.leftTokens`."""

    immediate: int
    """Kept free for the text at the cursor, which has its minimum."""
    retrieved: int
    """Kept free for retrieved text, which has its minimum."""
    free: int
    """The rest, which nothing took."""


class InspectResult(Provenance):
    """What an assembly is made of; some parts only if `show` asks for them."""

    layers_detail: LayerDetails
    """Each layer with its candidates."""
    totals: InspectTotals
    """The sums over all layers."""
    held: HeldTokens
    """What is left of the budget, and for what."""
    inspect_meta: InspectMeta
    """Who inspected, and when."""
    prompt: PromptText | UnsetType = UNSET
    """The prompt with its spans; with `show: prompt`."""
    coverage: Coverage | UnsetType = UNSET
    """What the model sees of each document; with `show: coverage`."""
    names: list[NameMention] | UnsetType = UNSET
    """The names in the document; with `show: names`."""


class InspectParts(Model):
    """What an inspection shows beside the decisions, as far as it was asked for.

    `piece_names` are what an author calls pieces and `why` the reasons of passages, by reference;
    `places` are parts of documents as the client counts them.
    """

    piece_names: Mapping[str, str] = {}
    why: Mapping[str, ScoreReasons] = {}
    places: Mapping[Extent, DocumentRange] = {}
    prompt: PromptText | UnsetType = UNSET
    coverage: Coverage | UnsetType = UNSET
    names: list[NameMention] | UnsetType = UNSET


def inspect(
    assembly: Assembly,
    comparison: PrefixComparison,
    target: ModelTarget,
    meta: InspectMeta,
    parts: InspectParts | None = None,
) -> InspectResult:
    """Return what an assembly is made of."""
    shown = parts or InspectParts()
    first_short = _first_short(assembly)
    return InspectResult(
        **asdict(provenance(assembly, comparison, target)),
        layers_detail=LayerDetails(
            **{
                layer: _detail(assembly, layer, target.language, first_short, shown)
                for layer in Layer
            }
        ),
        totals=_totals(assembly),
        held=_held_tokens(assembly),
        inspect_meta=meta,
        prompt=shown.prompt,
        coverage=shown.coverage,
        names=shown.names,
    )


def without_kept(result: InspectResult) -> InspectResult:
    """Return an inspection without the evidence on what is kept whole."""
    evidence = [one for one in result.trim_evidence if one.action is not Action.KEPT]
    return replace(result, trim_evidence=evidence)


def _held_tokens(assembly: Assembly) -> HeldTokens:
    allowances = assembly.plan.allowances
    left = allowances.total - assembly.tokens
    held: list[int] = []
    for layer in (Layer.IMMEDIATE, Layer.RETRIEVED):
        missing = allowances.minimum(layer) - assembly.layers[layer].tokens
        held.append(min(max(0, missing), left))
        left -= held[-1]
    return HeldTokens(immediate=held[0], retrieved=held[1], free=left)


def _detail(
    assembly: Assembly,
    layer: Layer,
    language: Language,
    first_short: int,
    parts: InspectParts,
) -> LayerDetail:
    decisions = assembly.layers[layer].decisions
    allowances = assembly.plan.allowances
    return LayerDetail(
        **asdict(summary(assembly, layer, language)),
        content=layer_content(layer, decisions, FRAMES[assembly.plan.language]),
        fragments=[
            _fragment(
                decision,
                kind_of(decision, assembly.plan.document_id),
                _fits_with(assembly, decision, first_short),
                parts,
            )
            for decision in decisions
        ],
        budget_tokens=allowances.share(layer),
        minimum_tokens=allowances.minimum(layer),
    )


def fits_with(assembly: Assembly, decision: Decision) -> int | None:
    """Return how much more budget keeps all of a candidate; None if that cannot be promised."""
    return _fits_with(assembly, decision, _first_short(assembly))


def _first_short(assembly: Assembly) -> int:
    """Return which layer would get the tokens of a larger budget first."""
    short = (
        d for d in assembly.decisions() if d.is_short and d.evidence.rule in _GROWS_WITH_BUDGET
    )
    return min(map(_growth_order, short), default=len(_FILL_ORDER))


def _fits_with(assembly: Assembly, decision: Decision, first_short: int) -> int | None:
    """Return how much more budget keeps all of a candidate, if nothing else takes it first."""
    missing, allowances = assembly.fits_with(decision), assembly.plan.allowances
    if missing is None or _growth_order(decision) > first_short:
        return None
    in_rules = decision.evidence.layer is Layer.RULES
    more = allowances.more_for_rules(missing) if in_rules else missing
    if more is None:
        return None
    needed = allowances.profile_total(allowances.total + more)
    return needed - allowances.profile_total(allowances.total) if needed <= LARGEST_TOTAL else None


def _growth_order(decision: Decision) -> int:
    """Order in which layers grow with the budget."""
    in_window = decision.evidence.rule is Rule.WINDOW
    return _FILL_ORDER.index((decision.evidence.layer, in_window))


def _fragment(
    decision: Decision, kind: PieceKind, fits_with: int | None, parts: InspectParts
) -> FragmentDetail:
    evidence, extent = decision.evidence, decision.fragment.extent
    ref = evidence.source_ref
    is_passage = kind is PieceKind.PASSAGE
    return FragmentDetail(
        source_ref=ref,
        kind=kind,
        name=parts.piece_names.get(ref, UNSET),
        document=UNSET if extent is None else parts.places.get(extent, UNSET),
        why=parts.why.get(ref, UNSET) if is_passage else UNSET,
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
