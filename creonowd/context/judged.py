"""A layer after judgement: every verdict, and what they add up to, added up once.

Knows no layer's rules.
"""

from collections import Counter
from collections.abc import Iterable
from itertools import chain

from creonowd.context.fragment import Action, Rule
from creonowd.context.redactions import merged
from creonowd.context.verdict import TrimEvidence, Verdict
from creonowd.model import Model
from creonowd.redaction import RedactionEvidence


class Judged(Model):
    """The candidates of one layer in the order of the prompt, and their sums.

    `truncated` says that some of it is missing for want of room; `rules` are the steps that
    decided anything, `actions` how often each was taken.
    """

    verdicts: tuple[Verdict, ...]
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


def judged(verdicts: Iterable[Verdict]) -> Judged:
    """Add up the verdicts on a layer."""
    every = tuple(verdicts)
    staying = [verdict for verdict in every if verdict.stays]
    # Each source once, without the part of it that a piece comes from.
    sources = dict.fromkeys(v.evidence.source_ref.partition("#")[0] for v in staying)
    return Judged(
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
