"""Standard input and output: pipes, files or a terminal."""

import asyncio
import contextlib
import os
import queue
import stat
import sys
import threading
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from itertools import islice
from typing import Any, Protocol

from creonowd.rpc.access import Grant
from creonowd.rpc.channel import Role
from creonowd.rpc.connection import Connection, WriteBatch
from creonowd.rpc.server import Server

READ_BYTES = 64 * 1024
PIPE_SIZE = 512 * 1024
WRITEV_BUFFERS = 64


def close_inherited() -> None:
    """Close every descriptor but the standard streams.

    Chromium opens files, sockets and shared memory so that children inherit them; a daemon that
    outlives its app would keep them open. Call it before anything of ours is opened.
    """
    if os.name == "nt":
        return
    try:
        numbers = [int(name) for name in os.listdir("/dev/fd")]  # noqa: PTH208 - numbers, not paths
    except (OSError, ValueError):
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        return
    for number in numbers:
        if number > 2:
            with contextlib.suppress(OSError):  # the list's own descriptor is closed already
                os.close(number)


def claim_stdout() -> int:
    """Return a copy of stdout for the protocol, and redirect stdout itself to stderr."""
    _open_closed_streams()
    if sys.__stdout__ is not None:
        sys.__stdout__.flush()
    output = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    if sys.platform == "win32":
        import msvcrt

        msvcrt.setmode(output, os.O_BINARY)
        msvcrt.setmode(0, os.O_BINARY)
    return output


def _open_closed_streams() -> None:
    """Open the null device for a closed standard stream; else the next file would get its number."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


async def serve(server: Server, output: int) -> Connection:
    """Connect the parent as an owner; the daemon ends when its stdin does."""
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
        self._batch = WriteBatch(self._send, self._loop.call_soon)
        self.connection = server.connect(self, "stdio", Grant(Role.OWNER))

    def open(self, output: int) -> None:
        """Start reading and writing; in threads where the loop cannot watch the descriptor."""
        limit = self._server.settings.max_outbound_bytes
        write = PipeWriter if _can_be_watched(output) else _ThreadWriter
        self._writer = write(output, self, limit)
        self._reader = PipeReader(0, self) if _can_be_watched(0) else _ThreadReader(self)

    def get_buffer(self) -> memoryview | None:
        """Return the memory for a large message's next bytes."""
        return self.connection.get_buffer()

    def buffer_updated(self, size: int) -> None:
        """Process `size` bytes that were put into that memory."""
        self._batch.turn(self.connection.buffer_updated, size)

    def data_received(self, data: bytes | memoryview) -> None:
        """Pass bytes on, and send the short replies to them together."""
        self._batch.turn(self.connection.feed, data)

    def eof_received(self) -> bool:
        """Answer what was asked, then end the daemon."""
        self._batch.turn(self.connection.finish)
        self._server.exit("stdin closed")
        return True

    def input_broke(self) -> None:
        """End the daemon when the parent's pipe breaks."""
        self._server.exit("stdin broke")

    def output_full(self) -> None:
        """Keep events back: the parent does not read."""
        self.connection.congest()

    def output_free(self) -> None:
        """Send events again."""
        self.connection.relieve()

    def output_lost(self) -> None:
        """End the daemon when nobody reads our answers any more."""
        self.connection.disconnect()
        self._server.exit("stdout closed")

    def write(self, data: bytes | bytearray) -> None:
        """Send bytes: at once, or with the other replies of this turn if they are few."""
        self._batch.add(data)

    def write_soon(self, data: bytes | bytearray) -> None:
        """Send bytes with the others of this turn."""
        self._batch.add_soon(data)

    def _send(self, data: bytes | bytearray) -> None:
        if self._writer is not None:
            self._writer.write(data)

    def unread_bytes(self) -> int:
        """Return how many bytes the parent has not read yet."""
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
        self._loop.call_soon(self._batch.turn, callback)

    def close(self) -> None:
        """End the daemon, unless the end of stdin is about to do so."""
        self._batch.flush()
        if not self.connection.ended:
            self._server.exit("stdio connection closed")

    def abort(self) -> None:
        """End the daemon, as `close` does; the parent has rights, and only others are aborted."""
        self.close()


class InputHandler(Protocol):
    """Handles the bytes and events of an input pipe."""

    def get_buffer(self) -> memoryview | None:
        """Return the memory for the next bytes, or None for `data_received`."""
        ...

    def buffer_updated(self, size: int) -> None:
        """Handle `size` bytes that were put there."""
        ...

    def data_received(self, data: bytes | memoryview) -> None:
        """Handle other bytes; a view is valid only until this returns."""
        ...

    def eof_received(self) -> bool:
        """Handle the end of the input."""
        ...

    def input_broke(self) -> None:
        """Handle a failure of the pipe."""
        ...


class PipeReader:
    """The reading end of a pipe."""

    def __init__(self, descriptor: int, handler: InputHandler) -> None:
        self._descriptor = descriptor
        self._handler = handler
        self._loop = asyncio.get_running_loop()
        self._buffer = memoryview(bytearray(READ_BYTES))
        self._reading = False
        self._over = False
        prepare_pipe(descriptor)
        self.resume_reading()

    def is_reading(self) -> bool:
        """Return whether it reads now."""
        return self._reading

    def is_closing(self) -> bool:
        """Return whether the input has ended."""
        return self._over

    def pause_reading(self) -> None:
        """Stop reading; bytes stay in the pipe."""
        self._reading = False
        self._loop.remove_reader(self._descriptor)

    def resume_reading(self) -> None:
        """Read again."""
        if not self._over:
            self._reading = True
            self._loop.add_reader(self._descriptor, self._ready)

    def _ready(self) -> None:
        message_buffer = self._handler.get_buffer()
        buffer = self._buffer if message_buffer is None else message_buffer
        try:
            size = os.readv(self._descriptor, [buffer])
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._end(self._handler.input_broke)
            return
        if not size:
            self._end(self._handler.eof_received)
        elif message_buffer is None:
            self._handler.data_received(self._buffer[:size])
        else:
            message_buffer.release()
            self._handler.buffer_updated(size)

    def _end(self, report: Callable[[], object]) -> None:
        self._over = True
        self.pause_reading()
        report()


