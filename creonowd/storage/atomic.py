"""Write files so that a kill leaves the old content or the new one, never half of either."""

import contextlib
import ctypes
import errno
import itertools
import os
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path

from creonowd.errors import disk_errors

PRIVATE = 0o600
SHARED = 0o666

_PREFIX = ".creonow-"
_SUFFIX = ".tmp"
_COUNTER = itertools.count()
_BINARY = getattr(os, "O_BINARY", 0)
_WINDOWS_TRIES = 20
_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS}
_NO_EXCHANGE = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EXDEV}
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def replace(path: Path, data: bytes, *, mode: int = PRIVATE, synced: bool = True) -> None:
    """Make `data` the content of `path`, all at once; on the disk when this returns if `synced`.

    A file that exists keeps its permissions; a new one gets `mode` less the umask.
    """
    with disk_errors(path.name):
        temporary = write_temporary(path, data, mode, synced=synced)
        try:
            move(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        if synced:
            sync_folder(path.parent)


def replace_unchanged(path: Path, data: bytes, expected: bytes | None, *, mode: int) -> bool:
    """Make `data` the content of `path` if that holds `expected`; if None, if there is no file.

    Return False and change nothing otherwise. Where the system cannot swap files (Windows, some
    network drives), a save within microseconds of ours may still be lost.
    """
    if expected is None:
        return create(path, data, mode=mode)
    with disk_errors(path.name):
        temporary = write_temporary(path, data, mode)
        try:
            if content(path) != expected or not _exchange(temporary, path, data, expected):
                return False
        finally:
            temporary.unlink(missing_ok=True)
        sync_folder(path.parent)
    return True


def create(path: Path, data: bytes, *, mode: int = PRIVATE) -> bool:
    """Make a new file with `data`, all at once; return False and change nothing if there is one."""
    with disk_errors(path.name):
        if os.path.lexists(path):
            return False
        temporary = write_temporary(path, data, mode)
        try:
            _claim(temporary, path)
        except FileExistsError:
            return False
        finally:
            temporary.unlink(missing_ok=True)
        sync_folder(path.parent)
    return True


def append(path: Path, data: bytes, *, mode: int = PRIVATE, synced: bool = True) -> None:
    """Add `data` to the end of `path`: on the disk when this returns if `synced`.

    Otherwise no kill of the process loses it, but a cut of the power may.
    """
    with disk_errors(path.name):
        fresh = synced and not path.exists()
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | _BINARY, mode)
        _write_and_close(descriptor, data, synced=synced)
        if fresh:
            sync_folder(path.parent)


def move(temporary: Path, path: Path) -> None:
    """Rename a finished file into place, over what may be there; `sync_folder` makes it durable."""
    if os.name != "nt":
        temporary.replace(path)
        return
    for left in reversed(range(_WINDOWS_TRIES)):
        # Windows refuses while a scanner or a reader has the old file open, if only for a moment.
        try:
            temporary.replace(path)
        except PermissionError:
            if not left:
                raise
            time.sleep(0.02)
        else:
            return


def swap(one: Path, other: Path) -> bool:
    """Exchange two files in one step; return False if this system or disk cannot."""
    if _exchange_names is None:
        return False
    if _exchange_names(os.fsencode(one), os.fsencode(other)) == 0:
        return True
    if (code := ctypes.get_errno()) in _NO_EXCHANGE:
        return False
    raise OSError(code, os.strerror(code))


def create_temporary(folder: Path, mode: int) -> tuple[Path, int]:
    """Open a new file beside the one that it is to become; `sweep` removes it if a kill leaves it."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY
    while True:
        temporary = folder / f"{_PREFIX}{os.getpid()}-{next(_COUNTER)}{_SUFFIX}"
        with contextlib.suppress(FileExistsError):
            return temporary, os.open(temporary, flags, mode)


def write_temporary(path: Path, data: bytes, mode: int, *, synced: bool = True) -> Path:
    """Write the new content of `path` to a temporary file beside it; flush it if `synced`."""
    temporary, descriptor = create_temporary(path.parent, mode)
    try:
        _keep_permissions(path, temporary)
        _write_and_close(descriptor, data, synced=synced)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def is_temporary(name: str) -> bool:
    """Return whether `name` is that of a temporary file, in use or left by a killed writer."""
    return name.startswith(_PREFIX) and name.endswith(_SUFFIX)


def sweep(folder: Path, before_ms: int) -> None:
    """Remove the temporary files in `folder` that were last written before a time."""
    with contextlib.suppress(OSError):
        for entry in folder.iterdir():
            if is_temporary(entry.name) and entry.stat().st_mtime_ns // 1_000_000 < before_ms:
                entry.unlink(missing_ok=True)


def content(path: Path) -> bytes | None:
    """Read a file whole; None if there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def sync_folder(folder: Path) -> None:
    """Flush the names in `folder` to the disk, where the system can do that."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.ENOTSUP, errno.EBADF}:
            raise
    finally:
        os.close(descriptor)


def _keep_permissions(path: Path, temporary: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        temporary.chmod(stat.S_IMODE(path.stat().st_mode))


def _write_and_close(descriptor: int, data: bytes, *, synced: bool = True) -> None:
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        if synced:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _claim(temporary: Path, path: Path) -> None:
    """Rename a finished file unless its name is taken: then FileExistsError."""
    if os.name == "nt":
        temporary.rename(path)
        return
    try:
        path.hardlink_to(temporary)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        if os.path.lexists(path):
            raise FileExistsError from None
        temporary.rename(path)


def _exchange(temporary: Path, path: Path, data: bytes, expected: bytes) -> bool:
    """Put the new file in place; put the old one back if it was not what we expected."""
    if not swap(temporary, path):
        move(temporary, path)
        return True
    if temporary.read_bytes() == expected:
        return True
    swap(temporary, path)
    if temporary.read_bytes() != data:
        # Someone saved again in between: the newest save stays.
        swap(temporary, path)
    return False


def _find_exchange() -> Callable[[bytes, bytes], int] | None:
    """Find the C function that exchanges two paths; None if this system has none."""
    if sys.platform not in {"linux", "darwin"}:
        return None
    library = ctypes.CDLL(None, use_errno=True)
    if (modern := getattr(library, "renameat2", None)) is not None:
        return lambda one, other: modern(_AT_FDCWD, one, _AT_FDCWD, other, _RENAME_EXCHANGE)
    if (apple := getattr(library, "renamex_np", None)) is not None:
        return lambda one, other: apple(one, other, _RENAME_EXCHANGE)
    return None


_exchange_names = _find_exchange()
