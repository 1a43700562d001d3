"""Guesses are slow all together; who has the right token gets in all the same."""

import time

import anyio

from creonowd.clock import SystemClock
from creonowd.rpc.access import FREE_GUESSES, REFUSAL_SECONDS, Grant, Grants, TokenThrottle
from creonowd.rpc.channel import Role
from creonowd.rpc.server import MAX_UNAUTHENTICATED, Server
from creonowd.transports.memory import MemoryWire
from testing.clients import PATIENCE, Client, in_memory


async def guess_often(throttle: TokenThrottle, times: int) -> None:
    """Show wrong tokens, and do not wait to hear that they are."""
    for number in range(times):
        with anyio.move_on_after(0.05):
            await throttle.redeem("guess", f"thief-{number}")


async def test_wrong_tokens_on_many_connections_are_answered_one_after_the_other() -> None:
    throttle = TokenThrottle(Grants(SystemClock()), SystemClock())
    started = time.monotonic()

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            for number in range(3):
                tasks.start_soon(throttle.redeem, "guess", f"thief-{number}")

    assert time.monotonic() - started >= 3 * REFUSAL_SECONDS


async def test_who_does_not_wait_for_its_turn_is_sent_nothing() -> None:
    """Else a guess with a deadline of a millisecond would be as good as one that waits."""
    grants = Grants(SystemClock())
    throttle = TokenThrottle(grants, SystemClock())
    token = grants.mint(Grant(Role.OWNER, single_use=True))
    await guess_often(throttle, FREE_GUESSES * 2)

    with anyio.move_on_after(0.001) as hasty:
        await throttle.redeem(token, "owner")
    with anyio.fail_after(PATIENCE):
        patient = await throttle.redeem(token, "owner")

    assert hasty.cancelled_caught
    assert patient is not None
    assert not throttle.waiting


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
    def ignore(_: bytes) -> None:
        pass

    owner = MemoryWire(server, ignore, Role.OWNER)
    first, second, *rest = [MemoryWire(server, ignore, None) for _ in range(MAX_UNAUTHENTICATED)]
    server.throttle.waiting.add(first.connection.id)

    newest = MemoryWire(server, ignore, None)

    assert second.closed
    assert not any(wire.closed for wire in (owner, first, *rest, newest))


async def test_those_whose_token_is_yet_to_be_seen_are_not_sent_away(server: Server) -> None:
    def ignore(_: bytes) -> None:
        pass

    waiting = [MemoryWire(server, ignore, None) for _ in range(MAX_UNAUTHENTICATED)]
    server.throttle.waiting.update(wire.connection.id for wire in waiting)

    newest = MemoryWire(server, ignore, None)

    assert newest.closed
    assert not any(wire.closed for wire in waiting)
