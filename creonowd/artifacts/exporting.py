"""One conversation into a zip: streamed, told as it goes, and whole or not there at all.

Knows how an archive is written; knows nothing of who asked for it.
"""

import os
import stat
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import msgspec

from creonowd.artifacts import archive, tree
from creonowd.artifacts.conversation import Conversation
from creonowd.artifacts.ledger import MANIFEST, Manifest
from creonowd.artifacts.refs import BLOCK, Record, Survey
from creonowd.artifacts.surveying import Surveyor
from creonowd.artifacts.tree import OpenFile
from creonowd.storage import atomic
from creonowd.threads import StopSignal

_EARLIEST = (1980, 1, 1, 0, 0, 0)
_LATEST = (2107, 12, 31, 23, 59, 58)
_UNIX = 3


class Progress(NamedTuple):
    """How far an export or import is."""

    files: int
    total_files: int
    bytes: int
    total_bytes: int


Report = Callable[[Progress], None]


class Exported(NamedTuple):
    """How many files an archive holds, and how big it is."""

    files: int
    bytes: int


def export(conversation: Conversation, path: Path, stop: StopSignal, report: Report) -> Exported:
    """Pack everything that is there, and the recipes of what is not."""
    records = conversation.records()
    with atomic.disk_errors("the archive"), conversation.held(record.id for record in records):
        temporary, descriptor = atomic.create_temporary(path.parent, 0o600)
        try:
            with os.fdopen(descriptor, "w+b") as file:
                with ZipFile(file, "w", ZIP_DEFLATED) as zipped:
                    files = _Packing(conversation, zipped, stop, report).pack(records)
                os.fsync(file.fileno())
                size = os.fstat(file.fileno()).st_size
            stop.check()
            atomic.move(temporary, path)
            atomic.sync_folder(path.parent)
        finally:
            temporary.unlink(missing_ok=True)
    return Exported(files, size)


class _Packing:
    """An archive that is being written."""

    def __init__(
        self, conversation: Conversation, zipped: ZipFile, stop: StopSignal, report: Report
    ) -> None:
        self._conversation = conversation
        self._zip = zipped
        self._stop = stop
        self._report = report
        self._done = Progress(0, 0, 0, 0)

    def pack(self, records: Sequence[Record]) -> int:
        """Write every file, then the manifest of what was really written."""
        there = [self._conversation.presence(record) for record in records]
        sizes = [size for size, _ in filter(None, there)]
        self._done = Progress(0, len(sizes), 0, sum(sizes))
        packed = tuple(kept for record in records if (kept := self._pack(record)) is not None)
        manifest = Manifest(
            conversation_id=self._conversation.id,
            project_id=self._conversation.project_id,
            items=packed,
        )
        text = msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"
        last = max((record.created_at for record in records), default=0)
        self._zip.writestr(self._entry(MANIFEST, last), text)
        return self._done.files

    def _pack(self, record: Record) -> Record | None:
        try:
            with tree.opened(self._conversation.folder, record.path) as file:
                surveyed = self._written(record, file)
        except FileNotFoundError:
            return msgspec.structs.replace(record, survey=None) if record.lazy else None
        self._done = self._done._replace(
            files=self._done.files + 1, bytes=self._done.bytes + surveyed.byte_size
        )
        self._report(self._done)
        return msgspec.structs.replace(record, survey=surveyed)

    def _written(self, record: Record, file: OpenFile) -> Survey:
        """Write a file so that our own import cannot take it for a bomb."""
        entry = self._entry(record.path, record.created_at)
        surveyed = self._copied(entry, file)
        if archive.is_too_dense(entry.file_size, entry.compress_size):
            _take_back(self._zip, entry)
            entry = self._entry(record.path, record.created_at)
            entry.compress_type = ZIP_STORED
            surveyed = self._copied(entry, file)
        return surveyed

    def _copied(self, entry: ZipInfo, file: OpenFile) -> Survey:
        surveyor = Surveyor()
        size = 0
        with self._zip.open(entry, "w", force_zip64=True) as packed:
            for chunk in file.chunks(BLOCK):
                self._stop.check()
                surveyor.add(chunk)
                packed.write(chunk)
                size += len(chunk)
                if entry.compress_type == ZIP_DEFLATED:
                    self._report(self._done._replace(bytes=self._done.bytes + size))
        return surveyor.survey()

    def _entry(self, path: str, time_ms: int) -> ZipInfo:
        name = archive.entry_name(self._conversation.id, path)
        moment = time.gmtime(time_ms // 1000)[:6]
        entry = ZipInfo(name, min(max(moment, _EARLIEST), _LATEST))
        entry.compress_type = ZIP_DEFLATED
        entry.create_system = _UNIX
        entry.external_attr = (stat.S_IFREG | 0o600) << 16
        return entry


def _take_back(zipped: ZipFile, entry: ZipInfo) -> None:
    """Remove the entry that was written last."""
    assert zipped.fp is not None
    zipped.fp.seek(entry.header_offset)
    zipped.fp.truncate()
    zipped.start_dir = entry.header_offset
    zipped.filelist.remove(entry)
    del zipped.NameToInfo[entry.filename]
