"""Context files for the rest of the daemon: put, register, list, read, tail, grep, delete.

`ContextFiles` is the door. It chooses the thread for each call, has lazy files made before they
are read, and redacts what it returns unless the caller asks for a raw view; the caller decides who
may, and checks that the project exists. `Store` has the conversations on this disk, in
`<userData>/context/`, each bound to one project; it blocks.
"""

import contextlib
import stat
import threading
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from weakref import WeakValueDictionary

import msgspec
import structlog
from anyio import CapacityLimiter, to_thread

from creonowd.clock import Clock
from creonowd.context_files import record_store, records, slices
from creonowd.context_files.folder import AbsentError, ConversationFolder, no_such_file
from creonowd.context_files.lazy_files import Materialiser, Recipes, check_reader
from creonowd.context_files.records import (
    MAX_HINT_LENGTH,
    ContextRef,
    Kind,
    NewFile,
    Origin,
    Record,
)
from creonowd.context_files.search import (
    GrepRequest,
    SearchTools,
    SecretLinesCache,
    VisibleMatches,
    find_matches,
    find_ripgrep,
)
from creonowd.context_files.slices import FilePage, FileTail, Preview, Reader, TextLength
from creonowd.errors import DaemonError, ErrorCode
from creonowd.redaction import Redactor
from creonowd.rpc.connection import Peer
from creonowd.settings import Settings
from creonowd.storage import stored_files
from creonowd.storage.safe_folder import OpenFile
from creonowd.storage.stored_files import disk_errors
from creonowd.text import well_formed
from creonowd.threads import StopSignal, TimeLimit, in_thread

READ_LIMIT = 8192
TAIL_LINES = 200
MAX_RECENT_CONVERSATIONS = 1024
MAX_RECENT_RECORDS = 100_000

_THREADS = 8
_MAX_ATTEMPTS = 3
_TEXT = "text/plain"
_BYTES = "application/octet-stream"

_WHAT = "the context files"

T = TypeVar("T")
log = structlog.stdlib.get_logger(__name__)


class ConversationKey(NamedTuple):
    """A conversation of a project."""

    project_id: str
    conversation_id: str


class FileView(StrEnum):
    """What is redacted in a file: secrets, by the wider rules more than secrets, or nothing."""

    REDACTED = "redacted"
    SENSITIVE = "sensitive"
    RAW = "raw"


class FileRequest(NamedTuple):
    """A file of a conversation, how it is to be shown, and the connection that reads it."""

    conversation: ConversationKey
    id: str
    view: FileView = FileView.REDACTED
    peer: Peer | None = None


class NewFileInfo(NamedTuple):
    """The description of a new file; only kind and hint are required."""

    kind: Kind
    hint: str
    origin: Origin | None = None
    mime_type: str | None = None
    key: str | None = None


class PutResult(NamedTuple):
    """The new ref, and a preview if the text is too long to stand in a conversation."""

    ref: ContextRef
    preview: Preview | None


class FileViews:
    """The redactors of this user; with `sensitive`, the redacted view uses the wider rules too."""

    def __init__(self, redactor: Redactor, *, sensitive: bool = False) -> None:
        self._wide = redactor.sensitive()
        self._usual = self._wide if sensitive else redactor

    def reader(self, view: FileView, source_ref: str) -> Reader:
        """Return the reader of a view."""
        finders = {FileView.REDACTED: self._usual, FileView.SENSITIVE: self._wide}
        return Reader(finders.get(view), source_ref)

    def visible_text(self, text: str) -> str:
        """Return a text without secrets and lone surrogates."""
        return self._usual.redact(well_formed(text)).text


