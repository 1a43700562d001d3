"""Context files for the rest of the daemon: put, register, list, read, tail, grep, delete.

`ContextFiles` is the door. It chooses the thread for each call, has lazy files made before they
are read, and redacts what it returns unless the caller asks for a raw view; the caller decides who
may, and checks that the project exists.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

import msgspec
from anyio import CapacityLimiter, to_thread

from creonowd.context_files import records, slices
from creonowd.context_files.folder import AbsentError, ConversationFolder, no_such_file
from creonowd.context_files.lazy_files import Materialiser, Recipes
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
)
from creonowd.context_files.search_engines import find_ripgrep
from creonowd.context_files.slices import FilePage, FileTail, Preview, Reader, TextLength
from creonowd.context_files.store import Store
from creonowd.errors import DaemonError, ErrorCode
from creonowd.redaction import Redactor
from creonowd.rpc.peer import Peer
from creonowd.settings import Settings
from creonowd.storage.safe_folder import OpenFile
from creonowd.text import well_formed
from creonowd.threads import StopSignal, TimeLimit, in_thread

READ_LIMIT = 8192
TAIL_LINES = 200

_THREADS = 8
_MAX_ATTEMPTS = 3
_TEXT = "text/plain"
_BYTES = "application/octet-stream"

T = TypeVar("T")


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
        self, store: Store, settings: Settings, recipes: Recipes, redactor: Redactor
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
                return work(record, file, stop)

        for _ in range(_MAX_ATTEMPTS):
            try:
                return await in_thread(open_and_work, self._readers)
            except AbsentError as absent:
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
