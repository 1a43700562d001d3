"""The indexes of all projects in use: kept current in the background, searched at any time.

A search uses the index as it is and can ask whether that is complete. At most one refresh runs at
a time, in a thread; it indexes the documents that changed and drops those that are gone.
"""

import contextlib
import math
import sqlite3
import sys
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import anyio
import structlog
from anyio import from_thread, to_thread
from anyio.abc import TaskGroup

from creonowd.clock import Clock
from creonowd.context.fragment import Caution
from creonowd.errors import DaemonError, ErrorCode
from creonowd.memo import Memo, return_freed_memory
from creonowd.model import Model
from creonowd.retrieval.document_list import LARGEST, FileMark, find_documents, is_excluded
from creonowd.retrieval.passages import (
    DamagedIndexError,
    Database,
    DocumentSecretFinder,
    IndexedDocument,
    Passage,
    cut,
    indexed_documents,
    put_document,
    remove_document,
    set_mark,
    stored_texts,
    text_digest,
    without_secrets,
)
from creonowd.retrieval.ranking import Nearness, SearchScope, StoredText
from creonowd.storage.safe_folder import LinkedFolder, mark_of
from creonowd.storage.unchanged_files import RECENT_MS
from creonowd.text import decode_text
from creonowd.threads import set_when_cancelled
from creonowd.workspace.creonow_tree import is_document, is_outline
from creonowd.workspace.documents import Documents
from creonowd.workspace.projects import Project
from creonowd.workspace.watcher import ProjectChange, Watcher

if TYPE_CHECKING:
    from creonowd.retrieval.bm25 import Matches
    from creonowd.retrieval.loaded_index import IndexLoader, LoadedIndex

# After a refresh, typing starts no other for this many times as long as the refresh took.
PAUSE_FACTOR = 20
# What takes longer leaves much that is free.
LONG_SECONDS = 0.1
LEAST_PAUSE_SECONDS = 1.0

# Nobody waits for a refresh of more documents.
DOCUMENTS_WAITED_FOR = 64

# Loading numpy takes a twentieth of a second, and much longer on a busy machine.
LOADING_SECONDS = 1.0

# A mark that no file has: what could not be read is tried again.
UNREAD = "unread"

# A thread that computes keeps all others waiting; short pauses let assemblies through. There are
# systems on which the shortest pause is long, so there is not one after each passage.
PAUSE_SECONDS = 0.0005
PASSAGES_WITHOUT_PAUSE = 256
PASSAGES_PER_PAUSE = 3

KEPT_CHARACTERS = 8_000_000
KEPT_RESULTS_BYTES = 16_000_000
TEXT_WEIGHT = 200

log = structlog.get_logger(__name__)


class EditorDocument(Model):
    """A document open in an editor; `mark` differs between any two states of its text."""

    mark: str
    text: Callable[[], str]


OpenDocuments = Callable[[], Mapping[str, EditorDocument]]
Report = Callable[[int, int], None]


def editor_documents(documents: Documents, project_id: str) -> dict[str, EditorDocument]:
    """Return the open documents of a project by path; a text is made only when it is asked for."""
    return {
        path: EditorDocument(
            mark=f"open {document.sync_number}", text=lambda buffer=document.buffer: buffer.text
        )
        for path, document in documents.open_documents(project_id).items()
    }


class IndexProgress(Model):
    """How far the running refresh is, in documents; both are zero when none runs."""

    done: int = 0
    documents: int = 0


