"""Long work in a thread, which stops when its task is cancelled or its time is up.

Work of a millisecond is done on the event loop, by one task in each of its turns. Blocking reads
are done once for all who ask at the same time: `SharedReads` serves everyone who asks for the same
thing, `BatchedReads` all who ask for different things, in one trip to a thread. What a batch read
may be kept for the next (`CachedValues`), by who knows how long it holds.
"""

import asyncio
import contextlib
import math
import sys
import threading
from collections import deque
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Generator,
    Hashable,
    Iterable,
    Iterator,
)
from functools import partial
from typing import Any, Generic, ParamSpec, Protocol, TypeVar
from weakref import WeakValueDictionary

import anyio
import anyio.lowlevel
from anyio import CapacityLimiter, NoEventLoopError, from_thread, to_thread

# Tasks that take no longer together may have a turn of the event loop together.
QUICK_SECONDS = 0.002
# A check takes a microsecond, an item of a text at least a tenth of one.
ITEMS_PER_CHECK = 1024
# Turns of the event loop that a batch waits for more reads, and waiting tasks that go on per turn.
MOST_TURNS = 250
TASKS_PER_TURN = 8
# What is kept between batches, about; nearly all of it is kept elsewhere too.
KEPT_BYTES = 4_000_000

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
    if threading.current_thread() is threading.main_thread():
        return
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
    def seconds_left(self) -> float:
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
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(set_when_cancelled, stop)
        try:
            results.append(await to_thread.run_sync(work, stop, limiter=limiter))
        finally:
            tasks.cancel_scope.cancel()


class _Settable(Protocol):
    def set(self) -> object: ...


