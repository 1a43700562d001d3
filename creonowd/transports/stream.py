"""A byte stream of asyncio as a `Wire`: the socket transports share it. Knows no method."""

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import Any, cast

from creonowd.rpc.connection import Connection
from creonowd.rpc.grants import Grant
from creonowd.rpc.server import Server
from creonowd.transports.bundle import Bundle

SCRATCH = 64 * 1024
SENT_AT_ONCE = 512 * 1024
Admission = Callable[[asyncio.Transport], Grant | None]


class StreamWire(asyncio.BufferedProtocol):
    """One accepted connection. `admit` says what it may do, or closes it by raising."""

    def __init__(self, server: Server, name: str, admit: Admission) -> None:
        self._server = server
        self._name = name
        self._admit = admit
        self._transport: asyncio.Transport | None = None
        self._bundle = Bundle(self._send, asyncio.get_running_loop().call_soon)
        self._scratch = memoryview(bytearray(SCRATCH))
        self._room: memoryview | None = None
        self._connection: Connection | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Open a connection for it."""
        stream = cast("asyncio.Transport", transport)
        try:
            grant = self._admit(stream)
        except PermissionError:
            stream.abort()
            return
        self._transport = stream
        _widen(stream)
        stream.set_write_buffer_limits(high=self._server.settings.max_outbound_bytes)
        self._connection = self._server.connect(self, self._name, grant)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Say where the next bytes go: to their place in a large message, or here first."""
        self._room = None if self._connection is None else self._connection.room()
        return self._scratch if self._room is None else self._room

    def buffer_updated(self, nbytes: int) -> None:
        """Pass bytes on, and send the short replies that they bring about together."""
        connection, room = self._connection, self._room
        if connection is None:
            return
        if room is None:
            self._bundle.turn(connection.feed, self._scratch[:nbytes])
        else:
            self._room = None
            room.release()
            self._bundle.turn(connection.filled, nbytes)

    def eof_received(self) -> bool:
        """Keep the other direction open: what was asked is still answered."""
        if self._connection is not None:
            self._connection.finish()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the connection that its client is gone."""
        if self._connection is not None:
            self._connection.lost()

    def pause_writing(self) -> None:
        """Note that the client does not read."""
        if self._connection is not None:
            self._connection.congest()

    def resume_writing(self) -> None:
        """Note that it reads again."""
        if self._connection is not None:
            self._connection.relieve()

    def write(self, data: bytes | bytearray) -> None:
        """Send bytes: at once, or with the other replies of this turn if they are few."""
        self._bundle.add(data)

    def write_soon(self, data: bytes | bytearray) -> None:
        """Send bytes with the others of this turn."""
        self._bundle.add_soon(data)

    def _send(self, data: bytes | bytearray) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def buffered(self) -> int:
        """Tell how many bytes the client has not taken yet."""
        closed = self._transport is None or self._transport.is_closing()
        return 0 if closed or self._transport is None else self._transport.get_write_buffer_size()

    def pause(self) -> None:
        """Stop reading."""
        if self._transport is not None and self._transport.is_reading():
            self._transport.pause_reading()

    def resume(self) -> None:
        """Read again."""
        transport = self._transport
        if transport is not None and not transport.is_closing() and not transport.is_reading():
            transport.resume_reading()

    def defer(self, callback: Callable[[], None]) -> None:
        """Run `callback` in the next turn of the loop."""
        asyncio.get_running_loop().call_soon(self._bundle.turn, callback)

    def close(self) -> None:
        """Flush and close."""
        self._bundle.flush()
        if self._transport is not None:
            self._transport.close()


def _widen(stream: asyncio.Transport) -> None:
    """Let a large reply leave in one go, where the system allows it."""
    with contextlib.suppress(OSError):
        stream.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_SNDBUF, SENT_AT_ONCE
        )


def protocol(server: Server, name: str, admit: Admission) -> Callable[[], Any]:
    """Make the factory that asyncio's listeners want."""
    return lambda: StreamWire(server, name, admit)
