"""A WebSocket is read no faster than the messages of pages are answered."""

from typing import Any

import anyio
import msgspec
from websockets.asyncio.client import connect

from creonowd.model import Params, Result
from creonowd.rpc.access import Grant
from creonowd.rpc.channel import Channel, Role
from creonowd.rpc.server import PAGES_BYTES, Server
from creonowd.transports import websocket
from testing.clients import PATIENCE, over_websocket

LONG = 9_000_000
ROUNDS = 100


class Text(Params):
    """A text of any length."""

    text: str


async def test_a_page_is_not_read_from_while_others_fill_the_memory(server: Server) -> None:
    go, sent = anyio.Event(), anyio.Event()

    async def wait(_session: Any, _params: Text) -> Result:
        await go.wait()
        return Result()

    server.add([Channel("test:wait", wait)])
    token = server.grants.mint(Grant(Role.RENDERER))
    call = {"jsonrpc": "2.0", "id": 9, "method": "test:wait"}
    async with (
        websocket.listen(server, 0) as address,
        over_websocket(address, token) as greedy,
        connect(address, max_size=None) as page,
        anyio.create_task_group() as tasks,
    ):
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"token": token}}
        await page.send(msgspec.json.encode(hello), text=True)
        await page.recv()
        await greedy.post(call | {"params": {"text": "x" * PAGES_BYTES}})
        while not server.page_memory.is_full:
            await greedy.call("app:ping")

        async def send() -> None:
            for _ in range(2):
                message = msgspec.json.encode(call | {"params": {"text": "x" * LONG}})
                await page.send(message, text=True)
            sent.set()

        tasks.start_soon(send)
        with anyio.fail_after(PATIENCE):
            async with over_websocket(address, token) as other:
                for _ in range(ROUNDS):
                    await other.call("app:ping")
            waited = not sent.is_set()
            go.set()
            await sent.wait()
            await page.recv()

        assert waited
