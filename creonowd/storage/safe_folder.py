"""Reach the files of a folder by relative path without leaving it through a link.

What a path says is checked first: it must be plain, relative and possible on any system. But a
path is only text: a link on the way, or one that is put there a moment later, may lead
anywhere. So the steps of a path are opened one by one, each from the descriptor of the step
before it and none through a link. Windows has no such descriptors: there the steps are checked
before and afterwards, and an open file is compared with the one that its path names.
"""

import contextlib
import errno
import math
import os
import re
import stat
import unicodedata
from collections.abc import Callable, Generator, Iterator
from copy import copy
from functools import lru_cache, partial
from itertools import accumulate, islice
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self

from creonowd.errors import DaemonError, ErrorCode, disk_error
from creonowd.model import Model
from creonowd.storage import locks, stored_files
from creonowd.storage.stored_files import disk_errors

EFFECTIVE = os.access in os.supports_effective_ids
FileEntry = tuple[str, os.stat_result]

BY_DESCRIPTOR = (
    os.open in os.supports_dir_fd and os.scandir in os.supports_fd and hasattr(os, "O_NOFOLLOW")
)
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NO_FOLLOW
# A folder that may be entered and not listed can still be a step.
_STEP = _FOLDER | getattr(os, "O_PATH", 0)
# Without O_NONBLOCK a named pipe would block its reader for ever.
_FILE = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_NOCTTY", 0)
)
_LINKS = {errno.ELOOP, getattr(errno, "EMLINK", errno.ELOOP), getattr(errno, "EFTYPE", errno.ELOOP)}
# While a process may open nothing more, no file can be said to be missing.
OUT_OF_DESCRIPTORS = {errno.EMFILE, errno.ENFILE}
_ABSENT = {errno.ENOENT, errno.ENOTDIR}
_NOT_A_PATH = {errno.ENAMETOOLONG, errno.EINVAL}
_REPARSE_POINT = 0x400
# Of one folder and those below it; an author has a few hundred files there.
MOST_ENTRIES = 8192
_TRIES = 20
_MAX_LINKS = 40
MAX_LENGTH = 1024
MAX_NAME = 255

_RESERVED = re.compile(
    r"(?:con|prn|aux|nul|conin\$|conout\$|clock\$|(?:com|lpt)[0-9¹²³])\s*(?:\..*)?", re.IGNORECASE
)
_SLASHES = frozenset("/\\")
_LIKE_A_SLASH = frozenset("∕⁄⧸⧹╱╲⟋⟍")
_DROPPED_BY_WINDOWS = ". ．․"
# Longer files that others may have put there are refused, not read.
READ_LIMIT = 512 * 1024 * 1024


