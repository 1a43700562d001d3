"""Cache the bytes of files for as long as the disk reports them unchanged.

A file that was written just now is read again: two quick writes may leave the same mark.
"""

import os
import sys
import threading
from collections.abc import Iterable
from pathlib import Path

import msgspec

from creonowd.clock import Clock
from creonowd.model import Model
from creonowd.storage.safe_folder import FileSnapshot, LinkedFolder, mark_of

CAPACITY_BYTES = 64 * 1024 * 1024

# The coarsest clock of a disk in use (FAT): within it, two writes may leave the same mark.
RECENT_MS = 2000


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
        return self._clock.now_ms() - snapshot.updated_at_ms > RECENT_MS

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
