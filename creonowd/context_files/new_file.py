"""Write a new file to the disk, all of it or nothing, and count what a search needs to know of it."""

import codecs
import contextlib
import hashlib
import os
from collections.abc import Generator, Iterable
from pathlib import Path

from creonowd.context_files.records import BLOCK, FileStats
from creonowd.errors import disk_errors
from creonowd.storage import atomic
from creonowd.storage.safe_folder import SafeFolder


class StatsCounter:
    """Counts the statistics of one file from its bytes, in any number of pieces."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._decoder: codecs.IncrementalDecoder | None = codecs.getincrementaldecoder("utf-8")()
        self._size = 0
        self._line = 0
        self._longest_line = 0
        self._newlines: list[int] = []

    def add(self, data: bytes) -> None:
        """Count the next bytes."""
        self._hash.update(data)
        self._decode(data, final=False)
        while data:
            room = BLOCK - self._size % BLOCK
            self._add_within_block(data[:room])
            data = data[room:]

    def stats(self) -> FileStats:
        """Return the statistics of the whole file; nothing may be added after."""
        self._decode(b"", final=True)
        return FileStats(
            byte_size=self._size,
            sha256=self._hash.hexdigest(),
            utf8=self._decoder is not None,
            longest_line=max(self._longest_line, self._line),
            newlines=tuple(self._newlines),
        )

    def _add_within_block(self, data: bytes) -> None:
        if self._size % BLOCK == 0:
            self._newlines.append(0)
        first, last = data.find(b"\n"), data.rfind(b"\n")
        if first >= 0:
            # To measure every line would take longer than reading the file.
            self._longest_line = max(self._longest_line, self._line + first, last - first)
            self._line = 0
        self._line += len(data) - last - 1
        self._newlines[-1] += data.count(b"\n")
        self._size += len(data)

    def _decode(self, data: bytes, *, final: bool) -> None:
        if self._decoder is None:
            return
        try:
            self._decoder.decode(data, final)
        except UnicodeDecodeError:
            self._decoder = None


def file_stats(chunks: Iterable[bytes]) -> FileStats:
    """Return the statistics of a file given as chunks of bytes."""
    counter = StatsCounter()
    for chunk in chunks:
        counter.add(chunk)
    return counter.stats()


class NewFileWriter:
    """A temporary file that is being filled."""

    def __init__(self, folder: Path, within: int | None) -> None:
        self._folder, self._within = folder, within
        self._temporary, descriptor = atomic.create_temporary(folder, atomic.PRIVATE, within=within)
        self._file = os.fdopen(descriptor, "wb", buffering=0)
        self._counter = StatsCounter()
        self.size = 0

    def write(self, data: bytes) -> None:
        """Add bytes at the end."""
        self._counter.add(data)
        self.size += len(data)
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) :]

    def move_to(self, name: str) -> FileStats:
        """Make the file `name` in the same folder, on the disk when this returns."""
        os.fsync(self._file.fileno())
        self._file.close()
        atomic.move(self._temporary, self._folder / name, within=self._within)
        atomic.sync_folder(self._folder, within=self._within)
        return self._counter.stats()

    def close(self) -> None:
        """Remove the temporary file unless it was moved."""
        self._file.close()
        atomic.remove(self._temporary, within=self._within)


@contextlib.contextmanager
def write_new_file(files: SafeFolder, folder: str = "") -> Generator[NewFileWriter]:
    """Open a file in a folder that leaves nothing behind unless it is moved to its place."""
    with disk_errors("a context file"), files.enter(folder) as (within, place):
        writer = NewFileWriter(place, within)
        try:
            yield writer
        finally:
            writer.close()
