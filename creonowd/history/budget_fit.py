"""Making a context fit: which piece yields first, step by step, each with its evidence.

The steps stand in `STEPS`, in their order. What is pinned never yields.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from creonowd.context.fragment import Action
from creonowd.errors import DaemonError, ErrorCode
from creonowd.history import tool_summary
from creonowd.history.build_result import BuildEvidence, Part, Step
from creonowd.history.rounds import Message, Round, Speaker, spelled_calls
from creonowd.history.summary import HistorySummary, rendered, to_one_sentence
from creonowd.model import Model
from creonowd.settings import Settings

Count = Callable[[str], int]


class Piece:
    """One message that wants to be in the context; `round` is the one it belongs to."""

    def __init__(
        self, part: Part, source_ref: str, message: Message, tokens: int, *, round_: int = -1
    ) -> None:
        self.part = part
        self.source_ref = source_ref
        self.round = round_
        self.message = message
        self.tokens = tokens
        self.dropped = False
        self.rule = Step.PINNED if part in PINNED else Step.BUDGET
        self._before = (len(message.content), self.tokens)

    @property
    def after(self) -> int:
        """What it costs now."""
        return 0 if self.dropped else self.tokens

    def put(self, message: Message, rule: Step, count: Count) -> None:
        """Say it shorter."""
        self.message, self.rule, self.tokens = message, rule, cost(message, count)

    def drop(self, rule: Step) -> None:
        """Leave it out."""
        self.dropped, self.rule = True, rule

    @property
    def evidence(self) -> BuildEvidence:
        """Say what became of it."""
        chars, tokens = self._before
        changed = self.rule not in {Step.PINNED, Step.BUDGET}
        kept = Action.TRIMMED if changed else Action.KEPT
        return BuildEvidence(
            part=self.part,
            source_ref=self.source_ref,
            action=Action.DROPPED if self.dropped else kept,
            rule=self.rule,
            before_chars=chars,
            after_chars=0 if self.dropped else len(self.message.content),
            before_tokens=tokens,
            after_tokens=self.after,
        )


class Cost(NamedTuple):
    """What a round's request costs, all of it, how many code points that has; each message's cost."""

    request: int
    whole: int
    characters: int = 0
    each: tuple[int, ...] = ()


PINNED = frozenset({Part.SYSTEM_PROMPT, Part.CODE_LAW, Part.TOOL_PROMPTS, Part.USER_INPUT})


def cost(message: Message, count: Count) -> int:
    """Count a message exactly: its content, and its calls' names and arguments."""
    return count(message.content) + sum(map(count, spelled_calls(message)))


def total(pieces: Iterable[Piece]) -> int:
    """Add up what pieces cost."""
    return sum(piece.after for piece in pieces)


def in_order(pieces: Sequence[Piece]) -> list[Message]:
    """Give the messages that stay, in the fixed order."""
    return [piece.message for piece in pieces if not piece.dropped]


class SummaryPolicy(Model):
    """The numbers that the settings give."""

    keep: int
    floor: int
    summary_at: float
    summary_tokens: int


def summary_policy(settings: Settings) -> SummaryPolicy:
    """Take the numbers from the settings."""
    return SummaryPolicy(
        keep=max(settings.history_rounds, settings.history_rounds_floor),
        floor=settings.history_rounds_floor,
        summary_at=settings.history_summary_at,
        summary_tokens=settings.history_summary_tokens,
    )


class SummaryThreshold(NamedTuple):
    """From where on a summary sets in: beside `fixed` tokens, at `limit`, leaving `keep` rounds."""

    tokenizer: str
    fixed: int
    limit: float
    keep: int
    summary_tokens: int


class Prices(NamedTuple):
    """What a round costs, and a summary of so many; `kept` are the lengths of those written down.

    A summary that is written down later may cost another price, so that what was found without it
    holds no more.
    """

    of_round: Callable[[Round], Cost]
    of_summary: Callable[[int], int]
    kept: Sequence[int] = ()


