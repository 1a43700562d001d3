"""Work in a thread ends with its caller, and as its caller's end."""

import contextlib
import itertools
import threading
from collections.abc import Generator
from functools import partial
from itertools import groupby, pairwise
from time import monotonic

import anyio
import anyio.lowlevel
import pytest
from anyio import from_thread, to_thread

from creonowd.threads import (
    LoopTurns,
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
    assert limit.left == 0


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
