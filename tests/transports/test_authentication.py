"""Who may: tokens, roles, origins; each refused with its code, slowed down, and logged."""

import contextlib
import http.client
import json
import sys
import time
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest
import structlog
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from creonowd.clock import SystemClock
from creonowd.daemon.build import NoPages, ServicesHost, build_services, channels
from creonowd.daemon.endpoint import Endpoint
from creonowd.errors import DaemonError, ErrorCode
from creonowd.rpc.access import Grant, Grants
from creonowd.rpc.channel import Channel, Role
from creonowd.rpc.messages import Framing
from creonowd.rpc.server import Server
from creonowd.settings import Settings
from creonowd.transports.memory import MemoryWire
from creonowd.transports.websocket import MAX_HANDSHAKES
from testing.clients import PATIENCE, Client, in_memory, over_socket, over_tcp, over_websocket


async def grant(owner: Client, **params: object) -> str:
    return (await owner.call("session:grant", {"role": "renderer"} | params))["token"]


async def test_tcp_and_websocket_need_a_token_for_everything(
    endpoints: dict[str, Endpoint],
) -> None:
    for opened in (
        over_tcp(endpoints["tcp"].address, None),
        over_websocket(endpoints["websocket"].address, None),
    ):
        async with opened as client:
            first = await client.failure("app:ping")
            hello = await client.failure("initialize")

            assert first.code == hello.code == "UNAUTHENTICATED"


async def test_a_wrong_token_is_refused_slowly(endpoints: dict[str, Endpoint]) -> None:
    async with over_tcp(endpoints["tcp"].address, None) as client:
        started = time.monotonic()
        error = await client.failure("initialize", {"token": "guess"})
        taken = time.monotonic() - started
        still = await client.failure("app:ping")

    assert error.code == still.code == "UNAUTHENTICATED"
    assert taken >= 1.0


async def test_wrong_tokens_hold_up_nobody_who_has_the_right_one(
    endpoints: dict[str, Endpoint],
) -> None:
    way = endpoints["tcp"]
    async with over_tcp(way.address, None) as thief, over_tcp(way.address, None) as owner:
        order: list[str] = []
        guess = {"jsonrpc": "2.0", "method": "initialize", "params": {"token": "guess"}}
        for number in range(3):
            await thief.post(guess | {"id": number})

        async def wait(client: Client, name: str, number: int) -> None:
            await client.reply(number)
            order.append(name)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait, thief, "thief", 2)
            await owner.call("initialize", {"token": way.token})
            order.append("owner")

    assert order == ["owner", "thief"]


async def test_a_renderer_may_not_do_what_is_the_owners(server: Server) -> None:
    async with in_memory(server) as owner, in_memory(server, role=None) as page:
        reply = await page.call("initialize", {"token": await grant(owner)})
        refused = [
            await page.failure("session:grant", {"role": "owner"}),
            await page.failure("shutdown"),
            await page.failure("e2e:fail"),
        ]
        wrapped = await page.call("ipc:invoke", {"channel": "shutdown", "payload": {}})
        batched = [{"jsonrpc": "2.0", "id": 50, "method": "shutdown"}]
        await page.post(batched)
        (in_batch,) = await page.stray()

        assert reply["role"] == "renderer"
        assert "shutdown" not in reply["channels"]
        assert {error.code for error in refused} == {"FORBIDDEN"}
        assert refused[0].details == {"role": "renderer", "required": "owner"}
        assert wrapped["error"]["code"] == "FORBIDDEN"
        assert in_batch["error"]["data"]["code"] == "FORBIDDEN"
        assert (await page.call("app:ping"))["pong"] is True


async def test_a_role_never_comes_from_the_payload(server: Server) -> None:
    async with in_memory(server, role=Role.RENDERER) as page:
        error = await page.failure("session:grant", {"role": "owner", "_meta": {"role": "owner"}})

    assert error.code == "FORBIDDEN"


async def test_a_grant_may_name_its_channels(server: Server) -> None:
    async with in_memory(server) as owner, in_memory(server, role=None) as page:
        await page.call("initialize", {"token": await grant(owner, channels=["app:ping"])})
        error = await page.failure("app:health")

        assert (await page.call("app:ping"))["pong"] is True
        assert error.code == "FORBIDDEN"


async def test_a_grant_of_an_unknown_channel_is_refused(client: Client) -> None:
    error = await client.failure("session:grant", {"role": "renderer", "channels": ["no:such"]})

    assert error.code == "INVALID_ARGUMENT"


async def test_a_token_runs_out(server: Server) -> None:
    async with in_memory(server) as owner, in_memory(server, role=None) as page:
        token = await grant(owner, ttlMs=200)
        await page.call("initialize", {"token": token})
        with anyio.fail_after(60):
            while "error" not in await ping(page):
                await anyio.lowlevel.checkpoint()

        assert (await page.failure("app:ping")).code == "UNAUTHENTICATED"
        assert (await page.failure("initialize")).code == "UNAUTHENTICATED"


