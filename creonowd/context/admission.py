"""How many assemblies of one document run at once, how many wait, and when the next is refused.

Waiting is fair and can be cancelled; what runs is never disturbed. Knows keys, not documents.
"""

from collections import deque
from collections.abc import AsyncGenerator, Hashable
from contextlib import asynccontextmanager

import anyio

from creonowd.errors import DaemonError, ErrorCode

RUNNING = 4
WAITING = 16
TURN_MS = 50


class _Gate:
    def __init__(self) -> None:
        self.running = 0
        self.waiting: deque[anyio.Event] = deque()


class Admission:
    """One gate per key; keys do not hold each other up."""

    def __init__(self, running: int = RUNNING, waiting: int = WAITING) -> None:
        self._running = running
        self._waiting = waiting
        self._gates: dict[Hashable, _Gate] = {}

    @asynccontextmanager
    async def enter(self, key: Hashable) -> AsyncGenerator[None]:
        """Hold a place for the block; CONTEXT_BACKPRESSURE if too many wait already."""
        gate = self._gates.setdefault(key, _Gate())
        await self._take_place(gate)
        try:
            yield
        finally:
            self._leave(key, gate)

    def load(self, key: Hashable) -> tuple[int, int]:
        """Tell how many run and how many wait."""
        gate = self._gates.get(key)
        return (0, 0) if gate is None else (gate.running, len(gate.waiting))

    async def _take_place(self, gate: _Gate) -> None:
        if gate.running < self._running:
            gate.running += 1
            return
        if len(gate.waiting) >= self._waiting:
            raise self._refused(gate)
        turn = anyio.Event()
        gate.waiting.append(turn)
        try:
            await turn.wait()
        except BaseException:
            if turn.is_set():
                self._pass_on(gate)
            else:
                gate.waiting.remove(turn)
            raise

    def _leave(self, key: Hashable, gate: _Gate) -> None:
        self._pass_on(gate)
        if not gate.running:
            self._gates.pop(key, None)

    @staticmethod
    def _pass_on(gate: _Gate) -> None:
        """Hand a place to whoever has waited longest, without letting anyone in between."""
        if gate.waiting:
            gate.waiting.popleft().set()
        else:
            gate.running -= 1

    def _refused(self, gate: _Gate) -> DaemonError:
        turns = len(gate.waiting) // self._running + 1
        return DaemonError(
            ErrorCode.CONTEXT_BACKPRESSURE,
            retryAfterMs=turns * TURN_MS,
            running=gate.running,
            waiting=len(gate.waiting),
        )
