"""Reads that are done once for all who ask at the same time.

`SharedReads` serves everyone who asks for the same thing. `ReadRounds` serves all who ask for
different things of one project, in one trip to a thread. `ProjectReads` serves the sources of one
assembly.
"""

import math
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar, cast
from weakref import WeakValueDictionary

import anyio
from anyio import lowlevel, to_thread

from creonowd.threads import LoopTurns
from creonowd.workspace.creonow_tree import CreonowFolder, Folder, Tree
from creonowd.workspace.projects import Project

# Share of the deadline for the joint read; the rest is for reading separately.
JOINT_SHARE = 0.25

# How many turns of the event loop those who come in a crowd have to join a round, and how many of
# them go on in one turn at most.
MOST_TURNS = 250
TOGETHER = 8

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


class RoundCache:
    """What was read in one round, each thing once. For the thread of the round."""

    def __init__(self) -> None:
        self._read: dict[Hashable, Any] = {}

    def once(self, key: Hashable, read: Callable[[], T]) -> T:
        """Return what a read returns, doing it unless this round has."""
        if key not in self._read:
            self._read[key] = read()
        return self._read[key]


RoundWork = Callable[[RoundCache], Any]


class ReadRounds:
    """Does blocking reads in rounds: what is asked for while a round runs, the next one does.

    So a caller never gets a read that began before it asked, and however many ask at the same
    moment, they share one trip to a thread.
    """

    def __init__(self) -> None:
        self._groups: WeakValueDictionary[Hashable, _RoundGroup] = WeakValueDictionary()
        self._turns = LoopTurns(TOGETHER)

    async def read(
        self, group: Hashable, key: Hashable, work: RoundWork, seconds: float = math.inf
    ) -> Any:
        """Return what `work` returns, or raise what it raises; all who ask with one key share it.

        TimeoutError for everyone in a round that takes longer than its leader allows: one deadline
        for many, because one for each took a twentieth of a request. Groups do not wait for each
        other. Those who waited together go on one after the other, a few in each turn of the event
        loop.
        """
        mine = self._groups.get(group)
        if mine is None:
            mine = self._groups[group] = _RoundGroup()
        round_ = mine.gathering
        round_.work.setdefault(key, work)
        while round_.outcomes is None:
            if round_.is_led:
                turn = anyio.Event()
                round_.waiting.append(turn)
                await turn.wait()
            else:
                await _lead(mine, round_, self._turns, seconds)
        outcome = round_.outcomes[key]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


class _Round:
    """What is to be read together; one of those who wait leads, another if that one is cancelled."""

    def __init__(self) -> None:
        self.work: dict[Hashable, RoundWork] = {}
        self.outcomes: dict[Hashable, Any] | None = None
        self.is_led = False
        self.waiting: list[anyio.Event] = []

    def run(self) -> dict[Hashable, Any]:
        """Read everything; blocks its thread."""
        cache = RoundCache()
        outcomes: dict[Hashable, Any] = {}
        for key, work in self.work.items():
            try:
                outcomes[key] = work(cache)
            except Exception as error:  # noqa: BLE001 - whatever fails must not cost the others theirs
                outcomes[key] = error
        return outcomes


class _RoundGroup:
    """The round that still takes work, and a lock for the one that runs."""

    def __init__(self) -> None:
        self.gathering = _Round()
        self.lock = anyio.Lock(fast_acquire=True)


async def _lead(group: _RoundGroup, round_: _Round, turns: LoopTurns, seconds: float) -> None:
    round_.is_led = True
    try:
        with anyio.move_on_after(seconds) as scope:
            await _let_join(round_)
            async with group.lock:
                _close(group, round_)
                round_.outcomes = await to_thread.run_sync(round_.run, abandon_on_cancel=True)
        if scope.cancelled_caught:
            _close(group, round_)
            round_.outcomes = {key: TimeoutError() for key in round_.work}
    finally:
        round_.is_led = False
        waiting, round_.waiting = round_.waiting, []
        turns.wake(waiting)


def _close(group: _RoundGroup, round_: _Round) -> None:
    """Let nobody else join a round."""
    if group.gathering is round_:
        group.gathering = _Round()


async def _let_join(round_: _Round) -> None:
    """Wait for a turn of the event loop, and for more as long as each brings others who read."""
    for _ in range(MOST_TURNS):
        joined = len(round_.work)
        await lowlevel.checkpoint()
        if len(round_.work) == joined:
            return


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


def read_folders(cache: RoundCache, tree: Tree, project: Project) -> FolderReader:
    """Return the reader of folders that all share who read a project in one round."""
    return cache.once("folders", lambda: FolderReader(tree, project))


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

    def read_now(self, name: str, read: Read[Any], cache: RoundCache) -> None:
        """Read ahead in the thread of a round, together with others who read this project."""
        folders = read_folders(cache, self._tree, self._project)
        self._outcomes[name] = cache.once(("read", name), lambda: _try(read, folders))

    def peek(self, name: str) -> Any | None:
        """Return what was read ahead, or raise what that raised; None if nothing was."""
        outcome = self._outcomes.get(name)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def get(self, name: str, read: Read[T]) -> T:
        """Return what a read returns, or raise what it raises.

        The first caller reads for all who ask in the same turn of the event loop. If that takes
        too long, each reads alone, so that a folder that hangs costs its own readers only.
        """
        if (kept := self.peek(name)) is not None:
            return kept
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
            outcomes[name] = _try(self._reads[name], folders)
        return outcomes


def _try(read: Read[Any], folders: FolderReader) -> Any:
    """Return what a read returns or raises: what fails must not cost the others theirs."""
    try:
        return read(folders)
    except Exception as error:  # noqa: BLE001 - a source may fail in any way
        return error
