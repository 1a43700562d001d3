"""One conversation's context files: many readers, one writer at a time, nothing half done.

Knows records, files and who is reading; never calls anyone. Everything here blocks: it runs in
threads. `_lock` guards the index for an instant; `_writing` is held while the disk is changed.
"""

import contextlib
import os
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from pathlib import Path

import msgspec

from creonowd.artifacts import arrivals, ledger, minting, names, tree
from creonowd.artifacts.adopting import adopted
from creonowd.artifacts.incoming import Incoming, incoming
from creonowd.artifacts.index import Index
from creonowd.artifacts.listing import Listing
from creonowd.artifacts.missing import AbsentError, unknown
from creonowd.artifacts.readers import Readers
from creonowd.artifacts.refs import Kind, NewFile, Record
from creonowd.artifacts.surveying import survey
from creonowd.artifacts.tree import OpenFile
from creonowd.clock import Clock
from creonowd.errors import DaemonError, ErrorCode
from creonowd.storage import atomic


class Conversation:
    """The files of one conversation, bound to one project."""

    def __init__(self, folder: Path, project_id: str, clock: Clock) -> None:
        self.folder = folder
        self.project_id = project_id
        self._clock = clock
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._readers = Readers()
        self._listing = Listing(folder, self._manifest)
        self._gone = False
        with atomic.disk_errors("the context files"):
            records = ledger.load(folder, ledger.read_manifest(folder))
            self._index = Index([*records, *adopted(folder, records, project_id, clock)])

    @property
    def id(self) -> str:
        """The conversation's id, as it was first spelled."""
        return self.folder.name

    def put(self, new: NewFile, data: bytes) -> Record:
        """Write a file; the same key and bytes again give the same record."""
        surveyed = survey([data])
        with self._changing():
            if (old := self._by_key(new.key)) is not None:
                known = None if old.survey is None else old.survey.sha256
                minting.refuse_other(old, same=not old.lazy and known == surveyed.sha256)
                if tree.is_missing(self.folder, old.path):
                    self._write(old, data)
                return old
            record = msgspec.structs.replace(self._new_record(new), survey=surveyed)
            ledger.write_record(self.folder, record)
            try:
                self._write(record, data)
            except BaseException:
                ledger.remove_record(self.folder, record)
                raise
            self._publish([record])
            return record

    def register(self, new: NewFile) -> Record:
        """Keep a recipe; the same key and recipe again give the same record."""
        with self._changing():
            if (old := self._by_key(new.key)) is not None:
                minting.refuse_other(old, same=old.recipe == new.recipe)
                return old
            record = self._new_record(new)
            ledger.write_record(self.folder, record)
            self._publish([record])
            return record

    @contextlib.contextmanager
    def filling(self, record: Record) -> Generator[Incoming]:
        """Make a lazy file: it is there if the block ends well, and not otherwise."""
        with atomic.disk_errors("a context file"):
            place = tree.made_folder(self.folder, names.PLACES[record.origin])
        with self.held([record.id]), incoming(place) as one:
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
                fresh = arrivals.fitted(
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
                with tree.opened(self.folder, record.path) as file:
                    self._touch(record)
                    yield record, file
            except FileNotFoundError:
                raise (AbsentError(record) if record.lazy else unknown()) from None

    def presence(self, record: Record) -> tuple[int, int] | None:
        """Tell how big a file is and when it was made or read last; None if it is not there."""
        found = tree.status(self.folder, record.path)
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
                tree.remove(self.folder, record.path)
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
            tree.remove(self.folder, ledger.MANIFEST)
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
            return minting.mint(new, self._index, self.project_id, self._clock)

    def _write(self, record: Record, data: bytes) -> None:
        tree.made_folder(self.folder, names.PLACES[record.origin])
        atomic.replace(self.folder / record.path, data)

    def _publish(self, records: Sequence[Record]) -> None:
        with self._lock:
            for record in records:
                self._index.add(record)
        self._listing.note_change(len(self._index))

    def _changed(self, record: Record) -> None:
        ledger.write_record(self.folder, record)
        with self._lock:
            self._index.change(record)
        self._listing.note_change(len(self._index))

    def _erase(self, record: Record) -> None:
        with self._lock:
            self._index.remove(record)
        ledger.erase(self.folder, record)
        self._listing.note_change(len(self._index))

    def _manifest(self) -> ledger.Manifest:
        return ledger.Manifest(
            conversation_id=self.id, project_id=self.project_id, items=tuple(self.records())
        )

    def _touch(self, record: Record) -> None:
        """Remember the use as the file's time: it outlives a restart and costs no write of ours."""
        now = self._clock.now_ms() * 1_000_000
        with contextlib.suppress(OSError):
            os.utime(self.folder / record.path, ns=(now, now))
