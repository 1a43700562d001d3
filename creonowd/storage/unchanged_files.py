"""What is known to be unchanged on the disk, so that it need not be read again.

`FileCache` keeps the bytes of files for as long as the disk reports each of them unchanged. A file
that was written just now is read again: two quick writes may leave the same mark.

`FolderRevisions` says on Linux that nothing changed below a folder, without looking at its files.
Linux puts each change in a watched folder into a queue before the call that made it returns. So as
long as our queue is empty, what was read after the watches were set still holds: that is a revision.
A folder above that is moved, or anything that is mounted, ends it too.

Some changes Linux does not report, or not at once: those through a memory mapping come when it is
unmapped, those through another name of the file or below an overlay never. So a revision lasts for
`FULL_CHECK_SECONDS` at most; then every file is looked at again, and while all have the same marks
the revision stays. A folder with a file that has more than one name has no revision, nor has one with a link that might be followed, with too many folders,
or on a disk that others can change without this system. Its files are checked one by one, as
everywhere where there is no such queue.
"""

import ctypes
import os
import select
import stat
import struct
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import structlog

from creonowd.clock import Clock
from creonowd.model import Model
from creonowd.storage.safe_folder import FileSnapshot, LinkedFolder, mark_of

CAPACITY_BYTES = 64 * 1024 * 1024

# The coarsest clock of a disk in use (FAT): within it, two writes may leave the same mark.
RECENT_MS = 2000

FULL_CHECK_SECONDS = 1.0
# Seconds until a folder without a revision is tried again: looking costs no more than reading
# everything. Longer where the system has no watches left, since other programs need them too.
RETRY_SECONDS = 1.0
LONG_RETRY_SECONDS = 60.0

# Each folder takes a watch of the system's, of which older ones give a user 8192, and each root one
# of the 128 queues that all programs of a user share.
MOST_ROOTS = 8
MOST_FOLDERS = 512
MOST_ENTRIES = 20_000
_DEEPEST = 64
_MOST_NAMES = 64
# Give up after this many reads: a program that writes faster than we read would keep us here.
_READ_BYTES = 64 * 1024
_MOST_READS = 64

_MODIFY, _ATTRIB, _CLOSE_WRITE = 0x2, 0x4, 0x8
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF = 0x400, 0x800
_UNMOUNT, _OVERFLOW, _IGNORED = 0x2000, 0x4000, 0x8000
_ONLY_FOLDER, _NO_FOLLOW, _IS_FOLDER = 0x0100_0000, 0x0200_0000, 0x4000_0000
_ABOVE = _ATTRIB | _DELETE_SELF | _MOVE_SELF | _ONLY_FOLDER | _NO_FOLLOW
_INSIDE = (
    _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
) | (_DELETE_SELF | _MOVE_SELF | _ONLY_FOLDER)  # fmt: skip
_OF_THE_WATCH = _DELETE_SELF | _MOVE_SELF | _UNMOUNT | _OVERFLOW | _IGNORED
_EVENT = struct.Struct("iIII")

# Disks that only this system changes: ext2 to ext4, XFS, Btrfs, tmpfs, F2FS, ZFS and bcachefs.
_LOCAL = frozenset(
    {0xEF53, 0x5846_5342, 0x9123_683E, 0x0102_1994, 0xF2F5_2010, 0x2FC1_2FC1, 0xCA45_1A4E}
)
# The folders of a container, in which a local disk may be mounted.
_OVERLAY = 0x794C_7630
_STATUS_BYTES = 256

log = structlog.get_logger(__name__)


class _CachedFile(Model, gc=False):
    snapshot: FileSnapshot
    changed: int
    seen_at: float
    settled: bool


