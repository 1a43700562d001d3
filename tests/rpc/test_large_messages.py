"""A large request read in one pass means what it means read in two, or is left alone."""

import json
from typing import Any

import anyio
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from creonowd.model import Params
from creonowd.rpc.channel import Channel
from creonowd.rpc.messages import LARGE, Request, decode, decode_large
from creonowd.rpc.server import Server
from testing.clients import PATIENCE, Client, in_memory


class Note(Params):
    """A text, and how often."""

    text: str
    times: int = 1


def keep(session: Any, params: Note) -> None:
    """Do nothing."""


class Untyped(Params):
    """A value of any form."""

    value: Any


def keep_any(session: Any, params: Untyped) -> None:
    """Do nothing."""


CHANNELS = {"note:keep": Channel("note:keep", keep)}
PARAMS: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.lists(st.integers(), max_size=2),
    st.fixed_dictionaries(
        {},
        optional={
            "text": st.one_of(st.just("江" * 10), st.integers()),
            "times": st.one_of(st.integers(), st.text(max_size=3)),
            "_meta": st.just({"timeoutMs": 5}),
            "other": st.just({"method": "note:keep"}),
        },
    ),
)
MEMBERS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", "1.0", 2]),
        "id": st.one_of(st.none(), st.integers(), st.text(max_size=3), st.floats(), st.just([])),
        "method": st.sampled_from(["note:keep", "note:lose", "", 3, "$/cancelRequest"]),
        "params": PARAMS,
        "result": st.just({"method": "note:keep"}),
        "extra": st.just([{"method": "note:keep"}]),
    },
)
COMPLETE = {"jsonrpc": "2.0", "id": 1, "method": "note:keep", "params": {"text": "x"}}


@given(
    MEMBERS, st.randoms(use_true_random=False), st.sampled_from([b"", b"}", b',"id":2}', b"\xff"])
)
@example(COMPLETE, None, b"")
@example(COMPLETE | {"jsonrpc": "1.0"}, None, b"")
@example({"extra": COMPLETE} | COMPLETE | {"method": "note:lose"}, None, b"")
@example(COMPLETE | {"params": {"text": "x", "_meta": {"timeoutMs": 5}}}, None, b"")
def test_a_large_message_decodes_to_the_same_in_one_pass(
    members: dict[str, Any], order: Any, tail: bytes
) -> None:
    names = list(members)
    if order is not None:
        order.shuffle(names)
    body = json.dumps({name: members[name] for name in names}).encode() + tail

    read = decode_large(body, CHANNELS)

    if read is not None:
        twice = decode(body, 64)
        assert isinstance(read, Request)
        assert isinstance(twice, Request)
        assert (read.method, read.id) == (twice.method, twice.id)
        assert read.payload is not None
        assert read.payload[:2] == CHANNELS["note:keep"].payload.read(twice.params)[:2]
    elif members == COMPLETE and not tail:
        raise AssertionError("the usual request was not read")


def test_bytes_that_are_not_utf8_are_left_to_who_can_say_so() -> None:
    body = json.dumps(COMPLETE).encode().replace(b'"x"', b'"\xff"')

    assert decode_large(body, CHANNELS) is None


def test_nesting_without_end_is_left_to_who_can_say_so() -> None:
    body = json.dumps(COMPLETE).encode().replace(b'"x"', b'"x","other":' + b"[" * 100_000)

    assert decode_large(body, CHANNELS) is None


async def test_a_large_request_is_answered_like_a_small_one(client: Client) -> None:
    text = "春江潮水连海平。" * (LARGE // 8)

    echoed = await client.call("e2e:echo", {"value": text})
    refused = await client.failure("e2e:sleep", {"ms": "long", "text": text})
    half = {**COMPLETE, "id": 7, "method": "e2e:echo", "params": {"value": text + "\ud83d"}}
    await client.frame(json.dumps(half).encode())

    assert echoed == {"value": text}
    assert (refused.code, refused.details["field"]) == ("INVALID_ARGUMENT", "ms")
    assert (await client.reply(7))["result"] == {"value": text + "\ufffd"}


@pytest.mark.parametrize("text", [r"\",," * 500_000, "雨" * 1_000_000, ",[{" * 1_000_000])
async def test_others_are_answered_while_a_large_message_is_read(server: Server, text: str) -> None:
    call = {"jsonrpc": "2.0", "id": "large", "method": "e2e:echo", "params": {"value": text}}
    body = json.dumps(call).encode()
    async with in_memory(server) as hostile, in_memory(server) as owner:
        await hostile.frame(body)
        await owner.call("app:ping")
        unanswered = hostile.wire is not None and not hostile.wire.connection.idle

        assert unanswered
        assert (await hostile.reply("large"))["result"] == {"value": text}


async def test_a_large_message_before_the_end_of_the_input_is_answered(server: Server) -> None:
    call = {
        "jsonrpc": "2.0",
        "id": "last",
        "method": "e2e:echo",
        "params": {"value": "雨" * 200_000},
    }
    async with in_memory(server) as client:
        assert client.wire is not None
        await client.raw(json.dumps(call).encode())
        client.wire.connection.finish()

        assert (await client.reply("last"))["result"] == call["params"]
        with anyio.fail_after(PATIENCE):
            await client.closed.wait()


async def test_many_messages_of_a_few_kilobytes_leave_others_their_turn(server: Server) -> None:
    call = {"jsonrpc": "2.0", "method": "e2e:echo", "params": {"value": "x" * 60_000}}
    body = b"".join(json.dumps({**call, "id": f"n{n}"}).encode() + b"\n" for n in range(40))
    async with in_memory(server) as hostile, in_memory(server) as owner:
        await hostile.raw(body)
        await owner.call("app:ping")
        unanswered = hostile.wire is not None and not hostile.wire.connection.idle

        assert unanswered
        assert (await hostile.reply("n39"))["result"] == call["params"]


def test_untyped_numbers_are_read_exactly() -> None:
    """The reader of numbers is Python's own: it is never twenty times as slow as another."""
    channel = Channel("any:keep", keep_any)
    numbers = ["1.7976931348623157e+308", "5e-324", "-0.1", "2.5E3", "7", "1e999", "0." + "3" * 40]
    body = f'{{"value": [{",".join(numbers)}]}}'.encode()

    assert channel.payload.read(body).params.value == [json.loads(number) for number in numbers]