class OpenFile:
    """A file that is open for reading; it may grow meanwhile."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file

    @property
    def size(self) -> int:
        """How many bytes the file has now."""
        return os.fstat(self.file.fileno()).st_size

    @property
    def modified_ms(self) -> int:
        """When the file was last changed."""
        return os.fstat(self.file.fileno()).st_mtime_ns // 1_000_000

    def read_at(self, offset: int, length: int) -> bytes:
        """Read up to `length` bytes; fewer only at the end of the file."""
        self.file.seek(offset)
        parts: list[bytes] = []
        while length > 0 and (part := self.file.read(length)):
            parts.append(part)
            length -= len(part)
        return b"".join(parts)

    def chunks(self, size: int, offset: int = 0) -> Iterator[bytes]:
        """Read on from `offset` to the end in chunks of `size` bytes."""
        while chunk := self.read_at(offset, size):
            yield chunk
            offset += len(chunk)


class FileSnapshot(Model, gc=False):
    """The bytes of a file at one moment, and a mark that changes when the file does."""

    data: bytes
    mark: tuple[int, ...]
    size_bytes: int
    updated_at_ms: int


class FolderContents(NamedTuple):
    """The files below a folder by path, the folders that may not be read, whether there are more."""

    files: list[FileEntry]
    unreadable: list[str]
    is_cut: bool = False


def mark_of(status: os.stat_result) -> tuple[int, ...]:
    """Return what differs between two files and between two states of one file."""
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )


def same_folder(one: Path, other: Path) -> bool:
    """Return whether two paths lead to one folder, also by case, links or Unicode form."""
    if one == other:
        return True
    try:
        first, second = one.stat(), other.stat()
    except OSError:
        return False
    # Some network drives number no files; there only the spelling counts.
    return first.st_ino != 0 and os.path.samestat(first, second)


class SafeFolder:
    """A folder in which no link is followed, nor is the folder itself one.

    `refusal` makes the error for a link, or for what is no plain file, in a file's place.
    """

    _folder_mode = 0o700

    def __init__(self, root: Path, refusal: Callable[[], DaemonError]) -> None:
        self.root = root
        self._refusal = refusal
        self._held: tuple[str, int] | None = None

    @contextlib.contextmanager
    def hold(self, path: str) -> Generator[Self]:
        """Keep the folder at `path` open, so that its files are opened without the way there."""
        held = copy(self)
        # A folder that cannot be held is no error here: each file reports its own.
        with contextlib.suppress(OSError, _LinkError):
            if BY_DESCRIPTOR:
                held._held = (path, self._open_folder(path, _STEP))
        try:
            yield held
        finally:
            if held._held is not None:
                os.close(held._held[1])

    @contextlib.contextmanager
    def open_file(self, path: str) -> Generator[OpenFile]:
        """Open a file for reading; FileNotFoundError if it is not there."""
        try:
            descriptor, status = self._open_inside(path)
        except _LinkError:
            raise self._refusal() from None
        if stat.S_ISDIR(status.st_mode):
            os.close(descriptor)
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            if not stat.S_ISREG(status.st_mode):
                raise self._refusal()
            yield OpenFile(file)

    def read(self, path: str, limit: int = READ_LIMIT) -> bytes:
        """Read a file whole; FileNotFoundError if it is not there, IO_ERROR if it is too long."""
        with self.open_file(path) as file:
            return stored_files.read_plain(file.file.fileno(), path.rpartition("/")[2], limit)

    def status(self, path: str) -> os.stat_result | None:
        """Return the status of a plain file; None if it is not there, no file, or behind a link."""
        try:
            found = self._lstat(path)
        except _LinkError:
            return None
        return found if found and stat.S_ISREG(found.st_mode) and not _is_link(found) else None

    def is_missing(self, path: str) -> bool:
        """Return whether nothing at all is at `path`, not even a link or a folder."""
        try:
            return self._lstat(path) is None
        except _LinkError:
            return False

    def entries(
        self, path: str = "", wanted: Callable[[str], bool] = lambda _name: True
    ) -> list[FileEntry]:
        """List the names in a folder that are `wanted`, sorted, each with its status.

        Links are left out; a folder that is missing or behind a link has no entries.
        """
        try:
            with self._scan(path) as found:
                named = [entry for entry in found if wanted(entry.name)]
                every = [(entry.name, entry.stat(follow_symlinks=False)) for entry in named]
        except (FileNotFoundError, NotADirectoryError, _LinkError):
            return []
        return sorted((each for each in every if not _is_link(each[1])), key=itemgetter(0))

    def make_folder(self, path: str) -> Path:
        """Make a folder and those above it, private to this user, and return its path."""
        self._make_root()
        steps = path.split("/")
        for depth in range(1, len(steps) + 1):
            self.add_folder("/".join(steps[:depth]))
        return self.root / path

    def add_folder(self, path: str) -> bool:
        """Make one folder and return True; False if it is there already.

        NotADirectoryError if something else has its name.
        """
        with self._change(path) as (folder, place):
            made = stored_files.make_folder(place, mode=self._folder_mode, within=folder)
            if not made:
                _check_is_folder(f"{place}", folder)
            return made

    def _make_root(self) -> None:
        stored_files.make_folder(self.root, mode=self._folder_mode)

    def write(self, path: str, data: bytes, *, mode: int = stored_files.PRIVATE) -> None:
        """Make `data` the content of a file, all at once, and the folders on its way."""
        above = path.rpartition("/")[0]
        if above:
            self.make_folder(above)
        self.replace(path, data, mode=mode)

    def replace(self, path: str, data: bytes, *, mode: int = stored_files.PRIVATE) -> None:
        """Make `data` the content of a file in a folder that is there, all at once."""
        with self._change(path) as (folder, place):
            stored_files.replace(place, data, mode=mode, within=folder)

    def replace_unchanged(
        self, path: str, data: bytes, expected: bytes | None, *, mode: int
    ) -> bool:
        """Make `data` the content of a file that holds `expected`, as `stored_files` does."""
        with self._change(path) as (folder, place):
            return stored_files.replace_unchanged(place, data, expected, mode=mode, within=folder)

    def create(self, path: str, data: bytes, *, mode: int = stored_files.PRIVATE) -> bool:
        """Make a new file; return False and change nothing if something has its name."""
        with self._change(path) as (folder, place):
            return stored_files.create(place, data, mode=mode, within=folder)

    def append(self, path: str, data: bytes) -> None:
        """Add `data` to the end of a file, on the disk when this returns."""
        with self._change(path) as (folder, place):
            stored_files.append(place, data, within=folder)

    def cut(self, path: str, size: int) -> None:
        """Remove what stands behind the first `size` bytes of a file, if there is a file."""
        try:
            descriptor, status = self._open_inside(self._without_links(path), os.O_RDWR)
        except FileNotFoundError:
            return
        except _LinkError:
            raise self._refusal() from None
        try:
            if not stat.S_ISREG(status.st_mode):
                raise self._refusal()
            if status.st_size > size:
                os.ftruncate(descriptor, size)
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def move_in(self, source: "SafeFolder", name: str, path: str) -> None:
        """Move a file of another folder to `path`, on the disk when this returns."""
        with source._change(name) as (origin, old), self._change(path) as (folder, new):
            stored_files.move(old, new, within=folder, source=origin)
            stored_files.sync_folder(new.parent, within=folder)

    def set_aside(self, path: str) -> str:
        """Rename a damaged file so that nothing overwrites it, and return its new name."""
        above, _, name = path.rpartition("/")
        stem, dot, suffix = name.rpartition(".")
        with self._change(path) as (folder, place):
            taken = {entry for entry, _ in self.entries(above)}
            number = 1
            while (aside := f"{stem}.damaged-{number}{dot}{suffix}") in taken:
                number += 1
            stored_files.move(place, place.with_name(aside), within=folder)
        return aside

    def sweep(self, path: str, before_ms: int, *, depth: int = 0) -> None:
        """Remove the temporary files in a folder that were last written before a time.

        Those in the folders below it go too, down to `depth`.
        """
        with contextlib.suppress(OSError, DaemonError):
            found = self.entries(path) if depth else self.entries(path, stored_files.is_temporary)
            for name, status in found:
                place = f"{path}/{name}" if path else name
                if stat.S_ISDIR(status.st_mode) and depth:
                    self.sweep(place, before_ms, depth=depth - 1)
                elif stored_files.is_temporary(name) and stored_files.is_leftover(
                    status, before_ms
                ):
                    self.remove(place)

    @contextlib.contextmanager
    def lock(self, path: str) -> Generator[None]:
        """Hold a lock file for the block; IO_ERROR if it cannot be had."""
        with contextlib.ExitStack() as held:
            with disk_errors(path):
                folder, place = held.enter_context(self._change(path))
                held.enter_context(locks.hold(place, within=folder))
            yield

    @contextlib.contextmanager
    def enter(self, path: str) -> Generator[tuple[int | None, Path]]:
        """Keep a folder open to write in it: yield its descriptor, and its path relative to that."""
        with self._change(f"{path}/_" if path else "_") as (folder, place):
            yield folder, place.parent

    def touch(self, path: str, time_ns: int) -> None:
        """Make a time the one at which a file was last changed."""
        with contextlib.suppress(_LinkError), self._parent(path) as (folder, name):
            follow = folder is None
            os.utime(name, ns=(time_ns, time_ns), dir_fd=folder, follow_symlinks=follow)

    def remove(self, path: str) -> None:
        """Remove a file, or a link in its place but not what it leads to."""
        ignored = (FileNotFoundError, NotADirectoryError, IsADirectoryError, _LinkError)
        with contextlib.suppress(*ignored), self._parent(path) as (folder, name):
            stored_files.retry_on_windows(partial(os.unlink, name, dir_fd=folder))

    def remove_folder(self, path: str = "") -> None:
        """Remove a folder if it is empty."""
        with contextlib.suppress(OSError, _LinkError):
            if not path:
                self.root.rmdir()
                return
            with self._parent(path) as (folder, name):
                os.rmdir(name, dir_fd=folder)

    def _open_inside(self, path: str, access: int = os.O_RDONLY) -> tuple[int, os.stat_result]:
        with contextlib.ExitStack() as failure:
            with self._parent(path) as (folder, name):
                descriptor, status = _open_plain(name, folder, access)
                failure.callback(os.close, descriptor)
            failure.pop_all()
        return descriptor, status

    def _lstat(self, path: str) -> os.stat_result | None:
        try:
            with self._parent(path) as (folder, name):
                return os.stat(name, dir_fd=folder, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None

    @contextlib.contextmanager
    def _change(self, path: str) -> Generator[tuple[int | None, Path]]:
        """Enter the folder of a file that is to be written: yield its descriptor and the file."""
        try:
            with self._parent(self._without_links(path)) as (folder, name):
                yield folder, Path(name)
        except _LinkError:
            raise self._refusal() from None

    def _without_links(self, path: str) -> str:
        """Return the path to write a file at."""
        return path

    @contextlib.contextmanager
    def _parent(self, path: str) -> Generator[tuple[int | None, str]]:
        """Enter the folder of a file: yield its descriptor, and the file's name in it.

        Where there are no descriptors it is None, and the name is the whole path; then the steps
        are checked before and afterwards.
        """
        folder, _, name = path.rpartition("/")
        if self._held is not None and self._held[0] == folder:
            yield self._held[1], name
            return
        if not BY_DESCRIPTOR:
            self._check_steps(folder)
            yield None, self._place(path)
            self._check_steps(folder)
            return
        descriptor = self._open_folder(folder, _STEP)
        try:
            yield descriptor, name
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def scan(self, path: str) -> "Generator[Iterator[os.DirEntry[str]]]":
        """List what is in a folder, unsorted; the refusal if a link is on the way there."""
        try:
            with self._scan(path) as entries:
                yield entries
        except _LinkError:
            raise self._refusal() from None

    @contextlib.contextmanager
    def _scan(self, path: str) -> "Generator[Iterator[os.DirEntry[str]]]":
        if not BY_DESCRIPTOR:
            self._check_steps(path)
            with os.scandir(self._place(path)) as entries:
                yield entries
            self._check_steps(path)
            return
        descriptor = self._open_folder(path, _FOLDER)
        try:
            with os.scandir(descriptor) as entries:
                yield entries
        finally:
            os.close(descriptor)

    def _open_folder(self, path: str, flags: int) -> int:
        """Open a folder step by step; `flags` are for the last one."""
        steps = path.split("/") if path else []
        descriptor = _open_step(f"{self.root}", _STEP if steps else flags, None)
        for number, step in enumerate(steps, start=1):
            above = descriptor
            try:
                descriptor = _open_step(step, flags if number == len(steps) else _STEP, above)
            finally:
                os.close(above)
        return descriptor

    def _check_steps(self, path: str) -> None:
        """Check that no step is a link, where they cannot be opened one by one."""
        if _is_link(self.root.lstat()) or _has_link(self.root, path):
            raise _LinkError

    def _place(self, path: str) -> str:
        # Text and not Path: of hundreds of files the paths would cost more than the reading.
        return f"{self.root}{os.sep}{path}"


class LinkedFolder(SafeFolder):
    """The folder `folder` below a root; a link in it is followed if its file lies in there too.

    Paths are relative to the root. Neither the root nor the folder nor a step to it may be a link.
    With `may_lead_to`, a link is followed only to a path that it accepts.
    """

    def __init__(
        self,
        root: Path,
        folder: str = "",
        may_lead_to: Callable[[str], bool] = lambda _path: True,
    ) -> None:
        super().__init__(root, self._link_refusal)
        self.folder = folder
        self._may_lead_to = may_lead_to
        self._prefix = f"{folder}/" if folder else ""

    def snapshot(self, path: str, *, limit: int) -> FileSnapshot:
        """Read a file whole.

        NOT_FOUND if absent, UNSUPPORTED if no plain file, INVALID_ARGUMENT if it lies elsewhere,
        IO_ERROR with `limitBytes` if it is too big.
        """
        try:
            descriptor, status = self._open(path)
        except OSError as error:
            raise _open_error(error, self.root / path, path) from error
        try:
            if not stat.S_ISREG(status.st_mode):
                raise _not_a_file(path)
            fits = status.st_size <= limit
            data = stored_files.read_up_to(descriptor, limit + 1, status.st_size) if fits else b""
        except OSError as error:
            raise disk_error(error, path) from error
        finally:
            os.close(descriptor)
        if (size := max(len(data), status.st_size)) > limit:
            raise DaemonError(
                ErrorCode.IO_ERROR,
                f"The file is larger than {limit} bytes; split it.",
                path=path,
                reason="too_large",
                sizeBytes=size,
                limitBytes=limit,
            )
        return FileSnapshot(
            data=data,
            mark=mark_of(status),
            size_bytes=len(data),
            updated_at_ms=status.st_mtime_ns // 1_000_000,
        )

    def status(self, path: str) -> os.stat_result | None:
        """Return the status of a file that lies inside; None if there is none."""
        try:
            found = self._lstat(path) if self._is_inside(path) else None
            if found is None or _is_link(found):
                found = self._lstat(self._without_links(path))
        except (OSError, DaemonError, _LinkError):
            return None
        return found if found and stat.S_ISREG(found.st_mode) else None

    def walk(
        self,
        wanted: Callable[[str], bool],
        *,
        most: int = MOST_ENTRIES,
        most_bytes: float = math.inf,
    ) -> FolderContents:
        """Find the plain files below the folder whose name is wanted, the first by path.

        Hidden names and names that no client could ask for are skipped, and so is what vanishes
        during the walk. Links to folders are not followed. Of a huge folder no more is looked at
        than `MOST_ENTRIES`, and no more files are returned than `most`, of `most_bytes` together.
        """
        contents = FolderContents([], [])
        waiting, seen = [self.folder], 0
        while waiting and seen + len(waiting) < MOST_ENTRIES:
            folder = waiting.pop()
            try:
                folders, found = self._add_files(folder, wanted, contents.files, most)
                waiting += folders
                seen += found
            except (FileNotFoundError, NotADirectoryError):
                continue
            except PermissionError:
                contents.unreadable.append(folder)
            except _LinkError:
                if folder == self.folder:
                    raise self._link_refusal() from None
        contents.files.sort(key=itemgetter(0))
        # One that is larger by itself is not read, and whoever reads it says so.
        sizes = accumulate(
            0 if status.st_size > most_bytes else status.st_size
            for _, status in contents.files[:most]
        )
        kept = sum(size <= most_bytes for size in sizes)
        return contents._replace(
            files=contents.files[:kept], is_cut=bool(waiting) or kept < len(contents.files)
        )

    def _add_files(
        self, folder: str, wanted: Callable[[str], bool], files: list[FileEntry], most: int
    ) -> tuple[list[str], int]:
        """Add the files of one folder, one more than `most` of them at most.

        Return the folders in it, and how many files have a name that is wanted.
        """
        folders: list[str] = []
        found: list[os.DirEntry[str]] = []
        prefix = f"{folder}/" if folder else ""
        with self._scan(folder) as entries:
            named = (entry for entry in entries if not _is_skipped(entry.name))
            shown = list(islice(named, MOST_ENTRIES))
            if shown and not os.access(self._place(folder), os.X_OK, effective_ids=EFFECTIVE):
                raise PermissionError
            for entry in shown:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(f"{prefix}{entry.name}")
                elif wanted(entry.name):
                    found.append(entry)
            # The status of a file takes half a kilobyte.
            left = most + 1
            for entry in sorted(found, key=attrgetter("name")):
                path = f"{prefix}{entry.name}"
                status = self.status(path) if entry.is_symlink() else status_of(entry)
                if status is not None:
                    files.append((path, status))
                    left -= 1
                if not left:
                    break
        return folders, len(found)

    def _open(self, path: str) -> tuple[int, os.stat_result]:
        with contextlib.suppress(_LinkError):
            if self._is_inside(path):
                return self._open_inside(path)
        for _ in range(_TRIES):
            # If a link appears or vanishes meanwhile, try again.
            with contextlib.suppress(_LinkError):
                return self._open_inside(self._without_links(path))
        raise self._link_refusal()

    def _make_root(self) -> None:
        """Make nothing: the folder of a project is not made again if it is gone."""

    def _is_inside(self, path: str) -> bool:
        return path == self.folder or path.startswith(self._prefix)

    def _without_links(self, path: str) -> str:
        """Follow the links of a path by hand, and return where it leads; refuse what leads out.

        What it returns is only a text: whoever opens it goes there without following any link.
        """
        left, done = path.split("/")[::-1], list[str]()
        links = 0
        while left:
            step = left.pop()
            if step in {"", "."}:
                continue
            if step == "..":
                if not done:
                    raise _leads_out()
                done.pop()
                continue
            target = self._link_at("/".join((*done, step)))
            if target is None:
                done.append(step)
                continue
            links += 1
            if links > _MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            if Path(target).is_absolute():
                done, target = [], self._below_root(target)
            left += target.replace(os.sep, "/").split("/")[::-1]
        plain = "/".join(done)
        is_inside = self._is_inside(plain) or self._is_inside_by_another_name(done)
        if not is_inside or (links and not self._may_lead_to(plain)):
            raise self._link_refusal()
        return plain

    def _link_at(self, path: str) -> str | None:
        """Return the target of a link; None if there is no link at a path without links."""
        try:
            with self._parent(path) as (folder, name):
                found = os.stat(name, dir_fd=folder, follow_symlinks=False)
                return os.readlink(name, dir_fd=folder) if _is_link(found) else None
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if error.errno == errno.EINVAL:  # it was a link a moment ago
                return None
            raise

    def _below_root(self, target: str) -> str:
        """Return an absolute path relative to the root, however either is spelled."""
        roots = {f"{self.root}", os.path.realpath(self.root)}
        for spelling in (target, os.path.realpath(target)):
            for root in roots:
                if spelling.startswith(f"{root}{os.sep}"):
                    return spelling[len(root) + 1 :]
        raise _leads_out()

    def _is_inside_by_another_name(self, steps: list[str]) -> bool:
        """Return whether a path is below the folder on a disk that ignores case or Unicode form."""
        folder = self._lstat(self.folder) if self.folder else None
        ways = ("/".join(steps[:depth]) for depth in range(len(steps), 0, -1))
        found = (self._lstat(way) for way in ways if folder is not None)
        return any(
            status is not None and folder is not None and os.path.samestat(status, folder)
            for status in found
        )

    def _link_refusal(self) -> DaemonError:
        with contextlib.suppress(OSError):
            if _is_link(self.root.lstat()):
                return _linked_root()
            if _has_link(self.root, self.folder):
                return invalid_path("link", f"{self.folder} is a link; make it a plain folder.")
        return _leads_out()


def check_root(root: Path) -> None:
    """Refuse a project's folder that is gone or has become a link; what is in it is not looked at."""
    try:
        status = root.lstat()
    except FileNotFoundError:
        raise missing_root() from None
    if _is_link(status):
        raise _linked_root()


