"""The history of every conversation: `<userData>/histories/<project>/<conversation>.jsonl`.

Messages enter it without thoughts and secrets, and with results of tools summarised. A tool's
result, and any text over the inline limits, becomes a context file.
"""

import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import anyio
import msgspec
import structlog
from anyio import to_thread
from msgspec import UNSET, UnsetType, field
from msgspec.structs import replace

from creonowd.context.fragment import Caution, caution
from creonowd.context_files.files import ContextFiles, ConversationKey, NewFileInfo, PutResult
from creonowd.context_files.record_store import history_path
from creonowd.context_files.records import MAX_KEY_LENGTH, ContextRef, Kind, Origin
from creonowd.context_files.slices import Preview, fits
from creonowd.errors import DaemonError, ErrorCode, WarningCode, same_wording
from creonowd.history import rounds, tool_summary
from creonowd.history.rounds import (
    Message,
    Round,
    Speaker,
    ToolCall,
    check_messages,
    without_thoughts,
)
from creonowd.history.summary import HistorySummary, Summariser, extractive_summary
from creonowd.history.tool_result import (
    Form,
    LineLimits,
    Observation,
    observe,
    parse_json,
    redact_json,
    without_root,
)
from creonowd.memo import Memo
from creonowd.model import Model
from creonowd.redaction import Redactor
from creonowd.storage import journal
from creonowd.threads import call_in_thread
from creonowd.tokens.truncate import one_line

REMEMBERED = 64
REMEMBERED_BYTES = 8 * 1024 * 1024

HistoryKey = tuple[str, str]

log = structlog.stdlib.get_logger(__name__)


class StoredSummary(Model):
    """A summary of the first `covers` rounds, and who wrote it."""

    covers: int
    summary: HistorySummary
    by_model: bool = False


class _HistoryEntry(Model):
    """One line of a history's file."""

    messages: tuple[Message, ...] = ()
    written: StoredSummary | None = None


class History(Model):
    """The rounds and summaries of a conversation; a changed history is a new value.

    `summaries` are keyed by the number of rounds that they cover. `size` is where the file ends;
    `torn` if a crash cut its last line, `damaged` counts its unreadable lines.
    """

    rounds: tuple[Round, ...] = ()
    summaries: dict[int, StoredSummary] = field(default_factory=dict[int, StoredSummary])
    size: int = 0
    torn: bool = False
    damaged: int = 0

    @property
    def open_messages(self) -> tuple[Message, ...]:
        """The messages of the last round, to which results may still come."""
        return self.rounds[-1].messages if self.rounds else ()

    @property
    def warnings(self) -> list[Caution]:
        """Warnings of lines that were lost."""
        damaged = Caution(
            code=WarningCode.HISTORY_DAMAGED_LINE,
            wording=same_wording(str(self.damaged)),
            details=(("lines", self.damaged),),
        )
        return [
            *([caution(WarningCode.HISTORY_TORN_LINE)] if self.torn else []),
            *([damaged] if self.damaged else []),
        ]

    def with_summary(self, summary: StoredSummary) -> "History":
        """Return the same history with one more summary."""
        return replace(self, summaries={**self.summaries, summary.covers: summary})


