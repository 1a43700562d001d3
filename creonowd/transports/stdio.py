"""Standard input and output, as Electron spawns us: pipes, files or a terminal. Knows no method."""

import asyncio
import contextlib
import os
import queue
import stat
import sys
import threading
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Any, Protocol

from creonowd.rpc.access import Grant
from creonowd.rpc.channel import Role
from creonowd.rpc.connection import Connection
from creonowd.rpc.server import Server
from creonowd.transports.write_batch import WriteBatch

SCRATCH = 64 * 1024
PIPE_SIZE = 512 * 1024
WRITTEN_TOGETHER = 64


class Reading(Protocol):
    """Who takes what a pipe brings."""

    def room(self) -> memoryview | None:
        """Offer the place where the next bytes belong, if there is one."""
        ...

    def filled(self, size: int) -> None:
        """Take the bytes that were put there."""
        ...

    def data_received(self, data: bytes | memoryview) -> None:
        """Take other bytes; a view is good only until this returns."""
        ...

    def eof_received(self) -> bool:
        """Take note that no more will come."""
        ...

    def input_broke(self) -> None:
        """Take note that the pipe failed."""
        ...


class PipeReader:
    """The reading end of a pipe."""

    def __init__(self, descriptor: int, reading: Reading) -> None:
        self._descriptor = descriptor
        self._reading = reading
        self._loop = asyncio.get_running_loop()
        self._scratch = memoryview(bytearray(SCRATCH))
        self._watching = False
        self._over = False
        prepare(descriptor)
        self.resume_reading()

    def is_reading(self) -> bool:
        """Whether it reads now."""
        return self._watching

    def is_closing(self) -> bool:
        """Whether no more will come."""
        return self._over

    def pause_reading(self) -> None:
        """Leave what comes in the pipe."""
        self._watching = False
        self._loop.remove_reader(self._descriptor)

    def resume_reading(self) -> None:
        """Read on."""
        if not self._over:
            self._watching = True
            self._loop.add_reader(self._descriptor, self._ready)

    def _ready(self) -> None:
        room = self._reading.room()
        try:
            size = os.readv(self._descriptor, [self._scratch if room is None else room])
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._end(self._reading.input_broke)
            return
        if not size:
            self._end(self._reading.eof_received)
        elif room is None:
            self._reading.data_received(self._scratch[:size])
        else:
            room.release()
            self._reading.filled(size)

    def _end(self, tell: Callable[[], object]) -> None:
        self._over = True
        self.pause_reading()
        tell()


class Writing(Protocol):
    """Who is told how writing goes."""

    def output_full(self) -> None:
        """Take note that more waits than should."""
        ...

    def output_free(self) -> None:
        """Take note that most of it has left."""
        ...

    def output_lost(self) -> None:
        """Take note that nobody reads any more."""
        ...


class PipeWriter:
    """The writing end of a pipe; what does not fit waits here as it is."""

    def __init__(self, descriptor: int, writing: Writing, limit: int) -> None:
        self._descriptor = descriptor
        self._writing = writing
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[memoryview] = deque()
        self._size = 0
        self._full = False
        self._lost = False
        prepare(descriptor)
        if not _same_socket(descriptor, 0):
            self._loop.add_reader(descriptor, self._lose)

    def write(self, data: bytes | bytearray) -> None:
        """Write bytes, or keep what does not fit."""
        if self._lost or not data:
            return
        idle = not self._waiting
        self._waiting.append(memoryview(data))
        self._size += len(data)
        if idle and not self._push():
            self._loop.add_writer(self._descriptor, self._ready)
        if self._size > self._limit and not self._full:
            self._full = True
            self._writing.output_full()

    def get_write_buffer_size(self) -> int:
        """Tell how many bytes wait."""
        return self._size

    def _ready(self) -> None:
        if self._push():
            self._loop.remove_writer(self._descriptor)
        if self._full and self._size <= self._limit // 4:
            self._full = False
            self._writing.output_free()

    def _push(self) -> bool:
        """Write what the pipe takes; whether that was all."""
        while self._waiting:
            try:
                batch = list(islice(self._waiting, WRITTEN_TOGETHER))
                self._written(os.writev(self._descriptor, batch))
            except (BlockingIOError, InterruptedError):
                return False
            except OSError:
                self._lose()
        return True

    def _written(self, size: int) -> None:
        self._size -= size
        while size:
            first = self._waiting.popleft()
            if size < len(first):
                self._waiting.appendleft(first[size:])
                return
            size -= len(first)

    def _lose(self) -> None:
        self._lost = True
        self._full = False
        self._waiting.clear()
        self._size = 0
        self._loop.remove_reader(self._descriptor)
        self._loop.remove_writer(self._descriptor)
        self._writing.output_lost()


def prepare(descriptor: int) -> None:
    """Make a pipe that never blocks and, where the system allows it, holds a large message."""
    os.set_blocking(descriptor, False)
    if sys.platform == "linux" and stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        import fcntl

        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PIPE_SIZE)


def _same_socket(one: int, other: int) -> bool:
    """Whether a parent gave one socket for both directions; its end is then seen by the reader."""
    return stat.S_ISSOCK(os.fstat(one).st_mode) and os.path.sameopenfile(one, other)


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
        self._bundle = WriteBatch(self._send, self._loop.call_soon)
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
