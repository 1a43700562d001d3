"""Requests are admitted, run, and answered exactly once, or not at all if nobody asked."""

import errno
import gc
import threading
import weakref
from collections.abc import Generator
from typing import Any

import anyio
import pytest
import structlog
from anyio import to_thread

from creonowd.clock import SteppingClock
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Empty, Params, Result
from creonowd.rpc.channel import Channel, Role
from creonowd.rpc.requests import (
    LATENCIES,
    RENDERER_RUNNING,
    Metrics,
    as_daemon_error,
    percentile,
)
from creonowd.rpc.server import Server
from testing.clients import PATIENCE, Client, in_memory


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


@pytest.mark.parametrize("before", [1, LATENCIES - 1, LATENCIES, 2 * LATENCIES + 7])
def test_only_the_last_latencies_are_kept(before: int) -> None:
    metrics = Metrics()
    for taken in (*([1.0] * before), *([0.002] * LATENCIES)):
        metrics.start("a")
        metrics.finish("a", taken, None)

    assert metrics.channels()["a"].p99_ms == 2.0
    assert metrics.channels()["a"].count == before + LATENCIES


async def test_who_waits_for_an_answer_sleeps_until_one_more_was_given() -> None:
    metrics = Metrics()
    woken_after: list[int] = []

    async def wait() -> None:
        await metrics.wait_for_reply(after=1)
        woken_after.append(metrics.replies)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        for _ in range(3):
            await anyio.wait_all_tasks_blocked()
            metrics.start("a")
            metrics.finish("a", 0.001, None)

    assert woken_after == [2]


def test_a_percentile_of_nothing_is_nothing() -> None:
    assert percentile([], 0.5) == 0.0


class Stuck:
    """A channel whose work in a thread does not end until it is let go."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.running = 0
        self.most = 0
        self.begun = anyio.Event()
        self.name = "test:stuck"

    async def handle(self, _session: Any, _params: Empty) -> Result:
        self.running += 1
        self.most = max(self.most, self.running)
        self.begun.set()
        await to_thread.run_sync(self.go.wait)
        self.running -= 1
        return Result()


@pytest.fixture
def stuck(server: Server) -> Generator[Stuck]:
    channel = Stuck()
    server.add([Channel(channel.name, channel.handle)])
    yield channel
    channel.go.set()


async def test_a_deadline_is_kept_though_a_thread_does_not_end(
    client: Client, stuck: Stuck
) -> None:
    with anyio.fail_after(PATIENCE):
        error = await client.failure(stuck.name, {"_meta": {"timeoutMs": 1}})

    assert error.code == "TIMEOUT"
    assert stuck.running == 1


async def test_a_deadline_is_kept_for_what_is_invoked(client: Client, stuck: Stuck) -> None:
    payload = {"_meta": {"timeoutMs": 1}}

    with anyio.fail_after(PATIENCE):
        envelope = await client.call("ipc:invoke", {"channel": stuck.name, "payload": payload})

    assert envelope["error"]["code"] == "TIMEOUT"
    assert stuck.running == 1


async def test_who_cancels_is_answered_though_a_thread_does_not_end(
    client: Client, stuck: Stuck
) -> None:
    await client.post({"jsonrpc": "2.0", "id": "s", "method": stuck.name})
    await stuck.begun.wait()
    await client.post({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "s"}})

    with anyio.fail_after(PATIENCE):
        reply = await client.reply("s")

    assert reply["error"]["data"]["code"] == "CANCELED"
    assert stuck.running == 1


@pytest.mark.parametrize("through", ["directly", "ipc:invoke"])
async def test_a_page_has_only_a_few_requests_run_at_once(
    server: Server, stuck: Stuck, through: str
) -> None:
    """Else it asks for much at once, reads nothing, and the replies fill the memory."""
    call: dict[str, Any] = {"method": stuck.name, "params": {}}
    if through == "ipc:invoke":
        call = {"method": through, "params": {"channel": stuck.name, "payload": {}}}
    async with in_memory(server, role=Role.RENDERER) as page:
        for number in range(40):
            await page.post({"jsonrpc": "2.0", "id": f"n{number}", **call})
        assert (await page.call("app:ping"))["pong"] is True
        stuck.go.set()
        replies = [await page.reply(f"n{number}") for number in range(40)]

    assert all("result" in reply for reply in replies)
    assert stuck.most <= RENDERER_RUNNING


async def test_an_owner_has_all_its_requests_run_at_once(client: Client, stuck: Stuck) -> None:
    """A host may ask the daemon while the daemon asks it."""
    for number in range(30):
        await client.post({"jsonrpc": "2.0", "id": f"n{number}", "method": stuck.name})
    await client.call("app:ping")
    await anyio.wait_all_tasks_blocked()
    begun = stuck.running
    stuck.go.set()
    for number in range(30):
        await client.reply(f"n{number}")

    assert begun == 30


class Long(Params, weakref=True):
    """A long text."""

    text: str


async def test_many_refusals_are_a_few_lines_in_the_log(server: Server) -> None:
    async with in_memory(server, role=Role.RENDERER) as page:
        with structlog.testing.capture_logs() as lines:
            for _ in range(1000):
                await page.post({"jsonrpc": "2.0", "method": "viewer:open"})
            await page.call("app:ping")

    assert [line["times"] for line in lines] == [1, 10, 100, 1000]


async def test_a_request_that_failed_keeps_nothing_in_memory(server: Server) -> None:
    """A traceback, a timer or the context of either would keep the payload."""
    gone: list[Any] = []

    def fail(_session: Any, params: Long) -> Result:
        gone.append(weakref.ref(params))
        raise DaemonError(ErrorCode.NOT_FOUND)

    server.add([Channel("test:fail", fail)])
    gc.disable()
    try:
        async with in_memory(server, role=Role.RENDERER) as page:
            error = await page.failure("test:fail", {"text": "x" * 100_000})
            kept = [one() for one in gone]
    finally:
        gc.enable()

    assert error.code == "NOT_FOUND"
    assert kept == [None]


async def test_a_connection_is_gone_although_a_deadline_of_its_requests_is_not(
    server: Server,
) -> None:
    """The timer of an answered request stays until its time has come."""

    async def answer(_session: Any, _params: Empty) -> Result:
        await anyio.lowlevel.checkpoint()
        return Result()

    server.add([Channel("test:answer", answer)])
    async with in_memory(server) as client:
        assert client.wire is not None
        gone = weakref.ref(client.wire.connection)
        await client.call("test:answer", {"_meta": {"timeoutMs": 3_600_000}})
    del client
    await anyio.wait_all_tasks_blocked()
    gc.collect()
    kept = gone()

    assert kept is None


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.EMFILE, ErrorCode.IO_ERROR),
        (errno.EROFS, ErrorCode.IO_ERROR),
        (errno.EACCES, ErrorCode.IO_ERROR),
        (errno.ENOSPC, ErrorCode.STORAGE_FULL),
        (errno.ENOENT, ErrorCode.INTERNAL),
    ],
)
def test_what_the_disk_refused_is_reported_without_saying_where(
    number: int, code: ErrorCode
) -> None:
    refusal = OSError(number, "refused", "/home/someone/secret place")

    error = as_daemon_error(ExceptionGroup("several", [refusal]), "a:channel", SteppingClock())

    assert error.code is code
    assert "secret place" not in f"{error.message} {error.details}"
