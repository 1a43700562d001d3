"""Reads that are done once for all who ask at the same time.

`SharedReads` serves everyone who asks for the same thing. `ProjectReads` serves the sources of one
assembly, which read different things of one project: all of them in one trip to a thread.
"""

from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar, cast
from weakref import WeakValueDictionary

import anyio
from anyio import lowlevel, to_thread

from creonowd.workspace.creonow_tree import CreonowFolder, Folder, Tree
from creonowd.workspace.projects import Project

# Share of the deadline for the joint read; the rest is for reading separately.
JOINT_SHARE = 0.25

T = TypeVar("T")


class SharedReads(Generic[T]):
    """Coalesces concurrent reads; a caller never gets a read that began before it asked."""

    def __init__(self) -> None:
        self._queues: WeakValueDictionary[Hashable, _ReadQueue[T]] = WeakValueDictionary()

    async def read(self, key: Hashable, read: Callable[[], Awaitable[T]]) -> T:
        """Return the value of a read that began after this call, doing it unless someone has.

        If a read fails, its caller gets the exception and the next in the queue tries again.
        """
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = _ReadQueue()
        begun = queue.begun
        async with queue.lock:
            if queue.finished <= begun:
                queue.begun += 1
                number = queue.begun
                queue.value = (await read(),)
                queue.finished = number
            return queue.value[0]


class _ReadQueue(Generic[T]):
    """Those who wait for one key, and the numbers of the last reads that began and finished."""

    def __init__(self) -> None:
        self.lock = anyio.Lock()
        self.begun = 0
        self.finished = 0
        self.value: tuple[T, ...] = ()


class FolderReader:
    """Reads each folder of a project's `.creonow` tree at most once. Blocks its thread."""

    def __init__(self, tree: Tree, project: Project) -> None:
        self._tree, self._project = tree, project
        self._folders: dict[CreonowFolder, Folder] = {}

    def folder(self, scope: CreonowFolder) -> Folder:
        """Return all files of a folder."""
        if scope not in self._folders:
            self._folders[scope] = self._tree.read_all_now(self._project.root, scope)
        return self._folders[scope]

    def outlines(self) -> Folder:
        """Return the outlines at the top of the project."""
        return self._tree.read_outlines_now(self._project.root)


Read = Callable[[FolderReader], T]
Outcomes = dict[str, Any]


class ProjectReads:
    """Does what the sources of one assembly read, in one thread and once per name.

    A thread for each would take longer than the reads themselves.
    """

    def __init__(self, tree: Tree, project: Project, shared: SharedReads[Outcomes]) -> None:
        self._tree, self._project, self._shared = tree, project, shared
        self._reads: dict[str, Read[Any]] = {}
        self._outcomes: Outcomes = {}
        self._joint_end: anyio.Event | None = None

    async def get(self, name: str, read: Read[T]) -> T:
        """Return what a read returns, or raise what it raises.

        The first caller reads for all who ask in the same turn of the event loop. If that takes
        too long, each reads alone, so that a folder that hangs costs its own readers only.
        """
        self._reads[name] = read
        if self._joint_end is None:
            self._joint_end = anyio.Event()
            await self._read_jointly(self._joint_end)
        else:
            await self._joint_end.wait()
        if name not in self._outcomes:
            await self._run([name])
        outcome = self._outcomes[name]
        if isinstance(outcome, Exception):
            raise outcome
        return cast("T", outcome)

    async def _read_jointly(self, end: anyio.Event) -> None:
        try:
            await lowlevel.checkpoint()
            left = anyio.current_effective_deadline() - anyio.current_time()
            with anyio.move_on_after(left * JOINT_SHARE):
                await self._run(sorted(self._reads))
        finally:
            end.set()

    async def _run(self, names: Sequence[str]) -> None:
        async def read() -> Outcomes:
            return await to_thread.run_sync(self._run_now, names, abandon_on_cancel=True)

        self._outcomes |= await self._shared.read((self._project.root, *names), read)

    def _run_now(self, names: Sequence[str]) -> Outcomes:
        folders = FolderReader(self._tree, self._project)
        outcomes: Outcomes = {}
        for name in names:
            try:
                outcomes[name] = self._reads[name](folders)
            except Exception as error:  # noqa: BLE001 - whatever fails must not cost the others theirs
                outcomes[name] = error
        return outcomes