class ContextFiles:
    """The context files of this user."""

    def __init__(
        self, store: "Store", settings: Settings, recipes: Recipes, redactor: Redactor
    ) -> None:
        self.store = store
        self.settings = settings
        self.recipes = recipes
        self.views = FileViews(redactor, sensitive=settings.context_sensitive)
        self.inline_limits = TextLength(settings.max_inline_chars, settings.max_inline_bytes)
        self._materialiser = Materialiser(recipes, settings)
        # Readers have threads of their own, so that they never wait for many puts and their syncs.
        self._writers = CapacityLimiter(_THREADS)
        self._readers = CapacityLimiter(_THREADS)
        self._ripgrep = find_ripgrep(settings.ripgrep)
        self._secret_lines = SecretLinesCache()

    async def put(
        self, conversation: ConversationKey, content: str | bytes, info: NewFileInfo
    ) -> PutResult:
        """Write a file now; the same key and content again give the same ref."""
        return await self.run(self._put, conversation, content, info)

    async def register(
        self,
        conversation: ConversationKey,
        recipe: dict[str, Any],
        info: NewFileInfo,
        host: Peer | None = None,
    ) -> ContextRef:
        """Store a recipe; the file is made when it is first read."""
        new = self._new_file(info, self.recipes.check(recipe), recipe)
        if host is not None:
            new = msgspec.structs.replace(new, registered_by=host.role)
        folder = await self.run(self.store.find_or_create, *conversation)
        record = await self.run(folder.register, new)
        if host is not None:
            self._materialiser.add_host(folder.id, host)
        return record.ref

    async def newest(
        self, conversation: ConversationKey, kind: Kind | None, limit: int
    ) -> list[ContextRef]:
        """List the newest refs, oldest first."""
        folder = await self.run(self.store.find, *conversation)
        found = [] if folder is None else folder.newest(kind, limit)
        return [record.ref for record in found]

    async def read(
        self, request: FileRequest, offset: int = 0, limit: int = READ_LIMIT
    ) -> FilePage:
        """Read a page by byte offset; pages that follow each other join up."""
        reader = self.views.reader(request.view, request.id)
        return await self._with_file(
            request, lambda _record, file, _stop: slices.read_page(file, offset, limit, reader)
        )

    async def read_bytes(
        self, request: FileRequest, offset: int, limit: int
    ) -> tuple[FilePage, bytes]:
        """Read a page byte for byte, secrets and all."""
        return await self._with_file(
            request, lambda _record, file, _stop: slices.read_bytes(file, offset, limit)
        )

    async def tail(self, request: FileRequest, lines: int = TAIL_LINES) -> FileTail:
        """Read the last lines."""
        reader = self.views.reader(request.view, request.id)
        return await self._with_file(
            request, lambda _record, file, _stop: slices.read_tail(file, lines, reader)
        )

    async def grep(self, request: FileRequest, grep: GrepRequest) -> VisibleMatches:
        """Find the lines that match."""
        reader = self.views.reader(request.view, request.id)

        def search(record: Record, file: OpenFile, stop: StopSignal) -> VisibleMatches:
            seconds = self.settings.grep_timeout_ms / 1000
            time_limit = TimeLimit(seconds, self.store.clock.monotonic)
            tools = SearchTools(self._ripgrep, self._secret_lines, time_limit, stop)
            return find_matches(file, record.stats, grep, reader, tools)

        return await self._with_file(request, search)

    async def delete(
        self, conversation: ConversationKey, ref_id: str | None = None
    ) -> list[Record]:
        """Delete a file, or the whole conversation; return the records that are gone."""
        folder = await self.run(self.store.find, *conversation)
        if folder is None:
            if ref_id is not None:
                raise no_such_file()
            return []
        if ref_id is not None:
            return [await self.run(folder.remove, ref_id)]
        return await self.run(self.store.delete, folder)

    async def run(self, work: Callable[..., T], *arguments: Any) -> T:
        """Do what blocks in one of the few threads that context files may use."""
        return await to_thread.run_sync(work, *arguments, limiter=self._writers)

    async def _with_file(
        self, request: FileRequest, work: Callable[[Record, OpenFile, StopSignal], T]
    ) -> T:
        """Do `work` with an open file in a thread, after making the file if it is lazy and absent.

        When the caller is cancelled, the work stops too.
        """
        folder = await to_thread.run_sync(
            self.store.find, *request.conversation, limiter=self._readers
        )
        if folder is None:
            raise no_such_file()

        def open_and_work(stop: StopSignal) -> T:
            with folder.open_file(request.id) as (record, file):
                check_reader(record, request.peer)
                return work(record, file, stop)

        for _ in range(_MAX_ATTEMPTS):
            try:
                return await in_thread(open_and_work, self._readers)
            except AbsentError as absent:
                check_reader(absent.record, request.peer)
                await self._materialiser.make(folder, absent.record, request.peer)
        raise DaemonError(
            ErrorCode.CONFLICT, "The file was cleaned as soon as it was made; try again."
        )

    def _put(
        self, conversation: ConversationKey, content: str | bytes, info: NewFileInfo
    ) -> PutResult:
        data = well_formed(content).encode() if isinstance(content, str) else content
        text = slices.decode_strictly(data)
        new = self._new_file(info, _BYTES if text is None else _TEXT)
        folder = self.store.find_or_create(*conversation)
        record = folder.put(new, data)
        if text is None:
            text = slices.decode_damaged(data)
        return PutResult(record.ref, self._preview(folder, record, text))

    def _preview(
        self, folder: ConversationFolder, record: Record, text: str | None
    ) -> Preview | None:
        if text is None:
            size = 0 if record.stats is None else record.stats.byte_size
            too_big = size > self.inline_limits.bytes
            return slices.binary_preview(record.id, size) if too_big else None
        if slices.fits(text, self.inline_limits):
            return None
        reader = self.views.reader(FileView.REDACTED, record.id)
        with folder.open_file(record.id) as (_, file):
            return slices.preview(file, record.id, self.inline_limits, reader, len(text))

    def _new_file(
        self, info: NewFileInfo, mime_type: str, recipe: dict[str, Any] | None = None
    ) -> NewFile:
        origin = info.origin or records.default_origin(info.kind)
        if records.kind_of(origin) is not info.kind:
            raise DaemonError(
                ErrorCode.INVALID_ARGUMENT,
                f"The origin {origin} does not go with the kind {info.kind}.",
                field="origin",
            )
        return NewFile(
            kind=info.kind,
            origin=origin,
            hint=self.views.visible_text(info.hint)[:MAX_HINT_LENGTH],
            mime_type=info.mime_type or mime_type,
            key=info.key,
            recipe=recipe,
        )


