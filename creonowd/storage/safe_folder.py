"""Open a file inside a folder and make sure that it is what was really opened.

A string can lie: a link anywhere along the way, or one swapped in a moment later, may lead
out of the tree. So the file is opened first and then asked where it lies.
"""

import errno
import os
import stat
import sys
import tempfile
import unicodedata
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from creonowd.errors import DaemonError, ErrorCode, disk_error
from creonowd.model import Model
from creonowd.storage.relative_paths import invalid_path, problem_with_name

_NO_FOLDER = {errno.ENOTDIR, errno.ELOOP}
_NO_PATH = {errno.ENAMETOOLONG, errno.EINVAL}


def canonical(spelling: str) -> Path:
    """Find the one real path of a writable folder, or say what is wrong with it."""
    if not spelling.strip() or "\0" in spelling or not Path(spelling).is_absolute():
        raise _refused("relative", "rootPath must be the absolute path of a folder.")
    folder = _real(Path(spelling))
    if not folder.is_dir():
        raise _refused("not_a_folder", "rootPath is not a folder; choose the folder itself.")
    _refuse_unspeakable(folder)
    _refuse_unwritable(folder)
    return folder


def same_folder(one: Path, other: Path) -> bool:
    """Tell whether two paths lead to one folder, also by case, links or Unicode form."""
    if one == other:
        return True
    try:
        first, second = one.stat(), other.stat()
    except OSError:
        return False
    # Some network drives number no files; then only the spelling can tell.
    return first.st_ino != 0 and os.path.samestat(first, second)


def _real(path: Path) -> Path:
    try:
        return Path(os.path.realpath(_respelt(path), strict=True))
    except FileNotFoundError:
        raise DaemonError(
            ErrorCode.NOT_FOUND,
            "The folder does not exist; create it first or check its spelling.",
            field="rootPath",
            reason="missing",
        ) from None
    except OSError as error:
        if error.errno in _NO_FOLDER:
            raise _refused("not_a_folder", "rootPath does not lead to a folder.") from None
        if error.errno in _NO_PATH:
            raise _refused("invalid", "rootPath is not a path that this system can have.") from None
        raise disk_error(error, "the project folder") from error


def _respelt(path: Path) -> Path:
    """Follow the disk where it spells a name in another Unicode form (macOS hands out NFD)."""
    if path.exists():
        return path
    found = Path(path.anchor)
    for part in path.parts[1:]:
        found /= part if (found / part).exists() else _other_form(found, part)
    return found


def _other_form(folder: Path, part: str) -> str:
    wanted = unicodedata.normalize("NFC", part)
    if wanted.isascii() or not folder.is_dir():
        return part
    names = (entry.name for entry in folder.iterdir())
    return next((name for name in names if unicodedata.normalize("NFC", name) == wanted), part)


def _refuse_unspeakable(folder: Path) -> None:
    try:
        str(folder).encode("utf-8")
    except UnicodeEncodeError:
        raise _refused(
            "not_unicode", "The folder's name is not valid Unicode; rename it."
        ) from None


