"""Unix sockets and loopback TCP."""

import asyncio
import contextlib
import os
import socket
import struct
import sys
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any, cast

import anyio

from creonowd.errors import DaemonError, ErrorCode
from creonowd.rpc.access import Grant
from creonowd.rpc.channel import Role
from creonowd.rpc.connection import Connection, WriteBatch
from creonowd.rpc.server import Server

LOOPBACK = "127.0.0.1"
PROBE_SECONDS = 1.0
BACKLOG = 1024
# asyncio logs as many errors a second when no descriptor is left.
ACCEPTED_PER_TURN = 8
READ_BYTES = 64 * 1024
SEND_BUFFER_BYTES = 512 * 1024
ACCEPT_AGAIN_SECONDS = 0.05

# One for all connections: what is read into it is copied before the next read.
_READ_BUFFER = memoryview(bytearray(READ_BYTES))

Admit = Callable[[asyncio.Transport], Grant | None]


class StreamWire(asyncio.BufferedProtocol):
    """One accepted socket as a `Wire`; `admit` returns its rights, or raises to close it."""

    def __init__(self, server: Server, name: str, admit: Admit) -> None:
        self._server = server
        self._name = name
        self._admit = admit
        self._transport: asyncio.Transport | None = None
        self._batch = WriteBatch(self._send, asyncio.get_running_loop().call_soon)
        self._message_buffer: memoryview | None = None
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
        if grant is not None:
            _enlarge_send_buffer(stream)
        stream.set_write_buffer_limits(high=self._server.settings.max_outbound_bytes)
        self._connection = self._server.connect(self, self._name, grant)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the memory for the next bytes: inside a large message, or a buffer."""
        self._message_buffer = None if self._connection is None else self._connection.get_buffer()
        return _READ_BUFFER if self._message_buffer is None else self._message_buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Process bytes, and send the short replies to them together."""
        connection, message_buffer = self._connection, self._message_buffer
        if connection is None:
            return
        if message_buffer is None:
            self._batch.turn(connection.feed, _READ_BUFFER[:nbytes])
        else:
            self._message_buffer = None
            message_buffer.release()
            self._batch.turn(connection.buffer_updated, nbytes)

    def eof_received(self) -> bool:
        """Keep the other direction open for the answers."""
        if self._connection is not None:
            self._connection.finish()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """End the connection, and drop the references to it."""
        if self._connection is not None:
            self._connection.disconnect()
        self._connection = self._transport = None
        self._batch.close()

    def pause_writing(self) -> None:
        """Keep events back: the client does not read."""
        if self._connection is not None:
            self._connection.congest()

    def resume_writing(self) -> None:
        """Send events again."""
        if self._connection is not None:
            self._connection.relieve()

    def write(self, data: bytes | bytearray) -> None:
        """Send bytes: at once, or with the other replies of this turn if they are few."""
        self._batch.add(data)

    def write_soon(self, data: bytes | bytearray) -> None:
        """Send bytes with the others of this turn."""
        self._batch.add_soon(data)

    def _send(self, data: bytes | bytearray) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def unread_bytes(self) -> int:
        """Return how many bytes the client has not read yet."""
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
        asyncio.get_running_loop().call_soon(self._batch.turn, callback)

    def close(self) -> None:
        """Flush and close."""
        self._batch.flush()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()


def _enlarge_send_buffer(stream: asyncio.Transport) -> None:
    """Enlarge the send buffer so that a large reply is one write, where the system allows it."""
    with contextlib.suppress(OSError):
        stream.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES
        )


def protocol(server: Server, name: str, admit: Admit) -> Callable[[], Any]:
    """Return the protocol factory for an asyncio listener."""
    return lambda: StreamWire(server, name, admit)


async def listen_unix(server: Server, path: Path) -> asyncio.Server:
    """Listen on a Unix socket of mode 0600; CONFLICT if another process listens on it.

    A missing folder is made for this user only; an existing one is left as it is.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _remove_stale(path)
    listener = _bind(path)
    loop = asyncio.get_running_loop()
    opened = await loop.create_unix_server(
        protocol(server, "socket", _admit_own_user), sock=listener, backlog=ACCEPTED_PER_TURN
    )
    # asyncio has used `backlog` as the length of the queue too; set that back.
    listener.listen(BACKLOG)
    return opened


def _bind(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
    except OSError as error:
        listener.close()
        raise DaemonError(
            ErrorCode.IO_ERROR, f"The socket could not be opened: {error.strerror or error}."
        ) from None
    finally:
        os.umask(before)
    return listener


def _remove_stale(path: Path) -> None:
    if not path.is_socket():
        if path.exists():
            raise DaemonError(ErrorCode.CONFLICT, "Something that is not a socket is in the way.")
        return
    if is_live(path):
        raise DaemonError(ErrorCode.CONFLICT, "Another process is listening on the socket.")
    path.unlink(missing_ok=True)


def remove_socket(path: Path) -> None:
    """Remove the socket of a listener that has ended."""
    if path.is_socket():
        path.unlink(missing_ok=True)


def is_live(path: Path) -> bool:
    """Return whether a process listens on the socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(PROBE_SECONDS)
        try:
            probe.connect(str(path))
        except TimeoutError:
            return True
        except OSError:
            return False
        return True


def _admit_own_user(transport: asyncio.Transport) -> Grant:
    uid = peer_uid(transport.get_extra_info("socket"))
    if uid is not None and uid != os.getuid():
        raise PermissionError
    return Grant(Role.OWNER)


def peer_uid(connection: socket.socket) -> int | None:
    """Return the user at the other end; None where the platform does not report it."""
    if sys.platform == "linux":
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        return struct.unpack("3i", credentials)[1]
    if sys.platform == "darwin":
        local_level, peer_credentials = 0, 1
        credentials = connection.getsockopt(local_level, peer_credentials, 76)
        return struct.unpack_from("2I", credentials)[1]
    return None


@contextlib.asynccontextmanager
async def listen_tcp(server: Server, port: int = 0) -> AsyncGenerator[int]:
    """Listen on loopback only, at port 0 on a free one; yield the port."""
    listener = socket.create_server((LOOPBACK, port), backlog=BACKLOG)
    listener.setblocking(False)
    accepting = anyio.CancelScope()
    server.tasks.start_soon(_accept, server, listener, accepting)
    try:
        yield listener.getsockname()[1]
    finally:
        accepting.cancel()


async def _accept(server: Server, listener: socket.socket, accepting: anyio.CancelScope) -> None:
    """Accept one client after the other, each when there is room for it.

    The others wait in the system's queue. asyncio's own server would accept a hundred at once; to
    make room for them, clients would be disconnected before their tokens are read.
    """
    loop = asyncio.get_running_loop()
    with listener, accepting:
        while True:
            await server.wait_for_room()
            try:
                connection, _ = await loop.sock_accept(listener)
            except OSError:  # the client has gone, or no descriptor is left
                await anyio.sleep(ACCEPT_AGAIN_SECONDS)
                continue
            await loop.connect_accepted_socket(protocol(server, "tcp", lambda _: None), connection)
