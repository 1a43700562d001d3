"""Context files for everyone else: put, register, list, read, tail, grep, delete.

Knows which thread does what; bytes, patterns, hosts and folders are others' work.
A project must exist before it is named here; who may see what raw is decided by the caller.
"""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from anyio import CapacityLimiter, to_thread

from creonowd.context_files import patterns, records, search, slices
from creonowd.context_files.folder import AbsentError, ConversationFolder, unknown
from creonowd.context_files.lazy_files import Materialiser, Recipes
from creonowd.context_files.records import LONGEST_HINT, ContextRef, Kind, NewFile, Origin, Record
from creonowd.context_files.search import SecretLinesCache, VisibleLines, VisibleMatches
from creonowd.context_files.search_engines import TOP, LineQuery, find_ripgrep
from creonowd.context_files.slices import Amount, Preview, Reader, count_lines, page, tail
from creonowd.context_files.store import Store
from creonowd.errors import DaemonError, ErrorCode
from creonowd.redaction import RedactionEvidence, Redactor
from creonowd.rpc.messages import without_surrogates
from creonowd.rpc.peer import Peer
from creonowd.settings import Settings
from creonowd.storage.safe_folder import OpenFile
from creonowd.threads import StopSignal, TimeLimit, in_thread

MOST_TAIL_BYTES = 1024 * 1024


class ReadableFile(NamedTuple):
    """An open file, what is known of it, and whether to go on looking."""

    record: Record
    file: OpenFile
    stop: StopSignal


class SearchTools(NamedTuple):
    """What a search may use: ripgrep, if there is one, so many seconds of a clock, and what is known."""

    ripgrep: Path | None
    seconds: float
    now: Callable[[], float]
    veils: SecretLinesCache


class FilePage(NamedTuple):
    """A page: `[offset, next_offset)` are bytes of the file, `content` is what may be seen of them."""

    offset: int
    next_offset: int
    done: bool
    content: str
    evidence: tuple[RedactionEvidence, ...]


class FileTail(NamedTuple):
    """The last lines; `truncated` if not even the last ones could be told whole."""

    lines: int
    offset: int
    truncated: bool
    content: str
    evidence: tuple[RedactionEvidence, ...]


class GrepRequest(NamedTuple):
    """What a search is for, and how much of it to show."""

    pattern: str
    case_sensitive: bool = False
    most: int = 50
    context_lines: int = 0
    cursor: str | None = None


def read_page(seen: ReadableFile, offset: int, limit: int, reader: Reader) -> FilePage:
    """See a page; pages that follow each other join up."""
    cut = page(seen.file, offset, limit)
    clean = reader.read(seen.file, [(cut.start, cut.end)], joined=True)
    return FilePage(cut.start, cut.end, cut.done, clean.texts[0], clean.evidence)


def read_bytes(seen: ReadableFile, offset: int, limit: int) -> tuple[FilePage, bytes]:
    """See a page byte for byte."""
    start = min(offset, seen.file.size)
    data = seen.file.read_at(start, limit)
    end = start + len(data)
    return FilePage(start, end, end >= seen.file.size, "", ()), data


def read_tail(seen: ReadableFile, lines: int, reader: Reader) -> FileTail:
    """See the last lines."""
    cut = tail(seen.file, lines, MOST_TAIL_BYTES)
    clean = reader.read(seen.file, [(cut.start, cut.end)])
    counted = count_lines(seen.file.read_at(cut.start, cut.end - cut.start))
    return FileTail(counted, cut.start, not cut.done, clean.texts[0], clean.evidence)


def find_matches(
    seen: ReadableFile, wanted: GrepRequest, reader: Reader, engine: SearchTools
) -> VisibleMatches:
    """See the lines that match."""
    record, file, stop = seen
    known = record.survey
    query = LineQuery(
        patterns.translate(wanted.pattern, case_sensitive=wanted.case_sensitive),
        known if known is not None and known.byte_size == file.size else None,
        TOP if wanted.cursor is None else search.parse_cursor(wanted.cursor, file),
        wanted.most + 1,
        TimeLimit(engine.seconds, engine.now),
        stop,
    )
    if reader.finder is not None:
        veil = engine.veils.of(query.survey, reader.finder)
        query = query._replace(
            sieve=VisibleLines(file, reader, veil, query.regex, query.longest_line)
        )
    found = search.search(file, query, engine.ripgrep)
    return search.tell(file, query, found, wanted.context_lines, reader)


