"""Work in a thread ends with its caller, and as its caller's end."""

import contextlib
import threading
from collections.abc import Generator
from time import monotonic

import anyio
import pytest

from creonowd.threads import StoppedError, StopSignal, TimeLimit, entered, in_thread


async def test_cancelled_work_is_told_and_waited_for() -> None:
    begun = threading.Event()
    ended = threading.Event()

    def work(stop: StopSignal) -> None:
        told = threading.Event()
        with stop.calling(told.set):
            begun.set()
            told.wait(20)
        ended.set()
        stop.check()

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(in_thread, work)
            await anyio.to_thread.run_sync(begun.wait)
            tasks.cancel_scope.cancel()

    assert ended.is_set()


async def test_the_result_and_the_error_of_the_work_come_through() -> None:
    def fail(_stop: StopSignal) -> None:
        raise KeyError("its own")

    assert await in_thread(lambda _: 42) == 42
    with pytest.raises(KeyError, match="its own"):
        await in_thread(fail)


def test_who_comes_too_late_to_listen_is_told_at_once() -> None:
    stop = StopSignal()
    stop.set()
    told: list[str] = []

    with stop.calling(lambda: told.append("stop")):
        pass

    assert told == ["stop"]
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
            async with entered(noted()):
                scope.cancel()
                await anyio.sleep_forever()
        with pytest.raises(KeyError):
            async with entered(noted()):
                raise KeyError
        async with entered(noted()):
            pass

    assert scope.cancelled_caught
    assert seen == [("entered", True), ("left", True)] * 3


def test_a_time_limit_never_has_less_than_nothing_left() -> None:
    limit = TimeLimit(-1, monotonic)

    assert limit.over
    assert limit.left == 0
