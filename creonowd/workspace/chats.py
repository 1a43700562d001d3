"""A project's conversations on disk: one file each, and an index that saves reading them all.

The files are the truth. An entry of the index is used as long as its file is unchanged; a damaged
index is set aside, and one that a newer daemon wrote is left alone.
"""

import contextlib
import os
import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

import anyio
import msgspec
import structlog
from anyio import to_thread
from msgspec import UNSET, Meta, UnsetType

from creonowd.clock import Clock, iso
from creonowd.errors import DaemonError, ErrorCode, Wording
from creonowd.model import Model
from creonowd.redaction import PLACEHOLDER, Redactor
from creonowd.redaction.secret_names import is_secret_name
from creonowd.rpc.channel import invalid_payload
from creonowd.storage import stored_files
from creonowd.storage.safe_folder import LinkedFolder, mark_of, problem_with_name
from creonowd.storage.stored_files import disk_errors
from creonowd.storage.unchanged_files import RECENT_MS
from creonowd.workspace.creonow_tree import TREE, Problem, make_folder
from creonowd.workspace.projects import Project

FOLDER = f"{TREE}/conversations"
CACHE = f"{TREE}/cache"
INDEX = "index"
LOCK = "conversations.lock"
VERSION = 1
LIMIT_BYTES = 32 * 1024 * 1024
MAX_ID = 64
MAX_DEPTH = 64
SUMMARY_LENGTH = 120
LONGEST_START = 16 * SUMMARY_LENGTH

ChatDocument = dict[str, Any]
RedactChat = Callable[[str], str]
T = TypeVar("T")

_INDEX_FILE = f"{FOLDER}/{INDEX}.json"
_ID = re.compile(r"[A-Za-z0-9_-]+")
_TAKEN_AWAY = Wording(
    "The conversation was taken away while it was saved.", "对话在保存时被移走了。"
)

log = structlog.get_logger(__name__)


class ChatMessage(Model):
    """The fields of a message that are checked; further ones are kept."""

    role: Annotated[str, Meta(min_length=1)]
    content: str
    created_at: str | int | float | None = None


class Analysis(Model):
    """The one field of an analysis that is checked; all others are kept as they are."""

    summary: Annotated[str, Meta(pattern=r"\S")]


class Chat(Model):
    """The fields of a conversation that are checked; further ones are kept."""

    messages: list[ChatMessage]
    id: str | None = None
    document_id: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    analysis: Analysis | None = None


class ConversationEntry(Model):
    """How a conversation is listed; `summaryQuality` is `analysis` once one was supplied."""

    id: str
    """The conversation's id."""
    created_at: str
    """When it was first saved, as ISO 8601 in UTC."""
    updated_at: str
    """When it was last saved, as ISO 8601 in UTC."""
    message_count: int
    """How many messages it has."""
    summary: str
    """A line for a list: the analysis' summary, else one made from the first messages."""
    summary_quality: str
    """Where `summary` comes from: `heuristic` or `analysis`."""
    document_id: str | UnsetType = UNSET
    """The document that it belongs to; absent if it belongs to none."""


class IndexedChat(Model):
    """An entry of the index, the mark of its file, and whether the mark is old enough to trust."""

    entry: ConversationEntry
    mark: tuple[int, ...]
    settled: bool


class _ChatIndex(Model):
    items: tuple[IndexedChat, ...]
    version: int = VERSION


class ChatListing(Model):
    """Every conversation, newest first, the files that are none, and whether the index is current."""

    items: tuple[IndexedChat, ...]
    problems: tuple[Problem, ...]
    is_indexed: bool


