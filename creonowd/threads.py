"""Long work in a thread that ends when it is told to, or when its time is up.

Knows threads and clocks; knows nothing of the work.
"""

import contextlib
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any, TypeVar

import anyio
import anyio.lowlevel
from anyio import CapacityLimiter, to_thread

T = TypeVar("T")


class StoppedError(Exception):
    """The work was told to stop; nobody waits for its result."""


class StopSignal:
    """Tells a thread whether to go on."""

    def __init__(self) -> None:
        self._told = False
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], None]] = []

    def tell(self) -> None:
        """Make the work end."""
        with self._lock:
            self._told = True
            callbacks = list(self._callbacks)
        for callback in callbacks:
            callback()

    def check(self) -> None:
        """Raise StoppedError if the work was told to stop."""
        if self._told:
            raise StoppedError

    @contextlib.contextmanager
    def calling(self, callback: Callable[[], None]) -> Generator[None]:
        """Have `callback` called as soon as the work is told to stop, while the block runs."""
        with self._lock:
            self._callbacks.append(callback)
            told = self._told
        if told:
            callback()
        try:
            yield
        finally:
            with self._lock:
                self._callbacks.remove(callback)


class TimeLimit:
    """A stretch of time that has begun."""

    def __init__(self, seconds: float, now: Callable[[], float]) -> None:
        self._now = now
        self._end = now() + seconds

    @property
    def left(self) -> float:
        """How many seconds are left; never negative."""
        return max(0.0, self._end - self._now())

    @property
    def over(self) -> bool:
        """Whether the time is up."""
        return self._now() >= self._end


async def in_thread(work: Callable[[StopSignal], T], limiter: CapacityLimiter | None = None) -> T:
    """Run `work` in a thread; when cancelled, tell it to stop and wait until it has."""
    results: list[T] = []
    try:
        await _watched(work, limiter, results)
    except BaseExceptionGroup as group:
        # Work that was told to stop ends here, as the cancellation that told it.
        await anyio.lowlevel.checkpoint_if_cancelled()
        raise group.exceptions[0] from None
    return results[0]


@contextlib.asynccontextmanager
async def entered(manager: contextlib.AbstractContextManager[T]) -> AsyncGenerator[T]:
    """Enter and leave a context that blocks, each in a thread; none is held in between."""
    value = await to_thread.run_sync(manager.__enter__)
    try:
        yield value
    except BaseException:
        await _left(manager, *sys.exc_info())
        raise
    await _left(manager, None, None, None)


async def _left(manager: contextlib.AbstractContextManager[T], *raised: Any) -> None:
    with anyio.CancelScope(shield=True):
        await to_thread.run_sync(manager.__exit__, *raised)


async def _watched(
    work: Callable[[StopSignal], T], limiter: CapacityLimiter | None, results: list[T]
) -> None:
    stop = StopSignal()

    async def tell_when_cancelled() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            stop.tell()

    async with anyio.create_task_group() as watching:
        watching.start_soon(tell_when_cancelled)
        try:
            results.append(await to_thread.run_sync(work, stop, limiter=limiter))
        finally:
            watching.cancel_scope.cancel()
