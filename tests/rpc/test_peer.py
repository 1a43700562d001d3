"""A call to the client ends in its answer, or in a code that says why there is none."""

from typing import Any

import anyio
import pytest
from msgspec import Raw

from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model
from creonowd.rpc.messages import Response
from creonowd.rpc.peer import Calls


class Answer(Model):
    value: int


def answer(calls: Calls, number: str, result: bytes = b"null", error: bytes | None = None) -> bool:
    return calls.resolve(Response(number, Raw(result), None if error is None else Raw(error)))


async def ask(reply: bytes, error: bytes | None = None) -> Answer:
    sent: list[Any] = []
    calls = Calls(sent.append)

    async def settle() -> None:
        while not sent:
            await anyio.lowlevel.checkpoint()
        answer(calls, sent[0]["id"], reply, error)

    answers: list[Answer] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(settle)
        answers.append(await calls.call("host:ask", {"q": 1}, Answer, 5000))
    return answers[0]


async def test_an_answer_of_the_right_shape_is_returned() -> None:
    assert await ask(b'{"value": 5}') == Answer(value=5)


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (b'{"value": "x"}', None),
        (b"{", None),
        (b"null", b'{"code": 1, "message": "secret"}'),
        (b"null", b"5"),
    ],
)
async def test_any_other_answer_is_a_host_error_that_repeats_nothing(
    reply: bytes, error: bytes | None
) -> None:
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - a group from the helper's tasks
        await ask(reply, error)

    failure = next(e for e in flatten(caught.value) if isinstance(e, DaemonError))
    assert failure.code is ErrorCode.HOST_ERROR
    assert "secret" not in failure.message


def flatten(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        inner: list[BaseException] = list(error.exceptions)  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
        return [leaf for one in inner for leaf in flatten(one)]
    return [error]


async def test_silence_is_a_timeout_and_the_client_is_notified() -> None:
    sent: list[Any] = []
    calls = Calls(sent.append)

    with pytest.raises(DaemonError) as caught:
        await calls.call("host:ask", None, Answer, 10)

    assert caught.value.code is ErrorCode.TIMEOUT
    assert sent[1] == {
        "jsonrpc": "2.0",
        "method": "$/cancelRequest",
        "params": {"id": sent[0]["id"]},
    }
    assert answer(calls, sent[0]["id"]) is False


async def test_when_the_asker_is_cancelled_the_client_is_notified() -> None:
    sent: list[Any] = []
    calls = Calls(sent.append)

    with anyio.move_on_after(0.01):
        await calls.call("host:ask", {}, Answer, 60_000)

    assert [message["method"] for message in sent] == ["host:ask", "$/cancelRequest"]


async def test_a_client_that_leaves_fails_what_waits_for_it() -> None:
    calls = Calls(lambda _: calls.close())

    with pytest.raises(DaemonError) as first:
        await calls.call("host:ask", {}, Answer, 5000)
    with pytest.raises(DaemonError) as second:
        await calls.call("host:ask", {}, Answer, 5000)

    assert first.value.code is second.value.code is ErrorCode.DISCONNECTED


def test_an_answer_that_nobody_waits_for_is_dropped() -> None:
    calls = Calls(lambda _: None)

    assert answer(calls, "creonowd-99") is False