async def ping(client: Client) -> dict[str, object]:
    await client.post({"jsonrpc": "2.0", "id": "p", "method": "app:ping"})
    return await client.reply("p")


async def test_a_revoked_token_ends_the_rights_of_those_who_hold_it(server: Server) -> None:
    async with in_memory(server) as owner, in_memory(server, role=None) as page:
        token = await grant(owner)
        await page.call("initialize", {"token": token})
        revoked = await owner.call("session:revoke", {"token": token})
        again = await owner.call("session:revoke", {"token": token})
        error = await page.failure("app:ping")

    assert (revoked["revoked"], again["revoked"]) == (True, False)
    assert error.code == "UNAUTHENTICATED"


async def test_whoever_lost_its_rights_is_sent_nothing_more(server: Server) -> None:
    """A host whose token was taken back would otherwise go on being asked with the manuscript."""
    async with in_memory(server) as owner, in_memory(server, role=None) as page:
        token = await grant(owner)
        await page.call("initialize", {"token": token})
        assert page.wire is not None
        connection = page.wire.connection
        await owner.call("session:revoke", {"token": token})

        connection.notify("a:happened", {})
        with pytest.raises(DaemonError) as unasked:
            await connection.call("context:source:fetch", {}, dict, 1000)
        await page.failure("app:ping")

    assert unasked.value.code is ErrorCode.DISCONNECTED
    assert page.events == []


async def test_revoking_ends_what_the_holder_is_doing(server: Server) -> None:
    async with in_memory(server) as owner, in_memory(server, role=None) as page:
        token = await grant(owner)
        await page.call("initialize", {"token": token})
        await page.post(
            {"jsonrpc": "2.0", "id": "s", "method": "e2e:sleep", "params": {"ms": 600_000}}
        )
        await owner.call("session:revoke", {"token": token})

        ended = await page.reply("s")

    assert ended["error"]["data"]["code"] == "UNAUTHENTICATED"


async def test_a_one_time_token_that_is_in_use_can_be_revoked(server: Server) -> None:
    token = server.grants.mint(Grant(Role.OWNER, single_use=True))
    async with in_memory(server) as owner, in_memory(server, role=None) as page:
        await page.call("initialize", {"token": token})

        revoked = await owner.call("session:revoke", {"token": token})
        error = await page.failure("app:ping")

    assert revoked == {"revoked": True}
    assert error.code == "UNAUTHENTICATED"


async def test_a_token_reaches_no_further_than_the_one_that_asked_for_it(server: Server) -> None:
    few = ["app:ping", "session:grant"]
    async with in_memory(server) as owner, in_memory(server, role=None) as clerk:
        token = await grant(owner, role="owner", channels=few)
        await clerk.call("initialize", {"token": token})
        beyond = await clerk.failure("session:grant", {"role": "owner", "channels": ["shutdown"]})
        async with in_memory(server, role=None) as page:
            reply = await page.call("initialize", {"token": await grant(clerk, role="owner")})

    assert beyond.code == "FORBIDDEN"
    assert reply["channels"] == sorted([*few, "initialize", "viewer:prove"])


async def test_a_token_lasts_no_longer_than_the_one_that_asked_for_it(server: Server) -> None:
    async with in_memory(server) as owner, in_memory(server, role=None) as clerk:
        asked = {"role": "owner", "ttlMs": 60_000}
        own = await owner.call("session:grant", asked)
        await clerk.call("initialize", {"token": own["token"]})
        longer = await clerk.call("session:grant", asked | {"ttlMs": 3_600_000})
        shorter = await clerk.call("session:grant", asked | {"ttlMs": 1000})

    assert longer["expiresAtMs"] == own["expiresAtMs"]
    assert shorter["expiresAtMs"] < own["expiresAtMs"]


async def test_revoking_a_token_reaches_those_that_were_asked_for_with_it(server: Server) -> None:
    async with in_memory(server) as owner, in_memory(server, role=None) as clerk:
        own = await grant(owner, role="owner")
        await clerk.call("initialize", {"token": own})
        async with in_memory(server, role=None) as page, in_memory(server, role=None) as late:
            handed_on = await grant(clerk)
            await page.call("initialize", {"token": handed_on})
            slow = {"jsonrpc": "2.0", "id": "s", "method": "e2e:sleep", "params": {"ms": 600_000}}
            await page.post(slow)
            await owner.call("session:revoke", {"token": own})

            ended = await page.reply("s")
            after = await page.failure("app:ping")
            redeemed = await late.failure("initialize", {"token": handed_on})

    assert ended["error"]["data"]["code"] == "UNAUTHENTICATED"
    assert after.code == redeemed.code == "UNAUTHENTICATED"


