"""One conversation's context files: many readers, one writer at a time, nothing half done.

Everything here blocks and runs in threads. `_lock` guards the index for an instant; `_write_lock`
is held while the disk is changed.
"""

import contextlib
import os
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from creonowd.clock import Clock
from creonowd.context_files import record_store, records
from creonowd.context_files.record_store import Manifest, plain_folder
from creonowd.context_files.records import (
    BLOCK,
    FileStats,
    Index,
    Kind,
    NewFile,
    Record,
    StatsCounter,
    file_stats,
)
from creonowd.errors import DaemonError, ErrorCode
from creonowd.storage import stored_files
from creonowd.storage.safe_folder import OpenFile, SafeFolder
from creonowd.storage.stored_files import disk_errors

_SMALL_CONVERSATION = 64
_RECORDS_PER_CHANGE = 8


class AbsentError(Exception):
    """A lazy file has not been made, or was cleaned."""

    def __init__(self, record: Record) -> None:
        super().__init__(record.id)
        self.record = record


def no_such_file() -> DaemonError:
    """Return the error of an id that the conversation does not have."""
    return DaemonError(
        ErrorCode.NOT_FOUND, "This conversation has no such file; list what it has.", field="id"
    )


class Readers:
    """Counts the readers of each file."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    @contextlib.contextmanager
    def hold(self, ref_ids: Iterable[str]) -> Generator[None]:
        """Count as a reader of some files while the block runs."""
        ids = tuple(ref_ids)
        with self._lock:
            self._counts.update(ids)
        try:
            yield
        finally:
            with self._lock:
                self._counts.subtract(ids)
                for ref_id in ids:
                    if not self._counts[ref_id]:
                        del self._counts[ref_id]

    @contextlib.contextmanager
    def exclude(self, ref_id: str) -> Generator[bool]:
        """Yield whether a file has no reader, and let none begin while the block runs."""
        with self._lock:
            yield ref_id not in self._counts


class ManifestWriter:
    """Writes the index of one conversation. Not guarded: its owner is the only writer."""

    def __init__(self, folder: Path, describe: Callable[[], Manifest]) -> None:
        self._folder = folder
        self._describe = describe
        self._changes = 0

    @property
    def is_stale(self) -> bool:
        """Whether the index on the disk lacks a change."""
        return self._changes > 0

    def note_change(self, record_count: int) -> None:
        """Count a change; write the index if the conversation is small or has changed a lot.

        The change itself is done, so a disk that refuses the index only delays it.
        """
        self._changes += 1
        if record_count <= max(_SMALL_CONVERSATION, _RECORDS_PER_CHANGE * self._changes):
            with contextlib.suppress(DaemonError):
                self.write()

    def write(self) -> None:
        """Bring the index on the disk up to date."""
        record_store.write_manifest(self._folder, self._describe())
        self._changes = 0


class NewFileWriter:
    """A temporary file that is being filled."""

    def __init__(self, folder: Path, within: int | None) -> None:
        self._folder, self._within = folder, within
        self._temporary, descriptor = stored_files.create_temporary(
            folder, stored_files.PRIVATE, within=within
        )
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
        stored_files.move(self._temporary, self._folder / name, within=self._within)
        stored_files.sync_folder(self._folder, within=self._within)
        return self._counter.stats()

    def close(self) -> None:
        """Remove the temporary file unless it was moved."""
        self._file.close()
        stored_files.remove(self._temporary, within=self._within)


@contextlib.contextmanager
def write_new_file(files: SafeFolder, folder: str = "") -> Generator[NewFileWriter]:
    """Open a file in a folder that leaves nothing behind unless it is moved to its place."""
    with disk_errors("a context file"), files.enter(folder) as (within, place):
        writer = NewFileWriter(place, within)
        try:
            yield writer
        finally:
            writer.close()


class ConversationFolder:
    """The files of one conversation, bound to one project."""

    def __init__(self, folder: Path, project_id: str, clock: Clock) -> None:
        self.folder = folder
        self.project_id = project_id
        self._clock = clock
        self._files = plain_folder(folder)
        self._lock = threading.Lock()
        self._write_lock = threading.Lock()
        self._readers = Readers()
        self._manifest_writer = ManifestWriter(folder, self._manifest)
        self._deleted = False
        with disk_errors("the context files"):
            known = record_store.load_records(folder, record_store.read_manifest(folder))
            self._index = Index([*known, *_adopt_files(folder, known, project_id, clock)])

    @property
    def id(self) -> str:
        """The conversation's id, as it was first spelled."""
        return self.folder.name

    def put(self, new: NewFile, data: bytes) -> Record:
        """Write a file; the same key and bytes again give the same record."""
        stats = file_stats([data])
        with self._change():
            if (old := self._by_key(new.key)) is not None:
                if old.lazy or old.stats is None or old.stats.sha256 != stats.sha256:
                    raise records.key_conflict(old)
                if self._files.is_missing(old.path):
                    self._write_file(old, data)
                return old
            record = msgspec.structs.replace(self._make_record(new), stats=stats)
            record_store.write_record(self.folder, record)
            try:
                self._write_file(record, data)
            except BaseException:
                record_store.remove_record(self.folder, record)
                raise
            self._add([record])
            return record

    def register(self, new: NewFile) -> Record:
        """Store a recipe; the same key and recipe again give the same record."""
        with self._change():
            if (old := self._by_key(new.key)) is not None:
                if old.recipe != new.recipe:
                    raise records.key_conflict(old)
                return old
            record = self._make_record(new)
            record_store.write_record(self.folder, record)
            self._add([record])
            return record

    @contextlib.contextmanager
    def write_lazy_file(self, record: Record) -> Generator[NewFileWriter]:
        """Make a lazy file: it is there if the block ends well, and not otherwise."""
        place, _, name = record.path.rpartition("/")
        with disk_errors("a context file"):
            self._files.make_folder(place)
        with self.hold([record.id]), write_new_file(self._files, place) as writer:
            yield writer
            with self._change():
                self.find(record.id)
                stats = writer.move_to(name)
                self._touch(record)
                self._replace(msgspec.structs.replace(record, stats=stats))

    def import_records(
        self, arriving: Sequence[Record], write_files: Callable[[list[Record]], None]
    ) -> None:
        """Add records from elsewhere, all or none; `write_files` writes those that are new here."""
        with self._change():
            with self._lock:
                additions = records.records_to_import(
                    self._index, arriving, self.project_id, self._clock.now_ms()
                )
            write_files(additions)
            self._add(additions)

    def find(self, ref_id: str) -> Record:
        """Return a record: NOT_FOUND if this conversation has none of that id."""
        with self._lock:
            record = self._index.get(ref_id)
        if record is None:
            raise no_such_file()
        return record

    def newest(self, kind: Kind | None, limit: int) -> list[Record]:
        """List the newest records, oldest first."""
        with self._lock:
            return self._index.newest(kind, limit)

    def records(self) -> list[Record]:
        """List every record, oldest first."""
        with self._lock:
            return self._index.all()

    def count(self) -> int:
        """Return the number of records."""
        with self._lock:
            return len(self._index)

    def hold(self, ref_ids: Iterable[str]) -> contextlib.AbstractContextManager[None]:
        """Keep files from being cleaned while the block runs."""
        return self._readers.hold(ref_ids)

    @contextlib.contextmanager
    def open_file(self, ref_id: str) -> Generator[tuple[Record, OpenFile]]:
        """Open a file for reading; AbsentError if it has to be made first."""
        with self.hold([ref_id]), disk_errors("a context file"):
            record = self.find(ref_id)
            try:
                with self._files.open_file(record.path) as file:
                    self._touch(record)
                    yield record, file
            except FileNotFoundError:
                raise (AbsentError(record) if record.lazy else no_such_file()) from None

    def size_and_last_use(self, record: Record) -> tuple[int, int] | None:
        """Return a file's bytes and when it was made or last read; None if it is not there."""
        found = self._files.status(record.path)
        return None if found is None else (found.st_size, found.st_mtime_ns // 1_000_000)

    def clean(self, ref_id: str) -> bool:
        """Remove a file unless it has a reader; a lazy one stays listed and can be made again."""
        with self._exclusive(), self._readers.exclude(ref_id) as unread:
            with self._lock:
                record = self._index.get(ref_id)
            if record is None or not unread:
                return False
            if not record.lazy:
                self._erase(record)
                return True
            try:
                self._files.remove(record.path)
            except PermissionError:
                return False
            self._replace(msgspec.structs.replace(record, stats=None))
            return True

    def remove(self, ref_id: str) -> Record:
        """Remove a file for good, even while someone reads it."""
        with self._exclusive():
            record = self.find(ref_id)
            self._erase(record)
            return record

    def remove_all(self) -> list[Record]:
        """Remove the whole conversation; every later change through this object is a CONFLICT."""
        with self._exclusive():
            removed = self.records()
            for record in removed:
                self._erase(record)
            self._deleted = True
            self._files.remove(record_store.MANIFEST)
            return removed

    @property
    def manifest_is_stale(self) -> bool:
        """Whether the index on the disk lacks a change."""
        return self._manifest_writer.is_stale and not self._deleted

    def write_manifest(self) -> None:
        """Bring the index on the disk up to date."""
        with self._change():
            self._manifest_writer.write()

    @contextlib.contextmanager
    def _exclusive(self) -> Generator[None]:
        with self._write_lock, disk_errors("a context file"):
            yield

    @contextlib.contextmanager
    def _change(self) -> Generator[None]:
        """Be the only writer of a conversation that is still there."""
        with self._exclusive():
            if self._deleted:
                raise DaemonError(
                    ErrorCode.CONFLICT, "The conversation was deleted meanwhile; try again."
                )
            yield

    def _by_key(self, key: str | None) -> Record | None:
        with self._lock:
            return None if key is None else self._index.by_key(key)

    def _make_record(self, new: NewFile) -> Record:
        with self._lock:
            return records.make_record(new, self._index, self.project_id, self._clock)

    def _write_file(self, record: Record, data: bytes) -> None:
        self._files.write(record.path, data)

    def _add(self, additions: Sequence[Record]) -> None:
        with self._lock:
            for record in additions:
                self._index.add(record)
        self._manifest_writer.note_change(len(self._index))

    def _replace(self, record: Record) -> None:
        record_store.write_record(self.folder, record)
        with self._lock:
            self._index.replace(record)
        self._manifest_writer.note_change(len(self._index))

    def _erase(self, record: Record) -> None:
        with self._lock:
            self._index.remove(record)
        record_store.erase(self.folder, record)
        self._manifest_writer.note_change(len(self._index))

    def _manifest(self) -> Manifest:
        return Manifest(
            conversation_id=self.id, project_id=self.project_id, items=tuple(self.records())
        )

    def _touch(self, record: Record) -> None:
        """Store the last use as the file's time: it outlives a restart and needs no other write."""
        now = self._clock.now_ms() * 1_000_000
        with contextlib.suppress(OSError):
            self._files.touch(record.path, now)


def _adopt_files(
    folder: Path, known: Sequence[Record], project_id: str, clock: Clock
) -> Iterator[Record]:
    """Write a record for every file without one, such as a user copied into the folder."""
    sequence = max((record.sequence for record in known), default=-1)
    for path in record_store.paths_without_record(folder, known):
        import mimetypes  # 10 ms at first, and few conversations adopt anything

        sequence += 1
        with plain_folder(folder).open_file(path) as file:
            stats = file_stats(file.chunks(BLOCK))
            modified_ms = file.modified_ms
        made = records.record_of_file(path, stats, clock, created_at=modified_ms, sequence=sequence)
        record = msgspec.structs.replace(
            made,
            mime_type=mimetypes.guess_type(made.hint)[0] or made.mime_type,
            stored_at=clock.now_ms(),
            project_id=project_id,
        )
        record_store.write_record(folder, record)
        yield record
