"""Pipes that the event loop can watch, read in place and written without copies. Knows no method.

asyncio's own pipe transports copy what they read once and what waits to be written twice.
"""

import asyncio
import contextlib
import os
import stat
import sys
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Protocol

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
