"""Whatever bytes arrive, they end in replies or a clean close, and memory stays bounded."""

import contextlib
import sys
from pathlib import Path

import anyio
import msgspec
import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from creonowd.rpc.messages import Framing
from creonowd.rpc.server import Server
from creonowd.settings import Settings
from testing.clients import PATIENCE, Client, endpoints_of, in_memory, over_socket, run_daemon
from testing.fuzz import scaled_examples

PING = b'{"jsonrpc":"2.0","id":1,"method":"app:ping"}'
MIB = 1024 * 1024
FRAGMENTS = st.one_of(
    st.binary(max_size=80),
    st.sampled_from(
        [
            PING,
            b"\n",
            b"{",
            b"}",
            b"[",
            b"]",
            b'"',
            b"\\",
            b"\\ud800",
            b'[{"jsonrpc":"2.0","id":1,"method":"app:ping","params":{"x":["\\ud800",1e999]}}]\n',
            b"Content-Length: 44\r\n\r\n",
            b"Content-Length: -1\r\n\r\n",
            b"Content-Length: 9999999999\r\n\r\n",
            b"Content-Length:",
            b"\r\n\r\n",
            b'{"jsonrpc":"2.0","id":1,"method":"e2e:callback","params":{"method":"x","timeoutMs":20}}\n',
            b'{"jsonrpc":"2.0","id":"creonowd-1","result":1}\n',
            b'{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}\n',
            b'[{"jsonrpc":"2.0","id":null,"method":"app:ping"},1,{}]\n',
            "渡口\n".encode(),
            b"\xff\xfe\xfd\n",
            b"\x00\n",
        ]
    ),
)


@pytest.mark.fuzz
@settings(scaled_examples(3), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stream=st.lists(FRAGMENTS, max_size=30).map(b"".join), cut=st.integers(1, 64))
async def test_any_stream_ends_in_replies_or_a_close(
    server: Server, stream: bytes, cut: int
) -> None:
    async with in_memory(server) as attacker:
        attacker.accepts_repeated_replies = True
        assert attacker.wire is not None
        for start in range(0, len(stream), cut):
            attacker.wire.connection.feed(stream[start : start + cut])
        attacker.wire.connection.finish()

        with anyio.fail_after(60):
            await attacker.closed.wait()

    async with in_memory(server) as other:
        assert (await other.call("app:ping"))["pong"] is True


@pytest.mark.parametrize("framing", [Framing.LINES, Framing.HEADERS])
async def test_half_a_message_then_silence_holds_nobody_up(
    server: Server, framing: Framing
) -> None:
    async with in_memory(server, framing) as mute, in_memory(server) as other:
        await mute.raw(
            b'{"jsonrpc":' if framing is Framing.LINES else b"Content-Length: 50\r\n\r\n{"
        )

        assert (await other.call("app:ping"))["pong"] is True
        assert mute.strays == []


@pytest.mark.parametrize("broken", [b'\\"', b'"\\', b'"\\"'])
async def test_a_message_full_of_torn_strings_holds_nobody_up(
    server: Server, broken: bytes
) -> None:
    """Every quote may begin a string; looking for the end of each anew would take minutes."""
    with anyio.fail_after(20):
        async with in_memory(server) as client:
            for _ in range(4):
                await client.frame(b'{"a":"' + broken * 30_000)
            refusals = [await client.stray() for _ in range(4)]

    assert all(refusal["error"]["code"] == -32700 for refusal in refusals)


async def test_headers_that_lie_are_answered_and_the_connection_is_closed(server: Server) -> None:
    async with in_memory(server, Framing.HEADERS) as client:
        await client.raw(b"Content-Length: 5\r\nContent-Length: 50\r\n\r\n{}")

        refusal = await client.stray()
        with anyio.fail_after(60):
            await client.closed.wait()

    assert refusal["error"]["data"]["code"] == "PARSE_ERROR"


