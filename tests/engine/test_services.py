"""Four of one document run, sixteen wait in turn, the next is refused; other documents pass."""

import anyio
import pytest

from creonowd.engine.services import Admission
from creonowd.errors import DaemonError, ErrorCode


async def run(
    admission: Admission, key: str, done: list[int], number: int, leave: anyio.Event
) -> None:
    async with admission.enter(key):
        done.append(number)
        await leave.wait()


async def until(admission: Admission, key: str, load: tuple[int, int]) -> None:
    with anyio.fail_after(60):
        while admission.load(key) != load:
            await anyio.lowlevel.checkpoint()


@pytest.mark.requirement("CE-094", "CE-096")
async def test_four_run_sixteen_wait_and_the_next_is_refused() -> None:
    admission, leave, done = Admission(), anyio.Event(), list[int]()
    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(run, admission, "ch", done, number, leave)
        await until(admission, "ch", (4, 16))

        with pytest.raises(DaemonError) as caught:
            await run(admission, "ch", done, 99, leave)

        assert caught.value.code is ErrorCode.CONTEXT_BACKPRESSURE
        assert caught.value.details["retryAfterMs"] > 0
        leave.set()
    assert done == list(range(20))
    assert admission.load("ch") == (0, 0)


async def test_another_document_is_not_held_up() -> None:
    admission, leave, done = Admission(running=1, waiting=0), anyio.Event(), list[int]()
    async with anyio.create_task_group() as group:
        group.start_soon(run, admission, "a", done, 1, leave)
        await until(admission, "a", (1, 0))

        with anyio.fail_after(60):
            async with admission.enter("b"):
                done.append(2)
        leave.set()

    assert done == [1, 2]


async def test_without_a_queue_the_fifth_is_refused_at_once() -> None:
    admission, leave, done = Admission(waiting=0), anyio.Event(), list[int]()
    async with anyio.create_task_group() as group:
        for number in range(4):
            group.start_soon(run, admission, "a", done, number, leave)
        await until(admission, "a", (4, 0))

        with pytest.raises(DaemonError):
            await run(admission, "a", done, 5, leave)
        leave.set()


async def test_who_waits_can_be_cancelled_and_loses_nobody_elses_turn() -> None:
    admission, leave, done = Admission(running=1), anyio.Event(), list[int]()
    async with anyio.create_task_group() as group:
        group.start_soon(run, admission, "a", done, 1, leave)
        await until(admission, "a", (1, 0))
        with anyio.move_on_after(0.01):
            await run(admission, "a", done, 2, leave)
        group.start_soon(run, admission, "a", done, 3, leave)
        await until(admission, "a", (1, 1))
        leave.set()

    assert done == [1, 3]
    assert admission.load("a") == (0, 0)


async def test_a_turn_given_to_someone_who_is_just_cancelled_is_passed_on() -> None:
    admission, leave, done = Admission(running=1), anyio.Event(), list[int]()
    async with anyio.create_task_group() as group:
        first = anyio.Event()
        group.start_soon(run, admission, "a", done, 1, first)
        await until(admission, "a", (1, 0))
        async with anyio.create_task_group() as doomed:
            doomed.start_soon(run, admission, "a", done, 2, leave)
            await until(admission, "a", (1, 1))
            group.start_soon(run, admission, "a", done, 3, leave)
            await until(admission, "a", (1, 2))
            first.set()
            await until(admission, "a", (1, 1))
            doomed.cancel_scope.cancel()
        leave.set()

    assert done[0] == 1
    assert done[-1] == 3
    assert admission.load("a") == (0, 0)


async def test_a_failure_inside_frees_the_place() -> None:
    admission = Admission(running=1, waiting=0)

    with pytest.raises(RuntimeError):
        async with admission.enter("a"):
            raise RuntimeError

    async with admission.enter("a"):
        assert admission.load("a") == (1, 0)
