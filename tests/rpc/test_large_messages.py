"""A large request read in one pass means what it means read in two, or is left alone."""

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from creonowd.model import Params
from creonowd.rpc.channel import Channel
from creonowd.rpc.messages import LARGE, Request, decode, decode_large
from testing.clients import Client


class Note(Params):
    """A text, and how often."""

    text: str
    times: int = 1


def keep(session: Any, params: Note) -> None:
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
