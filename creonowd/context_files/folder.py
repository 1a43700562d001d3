"""One conversation's context files: many readers, one writer at a time, nothing half done.

Knows records, files and who is reading; never calls anyone. Everything here blocks: it runs in
threads. `_lock` guards the index for an instant; `_writing` is held while the disk is changed.
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
from creonowd.context_files.new_file import NewFileWriter, file_stats, write_new_file
from creonowd.context_files.record_store import Manifest, plain_folder
from creonowd.context_files.records import BLOCK, Index, Kind, NewFile, Record, Retention
from creonowd.errors import DaemonError, ErrorCode
from creonowd.storage import atomic
from creonowd.storage.safe_folder import OpenFile


class Readers:
    """Counts the readers of each file."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    @contextlib.contextmanager
    def reading(self, ref_ids: Iterable[str]) -> Generator[None]:
        """Count as a reader of some files while the block runs."""
        held = tuple(ref_ids)
        with self._lock:
            self._counts.update(held)
        try:
            yield
        finally:
            with self._lock:
                self._counts.subtract(held)
                for ref_id in held:
                    if not self._counts[ref_id]:
                        del self._counts[ref_id]

    @contextlib.contextmanager
    def kept_out(self, ref_id: str) -> Generator[bool]:
        """Tell whether nobody reads a file, and let nobody begin while the block runs."""
        with self._lock:
            yield ref_id not in self._counts


_AT_ONCE = 64
_SHARE_UNLISTED = 8


class ManifestWriter:
    """The index of one conversation on the disk. Not guarded: its owner is the only writer."""

    def __init__(self, folder: Path, describe: Callable[[], Manifest]) -> None:
        self._folder = folder
        self._describe = describe
        self._unlisted = 0

    @property
    def is_behind(self) -> bool:
        """Whether something is not listed yet."""
        return self._unlisted > 0

    def note_change(self, records: int) -> None:
        """Take note of a change, and list it if the conversation is small or has changed a lot.

        The change itself is done, so a disk that refuses the index only makes it wait.
        """
        self._unlisted += 1
        if records <= max(_AT_ONCE, _SHARE_UNLISTED * self._unlisted):
            with contextlib.suppress(DaemonError):
                self.write()

    def write(self) -> None:
        """Bring the index on the disk up to date."""
        record_store.write_manifest(self._folder, self._describe())
        self._unlisted = 0


class AbsentError(Exception):
    """A lazy file has not been made, or was cleaned."""

    def __init__(self, record: Record) -> None:
        super().__init__(record.id)
        self.record = record


def unknown() -> DaemonError:
    """Say that a conversation has no such file."""
    return DaemonError(
        ErrorCode.NOT_FOUND, "This conversation has no such file; list what it has.", field="id"
    )


def adopt_files(
    folder: Path, records: Sequence[Record], project_id: str, clock: Clock
) -> Iterator[Record]:
    """Write a record for every stranger, as a conversation from elsewhere needs it."""
    sequence = max((record.sequence for record in records), default=-1)
    for path in record_store.strangers(folder, records):
        sequence += 1
        record = _record(folder, path, project_id, sequence, clock)
        record_store.write_record(folder, record)
        yield record


def _record(folder: Path, path: str, project_id: str, sequence: int, clock: Clock) -> Record:
    import mimetypes

    with plain_folder(folder).open_file(path) as file:
        surveyed = file_stats(file.chunks(BLOCK))
    name = path.rpartition("/")[2]
    origin = records.origin_of(path)
    guessed = mimetypes.guess_type(name)[0]
    return Record(
        id=clock.new_id("ctx"),
        kind=records.kind_of(origin),
        origin=origin,
        retention=Retention.EAGER,
        path=path,
        hint=name,
        mime_type=guessed or ("text/plain" if surveyed.utf8 else "application/octet-stream"),
        created_at=(folder / path).stat().st_mtime_ns // 1_000_000,
        stored_at=clock.now_ms(),
        sequence=sequence,
        project_id=project_id,
        survey=surveyed,
    )


