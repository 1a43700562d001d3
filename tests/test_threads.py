"""Work in a thread ends with its caller, and as its caller's end."""

import contextlib
import itertools
import threading
from collections.abc import Callable, Generator
from functools import partial
from itertools import groupby, pairwise
from time import monotonic

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from anyio import from_thread, to_thread

from creonowd.threads import (
    BatchCache,
    BatchedReads,
    CachedValues,
    CacheOnly,
    LoopTurns,
    NotCachedError,
    SharedReads,
    StoppedError,
    StopSignal,
    TimeLimit,
    call_in_thread,
    check_stopped,
    enter_in_thread,
    in_thread,
    until_stopped,
)


async def test_cancelled_work_is_notified_and_waited_for() -> None:
    begun = threading.Event()
    ended = threading.Event()

    def work(stop: StopSignal) -> None:
        notices = threading.Event()
        with stop.on_stop(notices.set):
            begun.set()
            notices.wait(20)
        ended.set()
        stop.check()

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(in_thread, work)
            await to_thread.run_sync(begun.wait)
            tasks.cancel_scope.cancel()

    assert ended.is_set()


async def test_the_result_and_the_error_of_the_work_come_through() -> None:
    def fail(_stop: StopSignal) -> None:
        raise KeyError("its own")

    assert await in_thread(lambda _: 42) == 42
    with pytest.raises(KeyError, match="its own"):
        await in_thread(fail)


def test_a_late_listener_is_notified_at_once() -> None:
    stop = StopSignal()
    stop.set()
    notices: list[str] = []

    with stop.on_stop(lambda: notices.append("stop")):
        pass

    assert notices == ["stop"]
    with pytest.raises(StoppedError):
        stop.check()


async def test_a_context_is_left_in_a_thread_whatever_ends_its_block() -> None:
    seen: list[tuple[str, bool]] = []

    @contextlib.contextmanager
    def noted() -> Generator[None]:
        seen.append(("entered", threading.get_ident() != main))
        try:
            yield
        finally:
            seen.append(("left", threading.get_ident() != main))

    main = threading.get_ident()
    with anyio.fail_after(60):
        with anyio.CancelScope() as scope:
            async with enter_in_thread(noted()):
                scope.cancel()
                await anyio.sleep_forever()
        with pytest.raises(KeyError):
            async with enter_in_thread(noted()):
                raise KeyError
        async with enter_in_thread(noted()):
            pass

    assert scope.cancelled_caught
    assert seen == [("entered", True), ("left", True)] * 3


def test_a_time_limit_never_has_less_than_nothing_left() -> None:
    limit = TimeLimit(-1, monotonic)

    assert limit.over
    assert limit.seconds_left == 0


async def test_between_two_turns_of_a_crowd_others_are_served() -> None:
    turns, order = LoopTurns(), list[str]()

    async def work(number: int) -> None:
        await turns.take()
        order.append(f"work {number}")

    async def serve() -> None:
        while len(order) < 60:
            order.append("serve")
            await anyio.lowlevel.checkpoint()

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(work, number)
            group.start_soon(serve)

    worked = [entry for entry in order if entry != "serve"]
    assert worked == [f"work {number}" for number in range(20)]
    assert all("serve" in pair for pair in pairwise(order))


async def test_quick_ones_of_a_crowd_share_turns_and_keep_their_order() -> None:
    turns, order = LoopTurns(most=4), list[str]()

    async def work(number: int) -> None:
        await turns.take()
        order.append(f"work {number}")

    async def serve() -> None:
        while order.count("work 19") == 0:
            order.append("serve")
            await anyio.lowlevel.checkpoint()

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(work, number)
            group.start_soon(serve)

    worked = [entry for entry in order if entry != "serve"]
    together = [len(list(run)) for is_work, run in groupby(order, "serve".__ne__) if is_work]
    assert worked == [f"work {number}" for number in range(20)]
    assert 1 < max(together) <= 4


async def test_one_who_gives_up_hands_its_turn_on() -> None:
    turns, done = LoopTurns(), list[int]()

    async def work(number: int, scope: anyio.CancelScope) -> None:
        with scope:
            await turns.take()
            done.append(number)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            scopes = [anyio.CancelScope() for _ in range(9)]
            for number, scope in enumerate(scopes):
                group.start_soon(work, number, scope)
            await anyio.lowlevel.checkpoint()
            for scope in scopes[1:8]:
                scope.cancel()

    assert done == [0, 8]


