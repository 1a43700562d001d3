"""What connections share: room for strangers, and what all pages together may ask and leave unread."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest

from creonowd.model import Params, Result
from creonowd.rpc.access import Grant
from creonowd.rpc.channel import Channel, Role
from creonowd.rpc.messages import SHORT_MESSAGE
from creonowd.rpc.server import (
    MAX_UNAUTHENTICATED,
    MOST_PAGES,
    PAGES_BYTES,
    TOKEN_SECONDS,
    UNCOUNTED_UNREAD_BYTES,
    UNREAD_PAGES_BYTES,
    PageMemory,
    Server,
    UnreadReplies,
)
from creonowd.transports.memory import MemoryWire
from testing.clients import PATIENCE, Client, RpcError, in_memory


async def test_pages_leave_connections_for_owners(server: Server) -> None:
    """Each takes a descriptor, and a page may connect as often as it likes with its token."""
    token = server.grants.mint(Grant(Role.RENDERER))
    owner_token = server.grants.mint(Grant(Role.OWNER))
    pages = [MemoryWire(server, ignore, Role.RENDERER) for _ in range(MOST_PAGES)]
    async with in_memory(server, role=None) as one_more, in_memory(server, role=None) as owner:
        with pytest.raises(RpcError) as refused:
            await one_more.call("initialize", {"token": token})
        admitted = await owner.call("initialize", {"token": owner_token})
        pages[0].connection.disconnect()
        later = await one_more.call("initialize", {"token": token})

    assert refused.value.code == "IPC_BACKPRESSURE"
    assert (admitted["role"], later["role"]) == ("owner", "renderer")


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

    with anyio.fail_after(PATIENCE):
        await server.wait_for_room()

    assert wires[0].connection.age >= TOKEN_SECONDS


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


READ_SECONDS = 0.01


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
        memory = PageMemory(tasks, READ_SECONDS)
        memory.may_read_on(stalled)
        memory.may_read_on(waiting)
        with anyio.fail_after(PATIENCE):
            await stalled.ended.wait()
        memory.forget(stalled)

        assert memory.may_read_on(waiting)
        assert not waiting.ended.is_set()
        tasks.cancel_scope.cancel()


LARGE = 200_000


class LargeText(Result):
    """A large text, but far smaller than what one page may leave unread."""

    text: str = "x" * LARGE


def large_text(_session: Any, _params: Text) -> LargeText:
    """Answer with a large text, without a task."""
    return LargeText()


async def test_what_all_pages_leave_unread_is_bounded(server: Server) -> None:
    """Each alone stays far below its own bound; an owner is answered all the same."""
    server.add([Channel("test:large", large_text)])
    asked = {"jsonrpc": "2.0", "method": "test:large", "params": {"text": ""}}
    async with AsyncExitStack() as stack:
        pages = [
            await stack.enter_async_context(in_memory(server, role=Role.RENDERER))
            for _ in range(30)
        ]
        owner = await stack.enter_async_context(in_memory(server))
        wires = [page.wire for page in pages if page.wire is not None]
        for wire in wires:
            wire.hold()
        for number in range(4):
            for page in pages:
                await page.post({**asked, "id": f"reply-{number}"})
        await anyio.wait_all_tasks_blocked()
        unread = sum(wire.unread_bytes() for wire in wires)
        pong = await owner.call("app:ping")
        for wire in wires:
            wire.release()
        for page in pages:
            for number in range(4):
                assert "result" in await page.reply(f"reply-{number}")

    assert UNREAD_PAGES_BYTES <= unread < UNREAD_PAGES_BYTES + len(pages) * LARGE
    assert pong["pong"]


class ReadingPage:
    """A page of which a transport does not say that it reads."""

    def __init__(self, unread: int) -> None:
        self.unread = unread
        self.is_held = False

    def unread_bytes(self) -> int:
        return self.unread

    def congest(self) -> None:
        self.is_held = True

    def relieve(self) -> None:
        self.is_held = False


async def test_a_page_goes_on_once_it_has_read() -> None:
    half = UNREAD_PAGES_BYTES // 2
    reads, stays, leaves = ReadingPage(half), ReadingPage(half), ReadingPage(half)
    small = ReadingPage(UNCOUNTED_UNREAD_BYTES)
    pages = (reads, small, stays, leaves)
    held: list[list[bool]] = []

    async with anyio.create_task_group() as tasks:
        replies = UnreadReplies(tasks)
        for page in pages:
            replies.note(page)
        held.append([page.is_held for page in pages])
        reads.unread = 0
        with anyio.fail_after(PATIENCE):
            while reads.is_held:
                await anyio.lowlevel.checkpoint()
        held.append([page.is_held for page in pages])
        replies.forget(leaves)
        stays.unread = UNCOUNTED_UNREAD_BYTES

    assert held == [[True, False, True, True], [False, False, True, True]]
    assert not stays.is_held
    assert leaves.is_held