def _refuse_unwritable(folder: Path) -> None:
    """Ask by doing: permission bits tell little on Windows, on network drives and to root."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError:
        raise DaemonError(
            ErrorCode.IO_ERROR,
            "The folder cannot be written to; change its permissions or choose another.",
            field="rootPath",
            reason="not_writable",
        ) from None


def _refused(reason: str, message: str) -> DaemonError:
    return DaemonError(ErrorCode.INVALID_ARGUMENT, message, field="rootPath", reason=reason)


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


class FileSnapshot(Model, gc=False):
    """What a file held at one moment, and by what to tell whether it still does."""

    data: bytes
    mark: tuple[int, ...]
    size_bytes: int
    updated_at_ms: int


class SafeFolder(NamedTuple):
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
def opened_door(root: Path, folder: str, inside: str) -> Generator[SafeFolder]:
    """Hold the folder `inside` open, which lies in `folder` or is that; both are relative to `root`."""
    real = real_folder(root, folder)
    descriptor = _held(f"{root}{os.sep}{inside}", real)
    try:
        yield SafeFolder(real, descriptor)
    finally:
        if descriptor is not None:
            os.close(descriptor)


def read_inside(
    root: Path, folder: str, path: str, *, limit: int, door: SafeFolder | None = None
) -> FileSnapshot:
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
    raise invalid_path("link", f"{folder} is a link; make it a plain folder.")


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


def _opened_beside(door: SafeFolder, path: str) -> tuple[int, os.stat_result] | None:
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
        raise invalid_path("link", "path leads out of its folder through a link.")


def _read(descriptor: int, status: os.stat_result, path: str, limit: int) -> FileSnapshot:
    if not stat.S_ISREG(status.st_mode):
        raise _not_a_file(path)
    if status.st_size > limit:
        raise _too_big(path, status.st_size, limit)
    data = _bytes_of(descriptor, limit, status.st_size)
    if len(data) > limit:
        raise _too_big(path, len(data), limit)
    return FileSnapshot(
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
        return invalid_path("length", "path is not one that this system can have.")
    if error.errno == errno.ELOOP:
        return invalid_path("link", "path leads in a circle through links.")
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
    raise invalid_path("link", "path changed while it was opened; try again.")


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


EFFECTIVE = os.access in os.supports_effective_ids
Found = tuple[str, os.stat_result]

# Asked from its folder a file is found in less time. Windows cannot do that, and there an entry
# leaves out what tells one file from another.
_SCANS_BY_DESCRIPTOR = os.scandir in os.supports_fd and os.name != "nt"


class _Seen(NamedTuple):
    """What lies in one folder: folders, links, and files with what tells their states apart."""

    folders: list[str]
    links: list[str]
    files: list[Found]


def files_below(
    root: Path, folder: str, wanted: Callable[[str], bool], closed: list[str] | None = None
) -> list[Found]:
    """Find the plain files below `folder` whose name is wanted, as sorted project-relative paths.

    Hidden names and names that no client could ask for are passed over. Links to folders are
    not followed; a link to a file counts if the file lies below `folder` too. What vanishes
    during the walk was never there; folders that may not be looked into are added to `closed`.
    """
    place = f"{root}{os.sep}{folder}"
    found: list[Found] = []
    waiting = [(place, folder)]
    while waiting:
        where, prefix = waiting.pop()
        seen = _look(where, wanted)
        if seen is None:
            if closed is not None:
                closed.append(prefix)
            continue
        waiting += [(f"{where}{os.sep}{name}", f"{prefix}/{name}") for name in seen.folders]
        linked = ((name, _behind(f"{where}{os.sep}{name}", place)) for name in seen.links)
        plain = [*seen.files, *((name, status) for name, status in linked if status)]
        found += [(f"{prefix}/{name}", status) for name, status in plain]
    return sorted(found, key=itemgetter(0))


def _look(where: str, wanted: Callable[[str], bool]) -> _Seen | None:
    """Look into a folder; None if this user may not, in part or at all."""
    seen = _Seen([], [], [])
    try:
        with _opened_folder(where) as place, os.scandir(place) as entries:
            found = [entry for entry in entries if not _is_passed_over(entry.name)]
            if found and not os.access(where, os.X_OK, effective_ids=EFFECTIVE):
                return None
            for entry in found:
                if entry.is_dir(follow_symlinks=False):
                    seen.folders.append(entry.name)
                elif wanted(entry.name):
                    _note(entry, seen)
    except (FileNotFoundError, NotADirectoryError):
        return _Seen([], [], [])
    except PermissionError:
        return None
    return seen


@contextmanager
def _opened_folder(where: str) -> Generator[str | int]:
    if not _SCANS_BY_DESCRIPTOR:
        yield where
        return
    descriptor = os.open(where, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _note(entry: "os.DirEntry[str]", seen: _Seen) -> None:
    if entry.is_symlink():
        seen.links.append(entry.name)
        return
    try:
        status = (
            entry.stat(follow_symlinks=False) if _SCANS_BY_DESCRIPTOR else Path(entry.path).stat()
        )
    except OSError:
        return
    if stat.S_ISREG(status.st_mode):
        seen.files.append((entry.name, status))


def _behind(link: str, place: str) -> os.stat_result | None:
    """Tell the state of the file that a link leads to, if it lies below the place too."""
    try:
        if not lies_inside(os.path.realpath(link), os.path.realpath(place)):
            return None
        status = os.stat(link)  # noqa: PTH116 - as text, see `read_inside`
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None


@lru_cache(maxsize=8192)
def _is_passed_over(name: str) -> bool:
    return name.startswith(".") or problem_with_name(name) is not None
