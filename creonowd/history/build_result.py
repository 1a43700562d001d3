"""The result of `context:build`, and how much of its prompt repeats the last turn's."""

from collections.abc import Sequence
from enum import StrEnum
from hashlib import sha256
from typing import NamedTuple

from msgspec import UNSET, UnsetType

from creonowd.context.budget import CountCorrection
from creonowd.context.fragment import Action, Notice
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
    """The system prompt."""
    CODE_LAW = "code_law"
    """The project's `code_law.md`."""
    TOOL_PROMPTS = "tool_prompts"
    """What describes the tools."""
    SUMMARY = "summary"
    """The summary of older rounds."""
    RECENT_MESSAGES = "recent_messages"
    """The recent rounds as they were."""
    USER_INPUT = "user_input"
    """The new message."""
    TODO_RECAP = "todo_recap"
    """What is left to do."""


class Step(StrEnum):
    """The step that decided about a candidate; those that cut are taken in this order."""

    PINNED = "pinned"
    """Never cut."""
    BUDGET = "budget"
    """The check that a kept one passed."""
    SUMMARISED = "summarised"
    """The summary covers this round."""
    TOOL_SNIPPETS = "tool_snippets"
    """Tool results of recent rounds shrink to their summaries."""
    SUMMARY_LINES = "summary_lines"
    """Lines of the summary are shortened."""
    RECENT_ROUNDS = "recent_rounds"
    """Fewer recent rounds are shown."""
    MESSAGE_PREVIEWS = "message_previews"
    """Long messages shrink to head and tail."""
    TODO_RECAP = "todo_recap"
    """The recap of things to do is left out."""
    SUMMARY = "summary"
    """The summary is left out."""
    TOOL_REFS = "tool_refs"
    """Tool results shrink to a reference."""
    FLOOR_ROUNDS = "floor_rounds"
    """Even of the rounds that are usually kept some go."""
    OLDEST_CALLS = "oldest_calls"
    """The oldest calls of the unfinished round go."""
    INPUT_PREVIEW = "input_preview"
    """The input alone does not fit: its head and tail are shown, and it is whole in a context
    file."""


class BuildEvidence(Model):
    """What was done with one candidate. Characters are code points after redaction."""

    part: Part
    """The part that it belongs to."""
    source_ref: str
    """What it is: a round, a message, a file."""
    action: Action
    """Whether it was kept, trimmed or dropped."""
    rule: Step
    """The step that decided."""
    before_chars: int
    """Its code points before, after redaction."""
    after_chars: int
    """Its code points in the messages."""
    before_tokens: int
    """Its tokens before."""
    after_tokens: int
    """Its tokens in the messages."""


class PartSummary(Model):
    """How many messages and tokens a part has."""

    part: Part
    """Which part."""
    messages: int
    """How many messages it has."""
    tokens: int
    """How many tokens these have."""


class SummaryNote(Model):
    """How many rounds the summary covers, who wrote it, and whether its lines were shortened."""

    covers_rounds: int
    """How many of the oldest rounds it stands for."""
    by: str
    """Who wrote it: `model`, or `extractive` if its sentences are those of the rounds."""
    shortened: bool
    """Whether its lines were shortened to fit."""


class PrefixReuse(Model):
    """How much of this prompt is byte for byte the beginning of the last turn's."""

    stable_prefix_hash: str
    """SHA-256 of system prompt, code law and tool prompts."""
    stable_prefix_tokens: int
    """How many tokens these have."""
    stable_prefix_unchanged: bool
    """Whether the last turn had the same."""
    prompt_bytes: int
    """How many bytes this prompt has."""
    common_bytes: int
    """How many of them, from the beginning on, are those of the last turn."""
    share: float
    """`commonBytes` divided by `promptBytes`; 0 without a last turn."""


class BuildResult(Result):
    """The messages for the model, in the fixed order, and how they came about."""

    messages: list[Message]
    """What to send to the model."""
    token_count: int
    """The count of every content and of every tool call's name and arguments; never over
    `budgetTokens`."""
    budget_tokens: int
    """The most that it may have."""
    assembly_order: list[Part]
    """The parts, in the order of the messages."""
    parts: list[PartSummary]
    """How much each part has."""
    total_rounds: int
    """How many rounds the history has."""
    recent_rounds: int
    """How many of them stand in the messages as they were."""
    summary: SummaryNote | UnsetType = UNSET
    """What the summary of the older rounds covers; absent if there is none."""
    steps: list[Step]
    """The steps that had to cut, in order; empty if all fitted."""
    trim_evidence: list[BuildEvidence]
    """What became of each candidate."""
    redaction_evidence: list[RedactionEvidence]
    """Which kinds of secrets were taken out of this reply, and how often; never the secrets."""
    prefix: PrefixReuse
    """How much a prompt cache can reuse."""
    code_law_needed: bool
    """Whether the project lacks a `code_law.md`; see `codelaw:status`."""
    warnings: list[str]
    """What did not go as it should, each as `CODE` or `CODE: sentence`; `notices` has the same in
    parts."""
    notices: list[Notice]
    """The warnings in parts, in the same order: test `code`, show `message`."""
    tokenizer_id: str
    """The table that tokens are counted with, such as `o200k_base`."""
    tokenizer_version: str
    """The version of that table; a request that names another fails with
    CONTEXT_TOKENIZER_MISMATCH."""
    tokenizer_exact: bool
    """Whether counts are the model's own; the same as `countKind` being `exact`."""
    count_kind: CountKind
    """Whether counts are the model's own, an upper bound or approximate."""
    count_tokens: BoundedCount | UnsetType = UNSET
    """Both figures, if `countKind` is `bound`: what was counted, and the most that it can be."""
    count_correction: CountCorrection | UnsetType = UNSET
    """By how much real runs of this model made the budget smaller or larger; absent if they did
    not."""


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
