"""What all pages together have asked is bounded, and nobody else notices."""

from collections.abc import AsyncGenerator
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest

from creonowd.model import Params, Result
from creonowd.rpc.channel import Channel, Role
from creonowd.rpc.page_memory import PAGES_BYTES, SHORT_MESSAGE, PageMemory
from creonowd.rpc.server import Server
from testing.clients import PATIENCE, Client, in_memory

TURN_SECONDS = 0.01


class Text(Params):
    """A text of any length."""

    text: str


class Gate:
    """A channel that answers once its gate is open."""

    def __init__(self) -> None:
        self.open = anyio.Event()

    async def handle(self, _session: Any, _params: Text) -> Result:
        await self.open.wait()
        return Result()


@pytest.fixture
async def gate(server: Server) -> AsyncGenerator[Gate]:
    """Add a channel whose requests wait."""
    gate = Gate()
    server.add([Channel("test:gate", gate.handle)])
    yield gate
    gate.open.set()


def ask(size: int, number: str = "large") -> dict[str, Any]:
    """Return a request of about `size` bytes for that channel."""
    call = {"method": "test:gate", "params": {"text": "x" * size}}
    return {"jsonrpc": "2.0", "id": number, **call}


async def fill(page: Client, server: Server) -> None:
    """Ask for as much as all pages may."""
    await page.post(ask(PAGES_BYTES))
    with anyio.fail_after(PATIENCE):
        while not server.page_memory.is_full:
            await anyio.lowlevel.checkpoint()


def is_paused(client: Client) -> bool:
    """Return whether the daemon has stopped reading from a client."""
    assert client.wire is not None
    return client.wire.paused


def begin(client: Client) -> bytes:
    """Send the first half of a large message, and return the second."""
    assert client.wire is not None
    data = msgspec.json.encode(ask(400_000)) + b"\n"
    half = len(data) // 2
    client.wire.connection.feed(data[:half])
    return data[half:]


async def test_a_page_waits_with_a_large_message_while_others_fill_the_memory(
    server: Server, gate: Gate
) -> None:
    async with (
        in_memory(server, role=Role.RENDERER) as greedy,
        in_memory(server, role=Role.RENDERER) as page,
        in_memory(server) as owner,
    ):
        await fill(greedy, server)
        pong = await page.call("app:ping")
        begin(page)
        begin(owner)
        paused = is_paused(greedy), is_paused(page), is_paused(owner)
        gate.open.set()
        await greedy.reply("large")

        assert pong["pong"]
        assert paused == (False, True, False)
        assert not is_paused(page)
        assert server.page_memory.bytes_in_flight == 0


async def test_pages_send_large_messages_one_after_the_other(server: Server, gate: Gate) -> None:
    gate.open.set()
    async with (
        in_memory(server, role=Role.RENDERER) as first,
        in_memory(server, role=Role.RENDERER) as second,
        in_memory(server, role=Role.RENDERER) as third,
    ):
        pages = (first, second, third)
        rests = [begin(page) for page in pages]
        turns: list[list[bool]] = []
        for page, rest in zip(pages, rests, strict=True):
            turns.append([is_paused(each) for each in pages])
            assert page.wire is not None
            page.wire.connection.feed(rest)
            await page.reply("large")

        assert turns == [[False, True, True], [False, False, True], [False, False, False]]


async def test_a_short_message_is_read_while_others_fill_the_memory(
    server: Server, gate: Gate
) -> None:
    async with (
        in_memory(server, role=Role.RENDERER) as greedy,
        in_memory(server, role=Role.RENDERER) as page,
    ):
        await fill(greedy, server)
        await page.post(ask(1000, "short"))
        cancel = {"method": "$/cancelRequest", "params": {"id": "short"}}
        await page.post({"jsonrpc": "2.0", **cancel})
        reply = await page.reply("short")

        assert reply["error"]["data"]["code"] == "CANCELED"
        assert not gate.open.is_set()


async def test_a_page_may_ask_little_while_others_fill_the_memory(
    server: Server, gate: Gate
) -> None:
    async with (
        in_memory(server, role=Role.RENDERER) as greedy,
        in_memory(server, role=Role.RENDERER) as page,
        in_memory(server) as owner,
    ):
        await fill(greedy, server)
        for client in (greedy, page, owner):
            for number in ("first", "second"):
                await client.post(ask(SHORT_MESSAGE // 2, number))
        refused = [await client.reply("second") for client in (greedy, page)]
        gate.open.set()
        answers = [await client.reply("first") for client in (greedy, page, owner)]
        answers.append(await owner.reply("second"))

        codes = [reply["error"]["data"]["code"] for reply in refused]
        assert codes == ["IPC_BACKPRESSURE"] * 2
        assert all("result" in answer for answer in answers)


async def test_a_page_that_leaves_makes_room(server: Server, gate: Gate) -> None:
    async with in_memory(server, role=Role.RENDERER) as page:
        async with in_memory(server, role=Role.RENDERER) as greedy:
            await fill(greedy, server)
            begin(page)
        with anyio.fail_after(PATIENCE):
            while is_paused(page):
                await anyio.lowlevel.checkpoint()

        assert server.page_memory.bytes_in_flight == 0
        assert not gate.open.is_set()


class Reader:
    """A page that reports how it is treated."""

    def __init__(self) -> None:
        self.ended = anyio.Event()

    def resume_or_pause(self) -> None: ...

    def abort_unfinished(self) -> None:
        self.ended.set()


async def test_a_page_that_sends_no_more_of_its_message_is_ended() -> None:
    stalled, waiting = Reader(), Reader()
    async with anyio.create_task_group() as tasks:
        memory = PageMemory(tasks, TURN_SECONDS)
        memory.may_read_on(stalled)
        memory.may_read_on(waiting)
        with anyio.fail_after(PATIENCE):
            await stalled.ended.wait()
        memory.forget(stalled)

        assert memory.may_read_on(waiting)
        assert not waiting.ended.is_set()
        tasks.cancel_scope.cancel()
