"""`context:history:*`, `context:build` and others: the history of a conversation and its turns."""

from typing import Annotated, Any, Literal

from anyio import to_thread
from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from creonowd.channels.context_files import FILE_ERRORS
from creonowd.context.fragment import Notice, show
from creonowd.context_files.files import ConversationKey
from creonowd.context_files.records import ContextRef
from creonowd.context_files.slices import fits
from creonowd.engine.build_turn import build_context, history_of
from creonowd.engine.services import InConversation, Session
from creonowd.errors import DaemonError, ErrorCode
from creonowd.history.code_law import FILE, GENERATE
from creonowd.history.histories import (
    Intake,
    KeptText,
    ToolResult,
    append_messages,
    keep_result,
    redact_call_id,
)
from creonowd.history.rounds import LONGEST_ID, Message, Speaker, ToolCall
from creonowd.history.tool_result import Form, line_limits
from creonowd.model import Model, Params
from creonowd.model import Result as Reply
from creonowd.redaction import RedactionEvidence, Redactor
from creonowd.rpc.channel import Channel

MOST_MESSAGES = 1000

CallId = Annotated[str, Meta(min_length=1, max_length=LONGEST_ID)]


class CompressToolResult(Params):
    """A tool's name, its arguments and its result."""

    tool: Annotated[str, Meta(min_length=1, max_length=LONGEST_ID)]
    """The tool's name, such as `Read` or `grep`; known ones are summarised by what they do."""
    result: Any
    """What it returned, of any shape."""
    args: Any = None
    """What it was called with; names files and patterns in the summary."""
    project_id: str | None = None
    """The project; needed with `conversationId`."""
    conversation_id: str | None = None
    """With it the full output becomes a context file of this conversation."""
    tool_call_id: Annotated[str, Meta(min_length=1, max_length=LONGEST_ID)] | None = None
    """The call's id; the same id and result give the same context file."""


class ToolResultCompressed(Reply):
    """A tool's result in brief, without secrets."""

    tool: str
    """The tool's name."""
    form: Form
    """What kind of data the result is."""
    summary: str
    """What the history keeps of it."""
    observation: str | UnsetType = UNSET
    """All of it, for the model of the current turn; absent if it is over the inline limits."""
    ref: ContextRef | UnsetType = UNSET
    """The context file with all of it; absent without a conversation."""
    preview: str | UnsetType = UNSET
    """Its head and tail, if it is over the inline limits."""
    redaction_evidence: tuple[RedactionEvidence, ...]
    """Which kinds of secrets were taken out of this reply, and how often; never the secrets."""


async def compress_result(session: Session, params: CompressToolResult) -> ToolResultCompressed:
    """Summarise a tool's result by the table of tools; the same result gives the same summary."""
    root, key = await _root_and_key(session, params)
    result = ToolResult(params.tool, params.result, params.args, params.tool_call_id)
    kept = await keep_result(_intake(session, root), key, result)
    observation = kept.observation
    text = kept.text if observation is None else observation.text
    return ToolResultCompressed(
        tool=session.redactor.redact(params.tool).text,
        form=Form.TEXT if observation is None else observation.form,
        summary=kept.text,
        observation=text if fits(text, session.files.inline_limits) else UNSET,
        ref=kept.ref or UNSET,
        preview=UNSET if kept.preview is None else kept.preview.text,
        redaction_evidence=() if observation is None else observation.evidence,
    )


def _intake(session: Session, root: str) -> Intake:
    return Intake(session.files, session.redactor, line_limits(session.settings), root)


async def _root_and_key(
    session: Session, params: CompressToolResult
) -> tuple[str, ConversationKey | None]:
    if params.project_id is None:
        if params.conversation_id is not None:
            raise DaemonError(
                ErrorCode.INVALID_ARGUMENT,
                "A conversation belongs to a project; name it with projectId.",
                field="projectId",
            )
        return "", None
    project = await session.projects.find(params.project_id)
    if params.conversation_id is None:
        return str(project.root), None
    return str(project.root), ConversationKey(params.project_id, params.conversation_id)


