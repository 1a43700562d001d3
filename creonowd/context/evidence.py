"""What became of one candidate, and why; the evidence that the IDE shows is made from it.

Knows no rule by which anything is judged.
"""

from collections import Counter
from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

from creonowd.context.fragment import Action, FragmentKind, Layer, LeftOut, Reason, Rule
from creonowd.context.text_tools import TextTools
from creonowd.context.units import Unit, visible_ref
from creonowd.model import Model
from creonowd.redaction import RedactionEvidence


class TrimEvidence(Model, gc=False):
    """What became of one candidate. Characters are code points after redaction.

    A kept candidate says `over_budget` too: that is the check it passed. `rule` names the step
    that decided.
    """

    layer: Layer
    source_ref: str
    action: Action
    reason: Reason
    rule: Rule
    before_chars: int
    after_chars: int
    before_tokens: int
    after_tokens: int


class Decision(Model, gc=False):
    """A candidate's evidence, the text that stays of it, and what ranked it.

    `fits_with` is how many more tokens of room in its layer would have kept all of it.
    """

    evidence: TrimEvidence
    text: str
    kind: FragmentKind = FragmentKind.TEXT
    rendered: str = ""
    score: float | None = None
    confidence: float | None = None
    priority: int | None = None
    fits_with: int | None = None
    redactions: tuple[RedactionEvidence, ...] = ()

    @property
    def tokens(self) -> int:
        """What it costs in the prompt."""
        return self.evidence.after_tokens

    @property
    def stays(self) -> bool:
        """Whether any of it is in the prompt."""
        return self.evidence.action is not Action.DROPPED

    @property
    def ran_short(self) -> bool:
        """Whether some of it is missing for want of room."""
        spared = self.evidence.action is Action.KEPT or self.evidence.rule is Rule.DUPLICATE
        return not spared and self.evidence.reason in {Reason.OVER_BUDGET, Reason.TOO_LARGE}


class Numbered(NamedTuple):
    """The number that a constraint has, and what that costs now and as a candidate."""

    number: str = ""
    tokens: int = 0
    before_tokens: int = 0


PLAIN = Numbered()


def keep(unit: Unit, rule: Rule, shown: Numbered = PLAIN) -> Decision:
    """Keep all of a unit; one that was cut to size counts as trimmed."""
    if unit.oversized:
        action = Action.TRIMMED if unit.rendered else Action.DROPPED
        return _verdict(unit, action, Reason.TOO_LARGE, Rule.SIZE_LIMIT, shown=shown)
    return _verdict(unit, Action.KEPT, Reason.OVER_BUDGET, rule, shown=shown)


def drop(unit: Unit, rule: Rule, fits_with: int | None = None, shown: Numbered = PLAIN) -> Decision:
    """Leave a unit out."""
    if unit.oversized and not unit.rendered:
        return _verdict(unit, Action.DROPPED, Reason.TOO_LARGE, Rule.SIZE_LIMIT, shown=shown)
    return _verdict(
        unit, Action.DROPPED, Reason.OVER_BUDGET, rule, fits_with=fits_with, shown=shown
    )


def trim(rest: Unit, rule: Rule, fits_with: int | None = None) -> Decision:
    """Keep what is left of a unit."""
    return _verdict(rest, Action.TRIMMED, Reason.OVER_BUDGET, rule, fits_with=fits_with)


def absent_decisions(absent: Iterable[LeftOut], instruments: TextTools) -> list[Decision]:
    """Account for candidates that could not be read, sorted by reference."""
    return [_absent(item, instruments) for item in sorted(absent, key=lambda a: a.source_ref)]


def _absent(absent: LeftOut, instruments: TextTools) -> Decision:
    return Decision(
        evidence=TrimEvidence(
            layer=absent.layer,
            source_ref=visible_ref(absent.source_ref, instruments),
            action=Action.DROPPED,
            reason=absent.reason,
            rule=Rule.UNREADABLE,
            before_chars=0,
            after_chars=0,
            before_tokens=0,
            after_tokens=0,
        ),
        text="",
    )


def _verdict(
    unit: Unit,
    action: Action,
    reason: Reason,
    rule: Rule,
    *,
    fits_with: int | None = None,
    shown: Numbered = PLAIN,
) -> Decision:
    gone = action is Action.DROPPED
    fragment = unit.fragment
    return Decision(
        evidence=TrimEvidence(
            layer=fragment.layer,
            source_ref=unit.ref,
            action=action,
            reason=reason,
            rule=rule,
            before_chars=unit.before_chars,
            after_chars=0 if gone else len(unit.text),
            before_tokens=unit.before_tokens + shown.before_tokens,
            after_tokens=0 if gone else unit.tokens + shown.tokens,
        ),
        text=unit.text,
        kind=fragment.kind,
        rendered="" if gone else shown.number + unit.rendered,
        score=fragment.score,
        confidence=fragment.confidence,
        priority=fragment.priority,
        fits_with=None if fits_with is None else max(1, fits_with),
        redactions=unit.evidence,
    )


def merged(evidence: Iterable[RedactionEvidence]) -> tuple[RedactionEvidence, ...]:
    """Add up what the same pattern found in the same source, sorted by source and pattern."""
    sums = Counter[tuple[str, str]]()
    for found in evidence:
        sums[found.source_ref, found.pattern_id] += found.match_count
    return tuple(
        RedactionEvidence(pattern_id=pattern, source_ref=ref, match_count=count)
        for (ref, pattern), count in sorted(sums.items())
    )


class LayerOutcome(Model):
    """The candidates of one layer in the order of the prompt, and their sums.

    `truncated` says that some of it is missing for want of room; `rules` are the steps that
    decided anything, `actions` how often each was taken.
    """

    verdicts: tuple[Decision, ...]
    tokens: int
    before_tokens: int
    truncated: bool
    chunks: int
    sources: tuple[str, ...]
    evidence: tuple[TrimEvidence, ...]
    redactions: tuple[RedactionEvidence, ...]
    rules: frozenset[Rule]
    actions: dict[Action, int]

    def falls_short(self, minimum: int) -> bool:
        """Tell whether a layer got less than it was promised though it had more to say."""
        return self.truncated and self.tokens < minimum


def summarise_layer(verdicts: Iterable[Decision]) -> LayerOutcome:
    """Add up the verdicts on a layer."""
    every = tuple(verdicts)
    staying = [verdict for verdict in every if verdict.stays]
    # Each source once, without the part of it that a piece comes from.
    sources = dict.fromkeys(v.evidence.source_ref.partition("#")[0] for v in staying)
    return LayerOutcome(
        verdicts=every,
        tokens=sum(verdict.tokens for verdict in staying),
        before_tokens=sum(verdict.evidence.before_tokens for verdict in every),
        truncated=any(verdict.ran_short for verdict in every),
        chunks=len(staying),
        sources=tuple(sources),
        evidence=tuple(verdict.evidence for verdict in every),
        actions=dict(Counter(verdict.evidence.action for verdict in every)),
        rules=frozenset(verdict.evidence.rule for verdict in every),
        redactions=merged(chain.from_iterable(v.redactions for v in every if v.redactions)),
    )
