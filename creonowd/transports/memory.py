"""A connection inside one process, for tests and for embedding."""

import asyncio
from collections.abc import Callable

from creonowd.rpc.access import Grant
from creonowd.rpc.channel import Role
from creonowd.rpc.server import Server


class MemoryWire:
    """The daemon's end; what it writes is passed to `deliver`, unless the client holds."""

    def __init__(self, server: Server, deliver: Callable[[bytes], None], role: Role | None) -> None:
        self._server = server
        self._deliver = deliver
        self._unread = bytearray()
        self._reading = True
        self.closed = False
        self.paused = False
        self.connection = server.connect(self, "memory", None if role is None else Grant(role))

    def hold(self) -> None:
        """Stop reading, like a client that hangs."""
        self._reading = False

    def release(self) -> None:
        """Read again, beginning with the bytes that were kept."""
        self._reading = True
        unread, self._unread = bytes(self._unread), bytearray()
        self._deliver(unread)
        self.connection.relieve()

    def write(self, data: bytes | bytearray) -> None:
        """Deliver bytes, or keep them while the client holds."""
        if self._reading:
            self._deliver(bytes(data))
            return
        self._unread += data
        if len(self._unread) > self._server.settings.max_outbound_bytes:
            self.connection.congest()

    def write_soon(self, data: bytes | bytearray) -> None:
        """Deliver bytes like all others."""
        self.write(data)

    def unread_bytes(self) -> int:
        """Return how many bytes the client has not read yet."""
        return len(self._unread)

    def pause(self) -> None:
        """Set `paused`; the client, which feeds directly, looks at it."""
        self.paused = True

    def resume(self) -> None:
        """Clear `paused`."""
        self.paused = False

    def defer(self, callback: Callable[[], None]) -> None:
        """Run `callback` in the next turn of the loop."""
        asyncio.get_running_loop().call_soon(callback)

    def close(self) -> None:
        """End the connection in the next turn."""
        if not self.closed:
            self.closed = True
            # The server may close it before `connect` has returned the connection.
            self.defer(lambda: self.connection.disconnect())  # noqa: PLW0108

    def abort(self) -> None:
        """End the connection in the next turn, and drop what was not delivered."""
        self._unread.clear()
        self.close()