class SummaryCut(NamedTuple):
    """How many rounds are summarised, what they cost, and what summary and kept rounds cost."""

    covers: int = 0
    gone: Cost = Cost(0, 0)
    summary: int = 0
    held: int = 0


def cut_point(
    rounds: Sequence[Round], now: int, line: SummaryThreshold, prices: Prices
) -> SummaryCut:
    """Tell which of the oldest rounds are summarised when the current turn adds `now`."""
    turn, cut = _remembered(rounds, line, prices)
    for one in rounds[turn:]:
        cost = prices.of_round(one)
        cut = _at_turn(cut, rounds, one.index, cost.request, (line, prices))
        cut = cut._replace(held=cut.held + cost.whole)
        one.remember(_key(one.index, line, prices), cut)
    return _at_turn(cut, rounds, len(rounds), now, (line, prices))


def _remembered(
    rounds: Sequence[Round], line: SummaryThreshold, prices: Prices
) -> tuple[int, SummaryCut]:
    for one in reversed(rounds):
        known = one.recall(_key(one.index, line, prices))
        if known is not None:
            return one.index + 1, known
    return 0, SummaryCut()


def _key(turn: int, line: SummaryThreshold, prices: Prices) -> tuple[SummaryThreshold, int]:
    return line, bisect_right(prices.kept, turn)


def _at_turn(
    cut: SummaryCut,
    rounds: Sequence[Round],
    turn: int,
    request: int,
    terms: tuple[SummaryThreshold, Prices],
) -> SummaryCut:
    line, prices = terms
    covers = turn - line.keep
    full = line.fixed + cut.summary + cut.held + request >= line.limit
    if not full or covers <= cut.covers:
        return cut
    leaving = [prices.of_round(one) for one in rounds[cut.covers : covers]]
    tokens = sum(one.whole for one in leaving)
    characters = cut.gone.characters + sum(one.characters for one in leaving)
    gone = Cost(0, cut.gone.whole + tokens, characters)
    return SummaryCut(covers, gone, prices.of_summary(covers), cut.held - tokens)


SNIPPET_LINES = 6


class Means(NamedTuple):
    """What it takes to make pieces smaller.

    `told` gives the summary of so many rounds; `brief` the stored summaries of observations that
    are told in full, by the piece's ref.
    """

    measure: Count
    told: Callable[[int], HistorySummary]
    brief: dict[str, str]
    floor: int


class Draft:
    """All pieces in their order, how many rounds the summary covers, and which steps were taken."""

    def __init__(self, pieces: list[Piece], budget: int, means: Means, covers: int) -> None:
        self.pieces = pieces
        self.budget = budget
        self.count, self.told, self.brief, self.floor = means
        self.covers = covers
        self.shortened = False
        self.steps: list[Step] = []

    @property
    def over(self) -> bool:
        """Whether it is still too big."""
        return total(self.pieces) > self.budget

    def of(self, part: Part) -> list[Piece]:
        """List the pieces of a part that are still there."""
        return [piece for piece in self.pieces if piece.part is part and not piece.dropped]

    @property
    def rounds(self) -> list[int]:
        """List the finished rounds that are still there, oldest first."""
        return sorted({p.round for p in self.of(Part.RECENT_MESSAGES) if p.round >= 0})


def fit(draft: Draft) -> None:
    """Take the steps in their order until the context fits, or fail with what is too big."""
    _refuse_if_hopeless(draft)
    for step, yield_ in STEPS:
        if not draft.over:
            return
        before = total(draft.pieces)
        yield_(draft)
        if total(draft.pieces) != before:
            draft.steps.append(step)
    if draft.over:
        raise _too_large(draft, draft.pieces)


def _shorten_snippets(draft: Draft) -> None:
    """Full observations last: they are what the model is waiting for."""
    results = _results(draft)
    for piece in sorted(results, key=lambda p: p.source_ref in draft.brief):
        if not draft.over:
            return
        content = draft.brief.get(piece.source_ref, "")
        if content and len(content) < len(piece.message.content):
            _say(draft, piece, content, Step.TOOL_SNIPPETS)
        if draft.over:
            shorter = tool_summary.shortened(piece.message.content, SNIPPET_LINES)
            _say(draft, piece, shorter, Step.TOOL_SNIPPETS)


