"""`context:history:*` — the rounds of a conversation: append, read, clear."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from creonowd.channels.conversation_files import InConversation
from creonowd.channels.session import Session
from creonowd.channels.tools import desk_of
from creonowd.context_files.files import ConversationKey
from creonowd.context_files.records import ContextRef
from creonowd.errors import DaemonError, ErrorCode
from creonowd.history import rounds
from creonowd.history.histories import History
from creonowd.history.intake import (
    Desk,
    Recorded,
    ToolResult,
    clean_name,
    record_message,
    record_result,
)
from creonowd.history.rounds import LONGEST_ID, Message, Speaker, ToolCall
from creonowd.model import Model
from creonowd.model import Result as Reply
from creonowd.rpc.channel import Channel

MOST_MESSAGES = 1000

CallId = Annotated[str, Meta(min_length=1, max_length=LONGEST_ID)]


class NewMessage(Model):
    """A message to keep. A tool's `content` is its raw result, of any shape; it is compressed.

    `toolCallId` names the call that a result answers; without it, the oldest that waits.
    """

    role: Literal["user", "assistant", "tool"]
    content: Any = ""
    tool_calls: tuple[ToolCall, ...] | UnsetType | None = UNSET
    tool_call_id: CallId | UnsetType | None = UNSET
    name: Annotated[str, Meta(max_length=LONGEST_ID)] | UnsetType | None = UNSET


class AppendHistory(InConversation):
    """Messages in the order in which they were said; all are kept or none."""

    messages: Annotated[list[NewMessage], Meta(min_length=1, max_length=MOST_MESSAGES)]


class KeptMessage(Model):
    """What became of a message: `summary` is what history keeps of a tool's result.

    `preview` and `ref` are there when the text is over the inline limits; results always have
    a `ref`, unless they are empty.
    """

    role: Speaker
    tool_call_id: str | UnsetType = UNSET
    summary: str | UnsetType = UNSET
    preview: str | UnsetType = UNSET
    ref: ContextRef | UnsetType = UNSET


class HistoryAppended(Reply):
    """How long the history is now; `preview` and `ref` are those of the first text over the limits."""

    appended: int
    total_rounds: int
    messages: list[KeptMessage]
    preview: str | UnsetType = UNSET
    ref: ContextRef | UnsetType = UNSET
    warnings: list[str]


class ReadHistory(InConversation):
    """Which rounds to read: the newest `limit` before round `before`, else all."""

    limit: Annotated[int, Meta(ge=1)] | None = None
    before: Annotated[int, Meta(ge=0)] | None = None


class HistoryRound(Model):
    """A user's message and all that follows it; `finished` once the model has answered."""

    index: int
    finished: bool
    messages: list[Message]


class HistoryRounds(Reply):
    """Rounds, oldest first."""

    rounds: list[HistoryRound]
    total_rounds: int
    warnings: list[str]


class ClearHistory(InConversation):
    """The conversation whose rounds are to be forgotten; its context files stay."""


class HistoryCleared(Reply):
    """How many rounds are gone."""

    cleared: bool
    rounds: int


async def append_history(session: Session, params: AppendHistory) -> HistoryAppended:
    """Keep messages of a conversation: without thoughts and secrets, results in brief."""
    project = await session.projects.find(params.project_id)
    where = ConversationKey(params.project_id, params.conversation_id)
    await session.files.run(session.files.store.bound, *where)
    async with session.histories.changing(where):
        before = await session.histories.current(where)
        known = [_message(new, number) for number, new in enumerate(params.messages)]
        checked = rounds.checked(before.open_messages, known)
        desk = desk_of(session, str(project.root))
        prepared = await _prepared(desk, where, before, params.messages, checked)
        history = await session.histories.append(where, [message for message, _ in prepared])
    kept = [_kept(message, recorded) for message, recorded in prepared]
    big = next((one for one in kept if one.preview is not UNSET), None)
    return HistoryAppended(
        appended=len(kept),
        total_rounds=len(history.rounds),
        messages=kept,
        preview=UNSET if big is None else big.preview,
        ref=UNSET if big is None else big.ref,
        warnings=history.warnings,
    )


async def read_history(session: Session, params: ReadHistory) -> HistoryRounds:
    """Read the rounds of a conversation as they are kept."""
    history = await history_of(session, params)
    upto = history.rounds if params.before is None else history.rounds[: params.before]
    wanted = upto if params.limit is None else upto[-params.limit :]
    return HistoryRounds(
        rounds=[
            HistoryRound(index=one.index, finished=one.finished, messages=list(one.messages))
            for one in wanted
        ],
        total_rounds=len(history.rounds),
        warnings=history.warnings,
    )


async def clear_history(session: Session, params: ClearHistory) -> HistoryCleared:
    """Forget the rounds of a conversation; doing it again changes nothing."""
    await history_of(session, params)
    where = ConversationKey(params.project_id, params.conversation_id)
    gone = await session.histories.clear(where)
    session.last_turns.forget(where)
    return HistoryCleared(cleared=True, rounds=gone)


async def history_of(session: Session, params: InConversation) -> History:
    """Find the history of a conversation, once it is known to be the project's."""
    await session.projects.find(params.project_id)
    where = ConversationKey(params.project_id, params.conversation_id)
    await session.files.run(session.files.store.find, *where)
    return await session.histories.read(where)


def _message(new: NewMessage, number: int) -> Message:
    """Read a message; what a tool gave back is looked at later."""
    content: Any = new.content if new.content is not None else ""
    if new.role == "tool":
        content = ""
    elif not isinstance(content, str):
        raise DaemonError(
            ErrorCode.INVALID_ARGUMENT,
            "Only a tool's content may be something else than a text.",
            field=f"messages[{number}].content",
        )
    return Message(
        role=Speaker(new.role),
        content=content,
        tool_calls=new.tool_calls or UNSET,
        tool_call_id=new.tool_call_id or UNSET,
        name=new.name or UNSET,
    )


async def _prepared(
    desk: Desk,
    where: ConversationKey,
    before: History,
    messages: Sequence[NewMessage],
    checked: Sequence[Message],
) -> list[tuple[Message, Recorded]]:
    calls = {call.id: call for message in before.open_messages for call in message.calls}
    made: list[tuple[Message, Recorded]] = []
    for new, message in zip(messages, checked, strict=True):
        calls.update({call.id: call for call in message.calls})
        if message.role is not Speaker.TOOL:
            made.append(await record_message(desk, where, message))
            continue
        call = calls.get(message.tool_call_id or "")
        recorded = await record_result(desk, where, _result(new, message, call))
        name = clean_name(message.name, desk.redactor)
        made.append((replace(message, content=recorded.text, name=name), recorded))
    return made


def _result(new: NewMessage, message: Message, call: ToolCall | None) -> ToolResult:
    return ToolResult(
        tool=message.name or "tool",
        content=new.content,
        arguments=None if call is None else call.arguments,
        call_id=message.tool_call_id or None,
    )


def _kept(message: Message, recorded: Recorded) -> KeptMessage:
    tool = message.role is Speaker.TOOL
    return KeptMessage(
        role=message.role,
        tool_call_id=message.tool_call_id,
        summary=recorded.text if tool else UNSET,
        preview=UNSET if recorded.preview is None else recorded.preview.text,
        ref=recorded.ref or UNSET,
    )


CHANNELS = (
    Channel("context:history:append", append_history),
    Channel("context:history:read", read_history),
    Channel("context:history:clear", clear_history),
)
