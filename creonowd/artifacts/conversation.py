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

from creonowd.artifacts import arrivals, ledger, names, tree
from creonowd.artifacts.adopting import adopted
from creonowd.artifacts.incoming import Incoming, incoming
from creonowd.artifacts.index import Index
from creonowd.artifacts.readers import Readers
from creonowd.artifacts.refs import Kind, NewFile, Record, Retention
from creonowd.artifacts.surveying import survey
from creonowd.artifacts.tree import OpenFile
from creonowd.clock import Clock
from creonowd.errors import DaemonError, ErrorCode
from creonowd.workspace import atomic

_LISTED_AT_ONCE = 64
_SHARE_UNLISTED = 8


class AbsentError(Exception):
    """A lazy file has not been made, or was cleaned."""

    def __init__(self, record: Record) -> None:
        super().__init__(record.id)
        self.record = record


class Conversation:
    """The files of one conversation, bound to one project."""

    def __init__(self, folder: Path, project_id: str, clock: Clock) -> None:
        self.folder = folder
        self.project_id = project_id
        self._clock = clock
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._readers = Readers()
        self._unlisted = 0
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
                return _if_same(
                    old, old.survey is not None and old.survey.sha256 == surveyed.sha256
                )
            record = msgspec.structs.replace(self._new_record(new), survey=surveyed)
            ledger.write_record(self.folder, record)
            try:
                tree.made_folder(self.folder, names.PLACES[record.origin])
                atomic.replace(self.folder / record.path, data)
            except BaseException:
                ledger.remove_record(self.folder, record)
                raise
            self._publish([record])
            return record

    def register(self, new: NewFile) -> Record:
        """Keep a recipe; the same key and recipe again give the same record."""
        with self._changing():
            if (old := self._by_key(new.key)) is not None:
                return _if_same(old, old.recipe == new.recipe)
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
        try:
            status = (self.folder / record.path).lstat()
        except FileNotFoundError:
            return None
        return status.st_size, status.st_mtime_ns // 1_000_000

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
                (self.folder / record.path).unlink(missing_ok=True)
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
            (self.folder / ledger.MANIFEST).unlink(missing_ok=True)
            return records

    @property
    def is_behind(self) -> bool:
        """Whether the index on the disk lacks something."""
        return self._unlisted > 0 and not self._gone

    def write_manifest(self) -> None:
        """Bring the index on the disk up to date."""
        with self._changing():
            self._write_manifest()

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
        now = self._clock.now_ms()
        with self._lock:
            ref_id = self._clock.new_id("ctx")
            while ref_id in self._index:
                ref_id = self._clock.new_id("ctx")
            path = names.choose(
                new.origin, new.key or ref_id, now, new.mime_type, self._index.paths
            )
            return Record(
                id=ref_id,
                retention=Retention.EAGER if new.recipe is None else Retention.LAZY,
                path=path,
                created_at=now,
                stored_at=now,
                sequence=self._index.next_sequence,
                project_id=self.project_id,
                **msgspec.structs.asdict(new),
            )

    def _publish(self, records: Sequence[Record]) -> None:
        with self._lock:
            for record in records:
                self._index.add(record)
        self._list()

    def _changed(self, record: Record) -> None:
        ledger.write_record(self.folder, record)
        with self._lock:
            self._index.change(record)
        self._list()

    def _erase(self, record: Record) -> None:
        with self._lock:
            self._index.remove(record)
        ledger.erase(self.folder, record)
        self._list()

    def _list(self) -> None:
        """Write small indexes at once and big ones now and then: they can be rebuilt.

        The change itself is done, so a disk that refuses the index only makes it wait.
        """
        self._unlisted += 1
        if len(self._index) <= max(_LISTED_AT_ONCE, _SHARE_UNLISTED * self._unlisted):
            with contextlib.suppress(DaemonError):
                self._write_manifest()

    def _write_manifest(self) -> None:
        manifest = ledger.Manifest(
            conversation_id=self.id, project_id=self.project_id, items=tuple(self.records())
        )
        ledger.write_manifest(self.folder, manifest)
        self._unlisted = 0

    def _touch(self, record: Record) -> None:
        """Remember the use as the file's time: it outlives a restart and costs no write of ours."""
        now = self._clock.now_ms() * 1_000_000
        with contextlib.suppress(OSError):
            os.utime(self.folder / record.path, ns=(now, now))


def _if_same(old: Record, same: bool) -> Record:  # noqa: FBT001
    if same:
        return old
    raise DaemonError(
        ErrorCode.CONFLICT,
        "The key names another file already; choose another key or delete that file.",
        field="key",
        id=old.id,
    )


def unknown() -> DaemonError:
    """Say that a conversation has no such file."""
    return DaemonError(
        ErrorCode.NOT_FOUND, "This conversation has no such file; list what it has.", field="id"
    )
