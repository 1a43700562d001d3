"""One project's index while the daemon runs: kept current in the background, asked at any time.

Knows when a round is due and lets no more than one run; what a round does is `refresh`'s
business. Whoever asks gets what is there, and can see whether that is all.
"""

import math
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from hashlib import blake2b
from pathlib import Path
from threading import Event

import anyio
import structlog
from anyio import from_thread, to_thread

from creonowd.clock import Clock
from creonowd.errors import DaemonError, ErrorCode
from creonowd.memo import Memo
from creonowd.model import Model
from creonowd.retrieval.bm25 import FoundPassage, search
from creonowd.retrieval.catalogue import LARGEST, documents_in, is_left_out
from creonowd.retrieval.database import DamagedIndexError, Database
from creonowd.retrieval.index_writer import IndexedDocument, entries, put, remove, settle, touch
from creonowd.retrieval.passages import DocumentSecretFinder, Passage, cut, without_secrets
from creonowd.storage.encodings import decode_text
from creonowd.storage.safe_folder import LinkedFolder
from creonowd.workspace.documents import Documents, OpenDocument


class EditorDocument(Model):
    """A document open in an editor: its text, and by what to tell one state from the next."""

    mark: str
    text: Callable[[], str]


def editor_documents(documents: Documents, project_id: str) -> dict[str, EditorDocument]:
    """Give what is open of a project; the texts are put together only when asked for."""
    return {
        path: _held(document) for path, document in documents.open_documents(project_id).items()
    }


def _held(document: OpenDocument) -> EditorDocument:
    return EditorDocument(mark=f"open {document.turn}", text=lambda: document.buffer.text)


# The coarsest clock of a disk in use (FAT): within it, two writes may look like one.
YOUNG_MS = 2000
UNREAD = "unread"
MANY = 32
# A thread that computes keeps all others waiting; short rests let assemblies through. There are
# systems on which the shortest rest is long, so not every passage has one.
BREATH_SECONDS = 0.0005
AT_A_STRETCH = 256
BETWEEN_RESTS = 3

Report = Callable[[int, int], None]


class _StoppedError(Exception):
    """Nobody waits for the index any more."""


class Pace:
    """How a round goes about its passages: at a stretch if they are few, else with rests."""

    def __init__(self, stop: Event) -> None:
        self._stop = stop
        self._passed = 0

    def through(self, passages: Iterable[Passage]) -> Iterator[Passage]:
        """Go through some passages, as long as anyone waits for them."""
        for passage in passages:
            self._passed += 1
            rests = self._passed > AT_A_STRETCH and self._passed % BETWEEN_RESTS == 0
            if self._stop.wait(BREATH_SECONDS if rests else 0):
                raise _StoppedError
            yield passage


class IndexScope(Model):
    """What an index is to be brought in line with."""

    root: Path
    now_ms: int
    held: Mapping[str, EditorDocument]
    finder: DocumentSecretFinder


def refresh(database: Database, scene: IndexScope, report: Report, stop: Event) -> bool:
    """Index what changed and drop what is gone; False if told to stop before the end.

    `report` hears how many documents of how many are done. Each is in the index as soon as it is.
    """
    with database.reading() as connection:
        known = entries(connection)
    marks = _marks(scene)
    gone = sorted(known.keys() - marks.keys())
    stale = sorted(p for p, mark in marks.items() if p not in known or known[p].mark != mark)
    report(0, len(gone) + len(stale))
    pace = Pace(stop)
    for number, path in enumerate((*gone, *stale), start=1):
        try:
            _bring(database, scene, path, known.get(path), pace)
        except _StoppedError:
            return False
        report(number, len(gone) + len(stale))
    if len(gone) + len(stale) >= MANY:
        with database.writing() as connection:
            settle(connection)
    return True


def left_out(database: Database) -> list[str]:
    """List the documents that could not be read as text."""
    with database.reading() as connection:
        rows = connection.execute("SELECT path FROM documents WHERE digest = x'' ORDER BY path")
        return [path for (path,) in rows]


