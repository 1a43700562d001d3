"""A log on disk: one JSON text per line, each with a checksum of what it holds.

Knows lines and bytes; knows nothing of what an entry means. Everything here blocks.
"""

import asyncio
import contextlib
import os
import queue
import threading
import weakref
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import anyio
import msgspec

from creonowd.errors import FAILURES, DaemonError, ErrorCode
from creonowd.model import Model
from creonowd.storage import atomic

VERSION = 1


class _StoredLine(Model):
    version: int
    checksum: str
    entry: msgspec.Raw


class _JournalVersion(Model):
    version: int = 0


class Replayed(NamedTuple):
    """What a log holds: its sound entries, where they end, and what was lost."""

    entries: list[bytes]
    size: int
    torn: bool = False
    damaged: int = 0


def replay(path: Path) -> Replayed:
    """Read every sound entry; a torn last line is left out, a damaged one before it as well."""
    _refuse_link(path)
    with atomic.disk_errors(path.name):
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return Replayed([], 0)
    whole, newline, rest = data.rpartition(b"\n")
    lines = whole.split(b"\n") if newline else []
    found = [_entry(line) for line in lines]
    torn = bool(rest)
    size = len(data) - len(rest)
    if found and found[-1] is None:
        torn, size = True, size - len(lines[-1]) - 1
        found.pop()
    entries = [entry for entry in found if entry is not None]
    return Replayed(entries, size, torn, len(found) - len(entries))


def append(path: Path, size: int, entry: bytes) -> int:
    """Add an entry after the first `size` bytes, on the disk when this returns; tells the new size.

    What a crash left behind those bytes is cut off first.
    """
    _refuse_link(path)
    line = spelled(entry)
    with atomic.disk_errors(path.name):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _cut(path, size)
        try:
            atomic.append(path, line)
        except DaemonError:
            with contextlib.suppress(OSError):
                _cut(path, size)
            raise
    return size + len(line)


def erase(path: Path) -> None:
    """Take the log away for good."""
    with atomic.disk_errors(path.name):
        if path.exists():
            path.unlink()
            atomic.sync_folder(path.parent)


def size_of(path: Path) -> int:
    """Tell how many bytes the log has; none if it is not there."""
    with atomic.disk_errors(path.name):
        try:
            return path.stat().st_size
        except FileNotFoundError:
            return 0


def spelled(entry: bytes) -> bytes:
    """Write an entry as a line."""
    line = _StoredLine(version=VERSION, checksum=_checksum(entry), entry=msgspec.Raw(entry))
    return msgspec.json.encode(line) + b"\n"


def _entry(line: bytes) -> bytes | None:
    try:
        read = msgspec.json.decode(line, type=_StoredLine)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        _refuse_newer(line)
        return None
    if read.version > VERSION:
        _refuse_newer(line)
    entry = bytes(read.entry)
    return entry if _checksum(entry) == read.checksum else None


def _refuse_newer(line: bytes) -> None:
    with contextlib.suppress(msgspec.DecodeError, RecursionError, UnicodeError):
        found = msgspec.json.decode(line, type=_JournalVersion).version
        if found > VERSION:
            raise DaemonError(
                ErrorCode.VERSION_TOO_NEW,
                f"The history has version {found}, this daemon knows {VERSION}; update creonowd.",
                found=found,
                known=VERSION,
            )


def _refuse_link(path: Path) -> None:
    """A log lies where it is; a link could lead into another project's, or out of all of them."""
    if path.is_symlink() or path.parent.is_symlink():
        raise DaemonError(
            ErrorCode.IO_ERROR,
            "The history is a link to somewhere else; put the file itself in its place.",
            file=path.name,
        )


def _checksum(entry: bytes) -> str:
    return sha256(entry).hexdigest()[:32]


def _cut(path: Path, size: int) -> None:
    if path.exists() and path.stat().st_size > size:
        with path.open("r+b") as file:
            file.truncate(size)
            os.fsync(file.fileno())


class _PendingLine(NamedTuple):
    path: Path
    data: bytes
    written: "asyncio.Future[None]"


_Lines = queue.SimpleQueue[_PendingLine | None]


class LineWriter:
    """Adds lines to files, one after the other; its thread begins with the first and ends with it."""

    def __init__(self) -> None:
        self._lines: _Lines | None = None

    async def add(self, path: Path, data: bytes) -> None:
        """Add `data` to the end of `path`: no kill of the process loses it, a cut of the power may.

        A line that is being written is waited for, whoever cancels.
        """
        lines = self._lines or self._begin()
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        lines.put(_PendingLine(path, data, written))
        with anyio.CancelScope(shield=True):
            await written

    def _begin(self) -> _Lines:
        self._lines = lines = queue.SimpleQueue[_PendingLine | None]()
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
