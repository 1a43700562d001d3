"""Who wants to know of which project's changes, and one thread that follows each such project.

Knows projects, listeners and layers; knows no connection. Nothing runs for a project that
nobody listens to.
"""

import contextlib
import math
import os
import stat
import sys
import threading
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path

import anyio
import structlog
from anyio import from_thread, to_thread
from anyio.abc import TaskGroup
from watchfiles._rust_notify import RustNotify  # the documented low-level interface

from creonowd.clock import Clock
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model
from creonowd.storage.safe_folder import mark_of
from creonowd.workspace.creonow_tree import Layer, is_relevant_file, is_relevant_folder, layers_of
from creonowd.workspace.projects import Project

Identity = tuple[int, int]


class FolderState(Model):
    """One folder as it was: itself, its files that matter, and the folders to enter."""

    identity: Identity
    files: dict[str, tuple[int, ...]]
    folders: dict[str, Identity]


Snapshot = Mapping[str, FolderState]


def take(
    root: Path, before: Snapshot | None = None, dirty: frozenset[str] = frozenset()
) -> Snapshot:
    """Look at a project, by project-relative folder; the project's own is `""`, if it is there.

    Given an earlier snapshot, only `dirty` folders and those that are new are looked into.
    """
    seen: dict[str, FolderState] = {}
    waiting = [("", _identity(Path(os.path.realpath(root))))]
    while waiting:
        folder, identity = waiting.pop()
        old = before.get(folder) if before and folder not in dirty else None
        here = old if old and old.identity == identity else _look(root, folder, identity)
        if here is not None:
            seen[folder] = here
            waiting.extend((_join(folder, name), which) for name, which in here.folders.items())
    return seen


def difference(before: Snapshot, after: Snapshot) -> set[str]:
    """Tell which files came, went or changed, by project-relative path."""
    return {path for folder in before.keys() | after.keys() for path in _in(folder, before, after)}


def _in(folder: str, before: Snapshot, after: Snapshot) -> Iterator[str]:
    old, new = before.get(folder), after.get(folder)
    if old is new:
        return
    was = old.files if old else {}
    now = new.files if new else {}
    for name in was.keys() | now.keys():
        if was.get(name) != now.get(name):
            yield _join(folder, name)


def _look(root: Path, folder: str, identity: Identity | None) -> FolderState | None:
    if identity is None:
        return None
    files: dict[str, tuple[int, ...]] = {}
    folders: dict[str, Identity] = {}
    try:
        with os.scandir(root / folder) as entries:
            for entry in entries:
                _note(entry, folder, files, folders)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    return FolderState(identity=identity, files=files, folders=folders)


def _note(
    entry: os.DirEntry[str],
    folder: str,
    files: dict[str, tuple[int, ...]],
    folders: dict[str, Identity],
) -> None:
    # Not entry.stat(): on Windows that leaves out what tells one file from another.
    if entry.is_dir(follow_symlinks=False):
        identity = _identity(Path(entry.path)) if is_relevant_folder(folder, entry.name) else None
        if identity:
            folders[entry.name] = identity
    elif is_relevant_file(folder, entry.name):
        try:
            status = os.lstat(entry.path)
        except OSError:
            return
        if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
            files[entry.name] = mark_of(status)


def _identity(folder: Path) -> Identity | None:
    try:
        status = folder.lstat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISDIR(status.st_mode) else None


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


QUIET_MS = 50
GATHER_MS = 400
PULSE_MS = 1000
FLOOD = 500

log = structlog.get_logger(__name__)

# A recursive watch on Linux costs one handle per folder anyhow, follows links out of the project
# and enters what does not matter; elsewhere it is one handle, and handles on inner folders would
# keep them from being deleted.
ONE_BY_ONE = sys.platform == "linux"

Armed = Callable[[], None]
Tell = Callable[[frozenset[str]], None]
Notices = set[tuple[int, str]]


class FollowEnd(StrEnum):
    """Why nobody follows a folder any more."""

    STOPPED = "stopped"
    GONE = "gone"
    FAILED = "failed"


def follow(
    root: Path,
    stop: threading.Event,
    *,
    armed: Armed,
    tell: Tell,
    one_by_one: bool = ONE_BY_ONE,
) -> FollowEnd:
    """Call `armed` when nothing can be missed, then `tell` with the exact paths of each change.

    `armed` is called again whenever folders came or went and listening began anew.
    """
    try:
        return _follow(root, stop, armed, tell, one_by_one=one_by_one)
    except (OSError, RuntimeError) as error:
        log.warning("context_watch_failed", error=type(error).__name__)
        return FollowEnd.FAILED