@pytest.mark.parametrize("abandons", [False, True])
async def test_long_work_that_checks_ends_with_its_caller(*, abandons: bool) -> None:
    """Also work that its caller does not wait for."""
    begun, ended = threading.Event(), threading.Event()

    def work() -> None:
        try:
            for _ in until_stopped(itertools.count()):
                begun.set()
        finally:
            ended.set()

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(to_thread.run_sync, work, abandon_on_cancel=abandons))
            await to_thread.run_sync(begun.wait)
            tasks.cancel_scope.cancel()
        await to_thread.run_sync(ended.wait)


async def test_a_shielded_thread_is_not_asked_to_stop() -> None:
    """What must not end half done is shielded from its caller's end."""
    done: list[bool] = []

    def work(scope: anyio.CancelScope) -> None:
        from_thread.run_sync(scope.cancel)
        check_stopped()
        done.append(True)

    with anyio.CancelScope() as outer, anyio.CancelScope(shield=True):
        await to_thread.run_sync(work, outer)

    assert done


async def test_only_the_thread_that_is_stopped_is_asked_to_stop() -> None:
    await call_in_thread(check_stopped)
    check_stopped()

    assert await to_thread.run_sync(check_stopped) is None


class Disk:
    """Something that changes, and takes time to be read."""

    def __init__(self) -> None:
        self.content = "old"
        self.reads = 0
        self.go = anyio.Event()

    async def read(self) -> str:
        self.reads += 1
        seen = self.content
        await self.go.wait()
        return seen


async def test_those_who_ask_during_a_read_share_the_next_one() -> None:
    disk, shared, got = Disk(), SharedReads[str](), list[str]()

    async def ask() -> None:
        got.append(await shared.read("k", disk.read))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            disk.content = "new"
            for _ in range(100):
                group.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            disk.go.set()

    assert got == ["old", *["new"] * 100]
    assert disk.reads == 2


async def test_finding_nothing_is_shared_too() -> None:
    shared, reads = SharedReads[None](), list[int]()
    go = anyio.Event()

    async def nothing() -> None:
        reads.append(1)
        await go.wait()

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(shared.read, "k", nothing)
            await anyio.wait_all_tasks_blocked()
            go.set()

    assert len(reads) <= 2


async def test_one_after_the_other_each_reads_anew() -> None:
    disk, shared = Disk(), SharedReads[str]()
    disk.go.set()

    first = await shared.read("k", disk.read)
    disk.content = "new"
    second = await shared.read("k", disk.read)

    assert (first, second) == ("old", "new")


async def test_a_read_that_fails_is_tried_again_by_the_next() -> None:
    disk, shared = Disk(), SharedReads[str]()
    disk.go.set()

    async def fail() -> str:
        raise OSError

    with pytest.raises(OSError):  # noqa: PT011 - any failure will do
        await shared.read("k", fail)
    assert await shared.read("k", disk.read) == "old"


async def test_a_reader_that_is_cancelled_leaves_the_others_their_read() -> None:
    disk, shared, got = Disk(), SharedReads[str](), list[str]()

    async def ask() -> None:
        got.append(await shared.read("k", disk.read))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            async with anyio.create_task_group() as doomed:
                doomed.start_soon(ask)
                await anyio.wait_all_tasks_blocked()
                group.start_soon(ask)
                await anyio.wait_all_tasks_blocked()
                doomed.cancel_scope.cancel()
            disk.go.set()

    assert got == ["old"]


async def test_keys_do_not_wait_for_each_other() -> None:
    slow, quick, shared = Disk(), Disk(), SharedReads[str]()
    quick.go.set()

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(shared.read, "slow", slow.read)
            await anyio.wait_all_tasks_blocked()
            assert await shared.read("quick", quick.read) == "old"
            slow.go.set()


