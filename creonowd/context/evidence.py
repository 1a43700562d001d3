"""The decision on each unit with its evidence, and the layer that the decisions add up to."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

import msgspec

from creonowd.context.fragment import (
    TIMING,
    Action,
    Fragment,
    FragmentKind,
    Layer,
    Omission,
    Reason,
    Rule,
)
from creonowd.context.language import PromptFrame, title
from creonowd.context.text_tools import TextTools
from creonowd.context.units import Unit, visible_ref
from creonowd.model import Model
from creonowd.redaction import RedactionEvidence

_NO_WANT_OF_ROOM = TIMING | {Rule.DUPLICATE, Rule.SKILL_WINDOW}


class TrimEvidence(Model, gc=False):
    """What became of one candidate.

    The document is one candidate. What lies so far from the cursor that it could never be shown is
    not read: its characters are those of the file and count, its tokens do not.
    """

    layer: Layer
    """The layer that it is a candidate for."""
    source_ref: str
    """What it is: a file, a passage of a document (`path#offset`), a constraint, a host's
    chunk."""
    action: Action
    """Whether it was kept, trimmed or dropped."""
    reason: Reason
    """Why; a kept one has `over_budget` too, the check that it passed."""
    rule: Rule
    """The step that decided."""
    before_chars: int
    """Its code points before, after redaction."""
    after_chars: int
    """Its code points in the prompt."""
    before_tokens: int
    """Its tokens before."""
    after_tokens: int
    """Its tokens in the prompt."""


class Decision(Model, gc=False):
    """What the prompt keeps of a candidate, the evidence for that, and what ranked it.

    `fits_with` is how many more tokens of room in its layer would have kept all of it. `settled`
    is how much of `rendered`, in code points, stands before the author's cursor in the document.
    A `late` one answers single sentences, as its fragment says.
    """

    evidence: TrimEvidence
    text: str
    fragment: Fragment
    kind: FragmentKind = FragmentKind.TEXT
    rendered: str = ""
    score: float | None = None
    confidence: float | None = None
    priority: int | None = None
    fits_with: int | None = None
    settled: int = 0
    late: bool = False
    redactions: tuple[RedactionEvidence, ...] = ()

    @property
    def tokens(self) -> int:
        """Its tokens in the prompt."""
        return self.evidence.after_tokens

    @property
    def is_kept(self) -> bool:
        """Whether any of it is in the prompt."""
        return self.evidence.action is not Action.DROPPED

    @property
    def is_short(self) -> bool:
        """Whether some of it is missing for want of room."""
        if self.evidence.action is Action.KEPT or self.evidence.rule in _NO_WANT_OF_ROOM:
            return False
        return self.evidence.reason in {Reason.OVER_BUDGET, Reason.TOO_LARGE}


class ListNumber(NamedTuple):
    """The number before a constraint, its tokens, and those of the number it had untrimmed."""

    text: str = ""
    tokens: int = 0
    before_tokens: int = 0


NO_NUMBER = ListNumber()


def keep(unit: Unit, rule: Rule, number: ListNumber = NO_NUMBER) -> Decision:
    """Keep all of a unit; one that the size limit cut counts as trimmed."""
    if not unit.oversized:
        return _decide(unit, Action.KEPT, Reason.OVER_BUDGET, rule, number=number)
    action = Action.TRIMMED if unit.rendered else Action.DROPPED
    return _decide(unit, action, Reason.TOO_LARGE, Rule.SIZE_LIMIT, number=number)


def drop(
    unit: Unit, rule: Rule, fits_with: int | None = None, number: ListNumber = NO_NUMBER
) -> Decision:
    """Leave a unit out."""
    if unit.oversized and not unit.rendered:
        return _decide(unit, Action.DROPPED, Reason.TOO_LARGE, Rule.SIZE_LIMIT, number=number)
    return _decide(
        unit, Action.DROPPED, Reason.OVER_BUDGET, rule, fits_with=fits_with, number=number
    )


def keep_part(rest: Unit, rule: Rule, fits_with: int | None = None) -> Decision:
    """Keep the part of a unit that is left after cutting."""
    return _decide(rest, Action.TRIMMED, Reason.OVER_BUDGET, rule, fits_with=fits_with)


def _decide(
    unit: Unit,
    action: Action,
    reason: Reason,
    rule: Rule,
    *,
    fits_with: int | None = None,
    number: ListNumber = NO_NUMBER,
) -> Decision:
    dropped = action is Action.DROPPED
    fragment = unit.fragment
    return Decision(
        evidence=TrimEvidence(
            layer=fragment.layer,
            source_ref=unit.ref,
            action=action,
            reason=reason,
            rule=rule,
            before_chars=unit.before_chars,
            after_chars=0 if dropped else len(unit.text),
            before_tokens=unit.before_tokens + number.before_tokens,
            after_tokens=0 if dropped else unit.tokens + number.tokens,
        ),
        text=unit.text,
        fragment=fragment,
        kind=fragment.kind,
        rendered="" if dropped else number.text + unit.rendered,
        score=fragment.score,
        confidence=fragment.confidence,
        priority=fragment.priority,
        fits_with=None if fits_with is None else max(1, fits_with),
        late=fragment.late,
        redactions=unit.evidence,
    )


def drop_unread(left_out: Iterable[Omission], tools: TextTools) -> list[Decision]:
    """Record the candidates that could not be read, sorted by reference."""
    return [
        Decision(
            evidence=TrimEvidence(
                layer=item.layer,
                source_ref=visible_ref(item.source_ref, tools),
                action=Action.DROPPED,
                reason=item.reason,
                rule=Rule.UNREADABLE,
                before_chars=0,
                after_chars=0,
                before_tokens=0,
                after_tokens=0,
            ),
            text="",
            fragment=Fragment(
                layer=item.layer, source=item.source, source_ref=item.source_ref, text=""
            ),
        )
        for item in sorted(left_out, key=lambda item: item.source_ref)
    ]


def of_layer(layer: Layer, decisions: Iterable[Decision]) -> list[Decision]:
    """Return the decisions on one layer."""
    return [decision for decision in decisions if decision.evidence.layer is layer]


class LayerOutcome(Model):
    """The decisions on one layer in the order of the prompt, and their sums.

    `truncated` says that some of it is missing for want of room; `rules` are the steps that
    decided anything, `actions` how often each was taken.
    """

    decisions: tuple[Decision, ...]
    tokens: int
    before_tokens: int
    truncated: bool
    chunks: int
    sources: tuple[str, ...]
    evidence: tuple[TrimEvidence, ...]
    redactions: tuple[RedactionEvidence, ...]
    rules: frozenset[Rule]
    actions: dict[Action, int]

    def is_below(self, minimum: int) -> bool:
        """Return whether the layer lost text although it has fewer tokens than its minimum."""
        return self.truncated and self.tokens < minimum


def summarise_layer(decisions: Iterable[Decision]) -> LayerOutcome:
    """Add up the decisions on a layer."""
    every = tuple(decisions)
    evidence = tuple([decision.evidence for decision in every])
    kept = [piece for piece in evidence if piece.action is not Action.DROPPED]
    # Each source once, without the part of it that a chunk comes from.
    sources = dict.fromkeys([piece.source_ref.partition("#")[0] for piece in kept])
    return LayerOutcome(
        decisions=every,
        tokens=sum([piece.after_tokens for piece in kept]),
        before_tokens=sum([piece.before_tokens for piece in evidence]),
        truncated=any(decision.is_short for decision in every),
        chunks=len(kept),
        sources=tuple(sources),
        evidence=evidence,
        actions=dict(Counter([piece.action for piece in evidence])),
        rules=frozenset([piece.rule for piece in evidence]),
        redactions=add_up(chain.from_iterable([d.redactions for d in every if d.redactions])),
    )


def add_up(evidence: Iterable[RedactionEvidence]) -> tuple[RedactionEvidence, ...]:
    """Add up what the same pattern found in the same source, sorted by source and pattern."""
    sums = Counter[tuple[str, str]]()
    for found in evidence:
        sums[found.source_ref, found.pattern_id] += found.match_count
    return tuple(
        RedactionEvidence(pattern_id=pattern, source_ref=ref, match_count=count)
        for (ref, pattern), count in sorted(sums.items())
    )


class EncodedPart(NamedTuple):
    """A part of the prompt and the evidence on it as they stand in a reply.

    `text` is JSON without its quotes, `evidence` the entries of a list without its brackets.
    """

    text: bytes
    evidence: bytes

    @property
    def weight(self) -> int:
        """About how many characters it takes to keep it."""
        return (len(self.text) + len(self.evidence)) // 2


def encode_part(text: str, evidence: Sequence[TrimEvidence]) -> EncodedPart:
    """Encode a part of the prompt, so that it can be put together with others."""
    return EncodedPart(msgspec.json.encode(text)[1:-1], msgspec.json.encode(evidence)[1:-1])


class Rendered(NamedTuple):
    """A part of the prompt: its text, its tokens, and how many of those are fixed words."""

    text: str
    tokens: int
    fixed: int


def render_text(words: str, tools: TextTools) -> Rendered:
    """Render fixed words."""
    tokens = tools.count(words)
    return Rendered(words, tokens, tokens)


class PromptPart(NamedTuple):
    """A part of the prompt as it is rendered: a candidate, or fixed words if there is none."""

    text: str
    decision: Decision | None = None


def layer_parts(
    layer: Layer, decisions: Sequence[Decision], frame: PromptFrame
) -> list[PromptPart]:
    """Return what a layer consists of: its title, and what is kept of it in reading order."""
    texts, constraints = _kept_decisions(decisions)
    parts = [PromptPart(title(layer, empty=not texts and not constraints))]
    parts += [PromptPart(decision.rendered, decision) for decision in texts]
    if constraints:
        parts.append(PromptPart(frame.constraints))
        parts += [PromptPart(decision.rendered, decision) for decision in constraints]
    return parts


def render_layer(layer: Layer, decisions: Sequence[Decision], tools: TextTools) -> Rendered:
    """Render a layer and add up its tokens."""
    parts = layer_parts(layer, decisions, tools.frame)
    fixed = sum([tools.count(part.text) for part in parts if part.decision is None])
    tokens = sum([part.decision.tokens for part in parts if part.decision is not None])
    return Rendered("".join([part.text for part in parts]), fixed + tokens, fixed)


def layer_content(layer: Layer, decisions: Sequence[Decision], frame: PromptFrame) -> str:
    """Return what stands below the title of a layer."""
    return "".join([part.text for part in layer_parts(layer, decisions, frame)[1:]])


def layer_tokens(layer: Layer, decisions: Sequence[Decision], tools: TextTools) -> int:
    """Count a layer as `render_layer` renders it."""
    kept = [decision for decision in decisions if decision.is_kept]
    tokens = tools.count(title(layer, empty=not kept))
    if any(decision.kind is FragmentKind.CONSTRAINT for decision in kept):
        tokens += tools.count(tools.frame.constraints)
    return tokens + sum([decision.tokens for decision in kept])


def join(parts: Iterable[Rendered]) -> Rendered:
    """Put one part after the other; their tokens add up."""
    listed = list(parts)
    return Rendered(
        "".join(part.text for part in listed),
        sum(part.tokens for part in listed),
        sum(part.fixed for part in listed),
    )


def _kept_decisions(decisions: Sequence[Decision]) -> tuple[list[Decision], list[Decision]]:
    """Return what is kept: what stands before the heading of the constraints, and the rest."""
    kept = [decision for decision in decisions if decision.is_kept]
    kinds = [decision.kind for decision in kept]
    if FragmentKind.CONSTRAINT not in kinds:
        return kept, []
    first = kinds.index(FragmentKind.CONSTRAINT)
    return kept[:first], kept[first:]