def _follow(
    root: Path, stop: threading.Event, armed: Armed, tell: Tell, *, one_by_one: bool
) -> FollowEnd:
    view = take(root)
    while True:
        listened = _listened(view, one_by_one=one_by_one)
        stale = False
        with _listen(root, listened, one_by_one=one_by_one) as notices:
            view = _told(view, take(root), frozenset(), tell)
            if not view:
                return FollowEnd.GONE
            armed()
            while not stale and _listened(view, one_by_one=one_by_one) == listened:
                raw = notices.watch(GATHER_MS, QUIET_MS, PULSE_MS, stop)
                if stop.is_set():
                    return FollowEnd.STOPPED
                named = _named(root, raw if isinstance(raw, set) else set())
                # A new folder may have the number of the old one; then only this tells them apart.
                stale = named is None or not named.isdisjoint(listened)
                view = _after(root, view, named, tell)


def _listened(view: Snapshot, *, one_by_one: bool) -> dict[str, Identity]:
    return {folder: seen.identity for folder, seen in view.items() if one_by_one or not folder}


def _listen(root: Path, folders: Iterable[str], *, one_by_one: bool) -> RustNotify:
    return RustNotify([str(root / f) for f in folders], False, False, 0, not one_by_one, True)


def _named(root: Path, notices: Notices) -> frozenset[str] | None:
    """Tell which project-relative paths the notices name; None if they cannot be relied upon."""
    if len(notices) > FLOOD:
        return None
    named = {_relative(root, path) for _, path in notices}
    return None if None in named else frozenset(path for path in named if path is not None)


def _after(root: Path, view: Snapshot, named: frozenset[str] | None, tell: Tell) -> Snapshot:
    if named is None:
        return _told(view, take(root), frozenset(), tell)
    dirty = named | {path.rpartition("/")[0] for path in named}
    return _told(view, take(root, view, dirty), named, tell)


def _told(
    before: Snapshot,
    after: Snapshot,
    named: frozenset[str],
    tell: Tell,
) -> Snapshot:
    """Tell what differs, and what was named and is there: two quick writes may look like one."""
    present = {path for path in named if _holds(after, path)}
    if changed := frozenset(difference(before, after) | present):
        tell(changed)
    return after


def _holds(snapshot: Snapshot, path: str) -> bool:
    folder, _, name = path.rpartition("/")
    return folder in snapshot and name in snapshot[folder].files


def _relative(root: Path, path: str) -> str | None:
    try:
        found = Path(path).relative_to(root).as_posix()
    except ValueError:
        return None
    return "" if found == "." else found


class ProjectChange(Model):
    """What changed in a project, or, if `watching` is false, that nobody can tell any longer."""

    project_id: str
    paths: tuple[str, ...]
    layers: tuple[Layer, ...]
    at_ms: int
    watching: bool = True


Listener = Callable[[ProjectChange], None]


@dataclass
class _Watch:
    project: Project
    listeners: dict[str, Listener] = field(default_factory=dict[str, Listener])
    clients: set[str] = field(default_factory=set[str])
    stop: threading.Event = field(default_factory=threading.Event)
    settled: anyio.Event = field(default_factory=anyio.Event)
    ended: anyio.Event = field(default_factory=anyio.Event)
    end: FollowEnd | None = None


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
        if watch.settled.is_set() and watch.end is not FollowEnd.STOPPED:
            log.warning("context_watch_stopped", project_id=project_id, reason=str(watch.end))
            self._say_over(watch, list(watch.listeners.values()))
        watch.settled.set()

    async def _follow(self, watch: _Watch) -> FollowEnd:
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
        end = FollowEnd.STOPPED
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_stop_when_cancelled, watch.stop)
            end = await to_thread.run_sync(work, limiter=self._threads)
            tasks.cancel_scope.cancel()
        return end

    def _say(self, watch: _Watch, paths: frozenset[str]) -> None:
        change = ProjectChange(
            project_id=watch.project.project_id,
            paths=tuple(sorted(paths)),
            layers=layers_of(paths),
            at_ms=self._clock.now_ms(),
        )
        for listener in list(watch.listeners.values()):
            listener(change)

    def _say_over(self, watch: _Watch, listeners: list[Listener]) -> None:
        over = ProjectChange(
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


def _cannot_watch(end: FollowEnd) -> DaemonError:
    if end is FollowEnd.GONE:
        return DaemonError(
            ErrorCode.NOT_FOUND, "The project's folder is gone; bring it back first."
        )
    return DaemonError(
        ErrorCode.IO_ERROR,
        "The system cannot watch this folder now; everything works without, only slower.",
    )