class Store:
    """All conversations of this user; one `ConversationFolder` for each that is in use."""

    def __init__(self, user_data: Path, clock: Clock) -> None:
        self.root = user_data / record_store.FOLDER
        self.clock = clock
        self._lock = threading.Lock()
        self._in_use: WeakValueDictionary[str, ConversationFolder] = WeakValueDictionary()
        self._recent = RecentConversations()
        self._recovered = False

    def recover(self) -> None:
        """Finish or undo what a killed daemon left, if nobody has used the store yet."""
        with self._ready():
            pass

    def find(self, project_id: str, conversation_id: str) -> ConversationFolder | None:
        """Find a conversation of a project; None if it was never used."""
        records.check_conversation_id(conversation_id)
        with self._ready():
            folder = self._folder(conversation_id)
            return None if folder is None else self._open(folder, project_id)

    def find_or_create(self, project_id: str, conversation_id: str) -> ConversationFolder:
        """Find a conversation, or bind a new one to the project."""
        records.check_conversation_id(conversation_id)
        with self._ready():
            folder = self._folder(conversation_id)
            if folder is None:
                stored_files.make_folders(self.root)
                folder = record_store.plain_folder(self.root).make_folder(conversation_id)
                record_store.bind(folder, project_id)
            return self._open(folder, project_id)

    def of_project(self, project_id: str) -> Iterator[ConversationFolder]:
        """Yield the conversations of a project; skip and log one that cannot be read."""
        for folder in self._folders():
            with self._ready():
                try:
                    if record_store.project_of(folder) != project_id:
                        continue
                    conversation = self._open(folder, project_id)
                except (DaemonError, OSError) as error:
                    log.warning("context_files_unreadable", reason=type(error).__name__)
                    continue
            yield conversation

    def projects(self) -> set[str]:
        """Return the ids of the projects that have conversations here."""
        found: set[str] = set()
        for folder in self._folders():
            with contextlib.suppress(DaemonError, OSError):
                found |= {record_store.project_of(folder) or ""}
        return found - {""}

    def delete(self, conversation: ConversationFolder) -> list[Record]:
        """Delete a conversation and every file in it; return their records."""
        removed = conversation.remove_all()
        with self._lock, disk_errors(_WHAT):
            # Someone else may have deleted it first, and another caller may have created a new one.
            if self._in_use.get(conversation.id.lower()) is conversation:
                del self._in_use[conversation.id.lower()]
                self._recent.forget(conversation)
                record_store.unbind(conversation.folder)
        return removed

    def with_stale_manifest(self) -> list[ConversationFolder]:
        """List the conversations whose index on the disk is not up to date."""
        return [one for one in list(self._in_use.values()) if one.manifest_is_stale]

    @contextlib.contextmanager
    def _ready(self) -> Generator[None]:
        """Hold the lock; the first time, recover from what a killed daemon left."""
        with self._lock, disk_errors(_WHAT):
            if not self._recovered:
                record_store.recover(self.root)
                self._recovered = True
            yield

    def _folders(self) -> list[Path]:
        found = record_store.plain_folder(self.root).entries(wanted=records.is_conversation_id)
        return [self.root / name for name, status in found if stat.S_ISDIR(status.st_mode)]

    def _folder(self, conversation_id: str) -> Path | None:
        """Find the folder; CONFLICT on every system if an id differs from it only in case."""
        lowered = conversation_id.lower()
        in_use = self._in_use.get(lowered)
        name = in_use.id if in_use is not None else self._folder_name(lowered)
        if name is None:
            return None
        if name == conversation_id:
            return self.root / name
        raise DaemonError(
            ErrorCode.CONFLICT,
            "Another conversation's id differs only in case; choose a different id.",
            field="conversationId",
        )

    def _folder_name(self, lowered: str) -> str | None:
        files = record_store.plain_folder(self.root)
        found = files.entries(wanted=lambda name: name.lower() == lowered)
        names = (name for name, status in found if stat.S_ISDIR(status.st_mode))
        return next(filter(records.is_conversation_id, names), None)

    def _open(self, folder: Path, project_id: str) -> ConversationFolder:
        conversation = self._in_use.get(folder.name.lower())
        owner = conversation.project_id if conversation else record_store.project_of(folder)
        if owner is None:
            record_store.bind(folder, project_id)
        elif owner != project_id:
            log.warning("context_scope_violation", what="conversation")
            raise DaemonError(
                ErrorCode.CONTEXT_SCOPE_VIOLATION,
                "The conversation belongs to another project; use another conversationId for this one.",
                field="conversationId",
            )
        if conversation is None:
            conversation = ConversationFolder(folder, project_id, self.clock)
            self._in_use[folder.name.lower()] = conversation
        self._recent.keep(conversation)
        return conversation


