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

from creonowd.context_files import record_store, records
from creonowd.context_files.folder import ConversationFolder
from creonowd.context_files.new_file import StatsCounter
from creonowd.context_files.record_store import MANIFEST, Manifest
from creonowd.context_files.records import BLOCK, FileStats, Record
from creonowd.errors import DaemonError, ErrorCode
from creonowd.storage import atomic
from creonowd.storage.safe_folder import OpenFile
from creonowd.threads import StopSignal

PREFIX = "context"
MOST_FILES = 100_000
HIGHEST_RATIO = 100
LARGEST_DIRECTORY = 32 * 1024 * 1024

_RATIO_MATTERS_FROM = 1024 * 1024
_ENCRYPTED = 0x1


class Layout(NamedTuple):
    """Where everything is in an archive; `files` by their path in the conversation's folder."""

    conversation_id: str
    manifest: ZipInfo | None
    files: dict[str, ZipInfo]


def entry_name(conversation_id: str, path: str) -> str:
    """Tell how a file of a conversation is called in an archive."""
    return f"{PREFIX}/{conversation_id}/{path}"


def is_too_dense(size: int, compressed: int) -> bool:
    """Tell whether so many bytes from so few are what a bomb would be."""
    return size > _RATIO_MATTERS_FROM and size > HIGHEST_RATIO * compressed


def lay_out(infos: Sequence[ZipInfo], archive_bytes: int, most_bytes: int) -> Layout:
    """Check every entry before a byte is unpacked, and find the manifest and the files."""
    _refuse_bombs(infos, archive_bytes, most_bytes)
    ids: set[str] = set()
    paths: set[str] = set()
    files: dict[str, ZipInfo] = {}
    for info in infos:
        conversation_id, path = _located(info)
        ids.add(conversation_id)
        if info.is_dir():
            continue
        if path.lower() in paths:
            raise invalid_archive("duplicate", "Two entries have one name, or differ only in case.")
        paths.add(path.lower())
        files[path] = info
    if len(ids) != 1:
        raise invalid_archive(
            "not_one_conversation", "The archive must hold exactly one conversation."
        )
    return Layout(ids.pop(), files.pop(MANIFEST, None), files)


def invalid_archive(reason: str, message: str) -> DaemonError:
    """Say why an archive is not taken in."""
    return DaemonError(
        ErrorCode.INVALID_ARGUMENT,
        f"{message} Nothing was imported; export the conversation again.",
        field="path",
        reason=reason,
    )


def _refuse_bombs(infos: Sequence[ZipInfo], archive_bytes: int, most_bytes: int) -> None:
    if len(infos) > MOST_FILES:
        raise invalid_archive(
            "too_many_files", f"The archive holds more than {MOST_FILES} entries."
        )
    unpacked = sum(info.file_size for info in infos)
    if unpacked > most_bytes:
        raise invalid_archive("too_large", f"The archive unpacks to more than {most_bytes} bytes.")
    # Entries that share their bytes claim together more than the file has.
    overlapping = sum(info.compress_size for info in infos) > archive_bytes
    if overlapping or any(is_too_dense(info.file_size, info.compress_size) for info in infos):
        raise invalid_archive("bomb", "The archive unpacks to far more than it can honestly hold.")


def _located(info: ZipInfo) -> tuple[str, str]:
    """Split an entry's name into conversation and path; every other form of name is refused."""
    _refuse_special(info)
    prefix, _, rest = info.orig_filename.partition("/")
    conversation_id, _, path = rest.partition("/")
    if info.is_dir():
        known = path.rstrip("/") in {"", *records.FOLDERS.values(), *records.PLACES.values()}
    else:
        known = path == MANIFEST or records.is_path(path)
    if prefix != PREFIX or not records.is_conversation_id(conversation_id) or not known:
        raise invalid_archive("name", "An entry has a name that no context file has.")
    return conversation_id, path


def _refuse_special(info: ZipInfo) -> None:
    plain = stat.S_IFDIR if info.is_dir() else stat.S_IFREG
    if stat.S_IFMT(info.external_attr >> 16) not in {0, plain}:
        raise invalid_archive("link", "An entry is a link or no plain file.")
    if info.flag_bits & _ENCRYPTED:
        raise invalid_archive("encrypted", "An entry is encrypted.")
    if info.compress_type not in {ZIP_STORED, ZIP_DEFLATED}:
        raise invalid_archive(
            "compression", "An entry is packed by a method that is not supported."
        )


_EARLIEST = (1980, 1, 1, 0, 0, 0)
_LATEST = (2107, 12, 31, 23, 59, 58)
_UNIX = 3


class ArchiveProgress(NamedTuple):
    """How far an export or import is."""

    files: int
    total_files: int
    bytes: int
    total_bytes: int


Report = Callable[[ArchiveProgress], None]


class Exported(NamedTuple):
    """How many files an archive holds, and how big it is."""

    files: int
    bytes: int


def export(
    conversation: ConversationFolder, path: Path, stop: StopSignal, report: Report
) -> Exported:
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
        self, conversation: ConversationFolder, zipped: ZipFile, stop: StopSignal, report: Report
    ) -> None:
        self._conversation = conversation
        self._zip = zipped
        self._stop = stop
        self._report = report
        self._done = ArchiveProgress(0, 0, 0, 0)

    def pack(self, records: Sequence[Record]) -> int:
        """Write every file, then the manifest of what was really written."""
        there = [self._conversation.presence(record) for record in records]
        sizes = [size for size, _ in filter(None, there)]
        self._done = ArchiveProgress(0, len(sizes), 0, sum(sizes))
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
            with record_store.plain_folder(self._conversation.folder).open_file(
                record.path
            ) as file:
                surveyed = self._written(record, file)
        except FileNotFoundError:
            return msgspec.structs.replace(record, survey=None) if record.lazy else None
        self._done = self._done._replace(
            files=self._done.files + 1, bytes=self._done.bytes + surveyed.byte_size
        )
        self._report(self._done)
        return msgspec.structs.replace(record, survey=surveyed)

    def _written(self, record: Record, file: OpenFile) -> FileStats:
        """Write a file so that our own import cannot take it for a bomb."""
        entry = self._entry(record.path, record.created_at)
        surveyed = self._copied(entry, file)
        if is_too_dense(entry.file_size, entry.compress_size):
            _take_back(self._zip, entry)
            entry = self._entry(record.path, record.created_at)
            entry.compress_type = ZIP_STORED
            surveyed = self._copied(entry, file)
        return surveyed

    def _copied(self, entry: ZipInfo, file: OpenFile) -> FileStats:
        surveyor = StatsCounter()
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
        name = entry_name(self._conversation.id, path)
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
