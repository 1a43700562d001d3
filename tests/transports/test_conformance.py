"""Every example of the JSON-RPC 2.0 specification (section 7), and the sentences that have none.

The examples' methods are spelt with channels that exist. Where the specification leaves a choice
or the design makes one, the example says which: params are objects, so that positional ones are
answered with `-32602`.
"""

import json
from typing import Any, NamedTuple, cast

import pytest

from testing.clients import Client

NOTHING = object()
PARSE, INVALID, UNKNOWN, PARAMS = -32700, -32600, -32601, -32602


class Example(NamedTuple):
    """What is sent, and the outline of what must come back."""

    name: str
    sent: str
    answer: Any


def result(number: Any, value: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "result": value}


def error(number: Any, code: int) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "error": code}


EXAMPLES = (
    Example(
        "rpc call with positional parameters",
        '{"jsonrpc": "2.0", "method": "e2e:echo", "params": [42, 23], "id": 1}',
        error(1, PARAMS),
    ),
    Example(
        "rpc call with positional parameters, the other way round",
        '{"jsonrpc": "2.0", "method": "e2e:echo", "params": [23, 42], "id": 2}',
        error(2, PARAMS),
    ),
    Example(
        "rpc call with named parameters",
        '{"jsonrpc": "2.0", "method": "e2e:echo", "params": {"value": 23, "minuend": 42}, "id": 3}',
        result(3, {"value": 23}),
    ),
    Example(
        "rpc call with named parameters, the other way round",
        '{"jsonrpc": "2.0", "method": "e2e:echo", "params": {"minuend": 42, "value": 23}, "id": 4}',
        result(4, {"value": 23}),
    ),
    Example(
        "a notification",
        '{"jsonrpc": "2.0", "method": "e2e:echo", "params": [1,2,3,4,5]}',
        NOTHING,
    ),
    Example("a notification without params", '{"jsonrpc": "2.0", "method": "foobar"}', NOTHING),
    Example(
        "rpc call of non-existent method",
        '{"jsonrpc": "2.0", "method": "foobar", "id": "1"}',
        error("1", UNKNOWN),
    ),
    Example(
        "rpc call with invalid JSON",
        '{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]',
        error(None, PARSE),
    ),
    Example(
        "rpc call with invalid Request object",
        '{"jsonrpc": "2.0", "method": 1, "params": "bar"}',
        error(None, INVALID),
    ),
    Example(
        "rpc call Batch, invalid JSON",
        '[ {"jsonrpc": "2.0", "method": "e2e:echo", "params": [1,2,4], "id": "1"},'
        ' {"jsonrpc": "2.0", "method" ]',
        error(None, PARSE),
    ),
    Example("rpc call with an empty Array", "[]", error(None, INVALID)),
    Example(
        "rpc call with an invalid Batch (but not empty)",
        "[1]",
        [error(None, INVALID)],
    ),
    Example("rpc call with invalid Batch", "[1,2,3]", [error(None, INVALID)] * 3),
    Example(
        "rpc call Batch",
        '[ {"jsonrpc": "2.0", "method": "e2e:echo", "params": {"value": 7}, "id": "1"},'
        ' {"jsonrpc": "2.0", "method": "e2e:echo", "params": [7]},'
        ' {"jsonrpc": "2.0", "method": "e2e:echo", "params": [42,23], "id": "2"},'
        ' {"foo": "boo"},'
        ' {"jsonrpc": "2.0", "method": "foo.get", "params": {"name": "myself"}, "id": "5"},'
        ' {"jsonrpc": "2.0", "method": "e2e:echoInTask", "id": "9"} ]',
        [
            result("1", {"value": 7}),
            error("2", PARAMS),
            error(None, INVALID),
            error("5", UNKNOWN),
            result("9", {"value": None}),
        ],
    ),
    Example(
        "rpc call Batch (all notifications)",
        '[ {"jsonrpc": "2.0", "method": "app:ping", "params": [1,2,4]},'
        ' {"jsonrpc": "2.0", "method": "e2e:echo", "params": [7]} ]',
        NOTHING,
    ),
)
SENTENCES = (
    Example(
        "`jsonrpc` must be exactly 2.0",
        '{"jsonrpc": "1.0", "method": "app:ping", "id": 11}',
        error(11, INVALID),
    ),
    Example("`jsonrpc` must be there", '{"method": "app:ping", "id": 12}', error(12, INVALID)),
    Example("a request needs a method", '{"jsonrpc": "2.0", "id": 13}', error(13, INVALID)),
    Example(
        "an id is a string, a number or null",
        '{"jsonrpc": "2.0", "method": "app:ping", "id": {"a": 1}}',
        error(None, INVALID),
    ),
    Example(
        "a boolean is no id",
        '{"jsonrpc": "2.0", "method": "app:ping", "id": true}',
        error(None, INVALID),
    ),
    Example(
        "an id may be null, which makes no notification",
        '{"jsonrpc": "2.0", "method": "e2e:echo", "params": {"value": 1}, "id": null}',
        result(None, {"value": 1}),
    ),
    Example(
        "params must be structured",
        '{"jsonrpc": "2.0", "method": "e2e:echo", "params": "bar", "id": 14}',
        error(14, PARAMS),
    ),
    Example(
        "names differ by their case",
        '{"jsonrpc": "2.0", "method": "App:Ping", "id": 15}',
        error(15, UNKNOWN),
    ),
    Example(
        "members differ by their case",
        '{"jsonrpc": "2.0", "Method": "app:ping", "id": 16}',
        error(16, INVALID),
    ),
    Example(
        "methods that begin with rpc. are reserved",
        '{"jsonrpc": "2.0", "method": "rpc.nothing", "id": 17}',
        error(17, UNKNOWN),
    ),
    Example(
        "a notification that fails is not answered",
        '{"jsonrpc": "2.0", "method": "e2e:fail"}',
        NOTHING,
    ),
    Example("a string is no request", '"app:ping"', error(None, INVALID)),
    Example("null is no request", "null", error(None, INVALID)),
    Example("a batch within a batch is no request", "[[]]", [error(None, INVALID)]),
)