class RecentConversations:
    """The conversations that were last used, within limits on them and on their records.

    Not guarded: its owner holds a lock. `Memo` would not do: a conversation grows while it is
    kept, and the one in use stays however big it is.
    """

    def __init__(
        self,
        max_conversations: int = MAX_RECENT_CONVERSATIONS,
        max_records: int = MAX_RECENT_RECORDS,
    ) -> None:
        self._max_conversations = max_conversations
        self._max_records = max_records
        self._entries: OrderedDict[int, tuple[ConversationFolder, int]] = OrderedDict()
        self._record_count = 0

    def __len__(self) -> int:
        return len(self._entries)

    def keep(self, conversation: ConversationFolder) -> None:
        """Keep a conversation as the newest; drop the oldest until the limits hold, but never it."""
        self.forget(conversation)
        count = conversation.count()
        self._entries[id(conversation)] = (conversation, count)
        self._record_count += count
        while len(self._entries) > 1 and (
            len(self._entries) > self._max_conversations or self._record_count > self._max_records
        ):
            _, (_, count) = self._entries.popitem(last=False)
            self._record_count -= count

    def forget(self, conversation: ConversationFolder) -> None:
        """Drop a conversation."""
        _, count = self._entries.pop(id(conversation), (None, 0))
        self._record_count -= count