class ProjectIndex:
    """The index of one project. All methods are for the event loop.

    `grace_seconds` is how long an assembly waits for a change of few documents to be indexed.
    """

    def __init__(
        self,
        database: Database,
        root: Path,
        clock: Clock,
        open_documents: OpenDocuments,
        finder: DocumentSecretFinder,
        *,
        grace_seconds: float,
    ) -> None:
        self.grace_seconds = grace_seconds
        self._database, self._root, self._clock = database, root, clock
        self._open_documents, self._finder = open_documents, finder
        self._indexed_marks: dict[str, str] = {}
        self._changes = self._indexed_changes = 0
        self._first_change = 0.0
        self._due, self._urgent, self._step = anyio.Event(), anyio.Event(), anyio.Event()
        self._pause_seconds = 0.0
        self._threads = anyio.CapacityLimiter(math.inf)
        self._loader: IndexLoader | None = None
        # Both change at the same moment, from the thread that loads: rows belong to one index.
        self._searched: tuple[LoadedIndex | None, Memo[object, Matches]] = (None, Memo(1))
        self._loaded_generation = -1
        self._texts: Memo[int, StoredText] = Memo(KEPT_CHARACTERS, _weigh)
        self._is_open = self.damaged = False
        self._has_numpy = anyio.Event()
        if "numpy" in sys.modules:
            self._has_numpy.set()
        self.progress = IndexProgress()
        self.steps = 0
        self.problem: str | None = None
        self.left_out: tuple[Caution, ...] = ()

    @property
    def is_current(self) -> bool:
        """Whether every reported change on disk is in the index."""
        return self._is_open and self._indexed_changes == self._changes

    def files_changed(self) -> None:
        """Start a refresh as soon as possible."""
        if self._indexed_changes == self._changes:
            self._first_change = self._clock.monotonic()
        self._changes += 1
        self._due.set()
        self._urgent.set()

    def buffers_changed(self) -> None:
        """Start a refresh after a pause, if what is open differs from what was indexed."""
        if _marks(self._open_documents()) != self._indexed_marks:
            self._due.set()

    @property
    def loaded(self) -> "LoadedIndex | None":
        """The index as it can be searched now; None before there is any."""
        return self._searched[0]

    def search(
        self,
        weights: Mapping[str, float],
        most: int,
        scope: SearchScope | None = None,
        nearness: Nearness | None = None,
    ) -> "tuple[LoadedIndex | None, list[Match]]":
        """Return the index that was searched, its rows and their scores; the best come first.

        What is not in the scope counts for nothing, not even for how rare a term is. `nearness`
        of documents raises scores moderately.
        """
        loaded, results = self._searched
        if loaded is None or not weights:
            return loaded, []
        key = (most, scope, nearness, tuple(weights.items()))
        found = results.get(key, lambda: _search(loaded, weights, most, scope, nearness))
        return loaded, list(zip(found.rows.tolist(), found.scores.tolist(), strict=True))

    def kept_text(self, number: int) -> StoredText | None:
        """Return the text of a passage by its number, if it is in memory."""
        return self._texts.peek(number)

    async def texts(self, numbers: Sequence[int]) -> dict[int, StoredText]:
        """Return the texts of passages by number, without those that are gone meanwhile.

        If the index is damaged, return nothing and make it anew.
        """
        try:
            read = await to_thread.run_sync(self._read_texts, numbers, abandon_on_cancel=True)
        except DamagedIndexError as damage:
            log.warning("retrieval_index_damaged", reason=str(damage))
            self.damaged = True
            self.files_changed()
            return {}
        for number, text in read.items():
            self._texts.put(number, text)
        return read

    def paths(self) -> list[str]:
        """Return the documents that are in the index, in order."""
        return [] if self.loaded is None else self.loaded.paths

    def caught_up(self, seconds: float) -> bool | None:
        """Return what `catch_up` returns if that would not wait, else None."""
        if not self._has_numpy.is_set():
            return None
        if self._indexed_changes >= self._changes:
            return True
        left = self._first_change + seconds - self._clock.monotonic()
        waits = (
            self.problem is None and self.progress.documents <= DOCUMENTS_WAITED_FOR and left > 0
        )
        return None if waits else False

    async def catch_up(self, seconds: float) -> bool:
        """Wait a little for the changes so far; return whether they are in the index.

        Nobody waits for many documents, nor for changes of which the first is older than `seconds`.
        The first index of a daemon has to load numpy before: that is waited for, too.
        """
        target = self._changes
        with anyio.move_on_after(max(LOADING_SECONDS, seconds)):
            await self._has_numpy.wait()
        with anyio.move_on_after(self._first_change + seconds - self._clock.monotonic()):
            while (
                self._indexed_changes < target
                and self.problem is None
                and self.progress.documents <= DOCUMENTS_WAITED_FOR
            ):
                await self._step.wait()
        return self._indexed_changes >= target

    async def complete(self, report: Callable[[IndexProgress], None]) -> None:
        """Wait for the changes so far, however many, and report every step."""
        target = self._changes
        while self._indexed_changes < target and self.problem is None:
            await self._step.wait()
            if self.progress.documents:
                report(self.progress)

    async def step(self, after: int) -> None:
        """Wait until there was more progress than `after`, a value of `steps`."""
        while self.steps <= after:
            await self._step.wait()

    async def run(self) -> None:
        """Keep the index current until cancelled."""
        stop = Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(set_when_cancelled, stop)
            while True:
                await self._due.wait()
                with anyio.move_on_after(self._pause_seconds):
                    await self._urgent.wait()
                self._due, self._urgent = anyio.Event(), anyio.Event()
                await self._refresh(stop)

    async def _refresh(self, stop: Event) -> None:
        changes, started = self._changes, self._clock.monotonic()
        scope = IndexScope(
            root=self._root,
            now_ms=self._clock.file_time_ms(),
            open_documents=dict(self._open_documents()),
            finder=self._finder,
        )
        try:
            if await to_thread.run_sync(self._refresh_now, scope, stop, limiter=self._threads):
                self._indexed_changes, self.problem = changes, None
                self._indexed_marks = _marks(scope.open_documents)
        except (sqlite3.Error, DamagedIndexError, OSError) as error:
            self.problem = type(error).__name__
            log.warning("retrieval_index_failed", error=self.problem)
        seconds = self._clock.monotonic() - started
        self._pause_seconds = max(LEAST_PAUSE_SECONDS, PAUSE_FACTOR * seconds)
        self._set_progress(IndexProgress())

    def _refresh_now(self, scope: "IndexScope", stop: Event) -> bool:
        if not self._has_numpy.is_set():
            import_module("creonowd.retrieval.loaded_index")
            from_thread.run_sync(self._begin)
        if self.damaged:
            self._start_over()
        elif not self._is_open:
            self._database.open()
        self._is_open, self.damaged = True, False
        try:
            return self._refresh_and_load(scope, stop)
        except DamagedIndexError as damage:
            log.warning("retrieval_index_damaged", reason=str(damage))
            self._start_over()
            return self._refresh_and_load(scope, stop)

    def _begin(self) -> None:
        self._first_change = self._clock.monotonic()
        self._has_numpy.set()

    def _start_over(self) -> None:
        self._database.start_over()
        self._loader, self._texts = None, Memo(KEPT_CHARACTERS, _weigh)

    def _refresh_and_load(self, scope: "IndexScope", stop: Event) -> bool:
        began = self._clock.monotonic()
        self._load()
        done = refresh(self._database, scope, self._report, stop, self._set_left_out)
        loader = self._load()
        if not loader.is_saved:
            with self._database.write() as connection:
                loader.save(connection)
            self._loaded_generation = self._database.generation
        if self._clock.monotonic() - began > LONG_SECONDS:
            return_freed_memory()
        return done

    def _load(self) -> "IndexLoader":
        """Load what the database has, if it changed."""
        from creonowd.retrieval.loaded_index import IndexLoader

        loader = self._loader = self._loader or IndexLoader()
        generation = self._database.generation
        if self.loaded is None or generation != self._loaded_generation:
            with self._database.read() as connection:
                loaded = loader.load(connection)
            if loaded is not self.loaded:
                self._searched = (loaded, Memo(KEPT_RESULTS_BYTES, _weigh_matches))
            self._loaded_generation = generation
        return loader

    def _report(self, done: int, documents: int) -> None:
        # While many documents are indexed, those that are done can be found from time to time.
        if done and done & (done - 1) == 0:
            self._load()
        from_thread.run_sync(self._set_progress, IndexProgress(done=done, documents=documents))

    def _set_left_out(self, left_out: tuple[Caution, ...]) -> None:
        if left_out and left_out != self.left_out:
            log.warning("documents_left_out", notices=[caution.text() for caution in left_out])
        self.left_out = left_out

    def _set_progress(self, progress: IndexProgress) -> None:
        self.progress = progress
        self.steps += 1
        step, self._step = self._step, anyio.Event()
        step.set()

    def _read_texts(self, numbers: Iterable[int]) -> dict[int, StoredText]:
        with self._database.read() as connection:
            return stored_texts(connection, numbers)