class NewMessage(Model):
    """A message to keep."""

    role: Literal["user", "assistant", "tool"]
    """Who sent it."""
    content: Any = ""
    """Its text. A tool's is its raw result, of any shape; it is compressed."""
    tool_calls: tuple[ToolCall, ...] | UnsetType | None = UNSET
    """The calls that an assistant's message makes."""
    tool_call_id: CallId | UnsetType | None = UNSET
    """The call that a tool's message answers; without it, the oldest one without a result."""
    name: Annotated[str, Meta(max_length=LONGEST_ID)] | UnsetType | None = UNSET
    """The tool's name; without it, that of the call."""


class AppendHistory(InConversation):
    """Messages in their order; all are kept or none."""

    messages: Annotated[list[NewMessage], Meta(min_length=1, max_length=MOST_MESSAGES)]
    """The messages in their order; all are kept or none."""


class KeptMessage(Model):
    """What the history keeps of a message."""

    role: Speaker
    """Who sent it."""
    tool_call_id: str | UnsetType = UNSET
    """The call that it answers, if it is a tool's."""
    summary: str | UnsetType = UNSET
    """What is kept of a tool's result."""
    preview: str | UnsetType = UNSET
    """Head and tail of a text that is over the inline limits."""
    ref: ContextRef | UnsetType = UNSET
    """The context file with all of it: of a text over the inline limits, and of every result that
    is not empty."""


class HistoryAppended(Reply):
    """How long the history is now."""

    appended: int
    """How many messages were kept."""
    total_rounds: int
    """How many rounds the history has now."""
    messages: list[KeptMessage]
    """What is kept of each, in their order."""
    preview: str | UnsetType = UNSET
    """That of the first text over the inline limits, if there is one."""
    ref: ContextRef | UnsetType = UNSET
    """That of the first text over the inline limits, if there is one."""
    warnings: list[str]
    """What did not go as it should, each as `CODE` or `CODE: sentence`; `notices` has the same in
    parts."""
    notices: list[Notice]
    """The warnings in parts, in the same order: test `code`, show `message`."""


class ReadHistory(InConversation):
    """Which rounds to read: the newest `limit` before round `before`, else all."""

    limit: Annotated[int, Meta(ge=1)] | None = None
    """How many rounds at most, counted from the newest; without it, all."""
    before: Annotated[int, Meta(ge=0)] | None = None
    """Only rounds before this index."""


class HistoryRound(Model):
    """A user's message and all that follows it; `finished` once the model has answered."""

    index: int
    """Its number in the history, from 0."""
    finished: bool
    """Whether the model has answered without calling another tool."""
    messages: list[Message]
    """The user's message and all that follows it."""


class HistoryRounds(Reply):
    """Rounds, oldest first."""

    rounds: list[HistoryRound]
    """The rounds, oldest first."""
    total_rounds: int
    """How many the history has."""
    warnings: list[str]
    """What did not go as it should, each as `CODE` or `CODE: sentence`; `notices` has the same in
    parts."""
    notices: list[Notice]
    """The warnings in parts, in the same order: test `code`, show `message`."""


class ClearHistory(InConversation):
    """The conversation whose rounds are erased; its context files stay."""


class HistoryCleared(Reply):
    """How many rounds were erased."""

    cleared: bool
    """Always true."""
    rounds: int
    """How many rounds were erased."""


async def append_history(session: Session, params: AppendHistory) -> HistoryAppended:
    """Append messages to a history: without thoughts and secrets, tool results summarised."""
    project = await session.projects.find(params.project_id)
    key = ConversationKey(params.project_id, params.conversation_id)
    await session.files.run(session.files.store.find_or_create, *key)
    messages = [
        _message(new, number, session.redactor) for number, new in enumerate(params.messages)
    ]
    contents = [new.content for new in params.messages]
    intake = _intake(session, str(project.root))
    history, kept = await append_messages(session.histories, intake, key, messages, contents)
    reported = [_kept_message(message, text) for message, text in kept]
    big = next((one for one in reported if one.preview is not UNSET), None)
    warnings, notices = show(history.warnings, session.connection.language)
    return HistoryAppended(
        appended=len(kept),
        total_rounds=len(history.rounds),
        messages=reported,
        preview=UNSET if big is None else big.preview,
        ref=UNSET if big is None else big.ref,
        warnings=warnings,
        notices=notices,
    )