class FileView(StrEnum):
    """How a file is shown to whoever asks."""

    REDACTED = "redacted"
    SENSITIVE = "sensitive"
    RAW = "raw"


class FileViews:
    """The redactors of this user; `sensitive` makes the wider rules the rule."""

    def __init__(self, redactor: Redactor, *, sensitive: bool = False) -> None:
        self._wide = redactor.sensitive()
        self._usual = self._wide if sensitive else redactor

    def reader(self, view: FileView, source_ref: str) -> Reader:
        """Make what reads files for someone."""
        finders = {FileView.REDACTED: self._usual, FileView.SENSITIVE: self._wide}
        return Reader(finders.get(view), source_ref)

    def told(self, text: str) -> str:
        """Make a text fit to be told: without secrets and half characters."""
        return self._usual.redact(without_surrogates(text)).text


READ_LIMIT = 8192
TAIL_LINES = 200

_THREADS = 8
_TRIES = 3
_TEXT = "text/plain"
_BYTES = "application/octet-stream"

T = TypeVar("T")


class ConversationKey(NamedTuple):
    """A conversation of a project."""

    project_id: str
    conversation_id: str


class FileRequest(NamedTuple):
    """A file of a conversation, how it is to be seen, and who could be asked to make it."""

    where: ConversationKey
    id: str
    view: FileView = FileView.REDACTED
    asker: Peer | None = None


class NewFileInfo(NamedTuple):
    """What is said of a new file; only kind and hint need to be."""

    kind: Kind
    hint: str
    origin: Origin | None = None
    mime_type: str | None = None
    key: str | None = None


class Put(NamedTuple):
    """The new ref, and a preview if the text is too long to stand in a conversation."""

    ref: ContextRef
    preview: Preview | None


