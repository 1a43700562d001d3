"""Guesses are slow all together; who has the right token gets in all the same."""

import time

import anyio
import structlog

from creonowd.clock import SystemClock
from creonowd.rpc.access import REFUSAL_SECONDS, Grant, Grants, TokenThrottle
from creonowd.rpc.channel import Role
from creonowd.rpc.server import (
    Server,
)
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
