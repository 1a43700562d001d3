"""Making a context fit: which piece yields first, step by step, each with its evidence.

The steps stand in `STEPS`, in their order. What is pinned never yields.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from creonowd.conversations import compress
from creonowd.conversations.build_result import Part, Step
from creonowd.conversations.draft import PINNED, Count, Piece, total
from creonowd.conversations.messages import Message, Speaker
from creonowd.conversations.summary import Summary, rendered, to_one_sentence
from creonowd.errors import DaemonError, ErrorCode

SNIPPET_LINES = 6


class Means(NamedTuple):
    """What it takes to make pieces smaller.

    `told` gives the summary of so many rounds; `brief` the stored summaries of observations that
    are told in full, by the piece's ref.
    """

    measure: Count
    told: Callable[[int], Summary]
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
            shorter = compress.shortened(piece.message.content, SNIPPET_LINES)
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
            ref = compress.ref_in(draft.brief.get(piece.source_ref, piece.message.content))
            content = compress.headline_of(piece.message.content)[:80]
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
