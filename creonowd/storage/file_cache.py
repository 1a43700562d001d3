"""What files held, kept as long as the disk says that they have not changed.

Knows bytes and marks. Never trusts a mark that is too young to tell two quick writes apart.
"""

import os
import threading
from pathlib import Path

import msgspec

from creonowd.clock import Clock
from creonowd.model import Model
from creonowd.storage.safe_folder import FileSnapshot, SafeFolder, mark_of, read_inside

CAPACITY_BYTES = 64 * 1024 * 1024

# The coarsest clock of a disk in use (FAT): within it, two writes may look like one.
_YOUNG_MS = 2000


class _CachedFile(Model, gc=False):
    opened: FileSnapshot
    seen_at: float
    settled: bool


class FileCache:
    """Recently read files, up to a number of bytes; safe to use from any thread."""

    def __init__(self, clock: Clock, capacity_bytes: int = CAPACITY_BYTES) -> None:
        self._clock = clock
        self._capacity = capacity_bytes
        self._kept: dict[tuple[Path, str], _CachedFile] = {}
        self._bytes = 0
        self._lock = threading.Lock()
        self.reads = 0

    def fetch(
        self,
        root: Path,
        folder: str,
        path: str,
        status: os.stat_result,
        *,
        limit: int,
        door: SafeFolder | None = None,
    ) -> FileSnapshot:
        """Return what the file holds; `status` is fresh and of a file known to lie in `folder`.

        An unchanged file gives the very same bytes object, so that whatever was made of
        it can be found again by identity.
        """
        with self._lock:
            kept = self._kept.get((root, path))
        if kept and kept.settled and kept.opened.mark == mark_of(status):
            return kept.opened
        opened = read_inside(root, folder, path, limit=limit, door=door)
        return self._keep((root, path), opened, kept)

    def holds(self, root: Path, path: str, mark: tuple[int, ...]) -> bool:
        """Tell whether a file is kept that can be trusted as long as it has this mark."""
        with self._lock:
            kept = self._kept.get((root, path))
        return kept is not None and kept.settled and kept.opened.mark == mark

    def _keep(
        self, key: tuple[Path, str], opened: FileSnapshot, before: _CachedFile | None
    ) -> FileSnapshot:
        if before and before.opened.data == opened.data:
            opened = msgspec.structs.replace(opened, data=before.opened.data)
        now = self._clock.monotonic()
        same = before is not None and before.opened.mark == opened.mark
        seen_at = before.seen_at if before and same else now
        settled = (now - seen_at) * 1000 > _YOUNG_MS or self._is_old(opened)
        kept = _CachedFile(opened=opened, seen_at=seen_at, settled=settled)
        with self._lock:
            self.reads += 1
            self._bytes += len(opened.data) - self._forget(key)
            self._kept[key] = kept
            while self._bytes > self._capacity:
                self._bytes -= self._forget(next(iter(self._kept)))
        return opened

    def _is_old(self, opened: FileSnapshot) -> bool:
        return self._clock.now_ms() - opened.updated_at_ms > _YOUNG_MS

    def _forget(self, key: tuple[Path, str]) -> int:
        kept = self._kept.pop(key, None)
        return len(kept.opened.data) if kept else 0