@pytest.mark.parametrize("examples", [EXAMPLES, SENTENCES], ids=["examples", "sentences"])
async def test_the_specification_is_answered_as_it_says(
    line: Client, examples: tuple[Example, ...]
) -> None:
    differing = [
        (example.name, got)
        for example in examples
        if not same(got := await answer_to(line, example), example.answer)
    ]

    assert differing == []
    assert (await line.call("app:ping"))["pong"] is True


async def answer_to(line: Client, example: Example) -> Any:
    """Send an example and take what comes for it before the answer to a ping, and after."""
    line.accepts_repeated_replies = True
    await line.frame(example.sent.encode())
    wanted = example.answer
    if wanted is NOTHING:
        await line.call("app:ping")
        return line.strays.pop(0) if line.strays else NOTHING
    number: Any = None if isinstance(wanted, list) else wanted["id"]
    got = await (line.stray() if number is None else line.reply(number))
    await line.call("app:ping")
    return ("more than one answer", got, *line.strays) if line.strays else got


def same(got: Any, wanted: Any) -> bool:
    """Compare outlines; the replies of a batch may come in any order."""
    if isinstance(got, list) and isinstance(wanted, list):
        replies, expected = cast("list[Any]", got), cast("list[Any]", wanted)
        return sorted(map(spelt, map(outline, replies))) == sorted(map(spelt, expected))
    return got is wanted is NOTHING or outline(got) == wanted


def outline(reply: Any) -> Any:
    """Put the number of an error in its place, once its form is as the specification says."""
    if not isinstance(reply, dict) or "error" not in reply:
        return cast("Any", reply)
    members = cast("dict[str, Any]", reply)
    held: dict[str, Any] = members["error"]
    formed = isinstance(held["message"], str) and held.keys() <= {"code", "message", "data"}
    return {**members, "error": held["code"] if formed else held}


def spelt(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
