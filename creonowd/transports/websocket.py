"""A loopback WebSocket, with the viewer's pages beside it; every client needs a token.

Only requests whose `Host` and `Origin` are this address are served.
"""

import asyncio
import contextlib
import math
import socket
from collections import deque
from collections.abc import AsyncGenerator, Callable
from http import HTTPStatus

import anyio
import structlog
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from creonowd.rpc.server import Server
from creonowd.transports.sockets import ACCEPTED_PER_TURN, BACKLOG, LOOPBACK

PATH = "/rpc"
CLOSE_SECONDS = 1.0
OVERSIZE_FACTOR = 4
UNAUTHENTICATED_BYTES = 128 * 1024
MAX_HANDSHAKES = 64
REFUSAL_LOG_SECONDS = 1.0
NAMES = (LOOPBACK, "localhost")

Pages = Callable[[ServerConnection, Request], Response | None]

log = structlog.stdlib.get_logger(__name__)


@contextlib.asynccontextmanager
async def listen(server: Server, port: int, pages: Pages | None = None) -> AsyncGenerator[str]:
    """Serve `ws://127.0.0.1:PORT/rpc` and the files of `pages`; yield the address."""
    handshakes: dict[LimitedConnection, None] = {}
    refusals = _Refusals(server.clock.monotonic)

    class CountedConnection(LimitedConnection):
        """A connection of this listener, counted among its handshakes."""

        def handshakes_under_way(self) -> dict[LimitedConnection, None]:
            return handshakes

    async def handle(connection: ServerConnection) -> None:
        wire = WebSocketWire(server, connection)
        if isinstance(connection, LimitedConnection):
            handshakes.pop(connection, None)
            connection.wire = wire
        await wire.run()

    def respond(connection: ServerConnection, request: Request) -> Response | None:
        return _respond(connection, request, pages, refusals)

    listening = socket.create_server((LOOPBACK, port), backlog=BACKLOG)
    async with serve(
        handle,
        sock=listening,
        backlog=ACCEPTED_PER_TURN,
        process_request=respond,
        create_connection=CountedConnection,
        max_size=server.settings.max_message_bytes * OVERSIZE_FACTOR,
        close_timeout=CLOSE_SECONDS,
        compression=None,
        max_queue=1,
        # A pong would wait behind bytes that are not read yet, and a loopback reports when it
        # breaks.
        ping_interval=None,
        server_header=None,
    ):
        # asyncio has used `backlog` as the length of the queue too; set that back.
        listening.listen(BACKLOG)
        yield f"ws://{LOOPBACK}:{listening.getsockname()[1]}{PATH}"


