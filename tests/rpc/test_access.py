"""Guesses are slow all together; who has the right token gets in all the same."""

import time

import anyio
import msgspec
import structlog

from creonowd.clock import SystemClock
from creonowd.rpc.access import REFUSAL_SECONDS, Grant, Grants, TokenThrottle
from creonowd.rpc.channel import Role
from creonowd.rpc.server import MAX_UNAUTHENTICATED, TOKEN_SECONDS, Server
from creonowd.transports.memory import MemoryWire
from testing.clients import PATIENCE, Client, in_memory


async def test_wrong_tokens_on_many_connections_are_answered_one_after_the_other() -> None:
    throttle = TokenThrottle(Grants(SystemClock()))
    started = time.monotonic()

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            for number in range(3):
                tasks.start_soon(throttle.redeem, "guess", f"thief-{number}")

    assert time.monotonic() - started >= 3 * REFUSAL_SECONDS
    assert not throttle.suspects


async def test_many_wrong_tokens_are_a_few_lines_in_the_log() -> None:
    throttle = TokenThrottle(Grants(SystemClock()))

    with structlog.testing.capture_logs() as lines:
        async with anyio.create_task_group() as tasks:
            for number in range(500):
                tasks.start_soon(throttle.redeem, "guess", f"thief-{number}")
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()

    assert [line["event"] for line in lines] == ["token_refused"]


async def test_guessers_that_leave_at_once_are_a_few_lines_in_the_log() -> None:
    """Each that leaves makes room for the next to be refused."""
    throttle = TokenThrottle(Grants(SystemClock()))

    with structlog.testing.capture_logs() as lines:
        for number in range(6):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(throttle.redeem, "guess", f"thief-{number}")
                await anyio.wait_all_tasks_blocked()
                tasks.cancel_scope.cancel()

    assert 0 < len(lines) < 4


async def test_the_right_token_gets_in_among_many_wrong_ones(server: Server) -> None:
    token = server.grants.mint(Grant(Role.OWNER))
    async with in_memory(server, role=None) as owner:
        async with anyio.create_task_group() as thieves:
            for number in range(50):
                thieves.start_soon(server.throttle.redeem, "guess", f"thief-{number}")
            await anyio.wait_all_tasks_blocked()

            await owner.call("initialize", {"token": token})
            thieves.cancel_scope.cancel()

        assert (await owner.call("app:ping"))["pong"] is True


async def test_a_connection_has_one_token_looked_at_at_a_time(server: Server) -> None:
    token = server.grants.mint(Grant(Role.OWNER))
    async with in_memory(server, role=None) as thief, in_memory(server, role=None) as other:
        await show(thief, "first", "guess")
        await show(thief, "second", token)
        await other.call("initialize", {"token": token})
        early = await thief.failure("app:ping")

        refused, admitted = await thief.reply("first"), await thief.reply("second")

    assert early.code == refused["error"]["data"]["code"] == "UNAUTHENTICATED"
    assert admitted["result"]["role"] == "owner"


async def show(client: Client, number: str, token: str) -> None:
    params = {"token": token}
    await client.post({"jsonrpc": "2.0", "id": number, "method": "initialize", "params": params})


async def test_strangers_make_room_for_strangers_the_longest_here_first(server: Server) -> None:
    owner = MemoryWire(server, ignore, Role.OWNER)
    first, *rest = [MemoryWire(server, ignore, None) for _ in range(MAX_UNAUTHENTICATED)]

    newest = MemoryWire(server, ignore, None)

    assert first.closed
    assert not any(wire.closed for wire in (owner, *rest, newest))


async def test_those_with_a_wrong_token_make_room_first(server: Server) -> None:
    """Else many guesses would push out who has just connected with the right token."""
    wires = [MemoryWire(server, ignore, None) for _ in range(MAX_UNAUTHENTICATED)]
    guesser = wires[-1]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.throttle.redeem, "guess", guesser.connection.id)
        await anyio.wait_all_tasks_blocked()

        wires.append(MemoryWire(server, ignore, None))
        tasks.cancel_scope.cancel()

    assert [wire for wire in wires if wire.closed] == [guesser]


async def test_nobody_comes_in_while_no_stranger_has_had_time_for_its_token(server: Server) -> None:
    """Else a crowd would push out who has just connected, before its token is read."""
    wires = [MemoryWire(server, ignore, None) for _ in range(MAX_UNAUTHENTICATED)]
    started = time.monotonic()

    with anyio.fail_after(PATIENCE):
        await server.wait_for_room()

    waited = time.monotonic() - started
    assert wires[0].connection.age >= TOKEN_SECONDS
    assert waited > TOKEN_SECONDS / 2


async def test_there_is_room_at_once_if_one_has_shown_a_wrong_token_or_left(server: Server) -> None:
    wires = [MemoryWire(server, ignore, None) for _ in range(MAX_UNAUTHENTICATED)]
    server.throttle.suspects.add(wires[-1].connection.id)
    beside_a_guesser = has_room(server)

    server.throttle.suspects.clear()
    wires[0].connection.disconnect()

    assert beside_a_guesser
    assert has_room(server)


def has_room(server: Server) -> bool:
    """Return whether the wait for room is over as soon as it begins."""
    waiting = server.wait_for_room()
    try:
        waiting.send(None)
    except StopIteration:
        return True
    waiting.close()
    return False


async def test_a_stranger_that_does_not_read_is_disconnected(server: Server) -> None:
    wire = MemoryWire(server, ignore, None)
    asked = {"jsonrpc": "2.0", "id": "x" * 1000, "method": "app:ping"}
    wire.hold()

    for _ in range(100):
        wire.connection.feed(msgspec.json.encode(asked) + b"\n")

    assert wire.closed
    assert wire.unread_bytes() == 0


async def test_a_stranger_that_reads_may_ask_as_often_as_it_likes(server: Server) -> None:
    wire = MemoryWire(server, ignore, None)

    for _ in range(1000):
        wire.connection.feed(b'{"jsonrpc":"2.0","id":1,"method":"app:ping"}\n')

    assert not wire.closed


def ignore(_: bytes) -> None:
    pass
