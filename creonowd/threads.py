"""Long work in a thread, which stops when its task is cancelled or its time is up.

Work of a millisecond is done on the event loop, by one task in each of its turns.
"""

import asyncio
import contextlib
import sys
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator
from functools import partial
from typing import Any, ParamSpec, TypeVar

import anyio
import anyio.lowlevel
from anyio import CapacityLimiter, NoEventLoopError, from_thread, to_thread

# Tasks that take no longer together may have a turn of the event loop together.
QUICK_SECONDS = 0.002
# A check takes a microsecond, an item of a text at least a tenth of one.
ITEMS_PER_CHECK = 1024

T = TypeVar("T")
P = ParamSpec("P")


class StoppedError(BaseException):
    """The work was stopped; nobody waits for its result. Like a cancellation, it is no failure."""


class StopSignal:
    """Asks the work in a thread to stop."""

    def __init__(self) -> None:
        self._is_set = False
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], None]] = []

    def set(self) -> None:
        """Stop the work."""
        with self._lock:
            self._is_set = True
            callbacks = list(self._callbacks)
        for callback in callbacks:
            callback()

    @property
    def is_set(self) -> bool:
        """Whether the work is to stop."""
        return self._is_set

    def check(self) -> None:
        """Raise StoppedError if the work is to stop."""
        if self._is_set:
            raise StoppedError

    @contextlib.contextmanager
    def on_stop(self, callback: Callable[[], None]) -> Generator[None]:
        """Call `callback` as soon as the work is to stop, while the block runs."""
        with self._lock:
            self._callbacks.append(callback)
            is_set = self._is_set
        if is_set:
            callback()
        try:
            yield
        finally:
            with self._lock:
                self._callbacks.remove(callback)


def check_stopped() -> None:
    """Raise the cancellation of the task that this thread works for, if it is cancelled.

    Long work calls it wherever it runs, and everything that takes longer than a few milliseconds
    for the largest input is such work. Only a thread of `anyio.to_thread` works for a task: on the
    event loop, or in another thread, it does nothing.
    """
    with contextlib.suppress(NoEventLoopError):
        from_thread.check_cancelled()


def until_stopped(items: Iterable[T]) -> Iterator[T]:
    """Yield the items; from time to time, look whether the work is to stop.

    A list that C code makes of many matches holds up all other threads until it is done. Taken one
    by one from here, they let others have their turn in between.
    """
    for number, item in enumerate(items):
        if number % ITEMS_PER_CHECK == 0:
            check_stopped()
        yield item


class TimeLimit:
    """A limit of seconds that has begun."""

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
    """Run `work` in a thread; when cancelled, stop it and wait until it has ended."""
    results: list[T] = []
    try:
        await _run_until_cancelled(work, limiter, results)
    except BaseExceptionGroup as group:
        # Work that was stopped ends here, with the cancellation that stopped it.
        await anyio.lowlevel.checkpoint_if_cancelled()
        raise group.exceptions[0] from None
    return results[0]


async def call_in_thread(work: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """Call `work` in a thread; when cancelled, it ends where it next calls `check_stopped`."""
    return await to_thread.run_sync(partial(work, *arguments, **options))


async def _run_until_cancelled(
    work: Callable[[StopSignal], T], limiter: CapacityLimiter | None, results: list[T]
) -> None:
    stop = StopSignal()

    async def stop_when_cancelled() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            stop.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stop_when_cancelled)
        try:
            results.append(await to_thread.run_sync(work, stop, limiter=limiter))
        finally:
            tasks.cancel_scope.cancel()


@contextlib.asynccontextmanager
async def enter_in_thread(manager: contextlib.AbstractContextManager[T]) -> AsyncGenerator[T]:
    """Enter and leave a blocking context, each in a thread; no thread is used in between."""
    value = await to_thread.run_sync(manager.__enter__)
    try:
        yield value
    except BaseException:
        await _exit(manager, *sys.exc_info())
        raise
    await _exit(manager, None, None, None)


async def _exit(manager: contextlib.AbstractContextManager[T], *raised: Any) -> None:
    with anyio.CancelScope(shield=True):
        await to_thread.run_sync(manager.__exit__, *raised)


class LoopTurns:
    """Lets tasks work on the event loop one after the other, so that nobody waits for a crowd.

    Between any two of them the loop serves everyone else. Up to `most` that are quick have a turn
    together: a turn of the loop takes 0.05 ms even where nobody else waits for one.
    """

    def __init__(self, most: int = 1) -> None:
        self._is_taken = False
        self._waiting: deque[anyio.Event] = deque()
        self._most, self._together = most, 1
        self._began = 0.0

    async def take(self) -> None:
        """Wait for a turn of the loop; it ends by itself."""
        if not self._is_taken:
            self._begin()
            return
        turn = anyio.Event()
        self._waiting.append(turn)
        try:
            await turn.wait()
        except BaseException:
            if not turn.is_set():
                self._waiting.remove(turn)
            raise

    def wake(self, tasks: Iterable[anyio.Event]) -> None:
        """Wake tasks that wait for something else, each in a turn of the loop."""
        self._waiting.extend(tasks)
        if self._waiting and not self._is_taken:
            self._begin()

    def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        self._is_taken, self._began = True, loop.time()
        loop.call_soon(self._pass_on)

    def _pass_on(self) -> None:
        """Wake the next, after those that were woken last have worked."""
        took = asyncio.get_running_loop().time() - self._began
        self._together = min(self._most, 2 * self._together if took < QUICK_SECONDS else 1)
        self._is_taken = False
        woken = [self._waiting.popleft() for _ in range(min(self._together, len(self._waiting)))]
        for turn in woken:
            turn.set()
        if woken:
            self._begin()