class _Refusals:
    """Logs refusals, once in `REFUSAL_LOG_SECONDS` at most."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._logged_at = -math.inf
        self._unlogged = 0

    def add(self) -> None:
        self._unlogged += 1
        if self._now() - self._logged_at >= REFUSAL_LOG_SECONDS:
            log.warning("websocket_refused", peer="websocket", times=self._unlogged)
            self._logged_at = self._now()
            self._unlogged = 0


def _respond(
    socket: ServerConnection, request: Request, pages: Pages | None, refusals: _Refusals
) -> Response | None:
    port = socket.local_address[1]
    if not _is_local(request, port):
        refusals.add()
        return socket.respond(HTTPStatus.FORBIDDEN, "This address is not for you.\n")
    if request.path == PATH:
        return None
    page = None if pages is None else pages(socket, request)
    return page or socket.respond(HTTPStatus.NOT_FOUND, "There is nothing here.\n")


def _is_local(request: Request, port: int) -> bool:
    hosts = {f"{name}:{port}" for name in NAMES}
    if set(request.headers.get_all("Host")) - hosts or "Host" not in request.headers:
        return False
    return not set(request.headers.get_all("Origin")) - {f"http://{host}" for host in hosts}


class LimitedConnection(ServerConnection):
    """A WebSocket that may send only `UNAUTHENTICATED_BYTES` until it has sent its token.

    The library itself buffers a message in fragments until it is whole.
    """

    received = 0
    wire: "WebSocketWire | None" = None
    _pausers = 0

    def handshakes_under_way(self) -> "dict[LimitedConnection, None]":
        """Return the connections whose handshake, or request for a page, is not over."""
        raise NotImplementedError

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the handshake; of too many at once the oldest is aborted."""
        super().connection_made(transport)
        self.recv_messages.pause = self.pause_reading
        self.recv_messages.resume = self.resume_reading
        handshakes = self.handshakes_under_way()
        handshakes[self] = None
        if len(handshakes) > MAX_HANDSHAKES:
            oldest = next(iter(handshakes))
            del handshakes[oldest]
            oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the connection."""
        self.handshakes_under_way().pop(self, None)
        super().connection_lost(exc)

    def pause_reading(self) -> None:
        """Stop reading; the library does that for messages that wait, and the wire for a client."""
        self._pausers += 1
        if not self.transport.is_closing():
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        """Read again, once all who stopped it say so."""
        self._pausers -= 1
        if not self._pausers and not self.transport.is_closing():
            self.transport.resume_reading()

    def is_authenticated(self) -> bool:
        """Return whether a valid token was sent."""
        return self.wire is not None and self.wire.connection.grant is not None

    def data_received(self, data: bytes) -> None:
        """Process bytes, or abort a connection that is over its limit."""
        self.received += len(data)
        if self.received > UNAUTHENTICATED_BYTES and not self.is_authenticated():
            self.transport.abort()
        else:
            if self.wire is not None:
                self.wire.connection.note_part(len(data))
            super().data_received(data)


class WebSocketWire:
    """One WebSocket as a `Wire`: a message is a frame, a frame is a message."""

    def __init__(self, server: Server, socket: ServerConnection) -> None:
        self._limit = server.settings.max_outbound_bytes
        self._socket = socket
        self._queue: deque[bytes | bytearray] = deque()
        self._queued = 0
        self._wake = anyio.Event()
        self._may_read = anyio.Event()
        self._may_read.set()
        self._closing = False
        self.connection = server.connect(self, "websocket", None)

    async def run(self) -> None:
        """Read and write until either side closes."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._write_queue)
                with contextlib.suppress(ConnectionClosed):
                    await self._read()
                tasks.cancel_scope.cancel()
        finally:
            self.connection.disconnect()

    async def _read(self) -> None:
        async for message in self._socket:
            await self._may_read.wait()
            body = message.encode("utf-8", "replace") if isinstance(message, str) else message
            self.connection.feed_message(body)

    async def _write_queue(self) -> None:
        with contextlib.suppress(ConnectionClosed):
            while True:
                while self._queue:
                    data = self._queue.popleft()
                    await self._socket.send(data.decode())
                    self._note_sent(len(data))
                if self._closing:
                    await self._socket.close()
                    return
                self._wake = anyio.Event()
                await self._wake.wait()

    def _note_sent(self, size: int) -> None:
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
        """Queue a message."""
        self.write(data)

    def unread_bytes(self) -> int:
        """Return how many bytes the client has not read yet."""
        return self._queued

    def pause(self) -> None:
        """Stop reading."""
        if self._may_read.is_set():
            self._may_read = anyio.Event()
            if isinstance(self._socket, LimitedConnection):
                self._socket.pause_reading()

    def resume(self) -> None:
        """Read again."""
        if not self._may_read.is_set():
            self._may_read.set()
            if isinstance(self._socket, LimitedConnection):
                self._socket.resume_reading()

    def defer(self, callback: Callable[[], None]) -> None:
        """Run `callback` in the next turn of the loop."""
        asyncio.get_running_loop().call_soon(callback)

    def close(self) -> None:
        """Flush and close."""
        self._closing = True
        self._wake.set()

    def abort(self) -> None:
        """Close at once."""
        self._queue.clear()
        self._queued = 0
        self._socket.transport.abort()
