"""How a turn is made to fit its budget: how many rounds are summarised, and what is cut after that.

The steps that cut stand in `STEPS`, in their order. What is pinned is never cut.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from creonowd.context.fragment import Action
from creonowd.errors import DaemonError, ErrorCode
from creonowd.history import tool_summary
from creonowd.history.build_result import BuildEvidence, Part, Step
from creonowd.history.rounds import (
    Message,
    Round,
    Speaker,
    call_texts,
    preview_of,
    with_short_arguments,
)
from creonowd.model import Model
from creonowd.settings import Settings

PINNED = frozenset({Part.SYSTEM_PROMPT, Part.CODE_LAW, Part.TOOL_PROMPTS, Part.USER_INPUT})
SNIPPET_LINES = 6
SHORT_HEAD = 400
SHORT_TAIL = 200

CountText = Callable[[str], int]


class SummaryText(Protocol):
    """Renders the summary of the first rounds."""

    def __call__(self, covers: int, *, brief: bool = False) -> str:
        """Return the summary of so many rounds, in brief if there is little room."""
        ...


def message_cost(message: Message, count: CountText) -> int:
    """Count a message exactly: its content, and its calls' names and arguments."""
    return count(message.content) + sum(map(count, call_texts(message)))


class SummaryPolicy(Model):
    """How many rounds stay, and from which share of the budget on older ones are summarised.

    After a summary `keep` rounds stay in full; later rounds stay as well, until the prompt reaches
    that share again. If every turn summarised the oldest round, no byte behind the summary would be
    reused: 55 % of a prompt instead of 91 % (`scripts/bench history`). A summary may have
    `summary_tokens`, or `summary_share` of the tokens of its rounds, but no more than `most_tokens`.
    """

    keep: int
    floor: int
    summary_at: float
    summary_tokens: int
    summary_share: float
    most_tokens: int