def missing_root() -> DaemonError:
    """Make the error of a project whose folder is gone."""
    return DaemonError(
        ErrorCode.NOT_FOUND, "The project's folder is gone; bring it back or choose another."
    )


def _linked_root() -> DaemonError:
    return invalid_path(
        "link", "The project's folder has become a link; put the folder itself there."
    )


class _LinkError(Exception):
    """A step of a path is a link, or leads upwards."""


def _has_link(root: Path, path: str) -> bool:
    steps = path.split("/") if path else []
    ways = ("/".join(steps[:depth]) for depth in range(1, len(steps) + 1))
    return ".." in steps or any(_is_link((root / way).lstat()) for way in ways)


def _open_step(name: str, flags: int, folder: int | None) -> int:
    if name == "..":
        raise _LinkError
    try:
        return os.open(name, flags, dir_fd=folder)
    except OSError as error:
        # Linux reports a link as ENOTDIR if a folder was asked for.
        if error.errno in _LINKS or (error.errno == errno.ENOTDIR and _was_link(name, folder)):
            raise _LinkError from None
        raise


def _was_link(name: str, folder: int | None) -> bool:
    """Return whether what could not be opened as a folder is a link, or was one a moment ago."""
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except OSError:
        return False
    return stat.S_ISLNK(mode) or stat.S_ISDIR(mode)


