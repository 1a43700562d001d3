"""What became of one candidate, and why; the evidence that the IDE shows is made from it.

Knows no rule by which anything is judged.
"""

from collections.abc import Iterable
from typing import NamedTuple

from creonowd.context.fragment import Action, Kind, Layer, LeftOut, Reason, Rule
from creonowd.context.instruments import Instruments
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


class Verdict(Model, gc=False):
    """A candidate's evidence, the text that stays of it, and what ranked it.

    `fits_with` is how many more tokens of room in its layer would have kept all of it.
    """

    evidence: TrimEvidence
    text: str
    kind: Kind = Kind.TEXT
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


def keep(unit: Unit, rule: Rule, shown: Numbered = PLAIN) -> Verdict:
    """Keep all of a unit; one that was cut to size counts as trimmed."""
    if unit.oversized:
        action = Action.TRIMMED if unit.rendered else Action.DROPPED
        return _verdict(unit, action, Reason.TOO_LARGE, Rule.SIZE_LIMIT, shown=shown)
    return _verdict(unit, Action.KEPT, Reason.OVER_BUDGET, rule, shown=shown)


def drop(unit: Unit, rule: Rule, fits_with: int | None = None, shown: Numbered = PLAIN) -> Verdict:
    """Leave a unit out."""
    if unit.oversized and not unit.rendered:
        return _verdict(unit, Action.DROPPED, Reason.TOO_LARGE, Rule.SIZE_LIMIT, shown=shown)
    return _verdict(
        unit, Action.DROPPED, Reason.OVER_BUDGET, rule, fits_with=fits_with, shown=shown
    )


def trim(rest: Unit, rule: Rule, fits_with: int | None = None) -> Verdict:
    """Keep what is left of a unit."""
    return _verdict(rest, Action.TRIMMED, Reason.OVER_BUDGET, rule, fits_with=fits_with)


def absent_verdicts(absent: Iterable[LeftOut], instruments: Instruments) -> list[Verdict]:
    """Account for candidates that could not be read, sorted by reference."""
    return [_absent(item, instruments) for item in sorted(absent, key=lambda a: a.source_ref)]


def _absent(absent: LeftOut, instruments: Instruments) -> Verdict:
    return Verdict(
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
) -> Verdict:
    gone = action is Action.DROPPED
    fragment = unit.fragment
    return Verdict(
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
