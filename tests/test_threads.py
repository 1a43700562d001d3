"""Work in a thread ends with its caller, and as its caller's end."""

import contextlib
import threading
from collections.abc import Generator
from time import monotonic

import anyio
import pytest

from creonowd.threads import StoppedError, StopSignal, TimeLimit, enter_in_thread, in_thread


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
            await anyio.to_thread.run_sync(begun.wait)
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
