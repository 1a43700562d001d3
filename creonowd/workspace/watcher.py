"""Who wants to know of which project's changes, and one thread that follows each such project.

Knows projects, listeners and layers; knows no connection. Nothing runs for a project that
nobody listens to.
"""

import contextlib
import math
import threading
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from functools import partial

import anyio
import structlog
from anyio import from_thread, to_thread
from anyio.abc import TaskGroup

from creonowd.clock import Clock
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model
from creonowd.workspace.following import ONE_BY_ONE, End, follow
from creonowd.workspace.layers import Layer, layers_of
from creonowd.workspace.registry import Project

log = structlog.get_logger(__name__)


class Change(Model):
    """What changed in a project, or, if `watching` is false, that nobody can tell any longer."""

    project_id: str
    paths: tuple[str, ...]
    layers: tuple[Layer, ...]
    at_ms: int
    watching: bool = True


Listener = Callable[[Change], None]


@dataclass
class _Watch:
    project: Project
    listeners: dict[str, Listener] = field(default_factory=dict[str, Listener])
    clients: set[str] = field(default_factory=set[str])
    stop: threading.Event = field(default_factory=threading.Event)
    settled: anyio.Event = field(default_factory=anyio.Event)
    ended: anyio.Event = field(default_factory=anyio.Event)
    end: End | None = None


class Watcher:
    """The hub between changed files and those who asked."""

    def __init__(self, clock: Clock, *, one_by_one: bool = ONE_BY_ONE) -> None:
        self._clock = clock
        self._one_by_one = one_by_one
        self._watches: dict[str, _Watch] = {}
        self._met: set[str] = set()
        self._turns: defaultdict[str, anyio.Lock] = defaultdict(anyio.Lock)
        self._tasks: TaskGroup | None = None
        self._threads = anyio.CapacityLimiter(math.inf)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Follow projects for as long as the block lasts."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            yield
            tasks.cancel_scope.cancel()

    async def subscribe(
        self, project: Project, key: str, listener: Listener, *, client: bool = False
    ) -> bool:
        """Call `listener` on the event loop with each change from now on; one listener per `key`.

        `client` marks a connection's own wish, which is what `watching` reports. Tells whether
        the key is new to the project.
        """
        async with self._turns[project.project_id]:
            watch = self._watches.get(project.project_id)
            if watch is not None and watch.stop.is_set():
                await watch.ended.wait()
                watch = None
            watch = watch or await self._started(project)
            new = key not in watch.listeners
            watch.listeners[key] = listener
            if client:
                watch.clients.add(key)
            return new

    async def unsubscribe(self, project_id: str, key: str) -> bool:
        """Stop calling the listener; when it was the last, return after the watching has ended.

        Tells whether there was such a listener.
        """
        async with self._turns[project_id]:
            watch = self._watches.get(project_id)
            if watch is None or not self._leave(watch, key):
                return False
            if watch.stop.is_set():
                await watch.ended.wait()
            return True

    def meets(self, key: str) -> bool:
        """Tell whether this key is new here, so that its owner says once when to `drop` it."""
        new = key not in self._met
        self._met.add(key)
        return new

    def drop(self, key: str) -> None:
        """Stop calling a listener that has gone, in every project."""
        self._met.discard(key)
        for watch in list(self._watches.values()):
            self._leave(watch, key)

    async def forget(self, project_id: str) -> None:
        """Stop watching a project that is one no longer, and tell those who listened."""
        async with self._turns[project_id]:
            if (watch := self._watches.get(project_id)) is not None:
                listeners = list(watch.listeners.values())
                watch.stop.set()
                await watch.ended.wait()
                self._say_over(watch, listeners)

    def watching(self, project_id: str) -> bool:
        """Tell whether any connection watches the project."""
        watch = self._watches.get(project_id)
        return watch is not None and bool(watch.clients) and not watch.stop.is_set()

    def _leave(self, watch: _Watch, key: str) -> bool:
        if watch.listeners.pop(key, None) is None:
            return False
        watch.clients.discard(key)
        if not watch.listeners:
            watch.stop.set()
        return True

    async def _started(self, project: Project) -> _Watch:
        if self._tasks is None:
            raise DaemonError(ErrorCode.SHUTTING_DOWN)
        watch = self._watches[project.project_id] = _Watch(project)
        self._tasks.start_soon(self._run, watch)
        try:
            await watch.settled.wait()
        except BaseException:
            watch.stop.set()
            raise
        if watch.end is not None:
            raise _cannot_watch(watch.end)
        return watch

    async def _run(self, watch: _Watch) -> None:
        project_id = watch.project.project_id
        try:
            watch.end = await self._follow(watch)
        finally:
            del self._watches[project_id]
            watch.ended.set()
        if watch.settled.is_set() and watch.end is not End.STOPPED:
            log.warning("context_watch_stopped", project_id=project_id, reason=str(watch.end))
            self._say_over(watch, list(watch.listeners.values()))
        watch.settled.set()

    async def _follow(self, watch: _Watch) -> End:
        def armed() -> None:
            from_thread.run_sync(watch.settled.set)

        def tell(paths: frozenset[str]) -> None:
            from_thread.run_sync(self._say, watch, paths)

        work = partial(
            follow,
            watch.project.root,
            watch.stop,
            armed=armed,
            tell=tell,
            one_by_one=self._one_by_one,
        )
        end = End.STOPPED
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_stop_when_cancelled, watch.stop)
            end = await to_thread.run_sync(work, limiter=self._threads)
            tasks.cancel_scope.cancel()
        return end

    def _say(self, watch: _Watch, paths: frozenset[str]) -> None:
        change = Change(
            project_id=watch.project.project_id,
            paths=tuple(sorted(paths)),
            layers=layers_of(paths),
            at_ms=self._clock.now_ms(),
        )
        for listener in list(watch.listeners.values()):
            listener(change)

    def _say_over(self, watch: _Watch, listeners: list[Listener]) -> None:
        over = Change(
            project_id=watch.project.project_id,
            paths=(),
            layers=(),
            at_ms=self._clock.now_ms(),
            watching=False,
        )
        for listener in listeners:
            listener(over)


async def _stop_when_cancelled(stop: threading.Event) -> None:
    """Wake the thread when the daemon ends: a thread cannot be cancelled."""
    try:
        await anyio.sleep_forever()
    finally:
        stop.set()


def _cannot_watch(end: End) -> DaemonError:
    if end is End.GONE:
        return DaemonError(
            ErrorCode.NOT_FOUND, "The project's folder is gone; bring it back first."
        )
    return DaemonError(
        ErrorCode.IO_ERROR,
        "The system cannot watch this folder now; everything works without, only slower.",
    )