def _check_is_folder(name: str, folder: int | None) -> None:
    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if _is_link(found):
        raise _LinkError
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))


def _open_plain(
    name: str, folder: int | None, access: int = os.O_RDONLY
) -> tuple[int, os.stat_result]:
    """Open a file that is no link and was not removed or replaced while it was opened."""
    if folder is None:
        before = os.lstat(name)
        if _is_link(before):
            raise _LinkError
        # Windows refuses to open a folder, and would be tried again in vain.
        if stat.S_ISDIR(before.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    flags = access | _FILE | _NO_FOLLOW
    for left in reversed(range(_TRIES)):
        try:
            if access == os.O_RDONLY:
                descriptor = stored_files.open_to_read(name, flags, within=folder)
            else:
                descriptor = stored_files.retry_on_windows(
                    partial(os.open, name, flags, dir_fd=folder)
                )
        except OSError as error:
            if error.errno in _LINKS:
                raise _LinkError from None
            raise
        try:
            status = os.fstat(descriptor)
            # Without a descriptor of its folder, it may be another file than the one of this name.
            is_named = folder is not None or os.path.samestat(status, os.lstat(name))
        except BaseException:
            os.close(descriptor)
            raise
        if is_named and (status.st_nlink or not left or os.name == "nt"):
            return descriptor, status
        os.close(descriptor)
    raise _LinkError


def _is_link(status: os.stat_result) -> bool:
    attributes = getattr(status, "st_file_attributes", 0)
    return stat.S_ISLNK(status.st_mode) or bool(attributes & _REPARSE_POINT)


def status_of(entry: "os.DirEntry[str]") -> os.stat_result | None:
    """Return the status of a plain file while its folder is scanned; None if it is none."""
    try:
        status = entry_status(entry)
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def entry_status(entry: "os.DirEntry[str]") -> os.stat_result:
    """Return the status of an entry while its folder is scanned; of a link, that of the link itself."""
    # On Windows an entry leaves out what distinguishes one file from another.
    return entry.stat(follow_symlinks=False) if BY_DESCRIPTOR else os.lstat(entry.path)


@lru_cache(maxsize=8192)
def _is_skipped(name: str) -> bool:
    return name.startswith(".") or problem_with_name(name) is not None


def _open_error(error: OSError, place: Path, path: str) -> DaemonError:
    if error.errno in _ABSENT:
        return DaemonError(
            ErrorCode.NOT_FOUND, "There is no such file; list what there is.", path=path
        )
    if error.errno in _NOT_A_PATH:
        return invalid_path("length", "path is not one that this system can have.")
    if error.errno == errno.ELOOP:
        return invalid_path("link", "path leads in a circle through links.")
    if place.is_dir():
        return _not_a_file(path)
    return disk_error(error, path)


def _leads_out() -> DaemonError:
    return invalid_path("link", "path leads out of its folder through a link.")


def _not_a_file(path: str) -> DaemonError:
    return DaemonError(
        ErrorCode.UNSUPPORTED, "path is not a file; list the folder and read its files.", path=path
    )


def problem_with(path: str) -> str | None:
    """Name what makes a project-relative path unsafe on any system; None if nothing does."""
    names = path.split("/")
    if not path or len(path) > MAX_LENGTH or any(map(_is_too_long, names)):
        return "length"
    problems = (problem_with_name(name) for name in names)
    return next((problem for problem in problems if problem), None)


def _is_too_long(name: str) -> bool:
    """Return whether a name is longer than disks allow; Windows would report that it is not found."""
    return len(name) > MAX_NAME or len(name.encode("utf-16-le", "surrogatepass")) > 2 * MAX_NAME


@lru_cache(maxsize=8192)
def problem_with_name(name: str) -> str | None:
    """Name what makes one file or folder name unsafe; None if nothing does."""
    if any(unicodedata.category(character) in {"Cc", "Cs"} for character in name):
        return "control_character"
    # Some disks ignore characters that nobody sees.
    visible = "".join(c for c in name if unicodedata.category(c) != "Cf")
    plain = unicodedata.normalize("NFKC", visible)
    if not plain or not plain.strip(" ."):
        return "relative_step"
    if _SLASHES & set(plain) or _LIKE_A_SLASH & set(name):
        return "separator"
    if ":" in name:
        return "drive_or_stream"
    if visible[-1] in _DROPPED_BY_WINDOWS:
        return "trailing_dot_or_space"
    return "reserved_name" if _RESERVED.fullmatch(plain) else None


def invalid_path(reason: str, message: str | None = None) -> DaemonError:
    """Report that a path is not allowed, without repeating it."""
    return DaemonError(
        ErrorCode.INVALID_ARGUMENT,
        message or "path must be a plain project-relative path with / between its names.",
        field="path",
        reason=reason,
    )
