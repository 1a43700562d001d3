"""Files of our own: a kill leaves the old content or the new one, never half of either.

Stored JSON has a `version`: a newer one is refused, a damaged one is kept aside. `within` is the
descriptor of an open folder that a path is relative to: then nobody can put a link in that folder's
place. Without it a path is one of the system's.
"""

import contextlib
import ctypes
import errno
import itertools
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Generator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from creonowd.errors import DaemonError, ErrorCode, disk_error, version_too_new

T = TypeVar("T")

PRIVATE = 0o600
SHARED = 0o666
LEFTOVER_MS = 60_000
LIMIT_BYTES = 64 * 1024 * 1024

_ASIDE = re.compile(r"\.damaged-[0-9]+\Z")
_TEMPORARY = re.compile(r"\.creonow-\d+-\d+\.tmp", re.ASCII)
_COUNTER = itertools.count()
_BINARY = getattr(os, "O_BINARY", 0)
_WINDOWS_PAUSES_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.04, 0.08, *(0.1,) * 18)
_WINDOWS_OPEN_PAUSES_S = _WINDOWS_PAUSES_S[:9]
_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS}
_NO_EXCHANGE = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EXDEV}
_AT_FDCWD = -2 if sys.platform == "darwin" else -100
_RENAME_EXCHANGE = 2
_RENAME_NEW = 4 if sys.platform == "darwin" else 1
_MOVE_TRIES = 10
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
# Without O_NONBLOCK a named pipe would block whoever opens it for ever.
_NO_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_NO_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EBADF}
_CHUNK_BYTES = 1 << 20

# The folders whose names are known to be on the disk, by their identity; the last ones used.
_MAX_SYNCED = 4096
_synced_folders: dict[tuple[int, int], None] = {}


def replace(
    path: Path,
    data: bytes,
    *,
    mode: int = PRIVATE,
    synced: bool = True,
    within: int | None = None,
) -> None:
    """Make `data` the content of `path`, all at once; on the disk when this returns if `synced`.

    A file that exists keeps its permissions; a new one gets `mode` less the umask.
    """
    with disk_errors(path.name):
        temporary = write_temporary(path, data, mode, synced=synced, within=within)
        try:
            move(temporary, path, within=within)
        finally:
            remove(temporary, within=within)
        if synced:
            sync_folder(path.parent, within=within)


def replace_unchanged(
    path: Path, data: bytes, expected: bytes | None, *, mode: int, within: int | None = None
) -> bool:
    """Make `data` the content of `path` if that holds `expected`; if None, if there is no file.

    Return False and change nothing otherwise. Where the system can neither swap files nor rename
    over one that is open (before Windows 10, some network drives), a save within microseconds of
    ours may still be lost.
    """
    if expected is None:
        return create(path, data, mode=mode, within=within)
    with disk_errors(path.name):
        temporary = write_temporary(path, data, mode, within=within)
        try:
            if not _has_content(path, expected, within) or not _swap_if_expected(
                temporary, path, data, expected, within
            ):
                return False
        finally:
            remove(temporary, within=within)
        sync_folder(path.parent, within=within)
    return True


def create(path: Path, data: bytes, *, mode: int = PRIVATE, within: int | None = None) -> bool:
    """Make a new file with `data`, all at once; return False and change nothing if there is one."""
    with disk_errors(path.name):
        if _is_taken(path, within):
            return False
        temporary = write_temporary(path, data, mode, within=within)
        try:
            _rename_if_free(temporary, path, within)
        except FileExistsError:
            return False
        finally:
            remove(temporary, within=within)
        sync_folder(path.parent, within=within)
    return True


