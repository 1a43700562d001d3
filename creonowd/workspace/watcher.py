"""Report the changes in projects to those who subscribed.

One thread follows each project that has a listener. What the system reports is only a hint: the
changes are the differences between two snapshots of the project's folders.
"""

import contextlib
import heapq
import math
import os
import stat
import sys
import threading
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Self

import anyio
import structlog
from anyio import from_thread, to_thread
from anyio.abc import TaskGroup
from watchfiles._rust_notify import RustNotify  # the documented low-level interface

from creonowd.clock import Clock
from creonowd.context.fragment import Layer
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model
from creonowd.storage.safe_folder import MOST_ENTRIES, LinkedFolder, entry_status, mark_of
from creonowd.threads import set_when_cancelled
from creonowd.workspace.creonow_tree import TREE, is_relevant_file, is_relevant_folder, layers_of
from creonowd.workspace.projects import Project

QUIET_MS = 50
GATHER_MS = 400
# The system reports nothing when a folder above the project is moved or its drive is removed, so
# the project's folder is looked for this often.
PULSE_MS = 10_000
MAX_NOTICES = 500

# Each folder needs a watch of the system, and all programs share a limited number. All are begun
# in one call during which no other thread runs: 12 ms for 1000 folders, up to 150 on a busy machine.
MAX_FOLDERS = 512
MAX_ENTRIES = 200_000
# What is remembered of a folder, 0.3 KB for each: more files than a project can have documents, and
# of `.creonow` as many as anybody looks at.
MAX_FILES = 20_000
MAX_TREE_FILES = MOST_ENTRIES
_ENTRIES_PER_STOP_CHECK = 256

# On Linux a recursive watch costs one handle per folder anyhow, follows links out of the project
# and enters folders that are not relevant. Elsewhere it is one handle, and handles on inner
# folders would keep them from being deleted.
PER_FOLDER = sys.platform == "linux"

Identity = tuple[int, int]
Notices = set[tuple[int, str]]

log = structlog.get_logger(__name__)


class FolderState(Model):
    """A folder at one moment: its identity, its relevant files and its relevant folders.

    Of more than `MAX_FILES`, or `MAX_TREE_FILES`, the first by name are known, and it is not whole.
    """

    identity: Identity
    files: dict[str, tuple[int, ...]]
    folders: dict[str, Identity]
    is_whole: bool = True


Snapshot = Mapping[str, FolderState]


class ProjectChange(Model):
    """What changed in a project; if `watching` is false, changes are not reported any more."""

    project_id: str
    paths: tuple[str, ...]
    layers: tuple[Layer, ...]
    at_ms: int
    watching: bool = True


Listener = Callable[[ProjectChange], None]


class FollowEnd(StrEnum):
    """Why a folder is not followed any more."""

    STOPPED = "stopped"
    GONE = "gone"
    FAILED = "failed"


@dataclass
class _Watch:
    project: Project
    listeners: dict[str, Listener] = field(default_factory=dict[str, Listener])
    clients: set[str] = field(default_factory=set[str])
    stop: threading.Event = field(default_factory=threading.Event)
    settled: anyio.Event = field(default_factory=anyio.Event)
    ended: anyio.Event = field(default_factory=anyio.Event)
    end: FollowEnd | None = None
    unwatched_folders: int = 0


