"""Open a file inside a folder and make sure that it is what was really opened.

A string can lie: a link anywhere along the way, or one swapped in a moment later, may lead
out of the tree. So the file is opened first and then asked where it lies.
"""

import errno
import os
import stat
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from creonowd.errors import DaemonError, ErrorCode, disk_error
from creonowd.model import Model
from creonowd.workspace.folders import same_folder
from creonowd.workspace.paths import refused

# Without O_NONBLOCK a named pipe would hold its reader for ever.
_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
)
# What is no link and is opened from a folder lies in that folder: there is nothing to ask.
_FROM_FOLDER = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
_NO_LINK = _FLAGS | getattr(os, "O_NOFOLLOW", 0)
_LINKS = {errno.ELOOP, getattr(errno, "EMLINK", errno.ELOOP), getattr(errno, "EFTYPE", errno.ELOOP)}
_ABSENT = {errno.ENOENT, errno.ENOTDIR}
_NOT_A_PATH = {errno.ENAMETOOLONG, errno.EINVAL}
_TRIES = 20
_AT_ONCE = 1 << 20


class Opened(Model, gc=False):
    """What a file held at one moment, and by what to tell whether it still does."""

    data: bytes
    mark: tuple[int, ...]
    size_bytes: int
    updated_at_ms: int


class Door(NamedTuple):
    """A folder that many files are read from: where it really lies, and itself held open.

    The descriptor is None where files can only be opened by their path.
    """

    real: Path
    descriptor: int | None = None


def mark_of(status: os.stat_result) -> tuple[int, ...]:
    """Tell files and their changes apart without reading them."""
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )


@contextmanager
def opened_door(root: Path, folder: str, inside: str) -> Generator[Door]:
    """Hold the folder `inside` open, which lies in `folder` or is that; both are relative to `root`."""
    real = real_folder(root, folder)
    descriptor = _held(f"{root}{os.sep}{inside}", real)
    try:
        yield Door(real, descriptor)
    finally:
        if descriptor is not None:
            os.close(descriptor)


def read_inside(
    root: Path, folder: str, path: str, *, limit: int, door: Door | None = None
) -> Opened:
    """Read the file at `path` if what opens lies in `folder`; both are relative to the real `root`.

    Who reads many files that lie side by side hands in the door to where they lie.

    NOT_FOUND if absent, UNSUPPORTED if no plain file, INVALID_ARGUMENT if it lies elsewhere,
    IO_ERROR with `limitBytes` if it is too big.
    """
    # Text and not Path: of hundreds of files the paths would cost more than the reading.
    place = f"{root}{os.sep}{path}"
    try:
        beside = _opened_beside(door, path) if door else None
        descriptor, status = beside or _opened(place)
    except OSError as error:
        raise _cannot_open(error, root / path, path) from error
    try:
        if beside is None:
            real = door.real if door else real_folder(root, folder)
            _refuse_outside(_real_path(descriptor, place), real)
        return _read(descriptor, status, path, limit)
    except OSError as error:
        raise disk_error(error, path) from error
    finally:
        os.close(descriptor)


def lies_inside(real: Path | str, folder: Path | str) -> bool:
    """Tell whether a real path is below a real folder, however either is spelled."""
    if f"{real}".startswith(f"{folder}{os.sep}"):
        return True
    real, folder = Path(real), Path(folder)
    return real.is_relative_to(folder) or any(same_folder(up, folder) for up in real.parents)


def real_folder(root: Path, folder: str) -> Path:
    """Find the real path of `folder`, which must be where its name says and not behind a link."""
    place = Path(os.path.realpath(root)) / folder
    real = Path(os.path.realpath(place))
    if real == place or (same_folder(real, place) and not _linked(f"{root}", folder)):
        return real
    raise refused("link", f"{folder} is a link; make it a plain folder.")


def refuse_links(root: Path, folder: str) -> None:
    """Refuse a folder that is not where its name says; where only links can do that, at a glance."""
    if not is_plain(root, folder):
        real_folder(root, folder)


def is_plain(root: Path, path: str) -> bool:
    """Tell whether no step of a path below the root is a link, where that can be told at a glance."""
    return os.name != "nt" and not _linked(f"{root}", path)


def _linked(root: str, path: str) -> bool:
    place = root
    for step in path.split("/"):
        place = f"{place}{os.sep}{step}"
        if os.path.islink(place):  # noqa: PTH114 - as text, see `read_inside`
            return True
    return False


