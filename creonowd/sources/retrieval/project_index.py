"""One project's index while the daemon runs: kept current in the background, asked at any time.

Knows when a round is due and lets no more than one run; what a round does is `refresh`'s
business. Whoever asks gets what is there, and can see whether that is all.
"""

import math
import sqlite3
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from threading import Event

import anyio
import structlog
from anyio import from_thread, to_thread

from creonowd.clock import Clock
from creonowd.memo import Memo
from creonowd.model import Model
from creonowd.sources.retrieval.concealing import Finder
from creonowd.sources.retrieval.database import DamagedIndexError, Database
from creonowd.sources.retrieval.held import Held
from creonowd.sources.retrieval.refresh import Scene, refresh
from creonowd.sources.retrieval.search import Found, search
from creonowd.sources.retrieval.writing import entries

# After a round, typing starts no other for so many times as long as the round took.
REST_FACTOR = 20
LEAST_REST_SECONDS = 1.0
FEW = 64
REMEMBERED_CHARACTERS = 4_000_000
FOUND_WEIGHT = 1000

log = structlog.get_logger(__name__)

Holding = Callable[[], Mapping[str, Held]]


class Progress(Model):
    """How far the running round is, in documents; both are zero when none runs."""

    done: int = 0
    documents: int = 0


class ProjectIndex:
    """The index of one project. All methods are for the event loop."""

    def __init__(
        self, database: Database, root: Path, clock: Clock, holding: Holding, finder: Finder
    ) -> None:
        self._database, self._root, self._clock = database, root, clock
        self._holding, self._finder = holding, finder
        self._held: dict[str, str] = {}
        self._asked = self._done = 0
        self._waits_since = 0.0
        self._due, self._urgent, self._turned = anyio.Event(), anyio.Event(), anyio.Event()
        self._rest_seconds = 0.0
        self._threads = anyio.CapacityLimiter(math.inf)
        self._known: Memo[object, list[Found]] = Memo(REMEMBERED_CHARACTERS, _weigh)
        self._opened = self.damaged = False
        self.progress = Progress()
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

    async def search(self, weights: Mapping[str, float], most: int) -> list[Found]:
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

    async def complete(self, tell: Callable[[Progress], None]) -> None:
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
        scene = Scene(root=self._root, now_ms=now_ms, held=held, finder=self._finder)
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
        self._tell(Progress())

    def _refresh(self, scene: Scene, stop: Event) -> bool:
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
        from_thread.run_sync(self._tell, Progress(done=done, documents=documents))

    def _tell(self, progress: Progress) -> None:
        self.progress = progress
        self.turns += 1
        turned, self._turned = self._turned, anyio.Event()
        turned.set()

    def _paths(self) -> list[str]:
        with self._database.reading() as connection:
            return sorted(entries(connection))

    def _search(self, weights: Mapping[str, float], most: int) -> list[Found]:
        with self._database.reading() as connection:
            return search(connection, weights, most)


def _weigh(_key: object, found: list[Found]) -> int:
    return 1000 + sum(FOUND_WEIGHT + len(one.text) for one in found)


async def _stop_when_cancelled(stop: Event) -> None:
    """Wake the thread when the daemon ends: a thread cannot be cancelled."""
    try:
        await anyio.sleep_forever()
    finally:
        stop.set()