class PretendedPages(NoPages):
    """Pages that claim to be served."""

    async def address(self) -> str:
        return "http://127.0.0.1:1"


@pytest.fixture
async def server_with_viewer(tmp_path: Path, daemon_settings: Settings) -> AsyncGenerator[Server]:
    clock = SystemClock()
    async with (
        anyio.create_task_group() as tasks,
        build_services(tmp_path, daemon_settings, clock, tasks, PretendedPages()) as services,
    ):
        host = ServicesHost(services)
        yield Server(channels(daemon_settings), daemon_settings, clock, tasks, host)
        tasks.cancel_scope.cancel()


async def test_a_viewer_reaches_no_further_than_the_one_that_opened_it(
    server_with_viewer: Server,
) -> None:
    server = server_with_viewer
    async with in_memory(server) as owner, in_memory(server, role=None) as clerk:
        token = await grant(owner, role="owner", channels=["viewer:open", "app:ping"])
        await clerk.call("initialize", {"token": token})
        shown = await clerk.call("viewer:open")
        kept = server.grants.one_time()
        async with in_memory(server, role=None) as page:
            await page.call("initialize", {"token": shown["token"]})
            beyond = await page.failure("session:grant", {"role": "owner"})
            pong = await page.call("app:ping")

    assert beyond.code == "FORBIDDEN"
    assert pong["pong"] is True
    assert kept == []


async def test_what_is_forbidden_is_logged(server: Server) -> None:
    async with in_memory(server, role=Role.RENDERER) as page:
        with structlog.testing.capture_logs() as logged:
            direct = await page.failure("session:revoke", {"token": "t"})
            wrapped = await page.call("ipc:invoke", {"channel": "shutdown", "payload": {}})

    reply = [line for line in logged if line["event"] == "channel_forbidden"]
    assert direct.code == wrapped["error"]["code"] == "FORBIDDEN"
    assert [line["channel"] for line in reply] == ["session:revoke", "shutdown"]
    assert {line["role"] for line in reply} == {"renderer"}


def test_a_one_time_token_works_once() -> None:
    grants = Grants(SystemClock())
    token = grants.mint(Grant(Role.OWNER, single_use=True))

    first, second = grants.redeem(token), grants.redeem(token)

    assert first is not None
    assert second is None


def test_only_digests_of_tokens_are_kept() -> None:
    grants = Grants(SystemClock())
    token = grants.mint(Grant(Role.OWNER))

    assert token not in repr(vars(grants))


def test_a_long_line_of_grants_ends_with_its_first() -> None:
    channel = Channel("x:y", lambda session, params: None, role=Role.OWNER)
    first = last = Grant(Role.OWNER)
    for _ in range(5000):
        last = Grant(Role.OWNER, parent=last)

    assert last.valid(0)
    assert last.allows(channel)
    assert last.descends_from(first)
    assert not last.is_restricted

    first.revoked = True
    assert not last.valid(0)


def test_an_owner_may_do_all_that_a_renderer_may() -> None:
    channel = Channel("x:y", lambda session, params: None, role=Role.RENDERER)

    assert Grant(Role.OWNER).allows(channel)
    assert Grant(Role.RENDERER).allows(channel)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example:80"},
    ],
)
async def test_a_page_from_elsewhere_gets_no_websocket(
    endpoints: dict[str, Endpoint], headers: dict[str, str]
) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with connect(endpoints["websocket"].address, additional_headers=headers):
            pass

    assert refused.value.response.status_code == 403


async def test_the_page_of_the_daemon_itself_may_connect(endpoints: dict[str, Endpoint]) -> None:
    address = endpoints["websocket"].address
    origin = address.replace("ws://", "http://").removesuffix("/rpc")

    async with connect(address, additional_headers={"Origin": origin}) as socket:
        await socket.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "app:ping"}))
        reply = json.loads(await socket.recv())

    assert reply["error"]["data"]["code"] == "UNAUTHENTICATED"


async def test_half_a_handshake_makes_room_for_others(endpoints: dict[str, Endpoint]) -> None:
    address = endpoints["websocket"].address.removeprefix("ws://").removesuffix("/rpc")
    host, _, port = address.rpartition(":")
    async with contextlib.AsyncExitStack() as opened:
        halves = [
            await opened.enter_async_context(await anyio.connect_tcp(host, int(port)))
            for _ in range(MAX_HANDSHAKES + 1)
        ]
        for half in halves[1:]:
            await half.send(b"GET /rpc HTTP/1.1\r\n")

        with anyio.fail_after(60), pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
            await halves[0].receive()
        async with connect(endpoints["websocket"].address):
            pass