class ConversationFolder:
    """The files of one conversation, bound to one project."""

    def __init__(self, folder: Path, project_id: str, clock: Clock) -> None:
        self.folder = folder
        self.project_id = project_id
        self._files = plain_folder(folder)
        self._clock = clock
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._readers = Readers()
        self._listing = ManifestWriter(folder, self._manifest)
        self._gone = False
        with atomic.disk_errors("the context files"):
            records = record_store.load(folder, record_store.read_manifest(folder))
            self._index = Index([*records, *adopt_files(folder, records, project_id, clock)])

    @property
    def id(self) -> str:
        """The conversation's id, as it was first spelled."""
        return self.folder.name

    def put(self, new: NewFile, data: bytes) -> Record:
        """Write a file; the same key and bytes again give the same record."""
        surveyed = file_stats([data])
        with self._changing():
            if (old := self._by_key(new.key)) is not None:
                known = None if old.survey is None else old.survey.sha256
                records.refuse_other(old, same=not old.lazy and known == surveyed.sha256)
                if self._files.is_missing(old.path):
                    self._write(old, data)
                return old
            record = msgspec.structs.replace(self._new_record(new), survey=surveyed)
            record_store.write_record(self.folder, record)
            try:
                self._write(record, data)
            except BaseException:
                record_store.remove_record(self.folder, record)
                raise
            self._publish([record])
            return record

    def register(self, new: NewFile) -> Record:
        """Keep a recipe; the same key and recipe again give the same record."""
        with self._changing():
            if (old := self._by_key(new.key)) is not None:
                records.refuse_other(old, same=old.recipe == new.recipe)
                return old
            record = self._new_record(new)
            record_store.write_record(self.folder, record)
            self._publish([record])
            return record

    @contextlib.contextmanager
    def filling(self, record: Record) -> Generator[NewFileWriter]:
        """Make a lazy file: it is there if the block ends well, and not otherwise."""
        with atomic.disk_errors("a context file"):
            place = self._files.make_folder(records.PLACES[record.origin])
        with self.held([record.id]), write_new_file(place) as one:
            yield one
            with self._changing():
                self.find(record.id)
                surveyed = one.place(self.folder / record.path)
                self._touch(record)
                self._changed(msgspec.structs.replace(record, survey=surveyed))

    def take_in(self, arriving: Sequence[Record], place: Callable[[list[Record]], None]) -> None:
        """Add records from elsewhere, all or none; `place` puts those on the disk that are new here."""
        with self._changing():
            with self._lock:
                fresh = records.fit_records(
                    self._index, arriving, self.project_id, self._clock.now_ms()
                )
            place(fresh)
            self._publish(fresh)

    def find(self, ref_id: str) -> Record:
        """Look up a record: NOT_FOUND if this conversation has none of that id."""
        with self._lock:
            record = self._index.get(ref_id)
        if record is None:
            raise unknown()
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
        """Tell how many records there are."""
        with self._lock:
            return len(self._index)

    def held(self, ref_ids: Iterable[str]) -> contextlib.AbstractContextManager[None]:
        """Keep files from being cleaned while the block runs."""
        return self._readers.reading(ref_ids)

    @contextlib.contextmanager
    def opened(self, ref_id: str) -> Generator[tuple[Record, OpenFile]]:
        """Open a file for reading; AbsentError if it has to be made first."""
        with self.held([ref_id]), atomic.disk_errors("a context file"):
            record = self.find(ref_id)
            try:
                with self._files.open_file(record.path) as file:
                    self._touch(record)
                    yield record, file
            except FileNotFoundError:
                raise (AbsentError(record) if record.lazy else unknown()) from None

    def presence(self, record: Record) -> tuple[int, int] | None:
        """Tell how big a file is and when it was made or read last; None if it is not there."""
        found = self._files.status(record.path)
        return None if found is None else (found.st_size, found.st_mtime_ns // 1_000_000)

    def clean(self, ref_id: str) -> bool:
        """Take a file away unless someone reads it; a lazy one stays listed and is made again."""
        with self._alone(), self._readers.kept_out(ref_id) as unread:
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
            self._changed(msgspec.structs.replace(record, survey=None))
            return True

    def remove(self, ref_id: str) -> Record:
        """Forget a file for good, also while someone reads it."""
        with self._alone():
            record = self.find(ref_id)
            self._erase(record)
            return record

    def remove_all(self) -> list[Record]:
        """Forget the whole conversation; who still holds it can only be told so."""
        with self._alone():
            records = self.records()
            for record in records:
                self._erase(record)
            self._gone = True
            self._files.remove(record_store.MANIFEST)
            return records

    @property
    def is_behind(self) -> bool:
        """Whether the index on the disk lacks something."""
        return self._listing.is_behind and not self._gone

    def write_manifest(self) -> None:
        """Bring the index on the disk up to date."""
        with self._changing():
            self._listing.write()

    @contextlib.contextmanager
    def _alone(self) -> Generator[None]:
        with self._writing, atomic.disk_errors("a context file"):
            yield

    @contextlib.contextmanager
    def _changing(self) -> Generator[None]:
        """Be the only one to change the files of a conversation that is still there."""
        with self._alone():
            if self._gone:
                raise DaemonError(
                    ErrorCode.CONFLICT, "The conversation was deleted meanwhile; try again."
                )
            yield

    def _by_key(self, key: str | None) -> Record | None:
        with self._lock:
            return None if key is None else self._index.by_key(key)

    def _new_record(self, new: NewFile) -> Record:
        with self._lock:
            return records.mint(new, self._index, self.project_id, self._clock)

    def _write(self, record: Record, data: bytes) -> None:
        self._files.write(record.path, data)

    def _publish(self, records: Sequence[Record]) -> None:
        with self._lock:
            for record in records:
                self._index.add(record)
        self._listing.note_change(len(self._index))

    def _changed(self, record: Record) -> None:
        record_store.write_record(self.folder, record)
        with self._lock:
            self._index.change(record)
        self._listing.note_change(len(self._index))

    def _erase(self, record: Record) -> None:
        with self._lock:
            self._index.remove(record)
        record_store.erase(self.folder, record)
        self._listing.note_change(len(self._index))

    def _manifest(self) -> record_store.Manifest:
        return record_store.Manifest(
            conversation_id=self.id, project_id=self.project_id, items=tuple(self.records())
        )

    def _touch(self, record: Record) -> None:
        """Remember the use as the file's time: it outlives a restart and costs no write of ours."""
        now = self._clock.now_ms() * 1_000_000
        with contextlib.suppress(OSError):
            os.utime(self.folder / record.path, ns=(now, now))
