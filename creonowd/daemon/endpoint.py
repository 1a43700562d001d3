"""`<userData>/run/`: where the running daemon can be reached, and the lock that it holds."""

import contextlib
import hashlib
import os
import shlex
import stat
import tempfile
import time
from pathlib import Path

import msgspec
from msgspec import UNSET, UnsetType

from creonowd.errors import DaemonError, ErrorCode, Wording
from creonowd.model import Model
from creonowd.storage import stored_files
from creonowd.storage.locks import try_lock

RUN = "run"
LOCK = "daemon.lock"
PID = "daemon.pid"
FILE = "endpoint.json"
SOCKET = "creonowd.sock"
REDIRECT = "viewer-"
LONGEST_SOCKET_PATH = 100
VERSION = 1
LARGEST_FILE = 1024 * 1024
OUR_NAMES = frozenset({RUN, "projects.json", "settings.json", "logs"})
LOCK_TRIES = 10
LOCK_STEP_SECONDS = 0.02

# What reading a file as JSON may raise, whatever is in it.
NOT_JSON = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)

_OTHERS = stat.S_IRWXG | stat.S_IRWXO

_OPEN_TO_OTHERS = Wording(
    "The user-data folder {} lies open to other users of this computer: run `chmod 700 {}`, "
    "or name another with --user-data or CREONOW_USER_DATA_DIR.",
    "用户数据文件夹 {} 对本机其他用户开放：请运行 chmod 700 {}，"
    "或用 --user-data 或 CREONOW_USER_DATA_DIR 指定别处。",
)
_HOLDS_FOREIGN_FILES = Wording(
    "The user-data folder {} lay open, and {} belongs to another user: remove what is not yours, "
    "run `chmod 700 {}`, or name another folder with --user-data or CREONOW_USER_DATA_DIR.",
    "用户数据文件夹 {} 曾对他人开放，且 {} 属于另一用户：请删除不属于你的文件并运行 chmod 700 {}，"
    "或用 --user-data 或 CREONOW_USER_DATA_DIR 指定别处。",
)
_OF_ANOTHER_USER = Wording(
    "{} belongs to another user; remove it, or use a shorter --user-data.",
    "{} 属于另一用户；请删除它，或用更短的 --user-data。",
)
_SERVED = Wording(
    "Another creonowd (pid {}) already serves this user-data folder; "
    "use `creonowd call`, or stop it first.",
    "另一个 creonowd（进程 {}）已在使用此用户数据文件夹；请用 creonowd call，或先停止它。",
)


class Endpoint(Model):
    """An address of the daemon; a client sends the `token`, if any, in `initialize`."""

    transport: str
    address: str
    token: str | UnsetType = UNSET


class EndpointFile(Model):
    """What `endpoint.json` holds."""

    version: int
    pid: int
    endpoints: tuple[Endpoint, ...]


def make_user_data(user_data: Path) -> None:
    """Make the user-data folder, for this user only; one that is there is closed to others."""
    user_data.mkdir(mode=0o700, parents=True, exist_ok=True)
    close_to_others(user_data)


def close_to_others(user_data: Path) -> None:
    """Close a user-data folder of ours that others may open, before anything in it is believed.

    IO_ERROR with the remedy if that fails, or if the folder holds what is not ours.
    """
    if (problem := rights_problem(user_data)) is None:
        return
    if _foreign_file(user_data) is None and _is_ours(user_data):
        with contextlib.suppress(OSError):
            user_data.chmod(0o700)
            return
    raise DaemonError(ErrorCode.IO_ERROR, problem, reason="open_to_others")


def rights_problem(user_data: Path) -> Wording | None:
    """Return how others may open a user-data folder, and the remedy; None if they may not."""
    if os.name == "nt" or not user_data.is_dir():
        return None
    if not stat.S_IMODE(user_data.stat().st_mode) & _OTHERS:
        return None
    command = shlex.quote(str(user_data))
    if (foreign := _foreign_file(user_data)) is not None:
        return _HOLDS_FOREIGN_FILES.format(user_data, foreign, command)
    return _OPEN_TO_OTHERS.format(user_data, command)


def _is_ours(user_data: Path) -> bool:
    """Return whether a folder is empty, or holds something that only the daemon makes."""
    names = {entry.name for entry in user_data.iterdir()}
    return not names or not names.isdisjoint(OUR_NAMES)


