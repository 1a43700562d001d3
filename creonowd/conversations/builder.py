"""The context of one turn: seven parts in a fixed order, counted exactly, within a budget.

Pure but for its instruments: no disk, no network, no clock. Who summarises is settled outside,
between `prepare` and `compose`.
"""

from functools import partial

from creonowd.context.fragment import Action
from creonowd.context.text_tools import TextTools
from creonowd.conversations import draft as drafting
from creonowd.conversations.build_result import BuildEvidence, Part, Step
from creonowd.conversations.cutting import Line, Policy, Prices, cut_point
from creonowd.conversations.draft import Cost, Piece
from creonowd.conversations.fitting import Draft, Means, fit
from creonowd.conversations.histories import History
from creonowd.conversations.messages import Message, Speaker
from creonowd.conversations.rounds import Round
from creonowd.conversations.summarising import fitted, summary_of
from creonowd.conversations.summary import Summary, rendered
from creonowd.conversations.turn import (
    Wanted,
    continues,
    cost_of,
    current_pieces,
    recent_pieces,
    refuse_endless,
    static_pieces,
    todo_pieces,
    without_secrets,
)
from creonowd.model import Model
from creonowd.redaction import RedactionEvidence


class Prepared(Model):
    """A turn without its secrets, its pinned pieces, and how many rounds its summary tells."""

    wanted: Wanted
    static: list[Piece]
    now: list[Piece]
    past: tuple[Round, ...]
    gone: Cost
    brief: dict[str, str]
    covers: int
    evidence: list[RedactionEvidence]


class Built(Model):
    """A context that fits."""

    draft: Draft
    summarised: BuildEvidence | None

    @property
    def pieces(self) -> list[Piece]:
        """The pieces that are in it, in their order."""
        return [piece for piece in self.draft.pieces if not piece.dropped]

    @property
    def messages(self) -> list[Message]:
        """What the model gets."""
        return drafting.in_order(self.draft.pieces)

    @property
    def tokens(self) -> int:
        """The exact count."""
        return drafting.total(self.draft.pieces)


def prepare(wanted: Wanted, history: History, policy: Policy, instruments: TextTools) -> Prepared:
    """Take secrets out, count what is pinned, and find where the summary ends."""
    refuse_endless(wanted, instruments)
    clean, evidence = without_secrets(wanted, instruments)
    static = list(static_pieces(clean, instruments))
    now, brief = current_pieces(clean, history, instruments)
    continued = bool(history.rounds) and continues(clean, history)
    past = history.rounds[:-1] if continued else history.rounds
    line = Line(
        tokenizer=instruments.tokenizer.id,
        fixed=drafting.total(static),
        limit=policy.summary_at * clean.budget,
        keep=policy.keep,
        summary_tokens=policy.summary_tokens,
    )
    prices = Prices(
        partial(cost_of, instruments=instruments),
        partial(_told_cost, history, policy, instruments),
        sorted(history.written),
    )
    cut = cut_point(past, drafting.total(now), line, prices)
    return Prepared(
        wanted=clean,
        static=static,
        now=now,
        past=past,
        gone=cut.gone,
        brief=brief,
        covers=cut.covers,
        evidence=evidence,
    )


def compose(prepared: Prepared, history: History, policy: Policy, instruments: TextTools) -> Built:
    """Put the parts into their order and make them fit."""
    told = partial(_told, history, policy, instruments)
    recent = prepared.past[prepared.covers :]
    rounds, brief = recent_pieces(recent, history, prepared.wanted, instruments)
    summary: list[Piece] = []
    if prepared.covers:
        message = Message(role=Speaker.SYSTEM, content=rendered(told(prepared.covers)))
        tokens = drafting.cost(message, instruments.count)
        summary = [Piece(Part.SUMMARY, "history summary", message, tokens)]
    pieces = [
        *prepared.static,
        *summary,
        *rounds,
        *prepared.now,
        *todo_pieces(prepared.wanted, instruments),
    ]
    means = Means(instruments.count, told, {**brief, **prepared.brief}, policy.floor)
    draft = Draft(pieces, prepared.wanted.budget, means, prepared.covers)
    fit(draft)
    return Built(draft=draft, summarised=_summarised(prepared))


def _told(history: History, policy: Policy, instruments: TextTools, covers: int) -> Summary:
    summary = summary_of(history, covers)
    return fitted(summary, instruments.count(rendered(summary)), policy.summary_tokens)


def _told_cost(history: History, policy: Policy, instruments: TextTools, covers: int) -> int:
    last = history.rounds[covers - 1]
    key = (instruments.tokenizer.id, policy.summary_tokens, covers in history.written)
    known = last.recall(key)
    if known is None:
        known = instruments.count(rendered(_told(history, policy, instruments, covers)))
        last.remember(key, known)
    return known


def _summarised(prepared: Prepared) -> BuildEvidence | None:
    """Account for the rounds that the summary tells, as one."""
    if not prepared.covers:
        return None
    return BuildEvidence(
        part=Part.RECENT_MESSAGES,
        source_ref=f"rounds 1 to {prepared.covers}",
        action=Action.DROPPED,
        rule=Step.SUMMARISED,
        before_chars=prepared.gone.characters,
        after_chars=0,
        before_tokens=prepared.gone.whole,
        after_tokens=0,
    )
