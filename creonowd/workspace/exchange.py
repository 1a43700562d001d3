"""Replace a file only if it still holds what we think, even if an editor saves at that moment.

Between a last look and a rename there is always a gap. So the two files are swapped in one step
and what came out is looked at: if it is not what we expected, it goes back.
"""

import ctypes
import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path

from creonowd.workspace import atomic

_UNABLE = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EXDEV}
_HERE = -100
_SWAP = 2


def replace_unchanged(path: Path, data: bytes, expected: bytes | None, *, mode: int) -> bool:
    """Make `data` the content of `path` if that holds `expected`, or nothing if that is None.

    False leaves everything as it was. Where the system cannot swap files (Windows, some network
    drives) a save within microseconds of ours may still be overtaken.
    """
    if expected is None:
        return atomic.create(path, data, mode=mode)
    with atomic.disk_errors(path.name):
        temporary = atomic.write_temporary(path, data, mode)
        try:
            if content(path) != expected or not _exchanged(temporary, path, data, expected):
                return False
        finally:
            temporary.unlink(missing_ok=True)
        atomic.sync_folder(path.parent)
    return True


def content(path: Path) -> bytes | None:
    """Read a file whole; None if there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _exchanged(temporary: Path, path: Path, data: bytes, expected: bytes) -> bool:
    if not swap(temporary, path):
        atomic.move(temporary, path)
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