def append(
    path: Path,
    data: bytes,
    *,
    mode: int = PRIVATE,
    synced: bool = True,
    within: int | None = None,
) -> None:
    """Add `data` to the end of `path`, which is no link: on the disk when this returns if `synced`.

    Otherwise no kill of the process loses it, but a cut of the power may.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | _BINARY | _NO_FOLLOW | _NO_WAIT
    with disk_errors(path.name):
        fresh = synced and not _is_taken(path, within)
        descriptor = retry_on_windows(partial(os.open, path, flags, mode, dir_fd=within))
        _write_and_close(descriptor, data, synced=synced)
        if fresh:
            sync_folder(path.parent, within=within)


def move(
    temporary: Path, path: Path, *, within: int | None = None, source: int | None = None
) -> None:
    """Rename a finished file into place, over what may be there; `sync_folder` makes it durable.

    The file lies in the folder `source` if that is another than `within`.
    """
    source = within if source is None else source
    retry_on_windows(partial(_replace, temporary, path, source, within))


def retry_on_windows(
    work: Callable[[], T],
    pauses: Sequence[float] = _WINDOWS_PAUSES_S,
    *,
    windows: bool = os.name == "nt",
) -> T:
    """Run `work`; on Windows again after each pause, while another program has the file open.

    PermissionError if that goes on for two seconds, and at once on other systems.
    """
    for pause in pauses if windows else ():
        try:
            return work()
        except PermissionError:
            time.sleep(pause)
    return work()


def open_to_read(path: str | Path, flags: int, *, within: int | None = None) -> int:
    """Open a file so that others may replace or remove it meanwhile, on Windows too.

    A file that Windows refuses to open is given up sooner than one that it refuses to replace: a
    folder may be full of files that this user may not read.
    """
    if sys.platform == "win32":
        from creonowd.storage import windows

        return retry_on_windows(partial(windows.open_to_read, path), _WINDOWS_OPEN_PAUSES_S)
    return os.open(path, flags, dir_fd=within)


def move_over(
    temporary: Path,
    path: Path,
    check: Callable[[Path], None],
    *,
    within: int | None = None,
) -> None:
    """Rename a finished file into place, over what is there only if `check` does not raise.

    Where the system cannot swap names (Windows, some network drives), what somebody else puts
    there within microseconds of ours may still be lost.
    """

    def check_and_replace() -> None:
        check(path)
        _replace(temporary, path, within, within)

    for left in reversed(range(_MOVE_TRIES)):
        with contextlib.suppress(FileExistsError):
            _rename_if_free(temporary, path, within)
            return
        check(path)
        try:
            if not swap(temporary, path, within=within):
                retry_on_windows(check_and_replace)
                return
        except FileNotFoundError:
            if not left:
                raise
            continue
        try:
            check(temporary)
        except BaseException:
            swap(temporary, path, within=within)
            raise
        return


def swap(one: Path, other: Path, *, within: int | None = None) -> bool:
    """Exchange two files in one step; return False if this system or disk cannot."""
    return _rename(one, other, _RENAME_EXCHANGE, within)


def create_temporary(folder: Path, mode: int, *, within: int | None = None) -> tuple[Path, int]:
    """Open a new file beside the one that it is to become.

    `SafeFolder.sweep` removes it if a kill leaves it.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY
    while True:
        temporary = folder / f".creonow-{os.getpid()}-{next(_COUNTER)}.tmp"
        with contextlib.suppress(FileExistsError):
            return temporary, os.open(temporary, flags, mode, dir_fd=within)


def write_temporary(
    path: Path, data: bytes, mode: int, *, synced: bool = True, within: int | None = None
) -> Path:
    """Write the new content of `path` to a temporary file beside it; flush it if `synced`."""
    temporary, descriptor = create_temporary(path.parent, mode, within=within)
    try:
        _keep_permissions(path, temporary, descriptor, within)
        _write_and_close(descriptor, data, synced=synced)
    except BaseException:
        remove(temporary, within=within)
        raise
    return temporary


def remove(path: Path, *, within: int | None = None) -> None:
    """Remove a file if it is there."""
    with contextlib.suppress(FileNotFoundError):
        retry_on_windows(partial(os.unlink, path, dir_fd=within))


def is_temporary(name: str) -> bool:
    """Return whether `name` is that of a temporary file, in use or left by a killed writer."""
    return _TEMPORARY.fullmatch(name) is not None


def is_leftover(status: os.stat_result, before_ms: int) -> bool:
    """Return whether a temporary file was last written before a time, so that nobody writes it."""
    return stat.S_ISREG(status.st_mode) and status.st_mtime_ns // 1_000_000 < before_ms


def content(path: Path, *, limit: int) -> bytes | None:
    """Read a plain file whole, also through a link; None if there is none.

    IO_ERROR if it is no plain file or longer than `limit` bytes. A pipe is not waited for.
    """
    with disk_errors(path.name):
        try:
            descriptor = open_to_read(path, os.O_RDONLY | _BINARY | _NO_WAIT)
        except FileNotFoundError:
            return None
        try:
            return read_plain(descriptor, path.name, limit)
        finally:
            os.close(descriptor)


