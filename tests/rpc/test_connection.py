"""Replies go out at once and in order; events wait and are merged while the client lags."""

import json
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model
from creonowd.rpc.connection import (
    BATCH_BYTES,
    MAX_WAITING_EVENTS,
    SHORT_BYTES,
    Calls,
    Outbox,
    WriteBatch,
)
from creonowd.rpc.messages import Response

SIZES = st.sampled_from([1, 200, SHORT_BYTES, SHORT_BYTES + 1, SHORT_BYTES * 3, BATCH_BYTES + 1])
MESSAGES = st.lists(st.tuples(SIZES, st.booleans()), max_size=12)


class Recorder:
    """A wire that keeps what was written."""

    def __init__(self) -> None:
        self.messages: list[Any] = []

    def write(self, data: bytes | bytearray) -> None:
        self.messages.append(json.loads(data))

    def write_soon(self, data: bytes | bytearray) -> None:
        self.write(data)

    def unread_bytes(self) -> int:
        return 0

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def defer(self, callback: Callable[[], None]) -> None: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...


def outbox() -> tuple[Outbox, Recorder]:
    wire = Recorder()
    return Outbox(wire, lambda: 7), wire


def joined(waiting: dict[str, str], fresh: dict[str, str]) -> dict[str, str]:
    return {"text": waiting["text"] + fresh["text"]}


def test_an_event_goes_out_with_its_sequence_and_time() -> None:
    box, wire = outbox()

    box.notify("a", {"x": 1}, "", None)

    assert wire.messages == [
        {"jsonrpc": "2.0", "method": "a", "params": {"x": 1, "seq": 1, "ts": 7}}
    ]


def test_replies_pass_waiting_events() -> None:
    box, wire = outbox()
    box.congest()

    box.notify("a", {}, "", None)
    box.send({"reply": 1})

    assert wire.messages == [{"reply": 1}]


@given(st.lists(st.text(max_size=5), min_size=1, max_size=50))
def test_events_that_join_up_lose_nothing(pieces: list[str]) -> None:
    box, wire = outbox()
    box.congest()

    for piece in pieces:
        box.notify("stream", {"text": piece}, "run", joined)
    box.relieve()

    (message,) = wire.messages
    assert message["params"]["text"] == "".join(pieces)


def test_of_events_that_do_not_join_up_the_newest_stays_and_the_rest_is_counted() -> None:
    box, wire = outbox()
    box.congest()

    for number in range(10):
        box.notify("a", {"n": number}, "", None)
    box.relieve()

    newest, lagged = wire.messages
    assert newest["params"]["n"] == 9
    assert (lagged["method"], lagged["params"]["count"]) == ("$/lagged", 9)


def test_what_waits_is_bounded() -> None:
    box, wire = outbox()
    box.congest()

    for number in range(MAX_WAITING_EVENTS + 100):
        box.notify("a", {"n": number}, str(number), None)
    box.relieve()

    assert len(wire.messages) == MAX_WAITING_EVENTS + 1
    assert wire.messages[-1]["params"]["count"] == 100


def test_order_is_kept_between_kinds() -> None:
    box, wire = outbox()
    box.congest()

    box.notify("a", {}, "", None)
    box.notify("b", {}, "", None)
    box.relieve()
    box.notify("c", {}, "", None)

    assert [message["method"] for message in wire.messages] == ["a", "b", "c"]
    assert [message["params"]["seq"] for message in wire.messages] == [1, 2, 3]


class Loop:
    """Keeps what is sent, and what is to be done when the turn ends."""

    def __init__(self) -> None:
        self.sent: list[bytes | bytearray] = []
        self.later: list[Callable[[], None]] = []
        self.bundle = WriteBatch(self.sent.append, self.later.append)

    def end_turn(self) -> None:
        while self.later:
            self.later.pop(0)()


@given(messages=MESSAGES, in_a_turn=st.booleans())
def test_what_is_added_is_sent_in_its_order(
    messages: list[tuple[int, bool]], *, in_a_turn: bool
) -> None:
    loop = Loop()
    contents = [(bytes([n]) * size, soon) for n, (size, soon) in enumerate(messages)]

    def add_all() -> None:
        for content, soon in contents:
            (loop.bundle.add_soon if soon else loop.bundle.add)(content)

    loop.bundle.turn(add_all) if in_a_turn else add_all()
    loop.end_turn()

    assert b"".join(loop.sent) == b"".join(content for content, _ in contents)


def test_short_messages_of_a_turn_leave_as_one() -> None:
    loop = Loop()

    def add_three() -> None:
        for _ in range(3):
            loop.bundle.add(b"x")
        assert not loop.sent

    loop.bundle.turn(add_three)
    loop.bundle.add(b"y")

    assert loop.sent == [b"xxx", b"y"]


def test_a_turn_that_fails_still_sends_what_it_added() -> None:
    loop = Loop()

    def fail() -> None:
        loop.bundle.add(b"x")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        loop.bundle.turn(fail)
    loop.bundle.add(b"y")

    assert loop.sent == [b"x", b"y"]


def test_what_need_not_leave_at_once_leaves_with_what_must() -> None:
    loop = Loop()

    loop.bundle.add_soon(b"a")
    loop.bundle.add_soon(b"b")
    assert not loop.sent
    loop.bundle.add(b"c")
    loop.bundle.add_soon(b"d")
    loop.end_turn()

    assert loop.sent == [b"abc", b"d"]


def test_no_turn_holds_back_more_than_a_little() -> None:
    loop = Loop()

    for _ in range(20):
        loop.bundle.add_soon(bytes(SHORT_BYTES))

    assert sum(map(len, loop.sent)) >= 20 * SHORT_BYTES - BATCH_BYTES


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
