"""The `.creonow` tree of one project as one assembly sees it: every folder is read at most once.

What all sources of an assembly want is fetched in one go, in a thread; assemblies that want the
same at the same time share it. A folder that hangs holds up its own sources alone. Knows folders;
knows nothing of what is made of them.
"""

from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar, cast
from weakref import WeakValueDictionary

import anyio
from anyio import lowlevel, to_thread

from creonowd.errors import FAILURES
from creonowd.storage.relative_paths import CreonowFolder
from creonowd.workspace.creonow_tree import Folder, Tree
from creonowd.workspace.projects import Project

T = TypeVar("T")


class _WaitingRead(Generic[T]):
    def __init__(self) -> None:
        self.turn = anyio.Lock()
        self.begun = 0
        self.done = 0
        self.value: tuple[T, ...] = ()


class SharedReads(Generic[T]):
    """One line of readers per key; a line is forgotten when nobody stands in it."""

    def __init__(self) -> None:
        self._lines: WeakValueDictionary[Hashable, _WaitingRead[T]] = WeakValueDictionary()

    async def read(self, key: Hashable, make: Callable[[], Awaitable[T]]) -> T:
        """Give what a read that began after this call has found; make it if nobody has.

        If a read fails, whoever made it is told and the next in line tries again.
        """
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = _WaitingRead()
        asked = line.begun
        async with line.turn:
            if line.done <= asked:
                line.begun += 1
                begun = line.begun
                line.value = (await make(),)
                line.done = begun
            return line.value[0]


Outcomes = dict[str, Any]

# What part of the time that is left a trip for all may take; the rest is for going one by one.
PATIENCE = 0.25


class FolderReader:
    """What one trip to the disk has seen so far."""

    def __init__(self, tree: Tree, project: Project) -> None:
        self._tree, self._project = tree, project
        self._read: dict[CreonowFolder, Folder] = {}

    def folder(self, scope: CreonowFolder) -> Folder:
        """Give all files of a scope."""
        if scope not in self._read:
            self._read[scope] = self._tree.read_all_now(self._project.root, scope)
        return self._read[scope]


Work = Callable[[FolderReader], T]


class BatchedReads:
    """Collects what is wanted, and goes once for all of it."""

    def __init__(self, tree: Tree, project: Project, joined: SharedReads[Outcomes]) -> None:
        self._tree, self._project, self._joined = tree, project, joined
        self._offered: dict[str, Work[Any]] = {}
        self._wanted: dict[str, Work[Any]] = {}
        self._outcomes: Outcomes = {}
        self._turn = anyio.Lock()
        self._held_up = False

    def offer(self, name: str, work: Work[Any]) -> None:
        """Say what work goes by a name, for whoever goes for it."""
        self._offered[name] = work

    async def make(self, name: str, work: Work[T]) -> T:
        """Do the work that goes by this name, or tell what it came to when it was done."""
        self.offer(name, work)
        await self.go([name])
        outcome = self._outcomes[name]
        if isinstance(outcome, Exception):
            raise outcome
        return cast("T", outcome)

    async def go(self, names: Sequence[str]) -> None:
        """Do all the work that goes by these names and is not done."""
        self._wanted |= {name: self._offered[name] for name in names}
        # Whoever was asked at the same time comes along.
        await lowlevel.checkpoint()
        async with self._turn:
            if self._left(names) and not self._held_up:
                await self._go_together()
        if left := self._left(names):
            async with anyio.create_task_group() as group:
                for name in left:
                    group.start_soon(self._go, [name])

    def told(self, name: str) -> object:
        """Give what work came to, or failed with; None if it is not done."""
        return self._outcomes.get(name)

    def _left(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if name not in self._outcomes]

    async def _go_together(self) -> None:
        left = anyio.current_effective_deadline() - anyio.current_time()
        with anyio.move_on_after(left * PATIENCE) as trip:
            await self._go(sorted(self._wanted.keys() - self._outcomes.keys()))
        self._held_up = trip.cancelled_caught

    async def _go(self, names: Sequence[str]) -> None:
        works = {name: self._wanted[name] for name in names}

        async def trip() -> Outcomes:
            return await to_thread.run_sync(self._fetch, works, abandon_on_cancel=True)

        self._outcomes |= await self._joined.read((self._project.root, *names), trip)

    def _fetch(self, works: dict[str, Work[Any]]) -> Outcomes:
        shelf = FolderReader(self._tree, self._project)
        return {name: _outcome(work, shelf) for name, work in works.items()}


def _outcome(work: Work[Any], shelf: FolderReader) -> Any:
    """Do one piece of work; if it fails, that must not cost the others theirs."""
    try:
        return work(shelf)
    except FAILURES as error:
        return error