class FileCache:
    """Recently read files, up to a number of bytes; safe to use from any thread.

    `Memo` would not do: it keeps nothing that weighs more than half of its capacity, and a single
    document may.
    """

    def __init__(self, clock: Clock, capacity_bytes: int = CAPACITY_BYTES) -> None:
        self._clock = clock
        self._capacity = capacity_bytes
        self._kept: dict[tuple[Path, str], _CachedFile] = {}
        self._bytes = 0
        self._lock = threading.Lock()
        self.reads = 0

    def fetch(
        self,
        folder: LinkedFolder,
        path: str,
        *,
        limit: int,
        status: os.stat_result | None = None,
    ) -> FileSnapshot:
        """Return what a file of the folder holds; a caller that has its fresh status hands it in.

        An unchanged file gives the very same bytes object, so that whatever was made of
        it can be found again by identity.
        """
        key = (folder.root, path)
        with self._lock:
            kept = self._kept.get(key)
        if kept and kept.settled:
            status = status or folder.status(path)
            unchanged = status is not None and kept.snapshot.mark == mark_of(status)
            if unchanged and kept.changed == change_time(folder.root, path):
                return kept.snapshot
        changed = change_time(folder.root, path)
        return self._keep(key, folder.snapshot(path, limit=limit), kept, changed)

    def is_current(self, root: Path, path: str, mark: tuple[int, ...]) -> bool:
        """Return whether a file is kept that may be used for as long as it has this mark."""
        with self._lock:
            kept = self._kept.get((root, path))
        if kept is None or not kept.settled or kept.snapshot.mark != mark:
            return False
        return kept.changed == change_time(root, path)

    def forget(self, root: Path) -> None:
        """Drop the files of a folder."""
        with self._lock:
            for key in [key for key in self._kept if key[0] == root]:
                self._bytes -= self._forget(key)

    def _keep(
        self,
        key: tuple[Path, str],
        snapshot: FileSnapshot,
        before: _CachedFile | None,
        changed: int,
    ) -> FileSnapshot:
        if before and before.snapshot.data == snapshot.data:
            snapshot = msgspec.structs.replace(snapshot, data=before.snapshot.data)
        now = self._clock.monotonic()
        same = before is not None and before.snapshot.mark == snapshot.mark
        seen_at = before.seen_at if before and same else now
        settled = (now - seen_at) * 1000 > RECENT_MS or self._is_old(snapshot)
        kept = _CachedFile(snapshot=snapshot, changed=changed, seen_at=seen_at, settled=settled)
        with self._lock:
            self.reads += 1
            self._bytes += len(snapshot.data) - self._forget(key)
            self._kept[key] = kept
            while self._bytes > self._capacity:
                self._bytes -= self._forget(next(iter(self._kept)))
        return snapshot

    def _is_old(self, snapshot: FileSnapshot) -> bool:
        return self._clock.file_time_ms() - snapshot.updated_at_ms > RECENT_MS

    def _forget(self, key: tuple[Path, str]) -> int:
        kept = self._kept.pop(key, None)
        return len(kept.snapshot.data) if kept else 0


def change_times(root: Path, paths: Iterable[str]) -> tuple[int, ...]:
    """Return the `change_time` of files; empty where that is 0 for all."""
    return tuple(change_time(root, path) for path in paths) if sys.platform == "win32" else ()


def change_time(root: Path, path: str) -> int:
    """Return when Windows last noted a change of a file, whatever its mtime says.

    Elsewhere this is 0: a mark has the ctime, which on Windows is the time of creation.
    """
    if sys.platform == "win32":
        from creonowd.storage import windows

        return windows.change_time(root / path)
    return 0


class WatchedFolder(NamedTuple):
    """A folder, and what below it may be read: which folders, and which files in them.

    Both are asked with the path of a folder relative to the root and a name in it.
    """

    root: Path
    enters: Callable[[str, str], bool]
    reads: Callable[[str, str], bool]


class FolderRevisions:
    """The revisions of the folders that were used last; safe to use from any thread."""

    def __init__(self, clock: Clock) -> None:
        self._now, self._file_time_ms = clock.monotonic, clock.file_time_ms
        self._watches: dict[Path, _WatchQueue] = {}
        self._retries: dict[Path, float] = {}
        self._lock = threading.Lock()

    def peek(self, folder: WatchedFolder) -> int | None:
        """Return the revision if nothing changed since `read` returned it; takes microseconds."""
        watch = self._watches.get(folder.root)
        return None if watch is None else watch.peek(self._now())

    def read(self, folder: WatchedFolder) -> int | None:
        """Return a revision that holds for all that is read from now on; None if there is none.

        Blocks its thread.
        """
        watch = self._watch(folder)
        if watch is None:
            return None
        try:
            return watch.read(self._now())
        except (FileNotFoundError, NotADirectoryError):
            self.forget(folder.root)
            return None
        except (OSError, _UnfitError) as error:
            log.debug("folder_not_watched", reason=str(error))
            self.forget(folder.root)
            rest = LONG_RETRY_SECONDS if isinstance(error, OSError) else RETRY_SECONDS
            with self._lock:
                self._retries[folder.root] = self._now() + rest
            return None

    def forget(self, root: Path) -> None:
        """Give back what watching a folder takes."""
        with self._lock:
            watch = self._watches.pop(root, None)
        if watch is not None:
            watch.close()

    def close(self) -> None:
        """Give everything back."""
        for root in list(self._watches):
            self.forget(root)

    def _watch(self, folder: WatchedFolder) -> "_WatchQueue | None":
        if sys.platform != "linux":
            return None
        root, now = folder.root, self._now()
        with self._lock:
            self._retries = {path: at for path, at in self._retries.items() if at > now}
            if root in self._retries:
                return None
            watch = self._watches.pop(root, None) or _WatchQueue(folder, self._file_time_ms)
            self._watches[root] = watch
            over = list(self._watches)[:-MOST_ROOTS]
        for least_used in over:
            self.forget(least_used)
        return watch


