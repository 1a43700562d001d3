"""Journals: append-only files of one JSON entry per line, each with a checksum of the entry.

A kill tears the last line at most, which the next entry replaces. Everything here blocks.
"""

import contextlib
import os
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgspec

from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model
from creonowd.storage import atomic
from creonowd.storage.safe_folder import SafeFolder
from creonowd.storage.versioned_json import refuse_newer

VERSION = 1

_UNREADABLE = (msgspec.DecodeError, RecursionError, UnicodeError)


class Replayed(NamedTuple):
    """The sound entries of a journal, the bytes up to the end of the last one, and the losses."""

    entries: list[bytes]
    size: int
    torn: bool = False
    damaged: int = 0


class _StoredLine(Model):
    version: int
    checksum: str
    entry: msgspec.Raw


class _Version(Model):
    version: int = 0


def replay(path: Path) -> Replayed:
    """Read every sound entry; skip a torn last line, and count damaged ones before it."""
    with atomic.disk_errors(path.name):
        try:
            data = _folder(path).read(path.name)
        except FileNotFoundError:
            return Replayed([], 0)
    whole, newline, rest = data.rpartition(b"\n")
    lines = whole.split(b"\n") if newline else []
    found = [_decode(line) for line in lines]
    torn = bool(rest)
    size = len(data) - len(rest)
    if found and found[-1] is None:
        torn, size = True, size - len(lines[-1]) - 1
        found.pop()
    entries = [entry for entry in found if entry is not None]
    return Replayed(entries, size, torn, len(found) - len(entries))


def append(path: Path, size: int, entry: bytes) -> int:
    """Add an entry after the first `size` bytes, on the disk when this returns the new size.

    What a crash left behind those bytes is cut off first.
    """
    folder = _folder(path)
    if folder.status(path.name) is None and not folder.is_missing(path.name):
        raise _link_error(path)
    line = encode(entry)
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


def encode(entry: bytes) -> bytes:
    """Return the line of an entry."""
    line = _StoredLine(version=VERSION, checksum=_checksum(entry), entry=msgspec.Raw(entry))
    return msgspec.json.encode(line) + b"\n"


def size_of(path: Path) -> int:
    """Return how many bytes a journal has; none if it is not there."""
    with atomic.disk_errors(path.name):
        try:
            return path.stat().st_size
        except FileNotFoundError:
            return 0


def erase(path: Path) -> None:
    """Remove a journal for good."""
    with atomic.disk_errors(path.name):
        if path.exists():
            path.unlink()
            atomic.sync_folder(path.parent)


def _decode(line: bytes) -> bytes | None:
    """Return the entry of a line; None if it is damaged, VERSION_TOO_NEW if we cannot know."""
    try:
        stored = msgspec.json.decode(line, type=_StoredLine)
    except _UNREADABLE:
        with contextlib.suppress(*_UNREADABLE):
            version = msgspec.json.decode(line, type=_Version).version
            refuse_newer("The history", version, VERSION)
        return None
    refuse_newer("The history", stored.version, VERSION)
    entry = bytes(stored.entry)
    return entry if _checksum(entry) == stored.checksum else None


def _checksum(entry: bytes) -> str:
    return sha256(entry).hexdigest()[:32]


def _cut(path: Path, size: int) -> None:
    if path.exists() and path.stat().st_size > size:
        with path.open("r+b") as file:
            file.truncate(size)
            os.fsync(file.fileno())


def _folder(path: Path) -> SafeFolder:
    return SafeFolder(path.parent, partial(_link_error, path))


def _link_error(path: Path) -> DaemonError:
    """Refuse a link: it could lead into another project's history, or out of all of them."""
    return DaemonError(
        ErrorCode.IO_ERROR,
        "The history is a link to somewhere else; put the file itself in its place.",
        file=path.name,
    )