class Chats:
    """The conversations of all projects; a save is on the disk before it is acknowledged."""

    def __init__(self, clock: Clock, redactor: Redactor) -> None:
        self._clock = clock
        self._redactor = redactor
        self._locks: defaultdict[Path, anyio.Lock] = defaultdict(anyio.Lock)

    async def list(self, project: Project) -> ChatListing:
        """List all conversations, newest first; rebuild the index if it is not current."""
        listing = await to_thread.run_sync(find_all, project.root, self._clock.now_ms())
        if not listing.is_indexed:
            # If the index cannot be written, listing is only slower.
            with contextlib.suppress(DaemonError):
                await self._run_locked(project, partial(self._reindex, project.root))
        return listing

    async def read(self, project: Project, conversation_id: str) -> ChatDocument:
        """Read a conversation as it was saved."""
        check_id(conversation_id)
        return await to_thread.run_sync(read_document, project.root, conversation_id)

    async def save(self, project: Project, conversation: ChatDocument) -> ConversationEntry:
        """Save a conversation under its id, or a new one; an existing one keeps its `createdAt`."""
        chat = check(conversation, "conversation")
        new_id = self._clock.new_id("cnv")
        chat_id = new_id if chat.id is None else check_id(chat.id, "conversation.id")
        work = partial(self._save, project.root, chat_id, conversation)
        return await self._run_locked(project, work)

    async def analyse(
        self, project: Project, conversation_id: str, analysis: ChatDocument
    ) -> ConversationEntry:
        """Add the analysis of a conversation; its place in the list stays."""
        check_id(conversation_id)
        check_analysis(analysis)
        work = partial(self._analyse, project.root, conversation_id, analysis)
        return await self._run_locked(project, work)

    async def _run_locked(self, project: Project, work: Callable[[], T]) -> T:
        async with self._locks[project.root]:
            return await to_thread.run_sync(self._run_with_file_lock, project.root, work)

    def _run_with_file_lock(self, root: Path, work: Callable[[], T]) -> T:
        for folder in (TREE, FOLDER, CACHE):
            make_folder(root, folder)
        with LinkedFolder(root, CACHE).lock(f"{CACHE}/{LOCK}"):
            _folder(root).sweep(FOLDER, self._clock.now_ms() - stored_files.LEFTOVER_MS)
            return work()

    def _save(self, root: Path, conversation_id: str, sent: ChatDocument) -> ConversationEntry:
        _refuse_other_case(root, conversation_id)
        before = _read_replaced(root, conversation_id)
        document = merge(before, sent, iso(self._clock.now_ms()), self._redact)
        write_document(
            root, conversation_id, {"version": VERSION, "id": conversation_id} | document
        )
        return self._reindex_entry(root, conversation_id)

    def _analyse(
        self, root: Path, conversation_id: str, analysis: ChatDocument
    ) -> ConversationEntry:
        document = read_document(root, conversation_id)
        whole = restore(analysis, document, self._redact)
        write_document(root, conversation_id, document | {"analysis": whole})
        return self._reindex_entry(root, conversation_id)

    def _reindex_entry(self, root: Path, conversation_id: str) -> ConversationEntry:
        listing = self._reindex(root)
        found = next((e.entry for e in listing.items if e.entry.id == conversation_id), None)
        if found is None:
            raise DaemonError(ErrorCode.NOT_FOUND, _TAKEN_AWAY)
        return found

    def _reindex(self, root: Path) -> ChatListing:
        listing = find_all(root, self._clock.now_ms())
        write_index(root, listing)
        return listing

    def _redact(self, text: str) -> str:
        return self._redactor.redact(text).text


def check_id(conversation_id: str, field: str = "conversationId") -> str:
    """Return an id that can be a file's name on every system, else fail with INVALID_ARGUMENT."""
    fits = _ID.fullmatch(conversation_id) and len(conversation_id) <= MAX_ID
    if fits and conversation_id.lower() != INDEX and not problem_with_name(conversation_id):
        return conversation_id
    raise DaemonError(
        ErrorCode.INVALID_ARGUMENT,
        f"{field} must be up to {MAX_ID} of A-Z, a-z, 0-9, _ and -, and no reserved name.",
        field=field,
    )


def check(document: ChatDocument, field: str) -> Chat:
    """Check a conversation; INVALID_ARGUMENT names the field that is wrong."""
    try:
        _check_depth(document, MAX_DEPTH)
        return msgspec.convert(document, Chat)
    except msgspec.ValidationError as error:
        raise invalid_payload(error, field) from None


def check_analysis(analysis: ChatDocument) -> ChatDocument:
    """Return an analysis that has a summary."""
    try:
        _check_depth(analysis, MAX_DEPTH)
        msgspec.convert(analysis, Analysis)
    except msgspec.ValidationError as error:
        raise invalid_payload(error, "analysis") from None
    return analysis


def _check_depth(value: Any, left: int) -> None:
    if not isinstance(value, dict | list):
        return
    if not left:
        raise msgspec.ValidationError(f"Nested more than {MAX_DEPTH} deep")
    nested = cast("ChatDocument | list[Any]", value)
    for inner in nested.values() if isinstance(nested, dict) else nested:
        _check_depth(inner, left - 1)