def _marks(scene: IndexScope) -> dict[str, str]:
    files = {path: _mark(status, scene) for path, status in documents_in(scene.root).items()}
    for path, held in scene.held.items():
        if path in files or not is_left_out(scene.root, path):
            files[path] = held.mark
    return files


def _mark(status: os.stat_result, scene: IndexScope) -> str:
    """Spell what tells a file's states apart; nothing does while it is young."""
    if scene.now_ms - status.st_mtime_ns // 1_000_000 <= YOUNG_MS:
        return f"young {status.st_mtime_ns}"
    return f"{status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"


def _bring(
    database: Database, scene: IndexScope, path: str, known: IndexedDocument | None, pace: Pace
) -> None:
    found = _read(scene, path)
    with database.writing() as connection:
        if found is None:
            remove(connection, path)
            return
        mark, text = found
        digest = b"" if text is None else _digest(text)
        if known is not None and known.digest == digest:
            touch(connection, path, mark)
        else:
            shown = without_secrets(text or "", cut(text or ""), scene.finder)
            put(connection, path, (mark, digest), pace.through(shown))


def _read(scene: IndexScope, path: str) -> tuple[str, str | None] | None:
    """Read a document and its mark: None if it is gone, no text if it is none or refuses."""
    if (held := scene.held.get(path)) is not None:
        return held.mark, held.text()
    try:
        mark = _mark((scene.root / path).stat(), scene)
    except OSError:
        return None
    try:
        return mark, decode_text(LinkedFolder(scene.root).snapshot(path, limit=LARGEST).data).text
    except DaemonError as error:
        if error.code is ErrorCode.NOT_FOUND:
            return None
        # What may be read the next time gets a mark that no file has, so that it is tried again.
        passing = error.code is ErrorCode.IO_ERROR and "limitBytes" not in error.details
        return (UNREAD if passing else mark), None


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


# After a round, typing starts no other for so many times as long as the round took.
REST_FACTOR = 20
LEAST_REST_SECONDS = 1.0
FEW = 64
REMEMBERED_CHARACTERS = 4_000_000
FOUND_WEIGHT = 1000

log = structlog.get_logger(__name__)

Holding = Callable[[], Mapping[str, EditorDocument]]


class IndexProgress(Model):
    """How far the running round is, in documents; both are zero when none runs."""

    done: int = 0
    documents: int = 0


