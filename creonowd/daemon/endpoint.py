"""`<userData>/run/`: where a running daemon can be reached, and the lock that it is alone.

Knows files; opens no connection.
"""

import hashlib
import os
import tempfile
import time
from pathlib import Path

import msgspec
from msgspec import UNSET, UnsetType

from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model
from creonowd.storage import atomic
from creonowd.storage.locks import try_lock

RUN = "run"
LOCK = "daemon.lock"
PID = "daemon.pid"
FILE = "endpoint.json"
SOCKET = "creonowd.sock"
LONGEST_SOCKET_PATH = 100
VERSION = 1
LOCK_TRIES = 10
LOCK_STEP_SECONDS = 0.02


class Endpoint(Model):
    """One way in. A `token` is shown in `initialize`."""

    transport: str
    address: str
    token: str | UnsetType = UNSET


class EndpointFile(Model):
    """What `endpoint.json` holds."""

    version: int
    pid: int
    endpoints: tuple[Endpoint, ...]


def folder(user_data: Path) -> Path:
    """Make the folder that only this user may enter."""
    return _private(user_data / RUN)


def _private(place: Path) -> Path:
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    place.chmod(0o700)
    return place


def own_socket(user_data: Path) -> Path:
    """Choose the socket's place, in a folder that only this user may enter."""
    path = socket_path(user_data)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.parent != user_data / RUN and not _ours(path.parent):
        raise DaemonError(
            ErrorCode.IO_ERROR,
            f"{path.parent} belongs to another user; remove it, or use a shorter --user-data.",
        )
    _private(path.parent)
    return path


def _ours(place: Path) -> bool:
    """Whether this user made it: where everyone may write, somebody else may have been quicker."""
    return not hasattr(os, "geteuid") or place.lstat().st_uid == os.geteuid()


def socket_path(user_data: Path) -> Path:
    """Choose the socket's place: in user data, or in a short private one if that path is too long."""
    path = user_data / RUN / SOCKET
    if len(os.fsencode(path)) <= LONGEST_SOCKET_PATH:
        return path
    digest = hashlib.sha256(os.fsencode(user_data)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"creonowd-{digest}" / SOCKET


def take_lock(user_data: Path) -> int:
    """Hold the user-data folder for the life of this process, or name the pid that does."""
    place = folder(user_data)
    descriptor = _patiently(place / LOCK)
    if descriptor is None:
        pid = running_pid(user_data)
        raise DaemonError(
            ErrorCode.CONFLICT,
            f"Another creonowd (pid {pid or 'unknown'}) already serves this user-data folder; "
            "use `creonowd call`, or stop it first.",
            pid=pid,
        )
    (place / FILE).unlink(missing_ok=True)
    atomic.replace(place / PID, str(os.getpid()).encode())
    return descriptor


def _patiently(lock: Path) -> int | None:
    """Try for a moment: a visitor that looks whether anyone is here holds the lock for a blink."""
    for _ in range(LOCK_TRIES):
        if (descriptor := try_lock(lock)) is not None:
            return descriptor
        time.sleep(LOCK_STEP_SECONDS)
    return None


def running_pid(user_data: Path) -> int | None:
    """Tell the pid that the last daemon wrote down."""
    try:
        text = (user_data / RUN / PID).read_text(encoding="ascii")
        return int(text)
    except (OSError, ValueError):
        return None


def write(user_data: Path, endpoints: tuple[Endpoint, ...]) -> None:
    """Tell visitors where to find this daemon; only the user may read it.

    After a cut of the power there is no daemon to be found, so the start waits for no disk.
    """
    held = EndpointFile(version=VERSION, pid=os.getpid(), endpoints=endpoints)
    data = msgspec.json.format(msgspec.json.encode(held)) + b"\n"
    atomic.replace(folder(user_data) / FILE, data, mode=0o600, synced=False)


def read(user_data: Path) -> EndpointFile | None:
    """Read where the running daemon is; None when the file is absent, foreign or stale."""
    place = user_data / RUN
    try:
        held = msgspec.json.decode((place / FILE).read_bytes(), type=EndpointFile)
    except (OSError, msgspec.MsgspecError):
        return None
    current = held.version == VERSION and held.pid == running_pid(user_data)
    return held if current and is_running(user_data) else None


def is_running(user_data: Path) -> bool:
    """Whether a daemon holds the lock of this folder now."""
    lock = user_data / RUN / LOCK
    if not lock.exists():
        return False
    descriptor = try_lock(lock)
    if descriptor is None:
        return True
    os.close(descriptor)
    return False


def remove(user_data: Path) -> None:
    """Take the sign down."""
    for name in (FILE, PID):
        (user_data / RUN / name).unlink(missing_ok=True)
