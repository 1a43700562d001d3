"""A connection inside one process, for tests and for embedding. Knows no method."""

import asyncio
from collections.abc import Callable

from creonowd.rpc.access import Grant
from creonowd.rpc.channel import Role
from creonowd.rpc.server import Server


class MemoryWire:
    """The daemon's end; what it writes goes to `deliver` as long as someone reads."""

    def __init__(self, server: Server, deliver: Callable[[bytes], None], role: Role | None) -> None:
        self._server = server
        self._deliver = deliver
        self._held = bytearray()
        self._reading = True
        self.closed = False
        self.paused = False
        self.connection = server.connect(self, "memory", None if role is None else Grant(role))

    def hold(self) -> None:
        """Stop reading, as a client that hangs does."""
        self._reading = False

    def release(self) -> None:
        """Read on: take all that was held back."""
        self._reading = True
        held, self._held = bytes(self._held), bytearray()
        self._deliver(held)
        self.connection.relieve()

    def write(self, data: bytes | bytearray) -> None:
        """Deliver bytes, or hold them back."""
        if self._reading:
            self._deliver(bytes(data))
            return
        self._held += data
        if len(self._held) > self._server.settings.max_outbound_bytes:
            self.connection.congest()

    def write_soon(self, data: bytes | bytearray) -> None:
        """Deliver bytes like all others."""
        self.write(data)

    def buffered(self) -> int:
        """Tell how many bytes are held back."""
        return len(self._held)

    def pause(self) -> None:
        """Note that the client, which feeds directly, should wait."""
        self.paused = True

    def resume(self) -> None:
        """Note that the client may go on."""
        self.paused = False

    def defer(self, callback: Callable[[], None]) -> None:
        """Run `callback` in the next turn of the loop."""
        asyncio.get_running_loop().call_soon(callback)

    def close(self) -> None:
        """End the connection in the next turn."""
        if not self.closed:
            self.closed = True
            self.defer(self._lose)

    def _lose(self) -> None:
        self.connection.lost()
