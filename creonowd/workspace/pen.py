"""A thread of its own for lines that someone waits for: half as dear as a visit to anyio's threads.

Knows how to add bytes to a file, and when they are there; never what they say.
"""

import asyncio
import contextlib
import queue
import threading
import weakref
from pathlib import Path
from typing import NamedTuple

import anyio

from creonowd.errors import FAILURES
from creonowd.workspace import atomic


class _Line(NamedTuple):
    path: Path
    data: bytes
    written: "asyncio.Future[None]"


_Lines = queue.SimpleQueue[_Line | None]


class Pen:
    """Adds lines to files, one after the other; its thread begins with the first and ends with it."""

    def __init__(self) -> None:
        self._lines: _Lines | None = None

    async def add(self, path: Path, data: bytes) -> None:
        """Add `data` to the end of `path`: no kill of the process loses it, a cut of the power may.

        A line that is being written is waited for, whoever cancels.
        """
        lines = self._lines or self._begin()
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        lines.put(_Line(path, data, written))
        with anyio.CancelScope(shield=True):
            await written

    def _begin(self) -> _Lines:
        self._lines = lines = queue.SimpleQueue[_Line | None]()
        weakref.finalize(self, lines.put, None)
        threading.Thread(target=_write, args=(lines,), name="pen", daemon=True).start()
        return lines


def _write(lines: _Lines) -> None:
    while (line := lines.get()) is not None:
        failure: Exception | None = None
        try:
            atomic.append(line.path, line.data, synced=False)
        except FAILURES as error:
            failure = error
        _tell(line.written, failure)


def _tell(written: "asyncio.Future[None]", failure: Exception | None) -> None:
    # A loop that is closed has nobody left who waits.
    with contextlib.suppress(RuntimeError):
        if failure is None:
            written.get_loop().call_soon_threadsafe(written.set_result, None)
        else:
            written.get_loop().call_soon_threadsafe(written.set_exception, failure)
