"""Writes that survive a kill: a reader sees the old file or the new one, never half of either.

Knows files and what the operating system says about them; knows nothing of what is in them.
No path that it was given ever appears in an error.
"""

import contextlib
import ctypes
import errno
import itertools
import os
import stat
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path

from creonowd.errors import disk_error

PRIVATE = 0o600
SHARED = 0o666

_PREFIX = ".creonow-"
_SUFFIX = ".tmp"
_COUNTER = itertools.count()
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS}
_BINARY = getattr(os, "O_BINARY", 0)
_WINDOWS_TRIES = 20


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


def create(path: Path, data: bytes, *, mode: int = PRIVATE) -> bool:
    """Make a new file with `data`, all at once; False if there is one, which stays as it is."""
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

    If not, no kill of the process loses it, but a cut of the power may.
    """
    with disk_errors(path.name):
        fresh = synced and not path.exists()
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | _BINARY, mode)
        _write_and_close(descriptor, data, synced=synced)
        if fresh:
            sync_folder(path.parent)


@contextlib.contextmanager
def disk_errors(what: str) -> Generator[None]:
    """Turn what the disk refuses into STORAGE_FULL or IO_ERROR about `what`, a name and no path."""
    try:
        yield
    except OSError as error:
        raise disk_error(error, what) from error


def sync_folder(folder: Path) -> None:
    """Put the names in `folder` on the disk, where the system can do that."""
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


def create_temporary(folder: Path, mode: int) -> tuple[Path, int]:
    """Open a new file beside the one it is to become; `sweep` knows it should it be left behind."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY
    while True:
        temporary = folder / f"{_PREFIX}{os.getpid()}-{next(_COUNTER)}{_SUFFIX}"
        with contextlib.suppress(FileExistsError):
            return temporary, os.open(temporary, flags, mode)


def move(temporary: Path, path: Path) -> None:
    """Rename a finished file into place, over what may be there; `sync_folder` makes it last."""
    if os.name != "nt":
        temporary.replace(path)
        return
    for left in reversed(range(_WINDOWS_TRIES)):
        # Scanners and readers may hold the old file open for a moment, which Windows minds.
        try:
            temporary.replace(path)
        except PermissionError:
            if not left:
                raise
            time.sleep(0.02)
        else:
            return


def is_temporary(name: str) -> bool:
    """Tell whether `name` is a file that `replace` has under way or left behind when killed."""
    return name.startswith(_PREFIX) and name.endswith(_SUFFIX)


def sweep(folder: Path, before_ms: int) -> None:
    """Remove what killed writers left in `folder`, if it was last written before a time."""
    with contextlib.suppress(OSError):
        for entry in folder.iterdir():
            if is_temporary(entry.name) and entry.stat().st_mtime_ns // 1_000_000 < before_ms:
                entry.unlink(missing_ok=True)


def write_temporary(path: Path, data: bytes, mode: int, *, synced: bool = True) -> Path:
    """Write what `path` is to become to a file beside it, and on to the disk."""
    temporary, descriptor = create_temporary(path.parent, mode)
    try:
        _keep_permissions(path, temporary)
        _write_and_close(descriptor, data, synced=synced)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


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
    """Give the file its name unless that is taken."""
    if os.name == "nt":
        temporary.rename(path)
        return
    try:
        path.hardlink_to(temporary)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if os.path.lexists(path):
            raise FileExistsError from None
        temporary.rename(path)


_UNABLE = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EXDEV}
_HERE = -100
_SWAP = 2


def replace_unchanged(path: Path, data: bytes, expected: bytes | None, *, mode: int) -> bool:
    """Make `data` the content of `path` if that holds `expected`, or nothing if that is None.

    False leaves everything as it was. Where the system cannot swap files (Windows, some network
    drives) a save within microseconds of ours may still be overtaken.
    """
    if expected is None:
        return create(path, data, mode=mode)
    with disk_errors(path.name):
        temporary = write_temporary(path, data, mode)
        try:
            if content(path) != expected or not _exchanged(temporary, path, data, expected):
                return False
        finally:
            temporary.unlink(missing_ok=True)
        sync_folder(path.parent)
    return True


def content(path: Path) -> bytes | None:
    """Read a file whole; None if there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _exchanged(temporary: Path, path: Path, data: bytes, expected: bytes) -> bool:
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


def swap(one: Path, other: Path) -> bool:
    """Exchange two files in one step; False if this system or disk cannot."""
    if _rename is None:
        return False
    if _rename(os.fsencode(one), os.fsencode(other)) == 0:
        return True
    if (code := ctypes.get_errno()) in _UNABLE:
        return False
    raise OSError(code, os.strerror(code))


def _found() -> Callable[[bytes, bytes], int] | None:
    if sys.platform not in {"linux", "darwin"}:
        return None
    library = ctypes.CDLL(None, use_errno=True)
    if (modern := getattr(library, "renameat2", None)) is not None:
        return lambda one, other: modern(_HERE, one, _HERE, other, _SWAP)
    if (apple := getattr(library, "renamex_np", None)) is not None:
        return lambda one, other: apple(one, other, _SWAP)
    return None


_rename = _found()