def _read_replaced(root: Path, conversation_id: str) -> ChatDocument:
    """Read what a save replaces; set a damaged file aside."""
    try:
        return read_document(root, conversation_id)
    except DaemonError as error:
        if error.details.get("reason") == "invalid_format":
            with disk_errors(FOLDER):
                _folder(root).set_aside(path_of(conversation_id))
        elif error.code is not ErrorCode.NOT_FOUND:
            raise
    return {}


def _refuse_other_case(root: Path, conversation_id: str) -> None:
    """Refuse an id that differs from another only in case: on many disks they are one file."""
    name = f"{conversation_id}.json"
    for known, _ in _folder(root).entries(FOLDER):
        if known != name and known.lower() == name.lower():
            raise DaemonError(
                ErrorCode.CONFLICT,
                "There is a conversation whose id differs only in case; choose another id.",
                field="conversation.id",
            )


def merge(before: ChatDocument, sent: ChatDocument, now: str, redact: RedactChat) -> ChatDocument:
    """Return what to store of a conversation: what was sent, and the time and analysis of before.

    A client sees texts only redacted; a text that comes back redacted becomes the stored one.
    """
    kept = {key: before[key] for key in ("analysis",) if key in before}
    rest = {key: value for key, value in sent.items() if key not in {"version", "id"}}
    created = before.get("createdAt") or sent.get("createdAt") or now
    return kept | restore(rest, before, redact) | {"createdAt": created, "updatedAt": now}


def restore(sent: Any, before: Any, redact: RedactChat) -> Any:
    """Replace the redacted texts in `sent` by those of `before` that look the same redacted."""
    texts = list(texts_of(sent))
    if not any(PLACEHOLDER in text for text in texts):
        return sent
    originals: defaultdict[str, deque[str]] = defaultdict(deque)
    for text in texts_of(before):
        originals[redact(text)].append(text)
    return with_texts(sent, (_original(originals, text) for text in texts))


def _original(originals: dict[str, deque[str]], text: str) -> str:
    """Return the next original that is shown as this text; the text itself if there is none."""
    same = originals.get(text) if PLACEHOLDER in text else None
    return same.popleft() if same else text


def texts_of(value: Any, name: str = "") -> Iterator[str]:
    """Yield every key and text of a JSON value; the text of a secret's field as `name=text`."""
    if isinstance(value, str):
        yield _prefix(name) + value
    elif isinstance(value, dict):
        for key, inner in cast("dict[str, Any]", value).items():
            yield key
            yield from texts_of(inner, key)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from texts_of(inner, name)


def with_texts(value: Any, texts: Iterable[str]) -> Any:
    """Return a JSON value with other texts in place of those that `texts_of` yields, in order."""
    return _replace_texts(value, iter(texts), "")


def _replace_texts(value: Any, texts: Iterator[str], name: str) -> Any:
    if isinstance(value, str):
        return next(texts).removeprefix(_prefix(name))
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value).items()
        return {next(texts): _replace_texts(inner, texts, key) for key, inner in fields}
    if isinstance(value, list):
        return [_replace_texts(inner, texts, name) for inner in cast("list[Any]", value)]
    return value


def _prefix(name: str) -> str:
    return f"{name}=" if name and is_secret_name(name) else ""


def entry_of(conversation_id: str, document: ChatDocument, updated: str) -> ConversationEntry:
    """Summarise a conversation for the list: by its analysis, else by its first message.

    `updated` is the time for a file that does not have one.
    """
    chat = msgspec.convert(document, Chat)
    summary = chat.analysis.summary if chat.analysis else _first_words(chat.messages)
    return ConversationEntry(
        id=conversation_id,
        created_at=chat.created_at or updated,
        updated_at=chat.updated_at or updated,
        message_count=len(chat.messages),
        summary=summary,
        summary_quality="analysis" if chat.analysis else "heuristic",
        document_id=chat.document_id or UNSET,
    )


def _first_words(messages: list[ChatMessage]) -> str:
    questions = (message.content for message in messages if message.role == "user")
    every = (message.content for message in messages)
    first = next((text for texts in (questions, every) for text in texts if text.strip()), "")
    import regex

    head = first.strip()[:LONGEST_START]
    line = " ".join(head.split())
    start = cast("str", regex.match(rf"\X{{0,{SUMMARY_LENGTH}}}", line)[0])  # pyright: ignore[reportOptionalSubscript]
    return line if start == line and head == first.strip() else f"{start}…"


def path_of(conversation_id: str) -> str:
    """Return the project-relative path of a conversation."""
    return f"{FOLDER}/{conversation_id}.json"