Match = tuple[int, float]


def _search(
    loaded: "LoadedIndex",
    weights: Mapping[str, float],
    most: int,
    scope: SearchScope | None,
    nearness: Nearness | None,
) -> "Matches":
    from creonowd.retrieval.bm25 import search

    factors = None if nearness is None else loaded.factors(nearness)
    return search(loaded.terms_in(scope), weights, most, factors)


def _marks(documents: Mapping[str, EditorDocument]) -> dict[str, str]:
    return {path: document.mark for path, document in documents.items()}


def _weigh_matches(_key: object, found: "Matches") -> int:
    return found.weight


def _weigh(_number: int, stored: StoredText) -> int:
    return TEXT_WEIGHT + len(stored.text)


class IndexScope(Model):
    """What an index has to agree with after a refresh."""

    root: Path
    now_ms: int
    open_documents: Mapping[str, EditorDocument]
    finder: DocumentSecretFinder


def refresh(
    database: Database,
    scope: IndexScope,
    report: Report,
    stop: Event,
    warn: Callable[[tuple[Caution, ...]], None] = lambda _: None,
) -> bool:
    """Index what changed and drop what is gone; return False if stopped before the end.

    `report` gets the number of documents that are done, and of all; `warn` what a huge project
    leaves out. A document is in the index as soon as it is done.
    """
    with database.read() as connection:
        indexed = indexed_documents(connection)
    found = find_documents(scope.root, stop.is_set)
    if stop.is_set():
        return False
    warn(found.cautions())
    marks = _current_marks(scope, found.documents)
    gone = sorted(indexed.keys() - marks.keys())
    stale = sorted(p for p, mark in marks.items() if p not in indexed or indexed[p].mark != mark)
    total = len(gone) + len(stale)
    report(0, total)
    throttle = _Throttle(stop)
    for number, path in enumerate((*gone, *stale), start=1):
        try:
            throttle.check()
            _index(database, scope, path, indexed.get(path), throttle)
        except _DaemonEndsError:
            return False
        report(number, total)
    return True


