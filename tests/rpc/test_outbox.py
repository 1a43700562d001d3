"""Replies go out at once; events wait, join up and are counted while the client lags."""

import json
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from creonowd.rpc.outbox import WAITING_EVENTS, Outbox


class Recorder:
    """A wire that keeps what was written."""

    def __init__(self) -> None:
        self.messages: list[Any] = []

    def write(self, data: bytes | bytearray) -> None:
        self.messages.append(json.loads(data))

    def write_soon(self, data: bytes | bytearray) -> None:
        self.write(data)

    def buffered(self) -> int:
        return 0

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def defer(self, callback: Callable[[], None]) -> None: ...

    def close(self) -> None: ...


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

    for number in range(WAITING_EVENTS + 100):
        box.notify("a", {"n": number}, str(number), None)
    box.relieve()

    assert len(wire.messages) == WAITING_EVENTS + 1
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
