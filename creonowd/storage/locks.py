"""One writer at a time, across processes. The system lets go of a lock when its holder dies.

Knows lock files; knows nothing of what they protect.
"""

import contextlib
import errno
import os
import sys
import time
from collections.abc import Generator
from pathlib import Path

from creonowd.errors import DaemonError, ErrorCode
from creonowd.storage.atomic import disk_errors

_STEP_S = 0.005
_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL}


@contextlib.contextmanager
def locked(path: Path, *, timeout_s: float = 10.0) -> Generator[None]:
    """Hold the lock file `path` for the block; wait for another holder as long as told.

    Blocks its thread: in async code go through `anyio.to_thread`.
    """
    with contextlib.ExitStack() as held:
        with disk_errors(path.name):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        held.callback(os.close, descriptor)
        _wait(descriptor, timeout_s)
        held.callback(_let_go, descriptor)
        yield


def try_lock(path: Path) -> int | None:
    """Take the lock file `path` for as long as the returned descriptor is open; None if it is taken."""
    with disk_errors(path.name):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    if _taken(descriptor):
        return descriptor
    os.close(descriptor)
    return None


def _wait(descriptor: int, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while not _taken(descriptor):
        if time.monotonic() >= deadline:
            raise DaemonError(
                ErrorCode.TIMEOUT, "Another process has been writing here for too long; try again."
            )
        time.sleep(_STEP_S)


if sys.platform == "win32":
    import msvcrt

    def _taken(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _let_go(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _taken(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            # Some network drives know no locks; there, this process alone keeps order.
            if error.errno not in _NO_LOCKS:
                raise
        return True

    def _let_go(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
