"""What every transport promises, in every framing: the whole of the wire's rules, from outside."""

import json
from pathlib import Path
from typing import Any

import anyio
import msgspec

from creonowd.rpc.messages import Framing
from testing.clients import Client, over_stdio

MIB = 1024 * 1024


async def test_a_request_gets_its_result(line: Client) -> None:
    assert (await line.call("app:ping"))["pong"] is True


async def test_work_in_a_task_gets_its_result(line: Client) -> None:
    assert await line.call("e2e:echoInTask", {"value": ["渡", "🖋", None, 1.5]}) == {
        "value": ["渡", "🖋", None, 1.5]
    }


async def test_params_may_be_left_out_or_null(line: Client) -> None:
    await line.post({"jsonrpc": "2.0", "id": "a", "method": "app:ping"})
    await line.post({"jsonrpc": "2.0", "id": "b", "method": "app:ping", "params": None})

    assert "result" in await line.reply("a")
    assert "result" in await line.reply("b")


async def test_an_unknown_channel_is_named(line: Client) -> None:
    error = await line.failure("app:nothing")

    assert (error.number, error.code) == (-32601, "IPC_CHANNEL_FORBIDDEN")
    assert "app:nothing" in str(error)


MISFITS: tuple[tuple[Any, str], ...] = (
    ({"ms": "soon"}, "ms"),
    ({}, "ms"),
    ({"ms": -1}, "ms"),
    ({"ms": 1, "_meta": {"timeoutMs": 0}}, "timeoutMs"),
    ([1], "params"),
    ("text", "params"),
)


async def test_a_payload_that_does_not_fit_names_the_field(line: Client) -> None:
    for params, field in MISFITS:
        error = await line.failure("e2e:sleep", params)

        assert (error.number, error.code) == (-32602, "INVALID_ARGUMENT"), params
        assert error.details["field"] == field, params
        assert field in str(error), params


async def test_unknown_fields_are_ignored_and_counted(line: Client) -> None:
    before = (await line.call("app:metrics"))["counters"].get("payload.unknown_fields", 0)

    await line.call("e2e:echo", {"value": 1, "colour": "red", "size": 2})

    after = (await line.call("app:metrics"))["counters"]["payload.unknown_fields"]
    assert after - before >= 2


async def test_notifications_are_never_answered(line: Client) -> None:
    await line.post({"jsonrpc": "2.0", "method": "app:ping"})
    await line.post({"jsonrpc": "2.0", "method": "no:such"})
    await line.post({"jsonrpc": "2.0", "method": "e2e:sleep", "params": {"ms": "bad"}})
    await line.call("app:ping")

    assert line.strays == []


async def test_ids_come_back_as_they_were(line: Client) -> None:
    for number in (0, -7, 1.5, "", "渡", 2**53 + 1):
        await line.post({"jsonrpc": "2.0", "id": number, "method": "app:ping"})

        assert "result" in await line.reply(number), number


async def test_a_null_id_is_answered_with_a_null_id(line: Client) -> None:
    await line.post({"jsonrpc": "2.0", "id": None, "method": "app:ping"})

    assert (await line.stray())["result"]["pong"] is True


async def test_an_id_that_is_in_flight_is_refused_and_the_first_is_answered(line: Client) -> None:
    request = {"jsonrpc": "2.0", "id": "twin", "method": "e2e:sleep", "params": {"ms": 60_000}}
    await line.post(request)
    await line.post(request)

    refusal = await line.reply("twin")
    await line.post({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "twin"}})
    ended = await line.reply("twin")

    assert refusal["error"]["data"]["code"] == "INVALID_REQUEST"
    assert ended["error"]["data"]["code"] == "CANCELED"


async def test_a_mixed_batch_is_answered_in_one(line: Client) -> None:
    await line.post(
        [
            {"jsonrpc": "2.0", "id": 1, "method": "app:ping"},
            {"jsonrpc": "2.0", "method": "app:ping"},
            {"jsonrpc": "2.0", "id": 2, "method": "e2e:echoInTask", "params": {"value": 5}},
            {"foo": "boo"},
            7,
            {"jsonrpc": "2.0", "id": 3, "method": "no:such"},
        ]
    )

    replies = await line.stray()

    answers = {reply["id"]: reply for reply in replies if reply["id"] is not None}
    assert len(replies) == 5
    assert answers[2]["result"] == {"value": 5}
    assert answers[3]["error"]["code"] == -32601
    refused = [reply["error"]["code"] for reply in replies if reply["id"] is None]
    assert refused == [-32600, -32600]