class ContextFiles:
    """The context files of this user."""

    def __init__(
        self, store: Store, settings: Settings, recipes: Recipes, redactor: Redactor
    ) -> None:
        self.store = store
        self.settings = settings
        self.recipes = recipes
        self.views = FileViews(redactor, sensitive=settings.context_sensitive)
        self.inline_limits = Amount(settings.max_inline_chars, settings.max_inline_bytes)
        self._workshop = Materialiser(recipes, settings)
        self._limiter = CapacityLimiter(_THREADS)
        # Lanes of their own: who looks never waits for a crowd that puts, each with its syncs.
        self._looking = CapacityLimiter(_THREADS)
        self._ripgrep = find_ripgrep(settings.ripgrep)
        self._veils = SecretLinesCache()

    async def put(self, where: ConversationKey, content: str | bytes, about: NewFileInfo) -> Put:
        """Write a file now; the same key and content again give the same ref."""
        return await self.run(self._put, where, content, about)

    async def register(
        self,
        where: ConversationKey,
        recipe: dict[str, Any],
        about: NewFileInfo,
        host: Peer | None = None,
    ) -> ContextRef:
        """Keep a recipe; the file is made when it is first looked at."""
        new = self._new_file(about, self.recipes.check(recipe), recipe)
        conversation = await self.run(self.store.bound, *where)
        record = await self.run(conversation.register, new)
        if host is not None:
            self._workshop.remember(conversation.id, host)
        return record.ref

    async def newest(
        self, where: ConversationKey, kind: Kind | None, limit: int
    ) -> list[ContextRef]:
        """List the newest refs, oldest first."""
        conversation = await self.run(self.store.find, *where)
        records = [] if conversation is None else conversation.newest(kind, limit)
        return [record.ref for record in records]

    async def read(self, which: FileRequest, offset: int = 0, limit: int = READ_LIMIT) -> FilePage:
        """Read a page by byte offset; pages that follow each other join up."""
        reader = self.views.reader(which.view, which.id)
        return await self._look(which, lambda seen: read_page(seen, offset, limit, reader))

    async def read_bytes(
        self, which: FileRequest, offset: int, limit: int
    ) -> tuple[FilePage, bytes]:
        """Read a page byte for byte, secrets and all."""
        return await self._look(which, lambda seen: read_bytes(seen, offset, limit))

    async def tail(self, which: FileRequest, lines: int = TAIL_LINES) -> FileTail:
        """Read the last lines."""
        reader = self.views.reader(which.view, which.id)
        return await self._look(which, lambda seen: read_tail(seen, lines, reader))

    async def grep(self, which: FileRequest, wanted: GrepRequest) -> VisibleMatches:
        """Find the lines that match."""
        reader = self.views.reader(which.view, which.id)
        seconds = self.settings.grep_timeout_ms / 1000
        engine = SearchTools(self._ripgrep, seconds, self.store.clock.monotonic, self._veils)
        return await self._look(which, lambda seen: find_matches(seen, wanted, reader, engine))

    async def delete(self, where: ConversationKey, ref_id: str | None = None) -> list[Record]:
        """Forget a file, or the whole conversation; tells what is gone."""
        conversation = await self.run(self.store.find, *where)
        if ref_id is not None and conversation is None:
            raise unknown()
        if conversation is None:
            return []
        if ref_id is not None:
            return [await self.run(conversation.remove, ref_id)]
        return await self.run(self.store.delete, conversation)

    async def run(self, work: Callable[..., T], *arguments: Any) -> T:
        """Do what blocks in one of the few threads that context files may use."""
        return await to_thread.run_sync(work, *arguments, limiter=self._limiter)

    async def _look(self, which: FileRequest, work: Callable[[ReadableFile], T]) -> T:
        """Open a file, have it made if it is not there, and look; ends when its caller goes."""
        conversation = await to_thread.run_sync(
            self.store.find, *which.where, limiter=self._looking
        )
        if conversation is None:
            raise unknown()

        def look(stop: StopSignal) -> T:
            with conversation.opened(which.id) as (record, file):
                return work(ReadableFile(record, file, stop))

        for _ in range(_TRIES):
            try:
                return await in_thread(look, self._looking)
            except AbsentError as absent:
                await self._workshop.make(conversation, absent.record, which.asker)
        raise DaemonError(
            ErrorCode.CONFLICT, "The file was cleaned as soon as it was made; try again."
        )

    def _put(self, where: ConversationKey, content: str | bytes, about: NewFileInfo) -> Put:
        data = without_surrogates(content).encode() if isinstance(content, str) else content
        text = slices.whole_text(data)
        new = self._new_file(about, _BYTES if text is None else _TEXT)
        conversation = self.store.bound(*where)
        record = conversation.put(new, data)
        shown = slices.spoilt_text(data) if text is None else text
        return Put(record.ref, self._preview(conversation, record, shown))

    def _preview(
        self, conversation: ConversationFolder, record: Record, text: str | None
    ) -> Preview | None:
        size = 0 if record.survey is None else record.survey.byte_size
        if text is None:
            too_big = size > self.inline_limits.bytes
            return slices.binary_preview(record.id, size) if too_big else None
        if slices.fits(text, self.inline_limits):
            return None
        reader = self.views.reader(FileView.REDACTED, record.id)
        with conversation.opened(record.id) as (_, file):
            return slices.preview(file, record.id, self.inline_limits, reader, len(text))

    def _new_file(
        self, about: NewFileInfo, mime_type: str, recipe: dict[str, Any] | None = None
    ) -> NewFile:
        origin = about.origin or records.default_origin(about.kind)
        if records.kind_of(origin) is not about.kind:
            raise DaemonError(
                ErrorCode.INVALID_ARGUMENT,
                f"The origin {origin} does not go with the kind {about.kind}.",
                field="origin",
            )
        return NewFile(
            kind=about.kind,
            origin=origin,
            hint=self.views.told(about.hint)[:LONGEST_HINT],
            mime_type=about.mime_type or mime_type,
            key=about.key,
            recipe=recipe,
        )
