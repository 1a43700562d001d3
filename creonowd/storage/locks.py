"""Lock files: one holder at a time, across processes; the system unlocks when a holder dies."""

import contextlib
import errno
import os
import sys
import time
from collections.abc import Generator
from pathlib import Path

from creonowd.errors import DaemonError, ErrorCode, disk_errors

_RETRY_S = 0.005
_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL}


@contextlib.contextmanager
def hold(path: Path, *, timeout_s: float = 10.0) -> Generator[None]:
    """Hold the lock file `path` for the block; TIMEOUT if another holder keeps it for too long.

    Blocks its thread: in async code go through `anyio.to_thread`.
    """
    with contextlib.ExitStack() as cleanup:
        with disk_errors(path.name):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        cleanup.callback(os.close, descriptor)
        _wait(descriptor, timeout_s)
        cleanup.callback(_unlock, descriptor)
        yield


def try_lock(path: Path) -> int | None:
    """Lock `path` for as long as the returned descriptor is open; None if another has it."""
    with disk_errors(path.name):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    if _try_take(descriptor):
        return descriptor
    os.close(descriptor)
    return None


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
