"""The queue in front of the engine: how many assemblies of one document run and wait at once.

Waiting is fair and can be cancelled; what runs is never disturbed.
"""

from collections import deque
from collections.abc import AsyncGenerator, Hashable
from contextlib import asynccontextmanager

import anyio

from creonowd.errors import DaemonError, ErrorCode

RUNNING = 4
WAITING = 16
TURN_MS = 50


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
