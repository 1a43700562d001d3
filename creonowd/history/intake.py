"""Messages on their way into a history: no thoughts, no secrets, results in brief, big texts as files.

Knows which message becomes what; the log and the wire are others' work.
"""

import re
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec
from anyio import to_thread
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from creonowd.context_files.files import ContextFiles, ConversationKey, NewFileInfo, PutResult
from creonowd.context_files.records import MAX_KEY_LENGTH, ContextRef, Kind, Origin
from creonowd.context_files.slices import Preview, fits
from creonowd.errors import DaemonError, ErrorCode
from creonowd.history import tool_summary
from creonowd.history.observation import Form, Observation, cleaned, observe, parsed, relative
from creonowd.history.rounds import Message, Speaker, ToolCall, without_thoughts
from creonowd.history.tool_result import LineLimits, one_line
from creonowd.redaction import Redactor

_SUMMARY = re.compile(r"\[[^\]\n]{1,70}\] ")


class Desk(NamedTuple):
    """What recording works with; `root` is the project's folder, told to nobody."""

    files: ContextFiles
    redactor: Redactor
    limits: LineLimits
    root: str = ""


class ToolResult(NamedTuple):
    """A tool's result and the call it answers."""

    tool: str
    content: Any
    arguments: Any = None
    call_id: str | None = None


class Recorded(NamedTuple):
    """What the history keeps of a text, and where all of it is."""

    text: str
    observation: Observation | None = None
    ref: ContextRef | None = None
    preview: Preview | None = None


async def record_result(desk: Desk, where: ConversationKey | None, result: ToolResult) -> Recorded:
    """Compress a tool's result; with a conversation, all of it becomes a context file."""
    if where is not None and await _is_summary(desk, where, result.content):
        return Recorded(desk.redactor.redact(result.content).text)
    seen, summary = await to_thread.run_sync(_compressed, desk, result)
    if where is None or seen.form is Form.EMPTY:
        return Recorded(summary, seen)
    json = seen.form is Form.JSON
    about = NewFileInfo(
        kind=Kind.ARTIFACT,
        hint=tool_summary.headline_of(summary),
        origin=Origin.TOOL,
        mime_type="application/json" if json else "text/plain",
        key=None if result.call_id is None else result.call_id[:MAX_KEY_LENGTH],
    )
    put = await _put(desk.files, where, seen.text, about)
    return Recorded(tool_summary.with_ref(summary, put.ref.id), seen, put.ref, put.preview)


async def record_message(
    desk: Desk, where: ConversationKey, message: Message
) -> tuple[Message, Recorded]:
    """Prepare what a user or the model said; a text over the limits becomes a file as well."""
    kept = await to_thread.run_sync(_without_secrets, desk, message)
    if fits(kept.content, desk.files.inline_limits):
        return kept, Recorded(kept.content)
    hint = f"{message.role}: {one_line(kept.content, 80)}"
    about = NewFileInfo(kind=Kind.HISTORY, hint=hint, origin=Origin.ARCHIVE)
    put = await desk.files.put(where, kept.content, about)
    return kept, Recorded(kept.content, None, put.ref, put.preview)


def _compressed(desk: Desk, result: ToolResult) -> tuple[Observation, str]:
    seen = observe(result.content, desk.redactor, desk.root)
    arguments = tool_summary.read_arguments(result.arguments, desk.redactor, desk.root)
    summary = tool_summary.compress(result.tool, arguments, seen, desk.limits)
    return seen, desk.redactor.redact(summary).text


async def _is_summary(desk: Desk, where: ConversationKey, content: Any) -> bool:
    """Tell whether a result is a summary of ours already: its ref is one of this conversation."""
    if not isinstance(content, str) or not _SUMMARY.match(content):
        return False
    ref = tool_summary.ref_in(content)
    conversation = await desk.files.run(desk.files.store.find, *where)
    if ref is None or conversation is None or len(content) > 2 * desk.limits.total:
        return False
    try:
        conversation.find(ref)
    except DaemonError:
        return False
    return True


async def _put(
    files: ContextFiles, where: ConversationKey, text: str, about: NewFileInfo
) -> PutResult:
    """Put a file under its call's id; ids that models use again get the content's hash behind them."""
    try:
        return await files.put(where, text, about)
    except DaemonError as error:
        if error.code is not ErrorCode.CONFLICT or about.key is None or "id" not in error.details:
            raise
    digest = sha256(text.encode()).hexdigest()[:16]
    return await files.put(where, text, about._replace(key=f"{about.key[:200]}-{digest}"))


def _without_secrets(desk: Desk, message: Message) -> Message:
    content = message.content
    if message.role is Speaker.ASSISTANT:
        content = without_thoughts(content)
    calls = tuple(_clean_call(call, desk) for call in message.calls)
    return replace(
        message,
        content=desk.redactor.redact(content).text,
        tool_calls=calls or UNSET,
        name=clean_name(message.name, desk.redactor),
    )


def clean_name(name: str | UnsetType, redactor: Redactor) -> str | UnsetType:
    """Take secrets out of the name that a message gives its speaker or its tool."""
    return UNSET if name is UNSET else redactor.redact(name).text


def _clean_call(call: ToolCall, desk: Desk) -> ToolCall:
    given = relative(call.arguments, desk.root)
    name = desk.redactor.redact(call.name).text
    return replace(call, name=name, arguments=_clean_arguments(given, desk.redactor))


def _clean_arguments(given: Any, redactor: Redactor) -> Any:
    if not isinstance(given, str):
        return cleaned(given, redactor)
    value = parsed(given)
    clean = value if value is None else cleaned(value, redactor)
    if value is None or clean == value:
        return redactor.redact(given).text
    return msgspec.json.encode(clean).decode()