def _held(place: str, real: Path) -> int | None:
    """Open a folder to read from, if it lies in the real one; else its files are opened by path."""
    if not _FROM_FOLDER:
        return None
    try:
        descriptor = os.open(place, _FLAGS)
    except OSError:
        return None
    try:
        where = _real_path(descriptor, place)
    except (OSError, DaemonError):
        where = ""
    if where == f"{real}" or where.startswith(f"{real}{os.sep}"):
        return descriptor
    os.close(descriptor)
    return None


def _opened_beside(door: Door, path: str) -> tuple[int, os.stat_result] | None:
    """Open a file from its folder; None if it is a link, which only its path can follow."""
    if door.descriptor is None:
        return None
    try:
        return _opened(path.rpartition("/")[2], _NO_LINK, door.descriptor)
    except OSError as error:
        if error.errno in _LINKS:
            return None
        raise


def _opened(
    path: str, flags: int = _FLAGS, folder: int | None = None
) -> tuple[int, os.stat_result]:
    """Open a file that has a name: one that was just replaced has none, so look again."""
    for _ in range(_TRIES):
        descriptor = os.open(path, flags, dir_fd=folder)
        status = os.fstat(descriptor)
        if status.st_nlink or os.name == "nt":
            return descriptor, status
        os.close(descriptor)
    descriptor = os.open(path, flags, dir_fd=folder)
    return descriptor, os.fstat(descriptor)


def _refuse_outside(where: str, real: Path) -> None:
    if not lies_inside(where, real):
        raise refused("link", "path leads out of its folder through a link.")


def _read(descriptor: int, status: os.stat_result, path: str, limit: int) -> Opened:
    if not stat.S_ISREG(status.st_mode):
        raise _not_a_file(path)
    if status.st_size > limit:
        raise _too_big(path, status.st_size, limit)
    data = _bytes_of(descriptor, limit, status.st_size)
    if len(data) > limit:
        raise _too_big(path, len(data), limit)
    return Opened(
        data=data,
        mark=mark_of(status),
        size_bytes=len(data),
        updated_at_ms=status.st_mtime_ns // 1_000_000,
    )


def _bytes_of(descriptor: int, limit: int, expected: int) -> bytes:
    """Read to the end or just past the limit, whatever the size was said to be."""
    data = os.read(descriptor, expected + 1)
    if len(data) == expected:
        return data
    pieces = [data]
    left = limit + 1 - len(data)
    while left > 0 and (more := os.read(descriptor, min(left, _AT_ONCE))):
        pieces.append(more)
        left -= len(more)
    return b"".join(pieces)


def _cannot_open(error: OSError, where: Path, path: str) -> DaemonError:
    if error.errno in _ABSENT:
        return DaemonError(
            ErrorCode.NOT_FOUND, "There is no such file; list what there is.", path=path
        )
    if error.errno in _NOT_A_PATH:
        return refused("length", "path is not one that this system can have.")
    if error.errno == errno.ELOOP:
        return refused("link", "path leads in a circle through links.")
    if where.is_dir():
        return _not_a_file(path)
    return disk_error(error, path)


def _not_a_file(path: str) -> DaemonError:
    return DaemonError(
        ErrorCode.UNSUPPORTED, "path is not a file; list the folder and read its files.", path=path
    )


def _too_big(path: str, size: int, limit: int) -> DaemonError:
    return DaemonError(
        ErrorCode.IO_ERROR,
        f"The file is larger than {limit} bytes; split it.",
        path=path,
        reason="too_large",
        sizeBytes=size,
        limitBytes=limit,
    )


def _portable_real_path(descriptor: int, path: str) -> str:
    real = os.path.realpath(path)
    if os.path.samestat(os.fstat(descriptor), os.lstat(real)):
        return real
    raise refused("link", "path changed while it was opened; try again.")


_real_path: Callable[[int, str], str] = _portable_real_path

if sys.platform == "linux":

    def _by_proc(descriptor: int, path: str) -> str:
        try:
            return os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115
        except OSError:
            return _portable_real_path(descriptor, path)

    _real_path = _by_proc

elif sys.platform == "darwin":
    import fcntl

    def _by_getpath(descriptor: int, path: str) -> str:
        try:
            answer = fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(1024))
        except OSError:
            return _portable_real_path(descriptor, path)
        return os.fsdecode(answer.rstrip(b"\0"))

    _real_path = _by_getpath
