"""Standard input and output, as Electron spawns us: pipes, files or a terminal. Knows no method."""

import asyncio
import os
import queue
import stat
import sys
import threading
from collections.abc import Callable
from typing import Any

from creonowd.rpc.channel import Role
from creonowd.rpc.connection import Connection
from creonowd.rpc.grants import Grant
from creonowd.rpc.server import Server
from creonowd.transports.bundle import Bundle
from creonowd.transports.pipes import PipeReader, PipeWriter

CHUNK = 64 * 1024


def claim_stdout() -> int:
    """Take file descriptor 1 away from everything but the protocol: a stray print goes to stderr."""
    _fill_gaps()
    if sys.__stdout__ is not None:
        sys.__stdout__.flush()
    mine = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    if sys.platform == "win32":
        import msvcrt

        msvcrt.setmode(mine, os.O_BINARY)
        msvcrt.setmode(0, os.O_BINARY)
    return mine


def _fill_gaps() -> None:
    """Put nothing where a standard stream was closed, or the next file opened would stand for it."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


async def serve(server: Server, output: int) -> Connection:
    """Open the connection of the parent: an owner, whose end is the daemon's end."""
    wire = StdioWire(server)
    wire.open(output)
    return wire.connection


class StdioWire:
    """The two pipes of the parent as one connection."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._reader: _ThreadReader | PipeReader | None = None
        self._writer: _ThreadWriter | PipeWriter | None = None
        self._bundle = Bundle(self._send, self._loop.call_soon)
        self.connection = server.connect(self, "stdio", Grant(Role.OWNER))

    def open(self, output: int) -> None:
        """Start reading and writing; threads where the loop cannot watch the descriptor."""
        limit = self._server.settings.max_outbound_bytes
        write = PipeWriter if _watchable(output) else _ThreadWriter
        self._writer = write(output, self, limit)
        self._reader = PipeReader(0, self) if _watchable(0) else _ThreadReader(self)

    def room(self) -> memoryview | None:
        """Offer the place where a large message's next bytes belong."""
        return self.connection.room()

    def filled(self, size: int) -> None:
        """Pass on that bytes were put there."""
        self._bundle.turn(self.connection.filled, size)

    def data_received(self, data: bytes | memoryview) -> None:
        """Pass bytes on, and send the short replies that they bring about together."""
        self._bundle.turn(self.connection.feed, data)

    def eof_received(self) -> bool:
        """Answer what was asked, then end the daemon."""
        self._bundle.turn(self.connection.finish)
        self._server.exit("stdin closed")
        return True

    def input_broke(self) -> None:
        """End the daemon when the parent's pipe breaks."""
        self._server.exit("stdin broke")

    def output_full(self) -> None:
        """Note that the parent does not read."""
        self.connection.congest()

    def output_free(self) -> None:
        """Note that it reads again."""
        self.connection.relieve()

    def output_lost(self) -> None:
        """End the daemon when nobody reads our answers any more."""
        self.connection.lost()
        self._server.exit("stdout closed")

    def write(self, data: bytes | bytearray) -> None:
        """Send bytes: at once, or with the other replies of this turn if they are few."""
        self._bundle.add(data)

    def write_soon(self, data: bytes | bytearray) -> None:
        """Send bytes with the others of this turn."""
        self._bundle.add_soon(data)

    def _send(self, data: bytes | bytearray) -> None:
        if self._writer is not None:
            self._writer.write(data)

    def buffered(self) -> int:
        """Tell how many bytes the parent has not taken yet."""
        return 0 if self._writer is None else self._writer.get_write_buffer_size()

    def pause(self) -> None:
        """Stop reading."""
        if self._reader is not None and self._reader.is_reading():
            self._reader.pause_reading()

    def resume(self) -> None:
        """Read again."""
        reader = self._reader
        if reader is not None and not reader.is_closing() and not reader.is_reading():
            reader.resume_reading()

    def defer(self, callback: Callable[[], None]) -> None:
        """Run `callback` in the next turn of the loop."""
        self._loop.call_soon(self._bundle.turn, callback)

    def close(self) -> None:
        """End the daemon, unless the end of stdin is about to do so."""
        self._bundle.flush()
        if not self.connection.ended:
            self._server.exit("stdio connection closed")


class _ThreadReader:
    """Reads a file, a terminal or a Windows pipe in a thread that waits while reading is paused."""

    def __init__(self, wire: StdioWire) -> None:
        self._wire = wire
        self._loop = asyncio.get_running_loop()
        self._go = threading.Event()
        self._go.set()
        threading.Thread(target=self._run, name="stdin", daemon=True).start()

    def is_reading(self) -> bool:
        return self._go.is_set()

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        self._go.clear()

    def resume_reading(self) -> None:
        self._go.set()

    def _run(self) -> None:
        while True:
            self._go.wait()
            try:
                data = os.read(0, CHUNK)
            except OSError:
                data = b""
            taken = threading.Event()
            try:
                self._loop.call_soon_threadsafe(self._hand_over, data, taken)
            except RuntimeError:
                return
            if not data:
                return
            taken.wait()

    def _hand_over(self, data: bytes, taken: threading.Event) -> None:
        if data:
            self._wire.data_received(data)
        else:
            self._wire.eof_received()
        taken.set()


class _ThreadWriter:
    """Writes to a file, a terminal or a Windows pipe in a thread."""

    def __init__(self, output: int, wire: StdioWire, limit: int) -> None:
        self._output = output
        self._limit = limit
        self._wire = wire
        self._loop = asyncio.get_running_loop()
        self._chunks: queue.SimpleQueue[bytes | bytearray] = queue.SimpleQueue()
        self._size = 0
        threading.Thread(target=self._run, name="stdout", daemon=True).start()

    def write(self, data: bytes | bytearray) -> None:
        self._size += len(data)
        self._chunks.put(data)
        if self._size > self._limit:
            self._wire.output_full()

    def get_write_buffer_size(self) -> int:
        return self._size

    def _run(self) -> None:
        while True:
            data = memoryview(self._chunks.get())
            size = len(data)
            try:
                while data:
                    data = data[os.write(self._output, data) :]
            except OSError:
                self._tell(self._wire.output_lost)
                return
            self._tell(self._sent, size)

    def _tell(self, callback: Callable[..., None], *arguments: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *arguments)
        except RuntimeError:
            return

    def _sent(self, size: int) -> None:
        self._size -= size
        if self._wire.connection.outbox.congested and self._size < self._limit // 4:
            self._wire.output_free()


def _watchable(descriptor: int) -> bool:
    if sys.platform == "win32":
        return False
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
