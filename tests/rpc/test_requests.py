"""Requests are admitted, run, and answered exactly once, or not at all if nobody asked."""

from creonowd.rpc.requests import LATENCIES, Metrics, percentile
from testing.clients import Client


async def test_a_notification_is_carried_out_and_not_answered(client: Client) -> None:
    notify = {"method": "e2e:notify", "params": {"method": "novel:changed"}}

    await client.post({"jsonrpc": "2.0", **notify})
    await client.event("novel:changed")
    pong = await client.call("app:ping")

    assert pong["pong"] is True
    assert client.strays == []


async def test_requests_with_a_null_id_are_each_answered(client: Client) -> None:
    for value in ("first", "second"):
        echo = {"method": "e2e:echoInTask", "params": {"value": value}}
        await client.post({"jsonrpc": "2.0", "id": None, **echo})

    answers = [await client.stray(), await client.stray()]

    assert [answer["result"]["value"] for answer in answers] == ["first", "second"]


async def test_what_is_invoked_counts_as_its_own_channel(client: Client) -> None:
    for channel, payload in (("e2e:echo", {"value": 1}), ("e2e:echo", 5), ("e2e:fail", None)):
        await client.call("ipc:invoke", {"channel": channel, "payload": payload})
    late = {"ms": 60_000, "_meta": {"timeoutMs": 1}}
    await client.call("ipc:invoke", {"channel": "e2e:sleep", "payload": late})

    report = (await client.call("app:metrics"))["channels"]

    errors = {name: report[name]["errors"] for name in ("e2e:echo", "e2e:fail", "e2e:sleep")}
    assert report["e2e:echo"]["count"] == 2
    assert errors["e2e:echo"] == {"INVALID_ARGUMENT": 1}
    assert errors["e2e:fail"] == {"INTERNAL": 1}
    assert errors["e2e:sleep"] == {"TIMEOUT": 1}
    assert all(report[name]["inFlight"] == 0 for name in errors)


async def test_true_is_no_id_to_cancel(client: Client) -> None:
    sleep = {"id": 1, "method": "e2e:sleep", "params": {"ms": 100}}
    await client.post({"jsonrpc": "2.0", **sleep})
    await client.post({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": True}})

    assert "result" in await client.reply(1)


def test_each_channel_is_counted_with_its_errors_and_latencies() -> None:
    metrics = Metrics()
    for taken in range(1, 101):
        metrics.start("a")
        metrics.finish("a", taken / 1000, "TIMEOUT" if taken % 10 == 0 else None)
    metrics.start("b")

    report = metrics.channels()

    assert (report["a"].count, report["a"].in_flight, report["a"].errors) == (
        100,
        0,
        {"TIMEOUT": 10},
    )
    assert (report["a"].p50_ms, report["a"].p95_ms, report["a"].p99_ms) == (51.0, 96.0, 100.0)
    assert (report["b"].count, report["b"].in_flight, report["b"].p50_ms) == (0, 1, 0.0)


def test_only_the_last_latencies_are_kept() -> None:
    metrics = Metrics()
    for taken in (1.0, *([0.001] * LATENCIES)):
        metrics.start("a")
        metrics.finish("a", taken, None)

    assert metrics.channels()["a"].p99_ms == 1.0


def test_a_percentile_of_nothing_is_nothing() -> None:
    assert percentile([], 0.5) == 0.0