def read_plain(descriptor: int, name: str, limit: int) -> bytes:
    """Read an open file whole: IO_ERROR if it is no plain file or longer than `limit` bytes."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise DaemonError(
            ErrorCode.IO_ERROR,
            f"{name} is no plain file; move it away and try again.",
            file=name,
            reason="not_a_file",
        )
    data = b"" if status.st_size > limit else read_up_to(descriptor, limit + 1, status.st_size)
    if (size := max(len(data), status.st_size)) > limit:
        raise DaemonError(
            ErrorCode.IO_ERROR,
            f"{name} is larger than {limit} bytes; move it away and try again.",
            file=name,
            reason="too_large",
            sizeBytes=size,
            limitBytes=limit,
        )
    return data


def read_up_to(descriptor: int, most: int, expected: int) -> bytes:
    """Read to the end, or `most` bytes; a file may have grown since it was found to be `expected`."""
    data = os.read(descriptor, min(most, expected + 1))
    if len(data) == expected:
        return data
    parts = [data]
    left = most - len(data)
    while left > 0 and (more := os.read(descriptor, min(left, _CHUNK_BYTES))):
        parts.append(more)
        left -= len(more)
    return b"".join(parts)


def make_folders(folder: Path, *, mode: int = 0o700) -> None:
    """Make a folder and those above it, with their names on the disk when this returns."""
    missing = [folder]
    while not missing[-1].exists() and missing[-1].parent != missing[-1]:
        missing.append(missing[-1].parent)
    for place in reversed(missing[:-1]):
        make_folder(place, mode=mode)
    make_folder(folder, mode=mode)


def make_folder(folder: Path, *, mode: int = 0o700, within: int | None = None) -> bool:
    """Make a folder and return True; False if something of its name is there already.

    Its name is on the disk when this returns. A kill may have come between the making and the
    flush, so a folder that is there already is flushed too, once in the life of a process.
    """
    try:
        os.mkdir(folder, mode, dir_fd=within)
        made = True
    except FileExistsError:
        made = False
    if os.name == "nt":
        return made
    status = os.stat(folder, dir_fd=within, follow_symlinks=False)
    identity = (status.st_dev, status.st_ino)
    if made or identity not in _synced_folders:
        # A folder that may be entered and not listed cannot be flushed.
        with contextlib.suppress(PermissionError):
            sync_folder(folder.parent, within=within)
        _synced_folders[identity] = None
        while len(_synced_folders) > _MAX_SYNCED:
            with contextlib.suppress(KeyError, StopIteration, RuntimeError):
                del _synced_folders[next(iter(_synced_folders))]
    return made


def sync_folder(folder: Path, *, within: int | None = None) -> None:
    """Flush the names in `folder` to the disk, where the system can do that."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY, dir_fd=within)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
    finally:
        os.close(descriptor)