def _shorten_summary(draft: Draft) -> None:
    draft.shortened = True
    for piece in draft.of(Part.SUMMARY):
        text = rendered(to_one_sentence(draft.told(draft.covers)))
        _say(draft, piece, text, Step.SUMMARY_LINES)


def _drop_rounds(draft: Draft) -> None:
    while draft.over and len(draft.rounds) > draft.floor:
        oldest = draft.rounds[0]
        for piece in draft.of(Part.RECENT_MESSAGES):
            if piece.round == oldest:
                piece.drop(Step.RECENT_ROUNDS)
        _tell_instead(draft, oldest + 1)


def _tell_instead(draft: Draft, covers: int) -> None:
    """Let the summary tell the rounds that have just left, too, if there is room for it."""
    draft.covers = covers
    text = rendered(to_one_sentence(draft.told(covers)))
    message = Message(role=Speaker.SYSTEM, content=text)
    found = draft.of(Part.SUMMARY)
    if found:
        found[0].put(message, Step.SUMMARY_LINES, draft.count)
        return
    piece = Piece(Part.SUMMARY, "history summary", message, draft.count(text))
    places = (i for i, p in enumerate(draft.pieces) if p.part is Part.RECENT_MESSAGES)
    draft.pieces.insert(next(places), piece)


def _drop_todo(draft: Draft) -> None:
    for piece in draft.of(Part.TODO_RECAP):
        piece.drop(Step.TODO_RECAP)


def _drop_summary(draft: Draft) -> None:
    for piece in draft.of(Part.SUMMARY):
        piece.drop(Step.SUMMARY)


def _leave_refs(draft: Draft) -> None:
    for piece in _results(draft):
        if draft.over:
            ref = tool_summary.ref_in(draft.brief.get(piece.source_ref, piece.message.content))
            content = tool_summary.headline_of(piece.message.content)[:80]
            text = f"Full output: {ref}" if ref else content
            _say(draft, piece, text, Step.TOOL_REFS)


def _results(draft: Draft) -> list[Piece]:
    pieces = draft.of(Part.RECENT_MESSAGES)
    return [piece for piece in pieces if piece.message.role is Speaker.TOOL]


def _say(draft: Draft, piece: Piece, content: str, rule: Step) -> None:
    """Change a piece's words if that makes it cheaper."""
    shorter = replace(piece.message, content=content)
    if draft.count(content) < draft.count(piece.message.content):
        piece.put(shorter, rule, draft.count)


def _refuse_if_hopeless(draft: Draft) -> None:
    pinned = [piece for piece in draft.pieces if piece.part in PINNED]
    if total(pinned) > draft.budget:
        raise _too_large(draft, pinned)


def _too_large(draft: Draft, pieces: Sequence[Piece]) -> DaemonError:
    parts = {part: sum(p.after for p in pieces if p.part is part) for part in Part}
    heaviest = max(parts, key=lambda part: parts[part])
    return DaemonError(
        ErrorCode.CONTEXT_INPUT_TOO_LARGE,
        f"What may not be cut needs {total(pieces)} tokens and the budget is {draft.budget};"
        f" shorten the {heaviest.replace('_', ' ')} or raise budgetTokens.",
        budgetTokens=draft.budget,
        neededTokens=total(pieces),
        heaviest=heaviest,
        parts={part.value: tokens for part, tokens in parts.items() if tokens},
    )


STEPS: tuple[tuple[Step, Callable[[Draft], None]], ...] = (
    (Step.TOOL_SNIPPETS, _shorten_snippets),
    (Step.SUMMARY_LINES, _shorten_summary),
    (Step.RECENT_ROUNDS, _drop_rounds),
    (Step.TODO_RECAP, _drop_todo),
    (Step.SUMMARY, _drop_summary),
    (Step.TOOL_REFS, _leave_refs),
)