class SlowDisk:
    """Something that is read in a thread, and blocks it until it may go on."""

    def __init__(self) -> None:
        self.content = "old"
        self.batches: list[list[str]] = []
        self.begun, self.go = threading.Event(), threading.Event()

    def reader(self, name: str) -> Callable[[BatchCache], str]:
        def read(cache: BatchCache) -> str:
            names = cache.once("names", list[str])
            if not names:
                self.batches.append(names)
            names.append(name)
            seen = self.content
            self.begun.set()
            self.go.wait(60)
            return f"{name} {seen}"

        return read


async def test_all_who_ask_during_a_batch_share_the_next_one() -> None:
    disk, batches, got = SlowDisk(), BatchedReads(), dict[str, str]()

    async def ask(name: str) -> None:
        got[name] = await batches.read("project", name, disk.reader(name))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(ask, "first")
            await anyio.to_thread.run_sync(disk.begun.wait, 60)
            disk.content = "new"
            for number in range(100):
                group.start_soon(ask, f"n{number}")
            await anyio.wait_all_tasks_blocked()
            disk.go.set()

    assert got == {"first": "first old"} | {f"n{n}": f"n{n} new" for n in range(100)}
    assert list(map(len, disk.batches)) == [1, 100]


async def test_if_the_one_who_leads_is_cancelled_another_reads_for_all() -> None:
    disk, batches, got = SlowDisk(), BatchedReads(), list[str]()

    async def ask(name: str, scope: anyio.CancelScope) -> None:
        with scope:
            got.append(await batches.read("project", name, disk.reader(name)))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            leader = anyio.CancelScope()
            group.start_soon(ask, "leader", leader)
            for number in range(3):
                group.start_soon(ask, f"n{number}", anyio.CancelScope())
            await anyio.to_thread.run_sync(disk.begun.wait, 60)
            leader.cancel()
            await anyio.wait_all_tasks_blocked()
            disk.go.set()

    assert sorted(got) == ["n0 old", "n1 old", "n2 old"]


async def test_what_fails_in_a_batch_costs_the_others_nothing() -> None:
    batches, got = BatchedReads(), list[object]()

    def fail(_cache: BatchCache) -> str:
        raise OSError("gone")

    def succeed(_cache: BatchCache) -> str:
        return "read"

    async def ask(name: str, work: Callable[[BatchCache], str]) -> None:
        try:
            got.append(await batches.read("project", name, work))
        except OSError as error:
            got.append(str(error))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(ask, "bad", fail)
            group.start_soon(ask, "good", succeed)

    assert got == ["gone", "read"]


async def test_a_project_that_hangs_does_not_hold_up_another() -> None:
    slow, batches, quick = SlowDisk(), BatchedReads(), ""

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(batches.read, "slow", "x", slow.reader("x"))
            await anyio.to_thread.run_sync(slow.begun.wait, 60)
            quick = await batches.read("quick", "x", lambda _cache: "read")
            slow.go.set()

    assert quick == "read"


async def test_a_batch_that_hangs_is_given_up_by_all_who_wait_and_the_next_one_reads() -> None:
    disk, batches, failed = SlowDisk(), BatchedReads(), list[str]()

    async def ask(name: str) -> None:
        try:
            await batches.read("project", name, disk.reader(name), seconds=0.05)
        except TimeoutError:
            failed.append(name)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for name in ("first", "second", "third"):
                group.start_soon(ask, name)
        disk.go.set()
        after = await batches.read("project", "after", lambda _cache: "read")

    assert sorted(failed) == ["first", "second", "third"]
    assert after == "read"


async def test_what_a_batch_read_is_there_for_the_next_but_for_failures() -> None:
    kept, reads = CachedValues(room=1000), list[str]()
    batches = BatchedReads(lambda _group: BatchCache(kept))

    def work(cache: BatchCache) -> list[str]:
        def read(name: str) -> str:
            reads.append(name)
            return name

        return [
            cache.once(name, partial(read, name), lambda value: value != "failure", len)
            for name in ("lasting", "failure", "lasting", "failure", "x" * 2000)
        ]

    first = await batches.read("g", object(), work)
    second = await batches.read("g", object(), work)

    assert first == second
    assert reads == ["lasting", "failure", "x" * 2000, "failure", "x" * 2000]
    assert CacheOnly(kept).once("lasting", lambda: "read") == "lasting"
    with pytest.raises(NotCachedError):
        CacheOnly(kept).once("failure", lambda: "read")