def _is_taken(path: Path, within: int | None) -> bool:
    try:
        os.stat(path, dir_fd=within, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _keep_permissions(path: Path, temporary: Path, descriptor: int, within: int | None) -> None:
    """Give the new file the permissions of the old one, whatever has taken its name meanwhile."""
    # Of a link the permissions are those of its target, which is not what is replaced.
    with contextlib.suppress(FileNotFoundError):
        found = os.stat(path, dir_fd=within, follow_symlinks=False)
        if stat.S_ISREG(found.st_mode):
            if sys.platform == "win32":
                temporary.chmod(stat.S_IMODE(found.st_mode))
            else:
                os.fchmod(descriptor, stat.S_IMODE(found.st_mode))


def _write_and_close(descriptor: int, data: bytes, *, synced: bool = True) -> None:
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        if synced:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _rename_if_free(temporary: Path, path: Path, within: int | None) -> None:
    """Rename a finished file unless its name is taken: then FileExistsError."""
    if os.name == "nt":
        retry_on_windows(partial(temporary.rename, path))
        return
    try:
        os.link(temporary, path, src_dir_fd=within, dst_dir_fd=within)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        if _rename(temporary, path, _RENAME_NEW, within):
            return
        if _is_taken(path, within):
            raise FileExistsError from None
        move(temporary, path, within=within)


def _swap_if_expected(
    temporary: Path, path: Path, data: bytes, expected: bytes, within: int | None
) -> bool:
    """Swap the new file in; swap the old one back if its bytes are not the expected ones."""
    if not swap(temporary, path, within=within):
        return retry_on_windows(partial(_replace_if_holds, temporary, path, expected, within))
    if _has_content(temporary, expected, within):
        return True
    swap(temporary, path, within=within)
    if not _has_content(temporary, data, within):
        # Someone saved again in between: the newest save stays.
        swap(temporary, path, within=within)
    return False


def _replace_if_holds(temporary: Path, path: Path, expected: bytes, within: int | None) -> bool:
    """Rename over a file that holds just these bytes; return False and do nothing otherwise.

    The bytes are compared before every try, since others may save while Windows refuses. Where
    Windows can rename over an open file, nobody can change it between comparison and rename.
    """
    if sys.platform == "win32":
        from creonowd.storage import windows

        try:
            descriptor = windows.open_to_read(path, keep_content=True)
        except FileNotFoundError:
            return False
        try:
            if not _open_file_has(descriptor, expected):
                return False
            if windows.replace_open(temporary, path):
                return True
        finally:
            os.close(descriptor)
    elif not _has_content(path, expected, within):
        return False
    os.replace(temporary, path, src_dir_fd=within, dst_dir_fd=within)
    return True


def _replace(temporary: Path, path: Path, source: int | None, within: int | None) -> None:
    try:
        os.replace(temporary, path, src_dir_fd=source, dst_dir_fd=within)
    except PermissionError:
        if sys.platform != "win32":
            raise
        from creonowd.storage import windows

        # This succeeds if only `open_to_read` has it open.
        if not windows.replace_open(temporary, path):
            raise


def _has_content(path: Path, expected: bytes, within: int | None) -> bool:
    """Return whether a plain file holds just these bytes; False if there is none."""
    flags = os.O_RDONLY | _BINARY | _NO_WAIT | _NO_FOLLOW
    try:
        descriptor = open_to_read(path, flags, within=within)
    except FileNotFoundError:
        return False
    try:
        return _open_file_has(descriptor, expected)
    finally:
        os.close(descriptor)


def _open_file_has(descriptor: int, expected: bytes) -> bool:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        return False
    most = len(expected) + 1
    return read_up_to(descriptor, most, min(most, status.st_size)) == expected


def _rename(one: Path, other: Path, flag: int, within: int | None) -> bool:
    """Rename as the flag says; return False if this system or disk cannot."""
    if _rename_with_flag is None:
        return False
    folder = _AT_FDCWD if within is None else within
    if _rename_with_flag(folder, os.fsencode(one), folder, os.fsencode(other), flag) == 0:
        return True
    if (code := ctypes.get_errno()) in _NO_EXCHANGE:
        return False
    raise OSError(code, os.strerror(code))


def _find_rename() -> Callable[[int, bytes, int, bytes, int], int] | None:
    """Find the C function that renames with a flag; None if this system has none."""
    if sys.platform not in {"linux", "darwin"}:
        return None
    library = ctypes.CDLL(None, use_errno=True)
    return getattr(library, "renameat2", None) or getattr(library, "renameatx_np", None)


_rename_with_flag = _find_rename()


@contextlib.contextmanager
def disk_errors(what: str) -> Generator[None]:
    """Turn errors of the disk into STORAGE_FULL or IO_ERROR about `what`, a name and no path."""
    try:
        yield
    except OSError as error:
        raise disk_error(error, what) from error


class DamagedFileError(Exception):
    """A stored file is there and cannot be understood."""


class _Versioned(msgspec.Struct):
    version: Any = None


def load(path: Path, kind: type[T], *, version: int) -> T | None:
    """Read a stored file of at most `version`; None if there is none, DamagedFileError if it is broken."""
    data = content(path, limit=LIMIT_BYTES)
    return None if data is None else decode(data, kind, version=version, name=path.name)


def decode(data: bytes, kind: type[T], *, version: int, name: str) -> T:
    """Decode the bytes of a stored file called `name`."""
    try:
        refuse_newer(name, _version_of(data), version, file=name)
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise DamagedFileError(f"{name}: {error}") from None


def refuse_newer(what: str, found: object, known: int, **details: str) -> None:
    """Fail with VERSION_TOO_NEW if a version is greater than the one that this daemon knows."""
    if isinstance(found, int) and found > known:
        raise version_too_new(what, found, known, **details)


def set_aside(path: Path) -> str:
    """Rename a damaged file so that nothing overwrites it, and return its new name."""
    with disk_errors(path.name):
        number = 1
        while (aside := path.with_name(f"{path.stem}.damaged-{number}{path.suffix}")).exists():
            number += 1
        move(path, aside)
    return aside.name


def is_aside(path: Path) -> bool:
    """Return whether `path` is a damaged file that was renamed."""
    return _ASIDE.search(path.stem) is not None


def _version_of(data: bytes) -> Any:
    """Read the version alone: of a hostile file, the rest could fill the memory."""
    try:
        return msgspec.json.decode(data, type=_Versioned).version
    except msgspec.ValidationError:
        return None