class TestSlowReaders:
    @pytest.fixture
    def daemon_settings(self) -> Settings:
        return Settings(e2e=True, warm_up=False, max_outbound_bytes=10_000)

    async def test_events_wait_join_up_and_are_counted(self, server: Server) -> None:
        async with in_memory(server) as client:
            assert client.wire is not None
            client.wire.hold()
            await client.post(notify("a:happened", 5000))
            assert client.wire.unread_bytes() < 20_000
            client.wire.release()

            lagged = await client.event("$/lagged")
            seen = [event for event in client.events if event["method"] == "a:happened"]

        assert lagged["count"] + len(seen) == 5000
        assert lagged["count"] > 4000

    async def test_work_waits_until_the_client_reads_and_no_reply_is_lost(
        self, server: Server
    ) -> None:
        text = "x" * 4000
        async with in_memory(server) as client:
            assert client.wire is not None
            client.wire.hold()
            for number in range(200):
                await client.post(echo(f"r{number}", text))
            held = client.wire.unread_bytes()
            client.wire.release()
            replies = [await client.reply(f"r{number}") for number in range(200)]

        assert held < 20_000
        assert all(reply["result"]["value"] == text for reply in replies)

    @pytest.mark.parametrize("framing", [Framing.LINES, Framing.WHOLE])
    async def test_a_client_that_never_reads_is_not_read_from_without_end(
        self, server: Server, framing: Framing
    ) -> None:
        """What is refused is answered as well: past the limit in flight, answers pile up."""
        async with in_memory(server) as client:
            assert client.wire is not None
            connection = client.wire.connection
            client.wire.hold()
            for _ in range(10_000):
                if client.wire.paused:
                    break
                if framing is Framing.WHOLE:
                    connection.feed_message(PING)
                else:
                    connection.feed(PING + b"\n")
            held, paused = client.wire.unread_bytes(), client.wire.paused
            client.wire.release()

            assert paused
            assert held < 50_000
            assert not client.wire.paused

    async def test_a_waiting_request_can_be_cancelled(self, server: Server) -> None:
        async with in_memory(server) as client:
            assert client.wire is not None
            client.wire.hold()
            for number in range(10):
                await client.post(echo(f"r{number}", "x" * 4000))
            await client.post(
                {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "r9"}}
            )
            client.wire.release()

            cancelled = await client.reply("r9")

        assert cancelled["error"]["data"]["code"] == "CANCELED"


def notify(method: str, count: int) -> dict[str, object]:
    params = {"method": method, "count": count}
    return {"jsonrpc": "2.0", "id": "n", "method": "e2e:notify", "params": params}


def echo(number: str, text: str) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": number, "method": "e2e:echo", "params": {"value": text}}


@pytest.mark.skipif(sys.platform == "win32", reason="there are no Unix sockets")
async def test_memory_stays_bounded_under_garbage_and_a_client_that_never_reads(
    tmp_path: Path,
) -> None:
    async with run_daemon(tmp_path) as process:
        path = Path((await endpoints_of(tmp_path))["unix"].address)
        watched = psutil.Process(process.pid)
        async with over_socket(path) as client:
            await client.call("rpc.discover")
            # With its first line, which is written when nobody asks, the log loads what redacts it.
            log = tmp_path / "logs" / "main.log"
            with anyio.fail_after(PATIENCE):
                while not log.exists() or not log.stat().st_size:  # noqa: ASYNC110 - another process
                    await anyio.sleep(0.02)
            before = watched.memory_info().rss
            await _flood_with_garbage(path)
            await _never_read(path)

            grown = watched.memory_info().rss - before

            assert (await client.call("app:ping"))["pong"] is True
    assert grown < 40 * MIB


async def _flood_with_garbage(path: Path) -> None:
    async with await anyio.connect_unix(path) as stream:
        for _ in range(100):
            await stream.send(b"x" * MIB)


async def _never_read(path: Path) -> None:
    async with await anyio.connect_unix(path) as stream:
        request = b'{"jsonrpc":"2.0","id":1,"method":"rpc.discover"}\n' * 1000
        with anyio.move_on_after(1), contextlib.suppress(anyio.BrokenResourceError):
            while True:
                await stream.send(request)


async def test_one_busy_client_does_not_starve_another(server: Server) -> None:
    async with in_memory(server) as busy, in_memory(server) as other:
        assert busy.wire is not None
        order: list[str] = []
        flood = b"".join(
            msgspec.json.encode({"jsonrpc": "2.0", "id": n, "method": "app:ping"}) + b"\n"
            for n in range(2000)
        )
        busy.wire.connection.feed(flood)

        async def finish(client: Client, name: str, number: int) -> None:
            await client.reply(number)
            order.append(name)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(finish, busy, "busy", 1999)
            await other.call("app:ping")
            order.append("other")

    assert order == ["other", "busy"]