# No two states of any folders have the same number.
_numbers = count(1)


class _UnfitError(Exception):
    """Changes below a folder may go unreported."""


class _FolderEvent(NamedTuple):
    watch: int
    mask: int
    name: str


class _WatchQueue:
    """The queue of one folder, and what is watched; a lock guards all of it."""

    def __init__(self, folder: WatchedFolder, file_time_ms: Callable[[], int]) -> None:
        self._folder, self._file_time_ms = folder, file_time_ms
        self._lock = threading.Lock()
        self._queue = self._mounts = -1
        self._poll: Any = None
        # The paths of watched folders by the number of the watch; None for those above the root.
        self._paths: dict[int, str | None] = {}
        self._revision: int | None = None
        self._marks: bytes | None = None
        self._checked_at = 0.0
        self._is_closed = False

    def peek(self, now: float) -> int | None:
        """Return the revision if it holds; None also while another thread looks."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            if self._revision is None or now - self._checked_at >= FULL_CHECK_SECONDS:
                return None
            return self._revision if self._is_quiet() else None
        finally:
            self._lock.release()

    def read(self, now: float) -> int | None:
        """Return a revision that holds from now on; blocks its thread."""
        with self._lock:
            if self._is_closed:
                return None
            if self._poll is None:
                self._open()
            self._is_quiet()
            changed = self._changed_files()
            is_due = now - self._checked_at >= FULL_CHECK_SECONDS
            if changed is None or is_due or self._revision is None:
                before = None if changed is None or changed else self._revision
                self._revision, self._checked_at = None, now
                is_same = self._watch_all()
                self._revision = before if before and is_same else next(_numbers)
            elif changed:
                self._revision = None
                self._check(changed)
                self._revision = next(_numbers)
            return self._revision

    def close(self) -> None:
        """Close the queue, which ends all watches."""
        with self._lock:
            self._is_closed, self._revision = True, None
            for descriptor in (self._queue, self._mounts):
                if descriptor >= 0:
                    os.close(descriptor)
            self._queue = self._mounts = -1

    def _open(self) -> None:
        flags = os.O_NONBLOCK | os.O_CLOEXEC
        self._queue = _call("inotify_init1", flags)
        self._mounts = os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
        self._poll = select.poll()
        self._poll.register(self._queue, select.POLLIN)
        self._poll.register(self._mounts, select.POLLPRI)

    def _is_quiet(self) -> bool:
        """Return whether no change is reported. The system reports a mount only once."""
        ready = self._poll.poll(0)
        if any(descriptor == self._mounts for descriptor, _ in ready):
            self._revision = None
        return not ready

    def _changed_files(self) -> set[str] | None:
        """Return the files that changed; None if folders did, or if that is not known."""
        changed: set[str] = set()
        is_known = True
        enters, reads = self._folder.enters, self._folder.reads
        for event in self._events():
            if event.watch not in self._paths and not event.mask & _OVERFLOW:
                # An event of a watch that was given up, from before that.
                continue
            path = self._paths.get(event.watch)
            if path is None:
                # Of the folders above, only what happens to themselves counts.
                is_known = is_known and bool(event.name)
            elif event.mask & _OF_THE_WATCH or (
                event.mask & _IS_FOLDER and (not event.name or enters(path, event.name))
            ):
                is_known = False
            elif reads(path, event.name):
                changed.add(f"{path}/{event.name}" if path else event.name)
        return changed if is_known and len(changed) <= _MOST_NAMES else None

    def _events(self) -> Iterator[_FolderEvent]:
        for _ in range(_MOST_READS):
            try:
                data = os.read(self._queue, _READ_BYTES)
            except BlockingIOError:
                return
            at = 0
            while at < len(data):
                watch, mask, _, length = _EVENT.unpack_from(data, at)
                at += _EVENT.size + length
                name = data[at - length : at].rstrip(b"\0")
                yield _FolderEvent(watch, mask, os.fsdecode(name))
        raise _UnfitError("changes without end")

    def _check(self, changed: Iterable[str]) -> None:
        for path in changed:
            try:
                _check_status(os.lstat(f"{self._folder.root}/{path}"))
            except (FileNotFoundError, NotADirectoryError):
                continue

    def _watch_all(self) -> bool:
        """Watch each folder, and only then look which folders and files are in it.

        What comes meanwhile is reported by the watch of the folder above. Return whether all files
        have the same marks as the last time, and none was written shortly before either.
        """
        root = self._folder.root
        paths: dict[int, str | None] = {}
        for above in reversed(root.parents):
            _check_disk(above, _LOCAL | {_OVERLAY})
            paths[_call("inotify_add_watch", self._queue, os.fsencode(above), _ABOVE)] = None
        _check_disk(root, _LOCAL)
        walk = _WatchWalk(self._folder, self._queue, paths)
        walk.enter(f"{root}", "", None, 0)
        for watch in self._paths.keys() - paths.keys():
            _remove_watch(self._queue, watch)
        self._paths = paths
        is_young = self._file_time_ms() - walk.newest_ns // 1_000_000 <= RECENT_MS
        before, self._marks = self._marks, None if is_young else walk.marks.digest()
        return before is not None and before == self._marks


class _WatchWalk:
    """One walk through the folders to watch, by descriptors and through no link."""

    def __init__(self, folder: WatchedFolder, queue: int, paths: dict[int, str | None]) -> None:
        self._folder, self._queue, self._paths = folder, queue, paths
        self._device: int | None = None
        self._entries = 0
        self.marks, self.newest_ns = sha256(), 0

    def enter(self, name: str, path: str, above: int | None, depth: int) -> None:
        """Watch a folder and those below it."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(name, flags, dir_fd=above)
        try:
            self._add(descriptor, path)
            if depth >= _DEEPEST:
                raise _UnfitError("too deep")
            for inner in self._folders_in(descriptor, path):
                below = f"{path}/{inner}" if path else inner
                try:
                    self.enter(inner, below, descriptor, depth + 1)
                except (FileNotFoundError, NotADirectoryError):
                    # It was removed a moment ago; an event reports that.
                    continue
        finally:
            os.close(descriptor)

    def _add(self, descriptor: int, path: str) -> None:
        device = os.fstat(descriptor).st_dev
        if self._device not in {None, device}:
            raise _UnfitError("another disk")
        self._device = device
        place = f"/proc/self/fd/{descriptor}".encode()
        watch = _call("inotify_add_watch", self._queue, place, _INSIDE)
        if watch in self._paths or len(self._paths) >= MOST_FOLDERS:
            raise _UnfitError("too many folders, or one twice")
        self._paths[watch] = path

    def _folders_in(self, descriptor: int, path: str) -> list[str]:
        """Return the folders in a folder; fail if a file in it is one that cannot be trusted."""
        folders: list[str] = []
        with os.scandir(descriptor) as entries:
            for entry in entries:
                self._entries += 1
                if self._entries > MOST_ENTRIES:
                    raise _UnfitError("too many files")
                if entry.is_dir(follow_symlinks=False):
                    if self._folder.enters(path, entry.name):
                        folders.append(entry.name)
                elif self._folder.reads(path, entry.name):
                    try:
                        self._add_file(path, entry)
                    except FileNotFoundError:
                        continue
        return folders

    def _add_file(self, path: str, entry: os.DirEntry[str]) -> None:
        status = entry.stat(follow_symlinks=False)
        _check_status(status)
        self.marks.update(repr((path, entry.name, mark_of(status))).encode())
        self.newest_ns = max(self.newest_ns, status.st_mtime_ns, status.st_ctime_ns)


def _check_status(status: os.stat_result) -> None:
    """Refuse a link, and a file that can be changed by another name."""
    if stat.S_ISLNK(status.st_mode):
        raise _UnfitError("a link")
    if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
        raise _UnfitError("a file with more than one name")


def _check_disk(path: Path, kinds: frozenset[int]) -> None:
    """Refuse a disk that is not known to report every change."""
    status = ctypes.create_string_buffer(_STATUS_BYTES)
    _call("statfs", os.fsencode(path), status)
    kind = ctypes.c_long.from_buffer(status).value & 0xFFFF_FFFF
    if kind not in kinds:
        raise _UnfitError(f"a disk of kind {kind:#x}")


def _remove_watch(queue: int, watch: int) -> None:
    """End a watch, if it has not ended by itself."""
    _system().inotify_rm_watch(queue, watch)


def _call(name: str, *arguments: Any) -> int:
    result: int = getattr(_system(), name)(*arguments)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _system() -> Any:
    if not _loaded:
        _loaded.append(ctypes.CDLL(None, use_errno=True))
    return _loaded[0]


_loaded: list[Any] = []
