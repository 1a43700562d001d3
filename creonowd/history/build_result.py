"""The result of `context:build`, and how much of its prompt repeats the last turn's."""

from collections.abc import Sequence
from enum import StrEnum
from hashlib import sha256
from typing import NamedTuple

from msgspec import UNSET, UnsetType

from creonowd.context.budget import CountCorrection
from creonowd.context.fragment import Action
from creonowd.context.notice import Notice
from creonowd.context.result import BoundedCount
from creonowd.history.rounds import Message, message_text
from creonowd.memo import Memo
from creonowd.model import Model, Result
from creonowd.redaction import RedactionEvidence
from creonowd.text import common_prefix
from creonowd.tokens.models import CountKind


class Part(StrEnum):
    """The parts of a built context, in their fixed order."""

    SYSTEM_PROMPT = "system_prompt"
    CODE_LAW = "code_law"
    TOOL_PROMPTS = "tool_prompts"
    SUMMARY = "summary"
    RECENT_MESSAGES = "recent_messages"
    USER_INPUT = "user_input"
    TODO_RECAP = "todo_recap"


class Step(StrEnum):
    """The step that decided about a candidate; those that cut are taken in this order.

    `pinned` is never cut, `budget` is the check that a kept one passed, `summarised` rounds are
    covered by the summary. `input_preview` is not a step: an input that alone does not fit is
    shown by its head and tail, and is whole in a context file.
    """

    PINNED = "pinned"
    BUDGET = "budget"
    SUMMARISED = "summarised"
    TOOL_SNIPPETS = "tool_snippets"
    SUMMARY_LINES = "summary_lines"
    RECENT_ROUNDS = "recent_rounds"
    MESSAGE_PREVIEWS = "message_previews"
    TODO_RECAP = "todo_recap"
    SUMMARY = "summary"
    TOOL_REFS = "tool_refs"
    FLOOR_ROUNDS = "floor_rounds"
    OLDEST_CALLS = "oldest_calls"
    INPUT_PREVIEW = "input_preview"


class BuildEvidence(Model):
    """What was done with one candidate. Characters are code points after redaction."""

    part: Part
    source_ref: str
    action: Action
    rule: Step
    before_chars: int
    after_chars: int
    before_tokens: int
    after_tokens: int


class PartSummary(Model):
    """How many messages and tokens a part has."""

    part: Part
    messages: int
    tokens: int


class SummaryNote(Model):
    """How many rounds the summary covers, who wrote it, and whether its lines were shortened."""

    covers_rounds: int
    by: str
    shortened: bool


class PrefixReuse(Model):
    """How much of this prompt is byte for byte the beginning of the last turn's.

    `stablePrefixHash` is the SHA-256 of system prompt, code law and tool prompts. Without a last
    turn `share` is 0.
    """

    stable_prefix_hash: str
    stable_prefix_tokens: int
    stable_prefix_unchanged: bool
    prompt_bytes: int
    common_bytes: int
    share: float


class BuildResult(Result):
    """The messages for the model, in the fixed order, and how they came about.

    `tokenCount` is the exact count of every content and of every tool call's name and arguments;
    it never exceeds `budgetTokens`. `steps` are those that had to cut. `countKind` says whether
    counts are the model's own, an upper bound or approximate; for a bound `countTokens` also has
    the count that it rests on. `countCorrection` is there if real runs of the model changed
    `budgetTokens`.
    """

    messages: list[Message]
    token_count: int
    budget_tokens: int
    assembly_order: list[Part]
    parts: list[PartSummary]
    total_rounds: int
    recent_rounds: int
    summary: SummaryNote | UnsetType = UNSET
    steps: list[Step]
    trim_evidence: list[BuildEvidence]
    redaction_evidence: list[RedactionEvidence]
    prefix: PrefixReuse
    code_law_needed: bool
    warnings: list[str]
    notices: list[Notice]
    tokenizer_id: str
    tokenizer_version: str
    tokenizer_exact: bool
    count_kind: CountKind
    count_tokens: BoundedCount | UnsetType = UNSET
    count_correction: CountCorrection | UnsetType = UNSET


TurnKey = tuple[str, ...]


class SentPrompt(NamedTuple):
    """A prompt, message by message, and the hash of its static part."""

    messages: list[bytes]
    stable_hash: str


class LastTurns:
    """The last prompt of each conversation; not kept over a restart. Safe in any thread."""

    def __init__(self, capacity: int = 128) -> None:
        self._prompts: Memo[TurnKey, SentPrompt] = Memo(capacity)

    def compare(
        self, key: TurnKey, messages: Sequence[Message], static: int, static_tokens: int
    ) -> PrefixReuse:
        """Compare a prompt with the last one of its conversation, and keep it as the last one.

        The first `static` messages are those that do not change from turn to turn.
        """
        encoded = [message_text(message).encode() for message in messages]
        stable_hash = sha256(b"".join(encoded[:static])).hexdigest()
        last = self._prompts.peek(key)
        self._prompts.put(key, SentPrompt(encoded, stable_hash))
        size = sum(map(len, encoded))
        common = 0 if last is None else _common_bytes(last.messages, encoded)
        return PrefixReuse(
            stable_prefix_hash=stable_hash,
            stable_prefix_tokens=static_tokens,
            stable_prefix_unchanged=last is not None and last.stable_hash == stable_hash,
            prompt_bytes=size,
            common_bytes=common,
            share=round(common / size, 4) if size else 0.0,
        )

    def forget(self, key: TurnKey) -> None:
        """Forget a conversation that was cleared."""
        self._prompts.forget(key)


def _common_bytes(last: Sequence[bytes], now: Sequence[bytes]) -> int:
    common = 0
    for old, new in zip(last, now, strict=False):
        if old != new:
            return common + common_prefix(old, new)
        common += len(new)
    return common
