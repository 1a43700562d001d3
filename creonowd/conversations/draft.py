"""A context that is being built: its pieces, what each costs, what has become of it so far.

Knows pieces and sums; which piece yields when is decided in `fitting`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from creonowd.context.fragment import Action
from creonowd.conversations.build_result import BuildEvidence, Part, Step
from creonowd.conversations.messages import Message, spelled_calls

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