def summary_policy(settings: Settings, budget: int | None = None) -> SummaryPolicy:
    """Read the policy from the settings, for a budget or for the usual one."""
    total = settings.history_budget_tokens if budget is None else budget
    return SummaryPolicy(
        keep=max(settings.history_rounds, settings.history_rounds_floor),
        floor=settings.history_rounds_floor,
        summary_at=settings.history_summary_at,
        summary_tokens=min(settings.history_summary_tokens, total // 8),
        summary_share=settings.history_summary_share,
        most_tokens=total // 5,
    )


class SummaryThreshold(NamedTuple):
    """Summarise when rounds plus `fixed` tokens reach `limit`; `keep` rounds stay."""

    tokenizer: str
    fixed: int
    limit: float
    keep: int
    policy: SummaryPolicy | None = None


class RoundCost(NamedTuple):
    """The cost of a round's request, of all of it, its code points, and the cost of each message."""

    request: int
    total: int
    characters: int = 0
    messages: tuple[int, ...] = ()


class Costs(NamedTuple):
    """The cost of a round, and of a summary of the first rounds.

    `stored` are the lengths of the stored summaries, ascending. A summary that is stored later has
    another cost, so cuts that were found before it do not hold any more.
    """

    of_round: Callable[[Round], RoundCost]
    of_summary: Callable[[int], int]
    stored: Sequence[int] = ()


class SummaryCut(NamedTuple):
    """How many rounds are summarised, their cost, the summary's, and that of the rounds that stay."""

    covers: int = 0
    covered: RoundCost = RoundCost(0, 0)
    summary: int = 0
    recent: int = 0


def summary_cut(
    rounds: Sequence[Round], request: int, threshold: SummaryThreshold, costs: Costs
) -> SummaryCut:
    """Find how many of the oldest rounds are summarised if the next turn adds `request` tokens.

    The cut is that of a conversation built turn by turn. Each round remembers the cut after it,
    so that a turn looks at the rounds since the last turn only.
    """
    first, cut = _last_cut(rounds, threshold, costs)
    for one in rounds[first:]:
        cost = costs.of_round(one)
        cut = _advance_cut(cut, rounds, one.index, cost.request, threshold=threshold, costs=costs)
        cut = cut._replace(recent=cut.recent + cost.total)
        one.remember(_cut_key(one.index, threshold, costs), cut)
    return _advance_cut(cut, rounds, len(rounds), request, threshold=threshold, costs=costs)


def _last_cut(
    rounds: Sequence[Round], threshold: SummaryThreshold, costs: Costs
) -> tuple[int, SummaryCut]:
    for one in reversed(rounds):
        cut = one.recall(_cut_key(one.index, threshold, costs))
        if cut is not None:
            return one.index + 1, cut
    return 0, SummaryCut()


def _cut_key(index: int, threshold: SummaryThreshold, costs: Costs) -> tuple[SummaryThreshold, int]:
    return threshold, bisect_right(costs.stored, index)


def _advance_cut(
    cut: SummaryCut,
    rounds: Sequence[Round],
    turn: int,
    request: int,
    *,
    threshold: SummaryThreshold,
    costs: Costs,
) -> SummaryCut:
    """Summarise all but the newest rounds before a turn if the turn reaches the limit."""
    covers = turn - threshold.keep
    full = threshold.fixed + cut.summary + cut.recent + request >= threshold.limit
    if not full or covers <= cut.covers:
        return cut
    newly = [costs.of_round(one) for one in rounds[cut.covers : covers]]
    tokens = sum(cost.total for cost in newly)
    characters = cut.covered.characters + sum(cost.characters for cost in newly)
    covered = RoundCost(0, cut.covered.total + tokens, characters)
    return SummaryCut(covers, covered, costs.of_summary(covers), cut.recent - tokens)


class Piece:
    """One message of the context, or one that was dropped; `round` is the one it belongs to."""

    def __init__(
        self, part: Part, source_ref: str, message: Message, tokens: int, *, round_: int = -1
    ) -> None:
        self.part = part
        self.source_ref = source_ref
        self.round = round_
        self.message = message
        self.dropped = False
        self._tokens = tokens
        self._rule = Step.PINNED if part in PINNED else Step.BUDGET
        self._before = (len(message.content), tokens)

    @property
    def tokens(self) -> int:
        """The cost of the piece; 0 once it is dropped."""
        return 0 if self.dropped else self._tokens

    def mark(self, rule: Step, before: tuple[int, int]) -> None:
        """Record a step that shortened the message before, and the size of the whole message."""
        self._rule, self._before = rule, before

    def replace(self, message: Message, rule: Step, count: CountText) -> None:
        """Replace the message by a shorter one."""
        self.message, self._rule, self._tokens = message, rule, message_cost(message, count)

    def drop(self, rule: Step) -> None:
        """Leave the message out."""
        self.dropped, self._rule = True, rule

    @property
    def evidence(self) -> BuildEvidence:
        """What was done with the piece, by which step, and its size before and after."""
        chars, tokens = self._before
        shortened = self._rule not in {Step.PINNED, Step.BUDGET}
        action = Action.TRIMMED if shortened else Action.KEPT
        return BuildEvidence(
            part=self.part,
            source_ref=self.source_ref,
            action=Action.DROPPED if self.dropped else action,
            rule=self._rule,
            before_chars=chars,
            after_chars=0 if self.dropped else len(self.message.content),
            before_tokens=tokens,
            after_tokens=self.tokens,
        )


def total_tokens(pieces: Iterable[Piece]) -> int:
    """Add up the tokens of pieces."""
    return sum(piece.tokens for piece in pieces)


class Draft:
    """All pieces in their order, how many rounds the summary covers, and the steps that have cut.

    `summary_text` renders the summary of the first rounds, in brief if asked. `tool_summaries` are
    the stored summaries of tool results that the draft has in full, by the piece's ref.
    """

    def __init__(
        self,
        pieces: list[Piece],
        budget: int,
        covers: int,
        *,
        floor: int,
        count: CountText,
        summary_text: SummaryText,
        tool_summaries: Mapping[str, str],
    ) -> None:
        self.pieces = pieces
        self.budget = budget
        self.covers = covers
        self.floor = floor
        self.count = count
        self.summary_text = summary_text
        self.tool_summaries = tool_summaries
        self.shortened = False
        self.steps: list[Step] = []

    @property
    def over(self) -> bool:
        """Whether it is still too big."""
        return total_tokens(self.pieces) > self.budget

    def of(self, part: Part) -> list[Piece]:
        """List the pieces of a part that are not dropped."""
        return [piece for piece in self.pieces if piece.part is part and not piece.dropped]

    @property
    def rounds(self) -> list[int]:
        """The finished rounds that are not dropped, oldest first."""
        return sorted({p.round for p in self.of(Part.RECENT_MESSAGES) if p.round >= 0})

    @property
    def tool_results(self) -> list[Piece]:
        """The tool results that are not dropped."""
        messages = self.of(Part.RECENT_MESSAGES)
        return [piece for piece in messages if piece.message.role is Speaker.TOOL]

    def shorten(self, piece: Piece, content: str, rule: Step) -> None:
        """Replace a piece's content if that makes it cheaper."""
        if self.count(content) < self.count(piece.message.content):
            piece.replace(replace(piece.message, content=content), rule, self.count)


def fit(draft: Draft) -> None:
    """Take the steps in their order until the context fits, or fail with what is too big."""
    pinned = [piece for piece in draft.pieces if piece.part in PINNED]
    if total_tokens(pinned) > draft.budget:
        raise _too_large(draft, pinned)
    for step, cut in STEPS:
        if not draft.over:
            return
        before = total_tokens(draft.pieces)
        cut(draft)
        if total_tokens(draft.pieces) != before:
            draft.steps.append(step)
    if draft.over:
        raise _too_large(draft, draft.pieces)


def _too_large(draft: Draft, pieces: Sequence[Piece]) -> DaemonError:
    parts = {part: total_tokens(p for p in pieces if p.part is part) for part in Part}
    heaviest = max(parts, key=lambda part: parts[part])
    return DaemonError(
        ErrorCode.CONTEXT_INPUT_TOO_LARGE,
        f"What may not be cut needs {total_tokens(pieces)} tokens and the budget is {draft.budget};"
        f" shorten the {heaviest.replace('_', ' ')} or raise budgetTokens.",
        budgetTokens=draft.budget,
        neededTokens=total_tokens(pieces),
        heaviest=heaviest,
        parts={part.value: tokens for part, tokens in parts.items() if tokens},
    )


def _shorten_tool_results(draft: Draft) -> None:
    """Shorten tool results; those in full last, since the model waits for them."""
    for piece in sorted(draft.tool_results, key=lambda p: p.source_ref in draft.tool_summaries):
        if not draft.over:
            return
        summary = draft.tool_summaries.get(piece.source_ref, "")
        if summary and len(summary) < len(piece.message.content):
            draft.shorten(piece, summary, Step.TOOL_SNIPPETS)
        if draft.over:
            shorter = tool_summary.shorten_summary(piece.message.content, SNIPPET_LINES)
            draft.shorten(piece, shorter, Step.TOOL_SNIPPETS)


def _shorten_summary(draft: Draft) -> None:
    draft.shortened = True
    for piece in draft.of(Part.SUMMARY):
        draft.shorten(piece, draft.summary_text(draft.covers, brief=True), Step.SUMMARY_LINES)


def _drop_rounds(draft: Draft) -> None:
    """Drop the oldest rounds, down to the floor; the summary covers them instead."""
    while draft.over and len(draft.rounds) > draft.floor:
        _drop_oldest(draft, Step.RECENT_ROUNDS)
        text = draft.summary_text(draft.covers, brief=True)
        message = Message(role=Speaker.SYSTEM, content=text)
        summaries = draft.of(Part.SUMMARY)
        if summaries:
            summaries[0].replace(message, Step.SUMMARY_LINES, draft.count)
            continue
        piece = Piece(Part.SUMMARY, "history summary", message, draft.count(text))
        places = (i for i, p in enumerate(draft.pieces) if p.part is Part.RECENT_MESSAGES)
        draft.pieces.insert(next(places), piece)


def _drop_oldest(draft: Draft, step: Step) -> None:
    oldest = draft.rounds[0]
    for piece in draft.of(Part.RECENT_MESSAGES):
        if piece.round == oldest:
            piece.drop(step)
    draft.covers = oldest + 1


def _shorten_messages(draft: Draft) -> None:
    """Replace messages of the user and the model by their head and tail, the longest first."""
    messages = [p for p in draft.of(Part.RECENT_MESSAGES) if p.message.role is not Speaker.TOOL]
    for piece in sorted(messages, key=lambda p: -len(p.message.content)):
        content = piece.message.content
        if not draft.over or len(content) <= SHORT_HEAD + SHORT_TAIL:
            return
        short = preview_of(content, piece.message.ref or "", SHORT_HEAD, SHORT_TAIL)
        draft.shorten(piece, short, Step.MESSAGE_PREVIEWS)


def _drop_todo(draft: Draft) -> None:
    for piece in draft.of(Part.TODO_RECAP):
        piece.drop(Step.TODO_RECAP)


def _drop_summary(draft: Draft) -> None:
    for piece in draft.of(Part.SUMMARY):
        piece.drop(Step.SUMMARY)


def _reduce_to_refs(draft: Draft) -> None:
    for piece in draft.tool_results:
        if draft.over:
            content = piece.message.content
            ref = tool_summary.ref_in(draft.tool_summaries.get(piece.source_ref, content))
            headline = tool_summary.headline_of(content)[:80]
            draft.shorten(piece, f"Full output: {ref}" if ref else headline, Step.TOOL_REFS)


def _drop_floor(draft: Draft) -> None:
    """Drop even the rounds of the floor, the oldest first; failing the turn would be worse."""
    while draft.over and draft.rounds:
        _drop_oldest(draft, Step.FLOOR_ROUNDS)


def _drop_calls(draft: Draft) -> None:
    """Shorten the calls of the round under way, then drop the oldest with their results."""
    pieces = draft.of(Part.RECENT_MESSAGES)
    for piece in pieces:
        short = with_short_arguments(piece.message)
        if draft.over and short is not piece.message:
            piece.replace(short, Step.OLDEST_CALLS, draft.count)
    for position, piece in enumerate(pieces):
        if not draft.over:
            return
        piece.drop(Step.OLDEST_CALLS)
        for result in pieces[position + 1 :]:
            if result.message.role is not Speaker.TOOL:
                break
            result.drop(Step.OLDEST_CALLS)


STEPS: tuple[tuple[Step, Callable[[Draft], None]], ...] = (
    (Step.TOOL_SNIPPETS, _shorten_tool_results),
    (Step.SUMMARY_LINES, _shorten_summary),
    (Step.RECENT_ROUNDS, _drop_rounds),
    (Step.MESSAGE_PREVIEWS, _shorten_messages),
    (Step.TODO_RECAP, _drop_todo),
    (Step.SUMMARY, _drop_summary),
    (Step.TOOL_REFS, _reduce_to_refs),
    (Step.FLOOR_ROUNDS, _drop_floor),
    (Step.OLDEST_CALLS, _drop_calls),
)
