"""What all assemblies of one daemon share: their memory, and the queue in front of them.

Of one document only some run and wait at once; waiting is fair and can be cancelled, and what runs
is never disturbed.
"""

from collections import deque
from collections.abc import AsyncGenerator, Hashable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import anyio
from anyio import CapacityLimiter

from creonowd.context.assemble import Concurrency
from creonowd.context.budget import Budget
from creonowd.context.source import Source
from creonowd.context.system_prompt import PrefixMemory
from creonowd.context.text_tools import Memory
from creonowd.errors import DaemonError, ErrorCode
from creonowd.memo import Memo
from creonowd.skills.library import LibraryEntry
from creonowd.sources.shared_reads import ReadRounds, SharedReads
from creonowd.threads import LoopTurns
from creonowd.workspace.creonow_tree import ProjectFile
from creonowd.workspace.projects import Project

FILE_READERS = 8
COMPOSERS = 2
RECENT_KEYS = 512
KEPT_ANSWERS_BYTES = 32_000_000
RUNNING = 4
WAITING = 16
TURN_MS = 50


class SourceProvider(Protocol):
    """Has sources for a project."""

    def of(self, project: Project) -> Sequence[Source]:
        """Return the sources of a project for one assembly."""
        ...


class Admission:
    """One queue per key; keys do not wait for each other."""

    def __init__(self, running: int = RUNNING, waiting: int = WAITING) -> None:
        self._running = running
        self._waiting = waiting
        self._queues: dict[Hashable, _KeyQueue] = {}

    @asynccontextmanager
    async def enter(self, key: Hashable) -> AsyncGenerator[None]:
        """Wait for a place and keep it for the block; CONTEXT_BACKPRESSURE if too many wait."""
        queue = self._queues.setdefault(key, _KeyQueue())
        await self._take_place(queue)
        try:
            yield
        finally:
            queue.free_place()
            if not queue.running:
                self._queues.pop(key, None)

    def load(self, key: Hashable) -> tuple[int, int]:
        """Return how many run and how many wait."""
        queue = self._queues.get(key)
        return (0, 0) if queue is None else (queue.running, len(queue.turns))

    async def _take_place(self, queue: "_KeyQueue") -> None:
        if queue.running < self._running:
            queue.running += 1
            return
        if len(queue.turns) >= self._waiting:
            raise self._backpressure(queue)
        turn = anyio.Event()
        queue.turns.append(turn)
        try:
            await turn.wait()
        except BaseException:
            if turn.is_set():
                queue.free_place()
            else:
                queue.turns.remove(turn)
            raise

    def _backpressure(self, queue: "_KeyQueue") -> DaemonError:
        turns = len(queue.turns) // self._running + 1
        return DaemonError(
            ErrorCode.CONTEXT_BACKPRESSURE,
            retryAfterMs=turns * TURN_MS,
            running=queue.running,
            waiting=len(queue.turns),
        )


class _KeyQueue:
    """How many run, and an event for each that waits, the oldest first."""

    def __init__(self) -> None:
        self.running = 0
        self.turns: deque[anyio.Event] = deque()

    def free_place(self) -> None:
        """Hand a place to whoever has waited longest, so that nobody can take it in between."""
        if self.turns:
            self.turns.popleft().set()
        else:
            self.running -= 1


class SeenOnce:
    """The keys that were used lately, to log a repeated finding only once."""

    def __init__(self) -> None:
        self._keys: Memo[str, bool] = Memo(RECENT_KEYS)

    def add(self, key: str) -> bool:
        """Add a key, and return whether it is new."""
        is_new = not self.has(key)
        self._keys.put(key, value=True)
        return is_new

    def has(self, key: str) -> bool:
        """Return whether a key was added lately."""
        return self._keys.peek(key) is not None


class SkillRead(NamedTuple):
    """A skill, if there is one of that id, and the project file; None if that makes no sense."""

    entry: LibraryEntry | None
    project_file: ProjectFile | None


def _concurrency() -> Concurrency:
    return Concurrency(CapacityLimiter(FILE_READERS), CapacityLimiter(COMPOSERS))


def _answers() -> Memo[Hashable, Any]:
    return Memo(KEPT_ANSWERS_BYTES, lambda _key, kept: kept.weight)


@dataclass(frozen=True)
class Engine:
    """What all assemblies of one daemon share; `source_providers` are read in this order."""

    source_providers: list[SourceProvider]
    admission: Admission = field(default_factory=Admission)
    memory: Memory = field(default_factory=Memory)
    prefixes: PrefixMemory = field(default_factory=PrefixMemory)
    rounds: ReadRounds = field(default_factory=ReadRounds)
    turns: LoopTurns = field(default_factory=LoopTurns)
    budget_reads: SharedReads[Budget] = field(default_factory=SharedReads[Budget])
    skill_reads: SharedReads[SkillRead] = field(default_factory=SharedReads[SkillRead])
    seen_once: SeenOnce = field(default_factory=SeenOnce)
    answers: Memo[Hashable, Any] = field(default_factory=_answers)
    concurrency: Concurrency = field(default_factory=_concurrency)

    def sources_of(self, project: Project) -> list[Source]:
        """Return all sources of a project."""
        return [source for provider in self.source_providers for source in provider.of(project)]