async def set_when_cancelled(event: _Settable) -> None:
    """Set an event, for a thread to see, when this task is cancelled."""
    try:
        await anyio.sleep_forever()
    finally:
        event.set()


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
    """Lets tasks work on the event loop one after the other, so that none waits for many others.

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
        """Wake the next tasks, after those that were woken before have had their turn."""
        took = asyncio.get_running_loop().time() - self._began
        self._together = min(self._most, 2 * self._together if took < QUICK_SECONDS else 1)
        self._is_taken = False
        woken = [self._waiting.popleft() for _ in range(min(self._together, len(self._waiting)))]
        for turn in woken:
            turn.set()
        if woken:
            self._begin()


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


def _always(_value: object) -> bool:
    return True


def _usual_weight(_value: object) -> int:
    return 500


class BatchCache:
    """What one batch has read, each thing once; only the thread of the batch uses it."""

    def __init__(self, lasting: "CachedValues | None" = None) -> None:
        self._lasting = lasting or CachedValues(0)
        self._read: dict[Hashable, Any] = {}

    def peek(self, key: Hashable) -> Any | None:
        """Return what was kept for batches to come; None if nothing was."""
        return self._lasting.values.get(key)

    def once(
        self,
        key: Hashable,
        read: Callable[[], T],
        lasts: Callable[[T], bool] = _always,
        weigh: Callable[[T], int] = _usual_weight,
    ) -> T:
        """Return what a read returns, doing it unless this batch has.

        If it `lasts`, which a failure does not, it is kept for batches to come.
        """
        for values in (self._lasting.values, self._read):
            if key in values:
                return values[key]
        value = read()
        if not lasts(value) or not self._lasting.add(key, value, weigh(value)):
            self._read[key] = value
        return value


class CachedValues:
    """What was read at one revision, up to a weight."""

    def __init__(self, room: int = KEPT_BYTES) -> None:
        self.values: dict[Hashable, Any] = {}
        self._room = room

    def add(self, key: Hashable, value: object, weight: int) -> bool:
        """Keep a value if there is room for it; return whether there is."""
        if weight > self._room:
            return False
        self._room -= weight
        self.values[key] = value
        return True


class NotCachedError(Exception):
    """Something has to be read from the disk."""


class CacheOnly(BatchCache):
    """A cache that returns only what was read before and is unchanged; it never reads the disk."""

    def once(
        self,
        key: Hashable,
        read: Callable[[], T],
        lasts: Callable[[T], bool] = _always,
        weigh: Callable[[T], int] = _usual_weight,
    ) -> T:
        """Return what was read before; NotCachedError if nothing was."""
        try:
            return self._lasting.values[key]
        except KeyError:
            raise NotCachedError from None


BatchWork = Callable[[BatchCache], T]


class BatchedReads:
    """Does blocking reads in batches: a read that is requested while a batch runs is done in the next one.

    So a caller never gets a read that began before it asked, and however many ask at the same
    moment, they share one trip to a thread.
    """

    def __init__(self, begin: Callable[[Any], BatchCache] | None = None) -> None:
        """Make batches that begin with the cache that `begin` returns for a group, in a thread."""
        self._begin = begin
        self._groups: WeakValueDictionary[Hashable, _BatchGroup] = WeakValueDictionary()
        self._turns = LoopTurns(TASKS_PER_TURN)

    async def read(
        self, group: Hashable, key: Hashable, work: BatchWork[Any], seconds: float = math.inf
    ) -> Any:
        """Return what `work` returns, or raise what it raises; all who ask with one key share it.

        TimeoutError for everyone in a batch that takes longer than the task that runs it allows:
        one deadline for many, because one for each took a twentieth of a request. Groups do not
        wait for each other. Those who waited together go on one after the other, a few in each turn
        of the event loop.
        """
        mine = self._groups.get(group)
        if mine is None:
            begin = None if self._begin is None else partial(self._begin, group)
            mine = self._groups[group] = _BatchGroup(begin or BatchCache)
        batch = mine.open_batch
        batch.work.setdefault(key, work)
        while batch.outcomes is None:
            if batch.is_running:
                done = anyio.Event()
                batch.waiting.append(done)
                await done.wait()
            else:
                await _run_batch(mine, batch, self._turns, seconds)
        outcome = batch.outcomes[key]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def read_alone(self, group: Hashable, work: BatchWork[T], seconds: float = math.inf) -> T:
        """Return what `work` returns, or raise what it raises; in a batch, but shared with nobody."""
        return await self.read(group, object(), work, seconds)


class _ReadBatch:
    """Reads that are done together. One waiting task runs them; if it is cancelled, another one does."""

    def __init__(self) -> None:
        self.work: dict[Hashable, BatchWork[Any]] = {}
        self.outcomes: dict[Hashable, Any] | None = None
        self.is_running = False
        self.waiting: list[anyio.Event] = []

    def run(self, begin: Callable[[], BatchCache]) -> dict[Hashable, Any]:
        """Read everything; blocks its thread."""
        cache = begin()
        outcomes: dict[Hashable, Any] = {}
        for key, work in self.work.items():
            try:
                outcomes[key] = work(cache)
            except Exception as error:  # noqa: BLE001 - whatever fails must not cost the others theirs
                outcomes[key] = error
        return outcomes


class _BatchGroup:
    """The batch that still takes work, and a lock for the one that runs."""

    def __init__(self, begin: Callable[[], BatchCache]) -> None:
        self.begin = begin
        self.open_batch = _ReadBatch()
        self.lock = anyio.Lock(fast_acquire=True)


async def _run_batch(
    group: _BatchGroup, batch: _ReadBatch, turns: LoopTurns, seconds: float
) -> None:
    batch.is_running = True
    try:
        with anyio.move_on_after(seconds) as scope:
            await _wait_for_more(batch)
            async with group.lock:
                _close(group, batch)
                batch.outcomes = await to_thread.run_sync(
                    batch.run, group.begin, abandon_on_cancel=True
                )
        if scope.cancelled_caught:
            _close(group, batch)
            batch.outcomes = {key: TimeoutError() for key in batch.work}
    finally:
        batch.is_running = False
        waiting, batch.waiting = batch.waiting, []
        turns.wake(waiting)


def _close(group: _BatchGroup, batch: _ReadBatch) -> None:
    """Let no further read join a batch."""
    if group.open_batch is batch:
        group.open_batch = _ReadBatch()


async def _wait_for_more(batch: _ReadBatch) -> None:
    """Wait for a turn of the event loop, and for more as long as each brings others who read."""
    for _ in range(MOST_TURNS):
        joined = len(batch.work)
        await anyio.lowlevel.checkpoint()
        if len(batch.work) == joined:
            return
