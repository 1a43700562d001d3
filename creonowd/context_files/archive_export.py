"""Write one conversation into a zip archive: streamed, and whole or not there at all."""

import os
import stat
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import msgspec

from creonowd.context_files.folder import ConversationFolder
from creonowd.context_files.record_store import (
    MANIFEST,
    ROUNDS,
    Manifest,
    encode_manifest,
    plain_folder,
)
from creonowd.context_files.records import BLOCK, FileStats, Record, StatsCounter
from creonowd.storage import atomic
from creonowd.storage.atomic import disk_errors
from creonowd.storage.safe_folder import OpenFile
from creonowd.threads import StopSignal

PREFIX = "context"
MAX_RATIO = 100

_RATIO_MATTERS_FROM = 1024 * 1024
_EARLIEST = (1980, 1, 1, 0, 0, 0)
_LATEST = (2107, 12, 31, 23, 59, 58)
_UNIX = 3


class ArchiveProgress(NamedTuple):
    """How far an export or import is."""

    files: int
    total_files: int
    bytes: int
    total_bytes: int


ReportProgress = Callable[[ArchiveProgress], None]


class ExportResult(NamedTuple):
    """How many files an archive holds, and how big it is."""

    files: int
    bytes: int


def export(
    conversation: ConversationFolder,
    path: Path,
    stop: StopSignal,
    report: ReportProgress,
    rounds: bytes | None = None,
    *,
    check_target: Callable[[Path], None] = lambda _path: None,
) -> ExportResult:
    """Pack every file that is there, the recipes of those that are not, and the rounds.

    `check_target` refuses what may not be replaced; it is asked last, also about what was replaced,
    which then is put back.
    """
    records = conversation.records()
    with disk_errors("the archive"), conversation.hold(record.id for record in records):
        temporary, descriptor = atomic.create_temporary(path.parent, 0o600)
        try:
            with os.fdopen(descriptor, "w+b") as file:
                with ZipFile(file, "w", ZIP_DEFLATED) as archive:
                    count = _Packer(conversation, archive, stop, report).pack(records, rounds)
                os.fsync(file.fileno())
                size = os.fstat(file.fileno()).st_size
            stop.check()
            atomic.move_over(temporary, path, check_target)
            atomic.sync_folder(path.parent)
        finally:
            temporary.unlink(missing_ok=True)
    return ExportResult(count, size)


def is_too_dense(size: int, compressed: int) -> bool:
    """Return whether so many bytes from so few are what a zip bomb would hold."""
    return size > _RATIO_MATTERS_FROM and size > MAX_RATIO * compressed


class _Packer:
    """Writes the files of a conversation into an open archive."""

    def __init__(
        self,
        conversation: ConversationFolder,
        archive: ZipFile,
        stop: StopSignal,
        report: ReportProgress,
    ) -> None:
        self._conversation = conversation
        self._archive = archive
        self._stop = stop
        self._report = report
        self._progress = ArchiveProgress(0, 0, 0, 0)
        self._size = self._compressed = 0

    def pack(self, records: Sequence[Record], rounds: bytes | None) -> int:
        """Write every file, then the manifest of what was really written; return how many files."""
        found = [self._conversation.size_and_last_use(record) for record in records]
        sizes = [size for size, _ in filter(None, found)]
        self._progress = ArchiveProgress(0, len(sizes), 0, sum(sizes))
        manifest = Manifest(
            conversation_id=self._conversation.id,
            project_id=self._conversation.project_id,
            items=tuple(filter(None, map(self._pack_file, records))),
        )
        last = max((record.created_at for record in records), default=0)
        self._pack_bytes(MANIFEST, last, encode_manifest(manifest))
        if rounds is not None:
            self._pack_bytes(ROUNDS, last, rounds)
        return self._progress.files

    def _pack_bytes(self, name: str, time_ms: int, data: bytes) -> None:
        dense = self._is_suspect(len(data), 0) and self._is_suspect(
            len(data), len(zlib.compress(data))
        )
        entry = self._entry(name, time_ms, ZIP_STORED if dense else ZIP_DEFLATED)
        self._archive.writestr(entry, data)
        self._count(entry)

    def _count(self, entry: ZipInfo) -> None:
        self._size += entry.file_size
        self._compressed += entry.compress_size

    def _is_suspect(self, size: int, compressed: int) -> bool:
        """Return whether our own import would take one more entry, or all with it, for a bomb."""
        return is_too_dense(size, compressed) or is_too_dense(
            self._size + size, self._compressed + compressed
        )

    def _pack_file(self, record: Record) -> Record | None:
        """Return the record as it is packed; None if an eager file is gone."""
        try:
            with plain_folder(self._conversation.folder).open_file(record.path) as file:
                stats = self._copy(record, file)
        except FileNotFoundError:
            return msgspec.structs.replace(record, stats=None) if record.lazy else None
        self._progress = self._progress._replace(
            files=self._progress.files + 1, bytes=self._progress.bytes + stats.byte_size
        )
        self._report(self._progress)
        return msgspec.structs.replace(record, stats=stats)

    def _copy(self, record: Record, file: OpenFile) -> FileStats:
        method = ZIP_STORED if self._would_be_too_dense(file) else ZIP_DEFLATED
        entry = self._entry(record.path, record.created_at, method)
        counter = StatsCounter()
        size = 0
        with self._archive.open(entry, "w", force_zip64=True) as packed:
            for chunk in file.chunks(BLOCK):
                self._stop.check()
                counter.add(chunk)
                packed.write(chunk)
                size += len(chunk)
                self._report(self._progress._replace(bytes=self._progress.bytes + size))
        self._count(entry)
        return counter.stats()

    def _would_be_too_dense(self, file: OpenFile) -> bool:
        """Return whether our own import would refuse the archive if a file was deflated.

        Deflates only until enough bytes came out: of ordinary text, the first tenth at most.
        """
        size = file.size
        if not self._is_suspect(size, 0):
            return False
        deflate = zlib.compressobj(zlib.Z_DEFAULT_COMPRESSION, zlib.DEFLATED, -zlib.MAX_WBITS)
        compressed = 0
        for chunk in file.chunks(BLOCK):
            self._stop.check()
            compressed += len(deflate.compress(chunk))
            if not self._is_suspect(size, compressed):
                return False
        return self._is_suspect(size, compressed + len(deflate.flush()))

    def _entry(self, path: str, time_ms: int, method: int) -> ZipInfo:
        moment = time.gmtime(time_ms // 1000)[:6]
        name = f"{PREFIX}/{self._conversation.id}/{path}"
        entry = ZipInfo(name, min(max(moment, _EARLIEST), _LATEST))
        entry.compress_type = method
        entry.create_system = _UNIX
        entry.external_attr = (stat.S_IFREG | 0o600) << 16
        return entry