class ProjectIndex:
    """The index of one project. All methods are for the event loop."""

    def __init__(
        self,
        database: Database,
        root: Path,
        clock: Clock,
        holding: Holding,
        finder: DocumentSecretFinder,
    ) -> None:
        self._database, self._root, self._clock = database, root, clock
        self._holding, self._finder = holding, finder
        self._held: dict[str, str] = {}
        self._asked = self._done = 0
        self._waits_since = 0.0
        self._due, self._urgent, self._turned = anyio.Event(), anyio.Event(), anyio.Event()
        self._rest_seconds = 0.0
        self._threads = anyio.CapacityLimiter(math.inf)
        self._known: Memo[object, list[FoundPassage]] = Memo(REMEMBERED_CHARACTERS, _weigh)
        self._opened = self.damaged = False
        self.progress = IndexProgress()
        self.turns = 0
        self.problem: str | None = None

    @property
    def current(self) -> bool:
        """Whether everything that changed on disk, as far as anyone said, is in the index."""
        return self._opened and self._done == self._asked

    @property
    def generation(self) -> int:
        """A number that differs whenever the index may answer differently."""
        return self._database.generation

    def files_changed(self) -> None:
        """Start a round as soon as possible."""
        if self._done == self._asked:
            self._waits_since = self._clock.monotonic()
        self._asked += 1
        self._due.set()
        self._urgent.set()

    def buffers_changed(self) -> None:
        """Start a round when the author rests, if what is open differs from what was indexed."""
        if {path: held.mark for path, held in self._holding().items()} != self._held:
            self._due.set()

    async def search(self, weights: Mapping[str, float], most: int) -> list[FoundPassage]:
        """Search what is there now; nothing if that is damaged, which starts it anew."""
        if not self._opened or not weights:
            return []
        key = (self._database.generation, most, tuple(weights.items()))
        if (known := self._known.recall(key)) is not None:
            return known
        try:
            found = await to_thread.run_sync(self._search, weights, most, abandon_on_cancel=True)
        except DamagedIndexError as damage:
            log.warning("retrieval_index_damaged", reason=str(damage))
            self.damaged = True
            self.files_changed()
            return []
        self._known.put(key, found)
        return found

    async def paths(self) -> list[str]:
        """List the documents that are in the index, in order."""
        return await to_thread.run_sync(self._paths) if self._opened else []

    async def catch_up(self, seconds: float) -> bool:
        """Wait a little for changes so far; tell whether that is all.

        Nobody waits for many documents, nor for a change that is older than so many seconds.
        """
        target = self._asked
        with anyio.move_on_after(self._waits_since + seconds - self._clock.monotonic()):
            while self._done < target and self.problem is None and self.progress.documents <= FEW:
                await self._turned.wait()
        return self._done >= target

    async def complete(self, tell: Callable[[IndexProgress], None]) -> None:
        """Wait for changes so far, however many; `tell` hears of every step."""
        target = self._asked
        while self._done < target and self.problem is None:
            await self._turned.wait()
            if self.progress.documents:
                tell(self.progress)

    async def turn(self, after: int) -> None:
        """Wait until there was more progress than `after`, a value of `turns`."""
        while self.turns <= after:
            await self._turned.wait()

    async def run(self) -> None:
        """Keep the index current until cancelled."""
        stop = Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_stop_when_cancelled, stop)
            while True:
                await self._due.wait()
                with anyio.move_on_after(self._rest_seconds):
                    await self._urgent.wait()
                self._due, self._urgent = anyio.Event(), anyio.Event()
                await self._round(stop)

    async def _round(self, stop: Event) -> None:
        asked, started = self._asked, self._clock.monotonic()
        held = dict(self._holding())
        now_ms = self._clock.now_ms()
        scene = IndexScope(root=self._root, now_ms=now_ms, held=held, finder=self._finder)
        work = partial(self._refresh, scene, stop)
        try:
            if await to_thread.run_sync(work, limiter=self._threads):
                self._done, self.problem = asked, None
                self._held = {path: open_.mark for path, open_ in held.items()}
        except (sqlite3.Error, DamagedIndexError, OSError) as error:
            self.problem = type(error).__name__
            log.warning("retrieval_index_failed", error=self.problem)
        seconds = self._clock.monotonic() - started
        self._rest_seconds = max(LEAST_REST_SECONDS, REST_FACTOR * seconds)
        self._tell(IndexProgress())

    def _refresh(self, scene: IndexScope, stop: Event) -> bool:
        """Do a round in its thread."""
        if self.damaged:
            self._database.start_over()
        elif not self._opened:
            self._database.open()
        self._opened, self.damaged = True, False
        try:
            return refresh(self._database, scene, self._report, stop)
        except DamagedIndexError as damage:
            log.warning("retrieval_index_damaged", reason=str(damage))
            self._database.start_over()
            return refresh(self._database, scene, self._report, stop)

    def _report(self, done: int, documents: int) -> None:
        from_thread.run_sync(self._tell, IndexProgress(done=done, documents=documents))

    def _tell(self, progress: IndexProgress) -> None:
        self.progress = progress
        self.turns += 1
        turned, self._turned = self._turned, anyio.Event()
        turned.set()

    def _paths(self) -> list[str]:
        with self._database.reading() as connection:
            return sorted(entries(connection))

    def _search(self, weights: Mapping[str, float], most: int) -> list[FoundPassage]:
        with self._database.reading() as connection:
            return search(connection, weights, most)


def _weigh(_key: object, found: list[FoundPassage]) -> int:
    return 1000 + sum(FOUND_WEIGHT + len(one.text) for one in found)


async def _stop_when_cancelled(stop: Event) -> None:
    """Wake the thread when the daemon ends: a thread cannot be cancelled."""
    try:
        await anyio.sleep_forever()
    finally:
        stop.set()
