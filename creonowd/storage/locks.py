"""Lock files: one holder at a time, across processes; the system unlocks when a holder dies."""

import contextlib
import errno
import os
import stat
import sys
import time
from collections.abc import Generator
from pathlib import Path

from creonowd.errors import DaemonError, ErrorCode
from creonowd.storage.stored_files import disk_errors

_RETRY_S = 0.005
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_FLAGS = os.O_RDWR | os.O_CREAT | _NO_FOLLOW | getattr(os, "O_NONBLOCK", 0)
_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL}


@contextlib.contextmanager
def hold(path: Path, *, timeout_s: float = 10.0, within: int | None = None) -> Generator[None]:
    """Hold the lock file `path` for the block; TIMEOUT if another holder keeps it for too long.

    With `within`, the path is relative to that open folder. Blocks its thread: in async code go
    through `anyio.to_thread`.
    """
    with contextlib.ExitStack() as cleanup:
        descriptor = _open(path, 0o666, within)
        cleanup.callback(os.close, descriptor)
        _wait(descriptor, timeout_s)
        cleanup.callback(_unlock, descriptor)
        yield


def try_lock(path: Path) -> int | None:
    """Lock `path` for as long as the returned descriptor is open; None if another has it."""
    descriptor = _open(path, 0o600, None)
    if _try_take(descriptor):
        return descriptor
    os.close(descriptor)
    return None


def _open(path: Path, mode: int, within: int | None) -> int:
    """Open a lock file, and make it if it is missing; IO_ERROR for a link or what is no file."""
    with disk_errors(path.name):
        descriptor = os.open(path, _FLAGS, mode, dir_fd=within)
        status = os.fstat(descriptor)
        # Without O_NOFOLLOW it may be another file than the one of this name.
        is_named = _NO_FOLLOW or os.path.samestat(status, path.lstat())
        if stat.S_ISREG(status.st_mode) and is_named:
            return descriptor
        os.close(descriptor)
    raise DaemonError(
        ErrorCode.IO_ERROR,
        f"{path.name} is no plain file; move it away and try again.",
        file=path.name,
        reason="not_a_file",
    )


def _wait(descriptor: int, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while not _try_take(descriptor):
        if time.monotonic() >= deadline:
            raise DaemonError(
                ErrorCode.TIMEOUT, "Another process has been writing here for too long; try again."
            )
        time.sleep(_RETRY_S)


if sys.platform == "win32":
    import msvcrt

    def _try_take(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_take(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            # Some network drives have no locks; there, only this process takes turns.
            if error.errno not in _NO_LOCKS:
                raise
        return True

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