class OutputHandler(Protocol):
    """Handles the events of an output pipe."""

    def output_full(self) -> None:
        """Handle that more bytes wait than the limit."""
        ...

    def output_free(self) -> None:
        """Handle that most of the waiting bytes have been written."""
        ...

    def output_lost(self) -> None:
        """Handle that the other end has been closed."""
        ...


class PipeWriter:
    """The writing end of a pipe; bytes that it does not take wait here, uncopied."""

    def __init__(self, descriptor: int, handler: OutputHandler, limit: int) -> None:
        self._descriptor = descriptor
        self._handler = handler
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[memoryview] = deque()
        self._size = 0
        self._full = False
        self._lost = False
        prepare_pipe(descriptor)
        if not _same_socket(descriptor, 0):
            self._loop.add_reader(descriptor, self._lose)

    def write(self, data: bytes | bytearray) -> None:
        """Write bytes, and keep those that the pipe does not take."""
        if self._lost or not data:
            return
        idle = not self._waiting
        self._waiting.append(memoryview(data))
        self._size += len(data)
        if idle and not self._push():
            self._loop.add_writer(self._descriptor, self._ready)
        if self._size > self._limit and not self._full:
            self._full = True
            self._handler.output_full()

    def get_write_buffer_size(self) -> int:
        """Return how many bytes wait."""
        return self._size

    def _ready(self) -> None:
        if self._push():
            self._loop.remove_writer(self._descriptor)
        if self._full and self._size <= self._limit // 4:
            self._full = False
            self._handler.output_free()

    def _push(self) -> bool:
        """Write what the pipe takes, and return whether that was all."""
        while self._waiting:
            try:
                batch = list(islice(self._waiting, WRITEV_BUFFERS))
                self._drop_written(os.writev(self._descriptor, batch))
            except (BlockingIOError, InterruptedError):
                return False
            except OSError:
                self._lose()
        return True

    def _drop_written(self, size: int) -> None:
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
        self._handler.output_lost()


def prepare_pipe(descriptor: int) -> None:
    """Make a pipe non-blocking and, where the system allows it, large enough for a message."""
    os.set_blocking(descriptor, False)
    if sys.platform == "linux" and stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        import fcntl

        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PIPE_SIZE)


def _same_socket(one: int, other: int) -> bool:
    """Return whether the parent gave one socket for both directions; the reader then sees its end."""
    return stat.S_ISSOCK(os.fstat(one).st_mode) and os.path.sameopenfile(one, other)


class _ThreadReader:
    """Reads a file, a terminal or a Windows pipe in a thread that waits while reading is paused."""

    def __init__(self, wire: StdioWire) -> None:
        self._wire = wire
        self._loop = asyncio.get_running_loop()
        # In a thread's own context anyio does not know its event loop, and no task could be started.
        self._context = copy_context()
        self._input = _take_stdin()
        self._may_read = threading.Event()
        self._may_read.set()
        threading.Thread(target=self._run, name="stdin", daemon=True).start()

    def is_reading(self) -> bool:
        return self._may_read.is_set()

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        self._may_read.clear()

    def resume_reading(self) -> None:
        self._may_read.set()

    def _run(self) -> None:
        while True:
            self._may_read.wait()
            try:
                data = os.read(self._input, READ_BYTES)
            except OSError:
                data = b""
            handled = threading.Event()
            try:
                self._loop.call_soon_threadsafe(self._handle, data, handled, context=self._context)
            except RuntimeError:
                return
            if not data:
                return
            handled.wait()

    def _handle(self, data: bytes, handled: threading.Event) -> None:
        try:
            if data:
                self._wire.data_received(data)
            else:
                self._wire.eof_received()
        finally:
            handled.set()


def _take_stdin() -> int:
    """Return the descriptor to read from; on Windows standard input itself becomes the null device.

    A library that queries standard input there while it is loaded would block until the thread that
    reads the pipe gets something: the first search, which loads numpy, never ended.
    """
    if sys.platform != "win32":
        return 0
    import msvcrt

    pipe = os.dup(0)
    msvcrt.setmode(pipe, os.O_BINARY)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return pipe


class _ThreadWriter:
    """Writes to a file, a terminal or a Windows pipe in a thread."""

    def __init__(self, output: int, wire: StdioWire, limit: int) -> None:
        self._output = output
        self._limit = limit
        self._wire = wire
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()
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
                self._on_loop(self._wire.output_lost)
                return
            self._on_loop(self._note_sent, size)

    def _on_loop(self, callback: Callable[..., None], *arguments: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *arguments, context=self._context)
        except RuntimeError:
            return

    def _note_sent(self, size: int) -> None:
        self._size -= size
        if self._wire.connection.outbox.congested and self._size < self._limit // 4:
            self._wire.output_free()


def _can_be_watched(descriptor: int) -> bool:
    if sys.platform == "win32":
        return False
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