async def read_history(session: Session, params: ReadHistory) -> HistoryRounds:
    """Read the rounds of a conversation as the history keeps them."""
    history = await history_of(session, params)
    rounds = history.rounds if params.before is None else history.rounds[: params.before]
    if params.limit is not None:
        rounds = rounds[-params.limit :]
    warnings, notices = show(history.warnings, session.connection.language)
    return HistoryRounds(
        rounds=[
            HistoryRound(index=one.index, finished=one.is_finished, messages=list(one.messages))
            for one in rounds
        ],
        total_rounds=len(history.rounds),
        warnings=warnings,
        notices=notices,
    )


async def clear_history(session: Session, params: ClearHistory) -> HistoryCleared:
    """Erase the rounds of a conversation; doing it again changes nothing."""
    await history_of(session, params)
    key = ConversationKey(params.project_id, params.conversation_id)
    rounds = await session.histories.clear(key)
    session.last_turns.forget(key)
    return HistoryCleared(cleared=True, rounds=rounds)


def _message(new: NewMessage, number: int, redactor: Redactor) -> Message:
    """Read a message; the content of a tool's result is read later.

    The ids of calls are redacted at once, so that a result finds its call whoever wrote which.
    """
    calls = tuple(replace(call, id=redactor.hide_secrets(call.id)) for call in new.tool_calls or ())
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
        tool_calls=calls or UNSET,
        tool_call_id=redact_call_id(new.tool_call_id or UNSET, redactor),
        name=new.name or UNSET,
    )


def _kept_message(message: Message, text: KeptText) -> KeptMessage:
    return KeptMessage(
        role=message.role,
        tool_call_id=message.tool_call_id,
        summary=text.text if message.role is Speaker.TOOL else UNSET,
        preview=UNSET if text.preview is None else text.preview.text,
        ref=text.ref or UNSET,
    )


class CodeLawStatusOf(Params):
    """The project whose `code_law.md` to look for."""

    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""


class CodeLawStatus(Reply):
    """Whether the project has a `code_law.md`; the daemon never writes the file."""

    exists: bool
    """Whether it is there."""
    needs_generating: bool
    """Whether to ask the user to have it written; then give `prompt` to the agent."""
    path: str
    """Where it is or belongs, below the project's folder."""
    mtime_ms: int | UnsetType = UNSET
    """When it was last changed, in milliseconds since 1970 (UTC)."""
    size_bytes: int | UnsetType = UNSET
    """Its size in bytes."""
    sha256: str | UnsetType = UNSET
    """SHA-256 of its bytes, in hex."""
    problem: str | UnsetType = UNSET
    """Why it cannot be used, if so; a sentence."""
    prompt: str | UnsetType = UNSET
    """What to ask an agent to write it; there if `needsGenerating`."""


async def code_law_status(session: Session, params: CodeLawStatusOf) -> CodeLawStatus:
    """Return whether there is a `code_law.md` and when it changed, else how it is generated."""
    project = await session.projects.find(params.project_id)
    law = await to_thread.run_sync(session.code_laws.current, project.root)
    readable = law.text is not None
    return CodeLawStatus(
        exists=law.exists,
        needs_generating=not law.exists,
        path=FILE,
        mtime_ms=law.mtime_ms if readable else UNSET,
        size_bytes=law.size_bytes if readable else UNSET,
        sha256=law.sha256 if readable else UNSET,
        problem=law.problem or UNSET,
        prompt=UNSET if law.exists else GENERATE,
    )


CHANNELS = (
    Channel("context:tool:compress", compress_result, errors=FILE_ERRORS),
    Channel("context:history:append", append_history, errors=FILE_ERRORS),
    Channel("context:history:read", read_history, errors=FILE_ERRORS),
    Channel("context:history:clear", clear_history, errors=FILE_ERRORS),
    Channel(
        "context:build", build_context, errors=(*FILE_ERRORS, ErrorCode.CONTEXT_INPUT_TOO_LARGE)
    ),
    Channel("context:codelaw:status", code_law_status),
)