def read_document(root: Path, conversation_id: str) -> ChatDocument:
    """Read a conversation; IO_ERROR if the file is damaged."""
    path = path_of(conversation_id)
    data = _folder(root).snapshot(path, limit=LIMIT_BYTES).data
    try:
        document = stored_files.decode(data, ChatDocument, version=VERSION, name=path)
        check(document, "conversation")
    except (stored_files.DamagedFileError, DaemonError) as error:
        if isinstance(error, DaemonError) and error.code is ErrorCode.VERSION_TOO_NEW:
            raise
        raise _damaged_file(path) from None
    return document


def write_document(root: Path, conversation_id: str, document: ChatDocument) -> None:
    """Write a conversation, all at once."""
    path = path_of(conversation_id)
    data = msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
    with disk_errors(path):
        _folder(root).replace(path, data, mode=stored_files.SHARED)


def find_all(root: Path, now_ms: int) -> ChatListing:
    """List the conversations; read only the files that changed since they were indexed."""
    if not (root / FOLDER).is_dir():
        return ChatListing(items=(), problems=(), is_indexed=True)
    indexed = _load_index(root)
    items: list[IndexedChat] = []
    problems: list[Problem] = []
    for conversation_id, status in _files(root):
        try:
            items.append(_index_entry(root, conversation_id, status, indexed or {}, now_ms))
        except DaemonError as error:
            problems.append(Problem(path=path_of(conversation_id), error=error))
    items.sort(key=lambda each: (each.entry.updated_at, each.mark[-2], each.entry.id), reverse=True)
    is_indexed = {each.entry.id: each for each in items} == indexed
    return ChatListing(items=tuple(items), problems=tuple(problems), is_indexed=is_indexed)


def _files(root: Path) -> list[tuple[str, os.stat_result]]:
    """Find the files whose names are ids; others are not ours."""
    with disk_errors(FOLDER):
        found = _folder(root).walk(lambda name: name.endswith(".json")).files
    named = ((path.removeprefix(f"{FOLDER}/").removesuffix(".json"), s) for path, s in found)
    return [(name, status) for name, status in named if _is_id(name)]


def _is_id(name: str) -> bool:
    try:
        check_id(name)
    except DaemonError:
        return False
    return True


def _index_entry(
    root: Path,
    conversation_id: str,
    status: os.stat_result,
    indexed: dict[str, IndexedChat],
    now_ms: int,
) -> IndexedChat:
    mark = mark_of(status)
    known = indexed.get(conversation_id)
    if known and known.settled and known.mark == mark:
        return known
    updated_ms = status.st_mtime_ns // 1_000_000
    entry = entry_of(conversation_id, read_document(root, conversation_id), iso(updated_ms))
    return IndexedChat(entry=entry, mark=mark, settled=now_ms - updated_ms > RECENT_MS)


def _load_index(root: Path) -> dict[str, IndexedChat] | None:
    """Read the index; None if it is damaged: whoever holds the lock then writes it again."""
    try:
        found = _read_index(root)
    except stored_files.DamagedFileError:
        return None
    except DaemonError as error:
        log.warning("conversation_index_not_read", code=error.code)
        found = None
    return {item.entry.id: item for item in found.items} if found else {}


def write_index(root: Path, listing: ChatListing) -> None:
    """Write the index; the caller holds the lock. If it cannot be written, listing is slower."""
    with contextlib.suppress(DaemonError, OSError):
        try:
            _read_index(root)
        except stored_files.DamagedFileError:
            kept = _folder(root).set_aside(_INDEX_FILE)
            log.warning("conversation_index_set_aside", file=f"{FOLDER}/{kept}")
        data = msgspec.json.format(msgspec.json.encode(_ChatIndex(items=listing.items)), indent=2)
        _folder(root).replace(_INDEX_FILE, data + b"\n", mode=stored_files.SHARED)


def _read_index(root: Path) -> _ChatIndex | None:
    try:
        data = _folder(root).snapshot(_INDEX_FILE, limit=LIMIT_BYTES).data
    except DaemonError as error:
        if error.code is ErrorCode.NOT_FOUND:
            return None
        raise
    return stored_files.decode(data, _ChatIndex, version=VERSION, name=f"{INDEX}.json")


def _folder(root: Path) -> LinkedFolder:
    return LinkedFolder(root, FOLDER)


def _damaged_file(path: str) -> DaemonError:
    return DaemonError(
        ErrorCode.IO_ERROR,
        "The conversation's file is damaged; fix or delete it.",
        path=path,
        reason="invalid_format",
    )