class Watcher:
    """The subscriptions to the changes of projects."""

    def __init__(self, clock: Clock, *, per_folder: bool = PER_FOLDER) -> None:
        self._clock = clock
        self._per_folder = per_folder
        self._watches: dict[str, _Watch] = {}
        self._keys: set[str] = set()
        self._locks: defaultdict[str, anyio.Lock] = defaultdict(anyio.Lock)
        self._tasks: TaskGroup | None = None
        self._threads = anyio.CapacityLimiter(math.inf)

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncGenerator[None]:
        """Follow projects for as long as the block lasts."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            yield
            tasks.cancel_scope.cancel()

    async def subscribe(
        self, project: Project, key: str, listener: Listener, *, client: bool = False
    ) -> bool:
        """Call `listener` on the event loop with each change from now on; one listener per `key`.

        `client` marks the subscription of a connection, which `is_watched` reports. Return whether
        the key is new to the project.
        """
        async with self._locks[project.project_id]:
            watch = self._watches.get(project.project_id)
            if watch is not None and watch.stop.is_set():
                await watch.ended.wait()
                watch = None
            watch = watch or await self._start(project)
            new = key not in watch.listeners
            watch.listeners[key] = listener
            if client:
                watch.clients.add(key)
            return new

    async def unsubscribe(self, project_id: str, key: str) -> bool:
        """Stop calling a listener; if it was the last, return after its project is not followed.

        Return whether there was such a listener.
        """
        async with self._locks[project_id]:
            watch = self._watches.get(project_id)
            if watch is None or not self._remove(watch, key):
                return False
            if watch.stop.is_set():
                await watch.ended.wait()
            return True

    def register(self, key: str) -> bool:
        """Return whether a key is new; its owner then has to `drop` it when it is gone."""
        new = key not in self._keys
        self._keys.add(key)
        return new

    def drop(self, key: str) -> None:
        """Stop calling a listener that has gone, in every project."""
        self._keys.discard(key)
        for watch in list(self._watches.values()):
            self._remove(watch, key)

    async def forget(self, project_id: str) -> None:
        """Stop following a project that was deleted, and notify its listeners."""
        async with self._locks[project_id]:
            if (watch := self._watches.get(project_id)) is not None:
                listeners = list(watch.listeners.values())
                watch.stop.set()
                await watch.ended.wait()
                self._notify_end(watch, listeners)

    def is_watched(self, project_id: str) -> bool:
        """Return whether any connection watches the project."""
        watch = self._watches.get(project_id)
        return watch is not None and bool(watch.clients) and not watch.stop.is_set()

    def misses_changes(self, project_id: str) -> bool:
        """Return whether changes may go unreported: the project has more folders than are watched."""
        watch = self._watches.get(project_id)
        return watch is not None and watch.unwatched_folders > 0

    def projects_over_limit(self) -> list[str]:
        """Return the projects that have more folders than are watched."""
        return sorted(name for name, watch in self._watches.items() if watch.unwatched_folders)

    def _remove(self, watch: _Watch, key: str) -> bool:
        if watch.listeners.pop(key, None) is None:
            return False
        watch.clients.discard(key)
        if not watch.listeners:
            watch.stop.set()
        return True

    async def _start(self, project: Project) -> _Watch:
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
            self._notify_end(watch, list(watch.listeners.values()))
        watch.settled.set()

    async def _follow(self, watch: _Watch) -> FollowEnd:
        def on_ready() -> None:
            from_thread.run_sync(watch.settled.set)

        def on_change(paths: frozenset[str]) -> None:
            from_thread.run_sync(self._notify, watch, paths)

        def on_unwatched(found: int) -> None:
            if found and not watch.unwatched_folders:
                log.warning("context_watch_incomplete", folders=MAX_FOLDERS, unwatched=found)
            watch.unwatched_folders = found

        work = partial(
            follow,
            watch.project.root,
            watch.stop,
            on_ready=on_ready,
            on_change=on_change,
            on_unwatched=on_unwatched,
            per_folder=self._per_folder,
        )
        end = FollowEnd.STOPPED
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(set_when_cancelled, watch.stop)
            end = await to_thread.run_sync(work, limiter=self._threads)
            tasks.cancel_scope.cancel()
        return end

    def _notify(self, watch: _Watch, paths: frozenset[str]) -> None:
        change = ProjectChange(
            project_id=watch.project.project_id,
            paths=tuple(sorted(paths)),
            layers=layers_of(paths),
            at_ms=self._clock.now_ms(),
        )
        for listener in list(watch.listeners.values()):
            listener(change)

    def _notify_end(self, watch: _Watch, listeners: list[Listener]) -> None:
        end = ProjectChange(
            project_id=watch.project.project_id,
            paths=(),
            layers=(),
            at_ms=self._clock.now_ms(),
            watching=False,
        )
        for listener in listeners:
            listener(end)


def _cannot_watch(end: FollowEnd) -> DaemonError:
    if end is FollowEnd.GONE:
        return DaemonError(
            ErrorCode.NOT_FOUND, "The project's folder is gone; bring it back first."
        )
    return DaemonError(
        ErrorCode.IO_ERROR,
        "The system cannot watch this folder now; everything works without that, only slower.",
    )


def follow(
    root: Path,
    stop: threading.Event,
    *,
    on_ready: Callable[[], None],
    on_change: Callable[[frozenset[str]], None],
    on_unwatched: Callable[[int], None] = lambda _: None,
    per_folder: bool = PER_FOLDER,
) -> FollowEnd:
    """Call `on_ready` when no change can be missed, then `on_change` with the paths of each change.

    `on_ready` is called again whenever folders came or went and watching began anew; before it
    `on_unwatched`, with the number of known folders that are not followed.
    """
    try:
        follower = _Follower(root, on_change, stop, per_folder=per_folder)
        return follower.run(on_ready, on_unwatched)
    except (OSError, RuntimeError) as error:
        log.warning("context_watch_failed", error=type(error).__name__)
        return FollowEnd.FAILED


class _Follower:
    """The last snapshot of a project, and what is watched of it."""

    def __init__(
        self,
        root: Path,
        on_change: Callable[[frozenset[str]], None],
        stop: threading.Event,
        *,
        per_folder: bool,
    ) -> None:
        self._root = root
        self._on_change = on_change
        self._per_folder = per_folder
        self._stop = stop
        self._snapshot: Snapshot = {}
        self._snapshot = self._take_snapshot()

    def run(self, on_ready: Callable[[], None], on_unwatched: Callable[[int], None]) -> FollowEnd:
        """Report changes until `stop` is set or the folder is gone."""
        stop = self._stop
        while True:
            if stop.is_set():
                return FollowEnd.STOPPED
            watched = self._folders_to_watch()
            is_stale = False
            with self._watch(watched) as notices:
                after = self._take_snapshot()
                if stop.is_set():
                    return FollowEnd.STOPPED
                self._report(after, frozenset())
                if not self._snapshot:
                    return FollowEnd.GONE
                on_unwatched(unwatched_folders(self._snapshot))
                on_ready()
                while not is_stale and self._folders_to_watch() == watched:
                    raw = notices.watch(GATHER_MS, QUIET_MS, PULSE_MS, stop)
                    if stop.is_set():
                        return FollowEnd.STOPPED
                    named = None if raw is None else self._paths(raw)
                    # A new folder may have the inode of a deleted one: only the notice shows that it is new.
                    is_stale = named is None or not named.isdisjoint(watched)
                    self._update(named)

    def _take_snapshot(self, dirty: frozenset[str] | None = None) -> Snapshot:
        return take_snapshot(self._root, self._snapshot, dirty, self._stop.is_set)

    def _folders_to_watch(self) -> dict[str, Identity]:
        """Return the folders to watch: all relevant ones, or only the project's own."""
        states = self._snapshot.items()
        return {path: state.identity for path, state in states if self._per_folder or not path}

    def _watch(self, folders: Iterable[str]) -> "RustNotify | _PollingWatch":
        """Ask the system for notices; where it has no more to give, look once in a while."""
        places = [str(self._root / folder) for folder in folders]
        try:
            return RustNotify(places, False, False, 0, not self._per_folder, True)
        except (OSError, RuntimeError) as error:
            log.warning("context_watch_polling", error=type(error).__name__)
            return _PollingWatch()

    def _paths(self, notices: Notices | str) -> frozenset[str] | None:
        """Return the project-relative paths that notices name; None if there are too many."""
        if isinstance(notices, str):
            return frozenset()
        if len(notices) > MAX_NOTICES:
            return None
        paths = {_relative(self._root, path) for _, path in notices}
        return None if None in paths else frozenset(path for path in paths if path is not None)

    def _update(self, named: frozenset[str] | None) -> None:
        if named is None:
            self._report(self._take_snapshot(), frozenset())
        else:
            dirty = named | {path.rpartition("/")[0] for path in named}
            self._report(self._take_snapshot(dirty), named)

    def _report(self, after: Snapshot, named: frozenset[str]) -> None:
        """Report the files that differ, and those of `named` that exist: a change may not show."""
        before, self._snapshot = self._snapshot, after
        present = {path for path in named if _has_file(after, path)}
        if changed := frozenset(changed_paths(before, after) | present):
            self._on_change(changed)