class _DaemonEndsError(Exception):
    """The daemon ends."""


class _Throttle:
    """Lets a few passages through at once, more of them with pauses."""

    def __init__(self, stop: Event) -> None:
        self._stop = stop
        self._count = 0

    def check(self) -> None:
        """Stop between two documents: one may have no passage."""
        if self._stop.is_set():
            raise _DaemonEndsError

    def pace(self, passages: Iterable[Passage]) -> Iterator[Passage]:
        """Return the passages one after the other, until stopped."""
        for passage in passages:
            self._count += 1
            pauses = self._count > PASSAGES_WITHOUT_PAUSE and self._count % PASSAGES_PER_PAUSE == 0
            if self._stop.wait(PAUSE_SECONDS if pauses else 0):
                raise _DaemonEndsError
            yield passage


def _current_marks(scope: IndexScope, found: Mapping[str, FileMark]) -> dict[str, str]:
    marks = {path: _mark(file, scope) for path, file in found.items()}
    for path, document in scope.open_documents.items():
        if path in marks or not is_excluded(scope.root, path):
            marks[path] = document.mark
    return marks


def _mark(file: FileMark, scope: IndexScope) -> str:
    """Return a text that differs between states of a file, except while the file is young."""
    if scope.now_ms - file.modified_ns // 1_000_000 <= RECENT_MS:
        return f"young {file.modified_ns}"
    return f"{file.inode} {file.size_bytes} {file.modified_ns} {file.changed_ns}"


def _index(
    database: Database,
    scope: IndexScope,
    path: str,
    indexed: IndexedDocument | None,
    throttle: _Throttle,
) -> None:
    found = _read(scope, path)
    with database.write() as connection:
        if found is None:
            remove_document(connection, path)
            return
        mark, text = found
        # An outline stands in the settings and would be found a second time.
        text = "" if text and is_outline(path, text) else text
        digest = b"" if text is None else text_digest(text)
        if indexed is not None and indexed.digest == digest:
            set_mark(connection, path, mark)
        else:
            passages = without_secrets(text or "", cut(text or ""), scope.finder)
            put_document(connection, path, (mark, digest), throttle.pace(passages))


def _read(scope: IndexScope, path: str) -> tuple[str, str | None] | None:
    """Return a document's mark and text; None if it is gone, no text if it cannot be read."""
    if (document := scope.open_documents.get(path)) is not None:
        return document.mark, document.text()
    files = LinkedFolder(scope.root)
    if (status := files.status(path)) is None:
        return None
    mark = _mark(FileMark(*mark_of(status)), scope)
    try:
        return mark, decode_text(files.snapshot(path, limit=LARGEST).data).text
    except DaemonError as error:
        if error.code is ErrorCode.NOT_FOUND:
            return None
        may_pass = error.code is ErrorCode.IO_ERROR and "limitBytes" not in error.details
        return (UNREAD if may_pass else mark), None


FOLDER = "retrieval"

# A watch takes a thread and, on Linux, one of the 128 watchers that all programs of a user share.
MOST_WATCHED = 16