async def test_a_websocket_without_a_token_is_not_kept_in_memory(
    endpoints: dict[str, Endpoint],
) -> None:
    """The library would wait for the end of a message of 40 MB, and the stranger never ends it."""
    piece = "x" * 65_536

    async def endless() -> AsyncGenerator[str]:
        while True:
            yield piece
            sent.append(len(piece))

    sent: list[int] = []
    with anyio.fail_after(60), pytest.raises(ConnectionClosed):
        async with connect(endpoints["websocket"].address) as socket:
            await socket.send(endless())

    assert sum(sent) < 20 * 1024 * 1024


async def test_a_websocket_that_has_shown_its_token_may_send_much(
    endpoints: dict[str, Endpoint],
) -> None:
    way = endpoints["websocket"]
    async with over_websocket(way.address, str(way.token)) as page:
        for _ in range(3):
            long = {"value": "x" * 3_000_000}
            assert await page.call("e2e:echo", long) == long


@pytest.mark.parametrize("method", ["POST", "GET", "PUT", "OPTIONS"])
def test_plain_http_gets_nothing(endpoints: dict[str, Endpoint], method: str) -> None:
    host = endpoints["websocket"].address.removeprefix("ws://").removesuffix("/rpc")
    line = http.client.HTTPConnection(host, timeout=PATIENCE)
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "app:ping"}).encode()

    try:
        line.request(method, "/rpc", body=body, headers={"Content-Type": "application/json"})
        answer = line.getresponse()
        status, text = answer.status, answer.read()
    except (http.client.HTTPException, ConnectionError):
        status, text = 0, b""
    finally:
        line.close()

    assert status != 200
    assert b"pong" not in text
    assert "Access-Control-Allow-Origin" not in str(text)


async def test_a_stranger_that_speaks_http_to_the_port_is_not_listened_to(
    endpoints: dict[str, Endpoint],
) -> None:
    """A page can make a browser post what it likes; the lines of its body must not count."""
    way = endpoints["tcp"]
    params = {"token": way.token}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    host, _, port = way.address.rpartition(":")
    posted = f"POST / HTTP/1.1\r\nHost: {way.address}\r\n\r\n{json.dumps(hello)}\n"

    async with await anyio.connect_tcp(host, int(port)) as stream:
        await stream.send(posted.encode())
        heard = b""
        with anyio.fail_after(60), contextlib.suppress(anyio.EndOfStream):
            while True:
                heard += await stream.receive()

    (only,) = heard.splitlines()
    assert json.loads(only)["error"]["data"]["code"] == "PARSE_ERROR"


@pytest.mark.parametrize("framing", [Framing.LINES, Framing.HEADERS])
async def test_a_stranger_has_little_to_say_until_it_shows_its_token(
    server: Server, framing: Framing
) -> None:
    token = server.grants.mint(Grant(Role.OWNER))
    long = {"value": "x" * 100_000}
    async with in_memory(server, framing, role=None) as page:
        refused = await page.failure("e2e:echo", long)
        await page.call("initialize", {"token": token})

        assert await page.call("e2e:echo", long) == long
        assert refused.code == "IPC_PAYLOAD_TOO_LARGE"
        assert refused.details["limitBytes"] < 100_000


async def test_a_stranger_may_not_keep_many_requests_waiting(server: Server) -> None:
    hello = {"jsonrpc": "2.0", "method": "initialize", "params": {"token": "guess"}}
    async with in_memory(server, role=None) as page:
        for number in range(20):
            await page.post(hello | {"id": f"n{number}"})

        last = await page.reply("n19")

    assert last["error"]["data"]["code"] == "IPC_BACKPRESSURE"


async def test_what_a_stranger_says_after_nonsense_is_not_read(server: Server) -> None:
    heard: list[bytes] = []
    asked = {"jsonrpc": "2.0", "id": 1, "method": "viewer:prove", "params": {"nonce": "n" * 32}}
    wire = MemoryWire(server, heard.append, None)

    wire.connection.feed(b"POST / HTTP/1.1\r\n\r\n" + json.dumps(asked).encode() + b"\n")

    assert wire.closed
    assert [json.loads(line)["id"] for line in heard] == [None]


@pytest.mark.skipif(sys.platform == "win32", reason="the owner comes over a Unix socket")
async def test_tokens_are_not_logged(endpoints: dict[str, Endpoint], tmp_path: Path) -> None:
    token = str(endpoints["tcp"].token)
    socket = Path(endpoints["unix"].address)
    async with over_tcp(endpoints["tcp"].address, None) as client:
        await client.failure("initialize", {"token": "wrong-token-value-123"})
    async with over_socket(socket) as owner:
        granted = await grant(owner)

    logs = b"".join(path.read_bytes() for path in socket.parents[1].glob("logs/*"))

    assert b"token_refused" in logs
    for secret in (token, granted, "wrong-token-value-123"):
        assert secret.encode() not in logs