class _PollingWatch:
    """Has no notices, only a pause: after it everything is looked at, and notices are asked for."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def watch(self, _gather_ms: int, _quiet_ms: int, ms: int, stop: threading.Event) -> None:
        """Wait until the next look, or until `stop` is set."""
        stop.wait(ms / 1000)


def _relative(root: Path, path: str) -> str | None:
    try:
        found = Path(path).relative_to(root).as_posix()
    except ValueError:
        return None
    return "" if found == "." else found


def _has_file(snapshot: Snapshot, path: str) -> bool:
    folder, _, name = path.rpartition("/")
    return folder in snapshot and name in snapshot[folder].files


def take_snapshot(
    root: Path,
    before: Snapshot | None = None,
    dirty: frozenset[str] | None = frozenset(),
    is_stopped: Callable[[], bool] = lambda: False,
) -> Snapshot:
    """Read the state of every folder of a project; the project's own has the path `""`.

    Given an earlier snapshot, only `dirty` and new folders are read, or all without `dirty`; the
    others are as in it. Of a huge project, the folders nearest to its root are read.
    """
    states: dict[str, FolderState] = {}
    waiting = deque([("", _root_identity(root))])
    while waiting and len(states) < MAX_FOLDERS and not is_stopped():
        folder, identity = waiting.popleft()
        old = before.get(folder) if before else None
        is_known = old is not None and old.identity == identity
        if is_known and dirty is not None and folder not in dirty:
            state = old
        else:
            state = _read_folder(root, folder, identity, is_stopped)
        if state == old:
            state = old  # two snapshots of a huge folder would take twice the memory
        if state is not None:
            states[folder] = state
            waiting.extend((_join(folder, name), inner) for name, inner in state.folders.items())
    return states


def unwatched_folders(snapshot: Snapshot) -> int:
    """Return how many folders of a project its snapshot had no room for, or not for all of."""
    cut = sum(not state.is_whole for state in snapshot.values())
    if len(snapshot) < MAX_FOLDERS:
        return cut
    known = (_join(path, name) for path, state in snapshot.items() for name in state.folders)
    return cut + sum(path not in snapshot for path in known)


def changed_paths(before: Snapshot, after: Snapshot) -> set[str]:
    """Return the project-relative paths of the files that came, went or changed."""
    changed: set[str] = set()
    for folder in before.keys() | after.keys():
        old, new = before.get(folder), after.get(folder)
        if old is new:
            continue
        old_files = old.files if old else {}
        new_files = new.files if new else {}
        for name in old_files.keys() | new_files.keys():
            if old_files.get(name) != new_files.get(name):
                changed.add(_join(folder, name))
    return changed


def _read_folder(
    root: Path, folder: str, identity: Identity | None, is_stopped: Callable[[], bool]
) -> FolderState | None:
    if identity is None:
        return None
    folders: dict[str, Identity] = {}
    most = MAX_TREE_FILES if folder.partition("/")[0] == TREE else MAX_FILES

    def files(entries: "Iterable[os.DirEntry[str]]") -> "Iterator[tuple[str, os.DirEntry[str]]]":
        """Yield the relevant files by name, and note the relevant folders."""
        for number, entry in enumerate(entries):
            if number % _ENTRIES_PER_STOP_CHECK == 0 and is_stopped():
                return
            with contextlib.suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    if is_relevant_folder(folder, entry.name):
                        folders[entry.name] = _identity(entry_status(entry))
                elif is_relevant_file(folder, entry.name):
                    yield entry.name, entry

    try:
        with LinkedFolder(root).scan(folder) as entries:
            relevant = files(islice(entries, MAX_ENTRIES))
            first = heapq.nsmallest(most + 1, relevant, key=itemgetter(0))
            marks = dict(_marks(first[:most]))
    except (FileNotFoundError, NotADirectoryError, PermissionError, DaemonError):
        return None
    if is_stopped():
        return None
    return FolderState(identity=identity, files=marks, folders=folders, is_whole=len(first) <= most)


def _marks(
    entries: "Iterable[tuple[str, os.DirEntry[str]]]",
) -> Iterator[tuple[str, tuple[int, ...]]]:
    for name, entry in entries:
        with contextlib.suppress(OSError):
            status = entry_status(entry)
            if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                yield name, mark_of(status)


def _root_identity(root: Path) -> Identity | None:
    """Return the identity of a project's folder; None if it is gone or has become a link."""
    try:
        status = root.lstat()
    except OSError:
        return None
    return _identity(status) if stat.S_ISDIR(status.st_mode) else None


def _identity(status: os.stat_result) -> Identity:
    return status.st_dev, status.st_ino


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
