"""A loopback WebSocket, for the viewer and browser tests. A token has to be shown first.

Knows `Host` and `Origin`; knows no method. Loaded only when asked for.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, Callable
from http import HTTPStatus

import anyio
import structlog
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from creonowd.rpc.server import Server
from creonowd.transports.sockets import LOOPBACK

PATH = "/rpc"
CLOSE_SECONDS = 1.0
OVERSIZE_FACTOR = 4
STRANGERS_BYTES = 1024 * 1024
NAMES = (LOOPBACK, "localhost")

Pages = Callable[[ServerConnection, Request], Response | None]

log = structlog.stdlib.get_logger(__name__)


@contextlib.asynccontextmanager
async def listen(server: Server, port: int, pages: Pages | None = None) -> AsyncGenerator[str]:
    """Serve `ws://127.0.0.1:PORT/rpc`, and plain pages where `pages` knows them; yield the address."""

    async def talk(socket: ServerConnection) -> None:
        wire = WebSocketWire(server, socket)
        if isinstance(socket, Visitor):
            socket.is_known = lambda: wire.connection.grant is not None
        await wire.run()

    def receive(socket: ServerConnection, request: Request) -> Response | None:
        return _receive(socket, request, pages)

    async with serve(
        talk,
        LOOPBACK,
        port,
        process_request=receive,
        create_connection=Visitor,
        max_size=server.settings.max_message_bytes * OVERSIZE_FACTOR,
        close_timeout=CLOSE_SECONDS,
        compression=None,
        server_header=None,
    ) as listener:
        yield f"ws://{LOOPBACK}:{next(iter(listener.sockets)).getsockname()[1]}{PATH}"


def _receive(socket: ServerConnection, request: Request, pages: Pages | None) -> Response | None:
    port = socket.local_address[1]
    if not _local(request, port):
        log.warning("websocket_refused", peer="websocket")
        return socket.respond(HTTPStatus.FORBIDDEN, "This address is not for you.\n")
    if request.path == PATH:
        return None
    page = None if pages is None else pages(socket, request)
    return page or socket.respond(HTTPStatus.NOT_FOUND, "There is nothing here.\n")


def _local(request: Request, port: int) -> bool:
    hosts = {f"{name}:{port}" for name in NAMES}
    if set(request.headers.get_all("Host")) - hosts or "Host" not in request.headers:
        return False
    return not set(request.headers.get_all("Origin")) - {f"http://{host}" for host in hosts}


class Visitor(ServerConnection):
    """A WebSocket that may send so many bytes and no more until it has shown its token.

    The library keeps a message until it is whole, in as many pieces as the sender likes.
    """

    heard = 0

    def is_known(self) -> bool:
        """Whether the token was shown."""
        return False

    def data_received(self, data: bytes) -> None:
        """Take in bytes, or hang up on a stranger who does not end."""
        self.heard += len(data)
        if self.heard > STRANGERS_BYTES and not self.is_known():
            self.transport.abort()
        else:
            super().data_received(data)


class WebSocketWire:
    """One WebSocket as a `Wire`: a message is a frame, a frame is a message."""

    def __init__(self, server: Server, socket: ServerConnection) -> None:
        self._limit = server.settings.max_outbound_bytes
        self._socket = socket
        self._queue: deque[bytes | bytearray] = deque()
        self._queued = 0
        self._wake = anyio.Event()
        self._go = anyio.Event()
        self._go.set()
        self._closing = False
        self.connection = server.connect(self, "websocket", None)

    async def run(self) -> None:
        """Read and write until either side has had enough."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._write_on)
                with contextlib.suppress(ConnectionClosed):
                    await self._read_on()
                tasks.cancel_scope.cancel()
        finally:
            self.connection.lost()

    async def _read_on(self) -> None:
        async for message in self._socket:
            await self._go.wait()
            body = message.encode("utf-8", "replace") if isinstance(message, str) else message
            self.connection.frame(body)

    async def _write_on(self) -> None:
        with contextlib.suppress(ConnectionClosed):
            while True:
                while self._queue:
                    data = self._queue.popleft()
                    await self._socket.send(data.decode())
                    self._sent(len(data))
                if self._closing:
                    await self._socket.close()
                    return
                self._wake = anyio.Event()
                await self._wake.wait()

    def _sent(self, size: int) -> None:
        self._queued -= size
        if self.connection.outbox.congested and self._queued < self._limit // 4:
            self.connection.relieve()

    def write(self, data: bytes | bytearray) -> None:
        """Queue a message."""
        self._queue.append(data)
        self._queued += len(data)
        if self._queued > self._limit:
            self.connection.congest()
        self._wake.set()

    def write_soon(self, data: bytes | bytearray) -> None:
        """Queue a message: all that waits leaves together anyway."""
        self.write(data)

    def buffered(self) -> int:
        """Tell how many bytes the client has not taken yet."""
        return self._queued

    def pause(self) -> None:
        """Stop reading."""
        if self._go.is_set():
            self._go = anyio.Event()

    def resume(self) -> None:
        """Read again."""
        self._go.set()

    def defer(self, callback: Callable[[], None]) -> None:
        """Run `callback` in the next turn of the loop."""
        asyncio.get_running_loop().call_soon(callback)

    def close(self) -> None:
        """Flush and close."""
        self._closing = True
        self._wake.set()