def _weigh(_key: HistoryKey, history: History) -> int:
    """Return the bytes of a history; at least what makes `REMEMBERED` of them as many as are kept."""
    return max(history.size, REMEMBERED_BYTES // REMEMBERED)


class Histories:
    """All histories of this user; a change that returns is on the disk."""

    def __init__(self, user_data: Path) -> None:
        self._user_data = user_data
        self._locks: WeakValueDictionary[HistoryKey, anyio.Lock] = WeakValueDictionary()
        self._summary_locks: WeakValueDictionary[HistoryKey, anyio.Lock] = WeakValueDictionary()
        self._histories: Memo[HistoryKey, History] = Memo(REMEMBERED_BYTES, _weigh)

    async def read(self, key: HistoryKey) -> History:
        """Return the history of a conversation; one that never began is empty."""
        async with self.lock(key):
            return await self.current(key)

    def lock(self, key: HistoryKey) -> anyio.Lock:
        """Return the lock to hold while a history is changed."""
        return self._locks.setdefault(key, anyio.Lock())

    def summary_lock(self, key: HistoryKey) -> anyio.Lock:
        """Return the lock to hold while rounds are summarised; the history may change meanwhile."""
        return self._summary_locks.setdefault(key, anyio.Lock())

    async def append(self, key: HistoryKey, messages: Sequence[Message]) -> History:
        """Append checked messages, all or none; the caller holds `lock`."""
        before = await self.current(key)
        size = await self._write(key, before, _HistoryEntry(messages=tuple(messages)))
        longer = tuple(rounds.group_rounds(before.rounds, messages))
        history = replace(before, rounds=longer, size=size, torn=False)
        self._histories.put(key, history)
        return replace(history, torn=before.torn)

    async def summary_of(self, key: HistoryKey, first: Sequence[Round]) -> StoredSummary | None:
        """Return the stored summary of these first rounds, if there is one."""
        history = await self.read(key)
        return history.summaries.get(len(first)) if _begins_with(history.rounds, first) else None

    async def store_summary(
        self, key: HistoryKey, summary: StoredSummary, first: Sequence[Round]
    ) -> None:
        """Store a summary beside the rounds that it covers, unless these were cleared meanwhile."""
        async with self.lock(key):
            before = await self.current(key)
            if summary.covers in before.summaries or not _begins_with(before.rounds, first):
                return
            size = await self._write(key, before, _HistoryEntry(written=summary))
            history = replace(before.with_summary(summary), size=size, torn=False)
            self._histories.put(key, history)

    async def clear(self, key: HistoryKey) -> int:
        """Erase a history; return how many rounds it had."""
        async with self.lock(key):
            before = await self.current(key)
            await to_thread.run_sync(journal.erase, self._path(key))
            self._histories.forget(key)
            return len(before.rounds)

    async def current(self, key: HistoryKey) -> History:
        """Return the history; the caller holds `lock`."""
        history = self._histories.peek(key)
        size = await to_thread.run_sync(journal.size_of, self._path(key))
        if history is None or (history.size != size and not history.torn):
            history = await to_thread.run_sync(_load, self._path(key))
            self._histories.put(key, history)
        return history

    def forget(self, key: HistoryKey) -> None:
        """Read a history from the disk at its next use; the caller holds `lock`."""
        self._histories.forget(key)

    async def _write(self, key: HistoryKey, before: History, entry: _HistoryEntry) -> int:
        data = msgspec.json.encode(entry)
        return await to_thread.run_sync(journal.append, self._path(key), before.size, data)

    def _path(self, key: HistoryKey) -> Path:
        return history_path(self._user_data, *key)


def encode_messages(messages: Sequence[Message]) -> bytes:
    """Return the line of a history's file that adds these messages."""
    return journal.encode(msgspec.json.encode(_HistoryEntry(messages=tuple(messages))))


def encode_summaries(summaries: Iterable[StoredSummary]) -> bytes:
    """Return the lines of a history's file that add these summaries."""
    entries = (_HistoryEntry(written=summary) for summary in summaries)
    return b"".join(journal.encode(msgspec.json.encode(entry)) for entry in entries)


def _begins_with(rounds: Sequence[Round], first: Sequence[Round]) -> bool:
    pairs = zip(rounds, first, strict=False)
    return len(rounds) >= len(first) and all(a is b or a.messages == b.messages for a, b in pairs)


def _load(path: Path) -> History:
    found = journal.replay(path)
    entries: list[_HistoryEntry] = []
    unreadable = 0
    for data in found.entries:
        try:
            entries.append(msgspec.json.decode(data, type=_HistoryEntry))
        except msgspec.DecodeError:
            unreadable += 1
    damaged = found.damaged + unreadable
    if found.torn or damaged:
        log.warning("history_damaged", torn=found.torn, lines=damaged)
    messages = [message for entry in entries for message in entry.messages]
    summaries = [entry.written for entry in entries if entry.written is not None]
    return History(
        rounds=tuple(rounds.group_rounds((), messages)),
        summaries={summary.covers: summary for summary in summaries},
        size=found.size,
        torn=found.torn,
        damaged=damaged,
    )


_SUMMARY = re.compile(r"\[[^\]\n]{1,70}\] ")


class Intake(NamedTuple):
    """What messages are prepared with; `root`, the project's folder, appears in no message."""

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


class KeptText(NamedTuple):
    """The text that a history keeps, and the context file with all of it."""

    text: str
    observation: Observation | None = None
    ref: ContextRef | None = None
    preview: Preview | None = None


async def append_messages(
    histories: Histories,
    intake: Intake,
    key: ConversationKey,
    messages: Sequence[Message],
    contents: Sequence[Any],
) -> tuple[History, list[tuple[Message, KeptText]]]:
    """Append messages to a history; `contents` are as they came, also those of tool results."""
    async with histories.lock(key):
        before = await histories.current(key)
        checked = check_messages(before.open_messages, messages)
        kept = await _keep_all(intake, key, before, checked, contents)
        history = await histories.append(key, [message for message, _ in kept])
    return history, kept


async def _keep_all(
    intake: Intake,
    key: ConversationKey,
    before: History,
    messages: Sequence[Message],
    contents: Sequence[Any],
) -> list[tuple[Message, KeptText]]:
    """Prepare each message for the history; a tool's result is that of its call."""
    calls = {call.id: call for message in before.open_messages for call in message.calls}
    kept: list[tuple[Message, KeptText]] = []
    for message, content in zip(messages, contents, strict=True):
        calls.update({call.id: call for call in message.calls})
        if message.role is not Speaker.TOOL:
            kept.append(await keep_message(intake, key, message))
            continue
        call = calls.get(message.tool_call_id or "")
        result = ToolResult(
            tool=message.name or "tool",
            content=content,
            arguments=None if call is None else call.arguments,
            call_id=message.tool_call_id or None,
        )
        text = await keep_result(intake, key, result)
        name = redact_name(message.name, intake.redactor)
        short = fits(text.text, intake.files.inline_limits)
        ref = UNSET if short else tool_summary.ref_in(text.text) or UNSET
        kept.append((replace(message, content=text.text, name=name, ref=ref), text))
    return kept


async def keep_result(intake: Intake, key: ConversationKey | None, result: ToolResult) -> KeptText:
    """Summarise a tool's result; with a conversation, all of it becomes a context file."""
    if key is not None and await _is_summary(intake, key, result.content):
        return KeptText(intake.redactor.redact(result.content).text)
    observation, summary = await call_in_thread(_compress, intake, result)
    if key is None or observation.form is Form.EMPTY:
        return KeptText(summary, observation)
    info = NewFileInfo(
        kind=Kind.ARTIFACT,
        hint=tool_summary.headline_of(summary),
        origin=Origin.TOOL,
        mime_type="application/json" if observation.form is Form.JSON else "text/plain",
        key=None if result.call_id is None else result.call_id[:MAX_KEY_LENGTH],
    )
    put = await _put_result(intake.files, key, observation.text, info)
    return KeptText(tool_summary.with_ref(summary, put.ref.id), observation, put.ref, put.preview)


async def keep_message(
    intake: Intake, key: ConversationKey, message: Message
) -> tuple[Message, KeptText]:
    """Prepare a message of the user or the model; a text over the limits becomes a file as well."""
    kept = await call_in_thread(_prepare, intake, message)
    if fits(kept.content, intake.files.inline_limits):
        return kept, KeptText(kept.content)
    put = await put_message(intake.files, key, message.role, kept.content)
    return replace(kept, ref=put.ref.id), KeptText(kept.content, None, put.ref, put.preview)


async def put_message(
    files: ContextFiles, key: ConversationKey, role: Speaker, content: str
) -> PutResult:
    """Put a text over the inline limits into a context file, once however often it is sent."""
    digest = sha256(content.encode("utf-8", "replace")).hexdigest()[:24]
    info = NewFileInfo(
        kind=Kind.HISTORY,
        hint=f"{role}: {one_line(content, 80)}",
        origin=Origin.ARCHIVE,
        key=f"message-{digest}",
    )
    return await files.put(key, content, info)


def _compress(intake: Intake, result: ToolResult) -> tuple[Observation, str]:
    observation = observe(result.content, intake.redactor, intake.root)
    arguments = tool_summary.read_arguments(result.arguments, intake.redactor, intake.root)
    summary = tool_summary.summarise_result(result.tool, arguments, observation, intake.limits)
    return observation, intake.redactor.redact(summary).text


async def _is_summary(intake: Intake, key: ConversationKey, content: Any) -> bool:
    """Return whether a result is one of our summaries: its ref is one of this conversation."""
    if not isinstance(content, str) or not _SUMMARY.match(content):
        return False
    ref = tool_summary.ref_in(content)
    conversation = await intake.files.run(intake.files.store.find, *key)
    if ref is None or conversation is None or len(content) > 2 * intake.limits.total:
        return False
    try:
        conversation.find(ref)
    except DaemonError:
        return False
    return True


async def _put_result(
    files: ContextFiles, key: ConversationKey, text: str, info: NewFileInfo
) -> PutResult:
    """Put a file under its call's id; an id that is taken gets the content's hash as a suffix."""
    try:
        return await files.put(key, text, info)
    except DaemonError as error:
        if error.code is not ErrorCode.CONFLICT or info.key is None or "id" not in error.details:
            raise
    digest = sha256(text.encode()).hexdigest()[:16]
    return await files.put(key, text, info._replace(key=f"{info.key[:200]}-{digest}"))


def _prepare(intake: Intake, message: Message) -> Message:
    if message.role is Speaker.ASSISTANT:
        content = without_thoughts(message.content, with_calls=bool(message.calls))
        message = replace(message, content=content)
    return redact_message(message, intake.redactor, intake.root)


def redact_message(message: Message, redactor: Redactor, root: str = "") -> Message:
    """Redact the text, the calls, the name and the call's id of a message."""
    calls = tuple(_redact_call(call, redactor, root) for call in message.calls)
    return replace(
        message,
        content=redactor.redact(message.content).text,
        tool_calls=calls or UNSET,
        tool_call_id=redact_call_id(message.tool_call_id, redactor),
        name=redact_name(message.name, redactor),
    )


def redact_name(name: str | UnsetType, redactor: Redactor) -> str | UnsetType:
    """Redact the name that a message gives its sender or its tool."""
    return UNSET if name is UNSET else redactor.redact(name).text


def redact_call_id(call_id: str | UnsetType, redactor: Redactor) -> str | UnsetType:
    """Redact the id of a call, which its result repeats."""
    return UNSET if call_id is UNSET else redactor.hide_secrets(call_id)


def _redact_call(call: ToolCall, redactor: Redactor, root: str) -> ToolCall:
    arguments = without_root(call.arguments, root)
    name = redactor.redact(call.name).text
    call_id = redactor.hide_secrets(call.id)
    return replace(call, id=call_id, name=name, arguments=_redact_arguments(arguments, redactor))


def _redact_arguments(arguments: Any, redactor: Redactor) -> Any:
    if not isinstance(arguments, str):
        return redact_json(arguments, redactor)
    value = parse_json(arguments)
    clean = None if value is None else redact_json(value, redactor)
    if value is None or clean == value:
        return redactor.redact(arguments).text
    return msgspec.json.encode(clean).decode()


def summary_of(history: History, covers: int) -> HistorySummary:
    """Return the summary of the first rounds: the stored one, else the extractive one."""
    stored = history.summaries.get(covers)
    return extractive_summary(history.rounds[:covers]) if stored is None else stored.summary


async def stored_summary(
    summariser: Summariser, histories: Histories, key: HistoryKey, history: History, covers: int
) -> StoredSummary:
    """Return the stored summary of the first rounds, or have it written and store it, once.

    A second caller waits for the first one's summary. If it cannot be stored, the extractive
    summary is returned, so that the next turn gets the same one.
    """
    first = history.rounds[:covers]
    async with histories.summary_lock(key):
        stored = await histories.summary_of(key, first)
        if stored is not None:
            return stored
        earlier = [n for n, known in history.summaries.items() if n < covers and known.by_model]
        start = max(earlier, default=0)
        before = history.summaries[start].summary if start else None
        found = await summariser.summarise(first[start:], before)
        summary = StoredSummary(
            covers=covers,
            summary=found or extractive_summary(first),
            by_model=found is not None,
        )
        try:
            await histories.store_summary(key, summary, first)
        except DaemonError:
            return StoredSummary(covers=covers, summary=extractive_summary(first))
    return summary