async def test_a_batch_of_notifications_is_not_answered(line: Client) -> None:
    await line.post([{"jsonrpc": "2.0", "method": "app:ping"}] * 3)
    await line.call("app:ping")

    assert line.strays == []


async def test_an_empty_batch_and_a_long_one_are_invalid(line: Client) -> None:
    await line.post([])
    empty = await line.stray()
    await line.post([{"jsonrpc": "2.0", "id": n, "method": "app:ping"} for n in range(65)])
    long = await line.stray()

    assert empty["error"]["code"] == long["error"]["code"] == -32600


async def test_a_running_request_can_be_cancelled(line: Client) -> None:
    await line.post({"jsonrpc": "2.0", "id": "s", "method": "e2e:sleep", "params": {"ms": 60_000}})
    await line.post({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "s"}})

    error = (await line.reply("s"))["error"]

    assert (error["code"], error["data"]["code"]) == (-32800, "CANCELED")


async def test_cancelling_what_is_not_there_does_nothing(line: Client) -> None:
    hopeless: tuple[Any, ...] = ({"id": "gone"}, {}, {"id": [1]}, [], None)
    for params in hopeless:
        await line.post({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": params})

    assert (await line.call("app:ping"))["pong"]


async def test_a_deadline_ends_the_work_and_is_no_cancellation(line: Client) -> None:
    error = await line.failure("e2e:sleep", {"ms": 60_000, "_meta": {"timeoutMs": 30}})

    assert (error.number, error.code) == (-32803, "TIMEOUT")
    assert error.data["retryable"] is True


async def test_progress_goes_to_the_token_and_stops_with_the_reply(line: Client) -> None:
    await line.call("e2e:sleep", {"ms": 10, "_meta": {"progressToken": "p"}})
    seen = [event["params"] for event in line.events if event["method"] == "$/progress"]
    await line.call("app:ping")

    assert [report["value"]["done"] for report in seen] == list(range(10))
    assert {report["token"] for report in seen} == {"p"}
    assert len([e for e in line.events if e["method"] == "$/progress"]) == len(seen)


async def test_the_daemon_can_call_the_client(line: Client) -> None:
    line.handlers["host:add"] = lambda params: sum(params["numbers"])

    answer = await line.call("e2e:callback", {"method": "host:add", "params": {"numbers": [1, 2]}})

    assert answer == {"value": 3}


async def test_a_client_that_does_not_answer_costs_a_timeout(line: Client) -> None:
    line.handlers["host:mute"] = lambda _: NotImplemented

    error = await line.failure("e2e:callback", {"method": "host:mute", "timeoutMs": 30})

    assert error.code == "TIMEOUT"


async def test_events_carry_a_sequence_and_a_time(line: Client) -> None:
    await line.call("e2e:notify", {"method": "x:happened", "params": {"what": "雨"}, "count": 2})

    first, second = await line.event("x:happened"), await line.event("x:happened")

    assert first["what"] == "雨"
    assert second["seq"] == first["seq"] + 1
    assert isinstance(first["ts"], int)


GARBAGE = (
    (b'{"jsonrpc":"2.0","id":"j","method":', -32700),
    (b'{"id":"j", \xff\xfe}', -32700),
    (b'{"jsonrpc":"2.0","id":"j","method":"app:ping","params":' + b"[" * 5000 + b"}", -32700),
    (b'{"jsonrpc":"2.0","id":"j","method":"app:ping","params":{"x":1e}}', -32700),
    (b'{"jsonrpc":"3","id":"j","method":"app:ping"}', -32600),
    (
        b'{"jsonrpc":"2.0","id":"j","method":"e2e:echo","params":{"value":"'
        + "潮".encode() * 50_000
        + b'\xff"}}',
        -32700,
    ),
)


async def test_garbage_is_answered_under_its_id_and_the_line_lives_on(line: Client) -> None:
    for body, number in GARBAGE:
        await line.frame(body)

        error = (await line.reply("j"))["error"]

        assert error["code"] == number, body[:80]
        assert (await line.call("app:ping"))["pong"], body[:80]


async def test_garbage_without_an_id_is_answered_with_null(line: Client) -> None:
    await line.frame(b"what is this?")

    assert (await line.stray())["error"]["code"] == -32700
    assert (await line.call("app:ping"))["pong"]


async def test_a_huge_number_is_no_harm(line: Client) -> None:
    await line.frame(
        b'{"jsonrpc":"2.0","id":"n","method":"e2e:echo","params":{"value":' + b"9" * 400 + b"}}"
    )

    assert (await line.reply("n"))["id"] == "n"


async def test_a_lone_surrogate_becomes_the_replacement_character(line: Client) -> None:
    await line.frame(
        b'{"jsonrpc":"2.0","id":"u","method":"e2e:echo","params":{"value":"\\ud83d!"}}'
    )

    assert (await line.reply("u"))["result"] == {"value": "\ufffd!"}


async def test_a_lone_surrogate_deep_inside_a_batch_is_answered(line: Client) -> None:
    deep = b"[" * 700 + b'"\\ud83d", 1e999' + b"]" * 700
    await line.frame(b'[{"jsonrpc":"2.0","id":"u","method":"app:ping","params":{"x":%s}}]' % deep)

    (reply,) = await line.stray()

    assert reply["id"] == "u"
    assert reply["result"]["pong"]


async def test_of_a_key_given_twice_the_last_counts(line: Client) -> None:
    await line.frame(
        b'{"jsonrpc":"2.0","id":"d","method":"e2e:echo","params":{"value":1,"value":2}}'
    )

    assert (await line.reply("d"))["result"] == {"value": 2}


async def test_a_message_over_the_limit_is_answered_and_the_line_lives_on(line: Client) -> None:
    head = b'{"jsonrpc":"2.0","id":"big","method":"e2e:echo","params":{"value":"'
    with anyio.fail_after(30):
        await line.frame(head + b"x" * (11 * MIB) + b'"}}')

        error = (await line.reply("big"))["error"]

    assert (error["code"], error["data"]["code"]) == (-32600, "IPC_PAYLOAD_TOO_LARGE")
    assert error["data"]["details"]["limitBytes"] == 10 * MIB
    assert (await line.call("app:ping"))["pong"]


async def test_a_large_message_within_the_limit_comes_back_whole(line: Client) -> None:
    text = "春江潮水连海平" * 60_000

    assert (await line.call("e2e:echo", {"value": text}))["value"] == text


async def test_a_message_of_very_many_values_is_refused_under_its_id(line: Client) -> None:
    call = b'{"jsonrpc":"2.0","id":"many","method":"e2e:echo","params":{"value":['
    for unit in (b"[],", b'"",', b"1,", b'{"a":0},', b"1.7976931348623157e+308,"):
        await line.frame(call + unit * 120_000 + b"0]}}")

        error = (await line.reply("many"))["error"]

        assert error["data"]["code"] == "IPC_PAYLOAD_TOO_LARGE", unit
        assert error["data"]["details"] == {"limitValues": 100_000}, unit
        assert (await line.call("app:ping"))["pong"], unit


async def test_what_comes_after_a_large_message_is_handled_after_it(line: Client) -> None:
    large = {"jsonrpc": "2.0", "id": "a", "method": "e2e:echo", "params": {"value": ',"' * 900_000}}
    small = {"jsonrpc": "2.0", "id": "a", "method": "e2e:echo", "params": {"value": "small"}}
    await line.frame(msgspec.json.encode(large))
    first = await line.reply("a")
    await line.frame(msgspec.json.encode(large))
    await line.frame(msgspec.json.encode({**small, "id": "b"}))
    await line.reply("b")

    assert first["result"] == large["params"]
    assert (await line.reply("a", 0))["result"] == large["params"]


async def test_short_replies_and_long_ones_keep_their_order(line: Client) -> None:
    values = ["short", "潮" * 60_000, "short again"]
    calls = [
        {"jsonrpc": "2.0", "id": f"o{n}", "method": "e2e:echo", "params": {"value": value}}
        for n, value in enumerate(values)
    ]

    for call in calls:
        await line.frame(msgspec.json.encode(call))

    assert [(await line.reply(f"o{n}"))["result"]["value"] for n in range(3)] == values


async def test_an_unforeseen_failure_carries_a_reference_and_no_trace(line: Client) -> None:
    error = await line.failure("e2e:fail")

    assert (error.number, error.code) == (-32603, "INTERNAL")
    assert error.details["reference"].startswith("err_")
    assert "planted" not in json.dumps([str(error), error.data])


async def test_the_envelope_never_fails_as_a_call(line: Client) -> None:
    good = await line.call("ipc:invoke", {"channel": "e2e:echo", "payload": {"value": 1}})
    unknown = await line.call("ipc:invoke", {"channel": "no:such", "payload": {}})
    misfit = await line.call("ipc:invoke", {"channel": "e2e:sleep", "payload": {}})
    broken = await line.call("ipc:invoke", {"channel": 5})
    nested = await line.call("ipc:invoke", {"channel": "ipc:invoke", "payload": {}})
    late = await line.call(
        "ipc:invoke",
        {"channel": "e2e:sleep", "payload": {"ms": 60_000, "_meta": {"timeoutMs": 20}}},
    )
    positional = await line.call("ipc:invoke", ["e2e:echo"])

    assert good == {"ok": True, "data": {"value": 1}}
    assert unknown["ok"] is False
    assert unknown["error"]["code"] == "IPC_CHANNEL_FORBIDDEN"
    assert misfit["error"]["code"] == broken["error"]["code"] == "INVALID_ARGUMENT"
    assert positional["error"]["code"] == "INVALID_ARGUMENT"
    assert misfit["error"]["details"] == {"field": "ms"}
    assert nested["error"]["code"] == "IPC_CHANNEL_FORBIDDEN"
    assert late["error"]["code"] == "TIMEOUT"


async def test_initialize_returns_what_both_sides_need(line: Client) -> None:
    reply = await line.call(
        "initialize",
        {"clientInfo": {"name": "t", "version": "1"}, "positionEncoding": "utf-16", "locale": "zh"},
    )
    error = await line.failure("e2e:sleep", {})

    assert reply["serverInfo"]["name"] == "creonowd"
    assert (reply["role"], reply["positionEncoding"]) == ("owner", "utf-16")
    assert reply["minCompatible"] <= reply["protocolVersion"]
    assert len(reply["contractHash"]) == 64
    assert {"app:ping", "project:create"} <= set(reply["channels"])
    assert str(error).startswith("参数")


async def test_discover_lists_every_channel(line: Client) -> None:
    document = await line.call("rpc.discover")

    assert {"app:ping", "ipc:invoke"} <= {method["name"] for method in document["methods"]}


async def test_past_the_limit_of_requests_in_flight_the_next_is_refused(line: Client) -> None:
    for number in range(257):
        await line.post(
            {"jsonrpc": "2.0", "id": f"f{number}", "method": "e2e:sleep", "params": {"ms": 60_000}}
        )
    refused = await line.reply("f256")
    await line.post({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "f0"}})
    cancelled = await line.reply("f0")
    for number in range(1, 256):
        await line.post(
            {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": f"f{number}"}}
        )

    assert refused["error"]["data"]["code"] == "IPC_BACKPRESSURE"
    assert refused["error"]["data"]["retryable"] is True
    assert cancelled["error"]["data"]["code"] == "CANCELED"
    assert (await line.reply("f255"))["error"]["data"]["code"] == "CANCELED"


async def test_headers_do_over_stdio_what_lines_do(tmp_path: Path) -> None:
    text = "渡🖋" * (MIB // 8)
    async with over_stdio(tmp_path, Framing.HEADERS) as client:
        echoed = await client.call("e2e:echoInTask", {"value": text})
        await client.post([{"jsonrpc": "2.0", "id": n, "method": "app:ping"} for n in ("a", "b")])
        batch = await client.stray()
        await client.frame(b"{")
        broken = await client.stray()
        pong = await client.call("app:ping")

    assert echoed == {"value": text}
    assert {reply["id"] for reply in batch} == {"a", "b"}
    assert broken["error"]["code"] == -32700
    assert pong["pong"] is True