def _foreign_file(user_data: Path) -> Path | None:
    """Return something that another user put into a folder that lay open; None if there is nothing."""
    made = (
        (Path(at), names) for at, folders, files in os.walk(user_data) for names in (folders, files)
    )
    places = (at / name for at, names in made for name in names)
    return next((place for place in places if not _is_trusted(place)), None)


def folder(user_data: Path) -> Path:
    """Make the folder `run`, which only this user may enter, and return it."""
    return _make_private(user_data / RUN)


def _make_private(place: Path) -> Path:
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    place.chmod(0o700)
    return place


def own_socket(user_data: Path) -> Path:
    """Return the path of the socket, and make its folder for this user only."""
    path = socket_path(user_data)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.parent != user_data / RUN and not _is_own(path.parent):
        raise DaemonError(
            ErrorCode.IO_ERROR,
            _OF_ANOTHER_USER.format(path.parent),
        )
    _make_private(path.parent)
    return path


def _is_own(place: Path) -> bool:
    """Return whether this user owns it; in a shared folder somebody else may have made it first."""
    return not hasattr(os, "geteuid") or place.lstat().st_uid == os.geteuid()


def socket_path(user_data: Path) -> Path:
    """Return the path of the socket: in user data, or in the temporary folder if that is too long."""
    path = user_data / RUN / SOCKET
    if len(os.fsencode(path)) <= LONGEST_SOCKET_PATH:
        return path
    digest = hashlib.sha256(os.fsencode(user_data)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"creonowd-{digest}" / SOCKET


def take_lock(user_data: Path) -> int:
    """Lock the user-data folder for the life of this process; CONFLICT names the pid that has it."""
    place = folder(user_data)
    descriptor = _lock_with_retries(place / LOCK)
    if descriptor is None:
        pid = running_pid(user_data)
        raise DaemonError(
            ErrorCode.CONFLICT,
            _SERVED.format(pid or "?"),
            pid=pid,
        )
    (place / FILE).unlink(missing_ok=True)
    for left_over in place.glob(f"{REDIRECT}*.html"):
        left_over.unlink(missing_ok=True)
    stored_files.replace(place / PID, str(os.getpid()).encode())
    return descriptor


def _lock_with_retries(lock: Path) -> int | None:
    """Try several times: `is_running` of another process takes the lock for an instant."""
    for _ in range(LOCK_TRIES):
        if (descriptor := try_lock(lock)) is not None:
            return descriptor
        time.sleep(LOCK_STEP_SECONDS)
    return None


def running_pid(user_data: Path) -> int | None:
    """Return the pid that the last daemon has written."""
    try:
        return int(content(user_data / RUN / PID))
    except ValueError:
        return None


def content(path: Path) -> bytes:
    """Return the bytes of a file in `run`; none if there is no plain file that can be read.

    In a folder that lay open, somebody else may have put it there: theirs is not read.
    """
    try:
        if not all(_is_trusted(place) for place in (path.parent, path)):
            return b""
        return stored_files.content(path, limit=LARGEST_FILE) or b""
    except (DaemonError, OSError):
        return b""


def _is_trusted(place: Path) -> bool:
    """Return whether this user or the system's own one made it."""
    if not hasattr(os, "geteuid"):
        return True
    return 0 in (owner := place.lstat().st_uid, os.geteuid()) or owner == os.geteuid()


def write(user_data: Path, endpoints: tuple[Endpoint, ...]) -> None:
    """Write the addresses of this daemon; only the user may read them.

    The file is not synced: after a power cut there is no daemon to find.
    """
    file = EndpointFile(version=VERSION, pid=os.getpid(), endpoints=endpoints)
    data = msgspec.json.format(msgspec.json.encode(file)) + b"\n"
    stored_files.replace(folder(user_data) / FILE, data, mode=0o600, synced=False)


def read(user_data: Path) -> EndpointFile | None:
    """Read the addresses of the running daemon; None if the file is absent, invalid or stale."""
    try:
        file = msgspec.json.decode(content(user_data / RUN / FILE), type=EndpointFile)
    except NOT_JSON:
        return None
    current = file.version == VERSION and file.pid == running_pid(user_data)
    return file if current and is_running(user_data) else None


def is_running(user_data: Path) -> bool:
    """Return whether a daemon holds the lock of this folder now."""
    lock = user_data / RUN / LOCK
    if not lock.exists():
        return False
    descriptor = try_lock(lock)
    if descriptor is None:
        return True
    os.close(descriptor)
    return False


def remove(user_data: Path) -> None:
    """Remove the addresses and the pid."""
    for name in (FILE, PID):
        (user_data / RUN / name).unlink(missing_ok=True)