ProjectDocuments = Callable[[str], Mapping[str, EditorDocument]]


@dataclass
class _OpenIndex:
    index: ProjectIndex
    database: Database
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ended: anyio.Event = field(default_factory=anyio.Event)
    watched: bool = False
    watch_when_used: bool = False


class Indexes:
    """Opens the index of a project, and keeps it current from then on."""

    def __init__(
        self,
        user_data: Path,
        clock: Clock,
        watcher: Watcher,
        open_documents: ProjectDocuments,
        finder: DocumentSecretFinder,
        *,
        grace_seconds: float,
    ) -> None:
        self._folder, self._grace_seconds = user_data / FOLDER, grace_seconds
        self._clock, self._watcher = clock, watcher
        self._open_documents, self._finder = open_documents, finder
        self._indexes: dict[str, _OpenIndex] = {}
        self._tasks: TaskGroup | None = None

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncGenerator[None]:
        """Keep indexes current for as long as the block lasts."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            try:
                yield
            finally:
                self._tasks = None
                tasks.cancel_scope.cancel()

    def of(self, project: Project) -> ProjectIndex:
        """Return a project's index as it is now; it refreshes if anything may have changed."""
        opened = self._indexes.pop(project.project_id, None) or self._open(project)
        self._indexes[project.project_id] = opened
        if opened.watch_when_used and self._tasks is not None:
            opened.watch_when_used = False
            self._tasks.start_soon(self._watch, project, opened)
        reported = opened.watched and not self._watcher.misses_changes(project.project_id)
        if opened.index.problem or (not reported and opened.index.is_current):
            opened.index.files_changed()
        opened.index.buffers_changed()
        return opened.index

    async def forget(self, project_id: str) -> None:
        """Delete the index of a project that was removed."""
        opened = self._indexes.pop(project_id, None)
        if opened is not None:
            opened.scope.cancel()
            await opened.ended.wait()
        database = opened.database if opened else self._database(project_id)
        await to_thread.run_sync(database.remove)

    def left_out(self) -> dict[str, tuple[Caution, ...]]:
        """Return the projects of which something is left out, and what."""
        return {
            project_id: opened.index.left_out
            for project_id, opened in self._indexes.items()
            if opened.index.left_out
        }

    def problems(self) -> dict[str, str]:
        """Return the projects that cannot be indexed, and why."""
        return {
            project_id: opened.index.problem
            for project_id, opened in self._indexes.items()
            if opened.index.problem
        }

    def _open(self, project: Project) -> _OpenIndex:
        if self._tasks is None:
            raise DaemonError(ErrorCode.SHUTTING_DOWN)
        database = self._database(project.project_id)
        documents = partial(self._open_documents, project.project_id)
        index = ProjectIndex(
            database,
            project.root,
            self._clock,
            documents,
            self._finder,
            grace_seconds=self._grace_seconds,
        )
        opened = _OpenIndex(index, database)
        self._indexes[project.project_id] = opened
        opened.index.files_changed()
        self._tasks.start_soon(self._run, project, opened)
        return opened

    async def _run(self, project: Project, opened: _OpenIndex) -> None:
        try:
            with opened.scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._watch, project, opened)
                    await opened.index.run()
        finally:
            self._watcher.drop(_listener(project.project_id))
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(opened.database.close)
            opened.ended.set()

    async def _watch(self, project: Project, opened: _OpenIndex) -> None:
        def on_change(change: ProjectChange) -> None:
            opened.watched = change.watching
            if not change.watching or any(map(is_document, change.paths)):
                opened.index.files_changed()

        with contextlib.suppress(DaemonError):
            await self._watcher.subscribe(project, _listener(project.project_id), on_change)
            opened.watched = True
            opened.index.files_changed()
        self._unwatch_others()
        if opened.ended.is_set():
            self._watcher.drop(_listener(project.project_id))

    def _unwatch_others(self) -> None:
        """Stop watching the projects that were not used for longest, until they are used again."""
        watched = [(name, opened) for name, opened in self._indexes.items() if opened.watched]
        for name, opened in watched[:-MOST_WATCHED]:
            opened.watched, opened.watch_when_used = False, True
            self._watcher.drop(_listener(name))

    def _database(self, project_id: str) -> Database:
        return Database(self._folder / f"{project_id}.sqlite3")


def _listener(project_id: str) -> str:
    return f"retrieval of {project_id}"
