"""A conversation as a zip archive: written whole or not at all, and read all of it or nothing.

Exports and imports run in a thread, with progress, until cancelled. Anyone may have made an archive,
so nothing in it is trusted. Entries are checked before a byte is unpacked, the manifest's recipes
stay bytes until they have been weighed (a few bytes of JSON can become a thousand times as much in
memory), and files wait in a staging folder until all have passed.

Importing this loads `zipfile`, so it is imported where it is used.
"""

import contextlib
import io
import os
import stat
import struct
import sys
import time
import zlib
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import msgspec
from anyio import from_thread
from msgspec import Raw

from creonowd.clock import Clock
from creonowd.context_files import record_store, records
from creonowd.context_files.files import ContextFiles, ConversationKey, Store
from creonowd.context_files.folder import ConversationFolder, write_new_file
from creonowd.context_files.lazy_files import MAX_RECIPE_BYTES
from creonowd.context_files.record_store import (
    MANIFEST,
    ROUNDS,
    ImportPlan,
    Manifest,
    Move,
    NewRounds,
    encode_manifest,
    plain_folder,
)
from creonowd.context_files.records import (
    BLOCK,
    MAX_HINT_LENGTH,
    MAX_KEY_LENGTH,
    VERSION,
    FileStats,
    Kind,
    Origin,
    Record,
    Retention,
    StatsCounter,
)
from creonowd.errors import DaemonError, ErrorCode, Wording
from creonowd.model import Model
from creonowd.rpc.requests import report_progress
from creonowd.storage import stored_files
from creonowd.storage.safe_folder import MAX_NAME, OpenFile, SafeFolder, problem_with_name
from creonowd.storage.stored_files import disk_errors
from creonowd.threads import StopSignal, in_thread

PREFIX = "context"
MAX_RATIO = 100

_RATIO_MATTERS_FROM = 1024 * 1024
_EARLIEST = (1980, 1, 1, 0, 0, 0)
_LATEST = (2107, 12, 31, 23, 59, 58)
_UNIX = 3
_SECONDS_BETWEEN_REPORTS = 0.1
_RELATIVE = Wording("path must be an absolute path.", "path 须为绝对路径。")
_NOT_PORTABLE = Wording(
    "path is not one that every system can have.", "path 并非所有系统都能使用的路径。"
)
_FOLDER = Wording("path is a folder; name the archive.", "path 是文件夹；请指定归档文件。")
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_RESERVED = Wording(
    "path has the name of a temporary file; choose another name.",
    "path 使用了临时文件的名称；请换一个名称。",
)
_LINK = Wording(
    "The folder of path is a link; name the folder that it leads to.",
    "path 所在的文件夹是链接；请指定链接指向的文件夹。",
)
_NOT_OURS = Wording(
    "path is a file that is no archive of ours; choose another name.",
    "path 处已有并非本程序归档的文件；请换一个名称。",
)


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


def _no_rounds(_data: bytes) -> None:
    return None


class ImportRules(NamedTuple):
    """What an import may bring: so many bytes, recipes that pass a check, hints made visible.

    `new_rounds` checks the archive's rounds and returns what the conversation's history lacks.
    """

    max_bytes: int
    check_recipe: Callable[[dict[str, Any]], object]
    visible_text: Callable[[str], str]
    new_rounds: Callable[[bytes], NewRounds | None] = _no_rounds


class ImportTarget(NamedTuple):
    """The project and conversation to import into; by default the archive's own conversation."""

    project_id: str
    conversation_id: str | None


class ImportResult(NamedTuple):
    """The conversation that the files are in now, and their records."""

    conversation: ConversationFolder
    records: list[Record]


async def export_conversation(
    files: ContextFiles, conversation: ConversationKey, path: str, rounds: bytes | None
) -> ExportResult:
    """Pack a conversation into an archive at an absolute path, replacing only one of ours."""
    target = _absolute(path)
    folder = await files.run(files.store.find, *conversation)
    if folder is None:
        raise DaemonError(
            ErrorCode.NOT_FOUND, "There is no such conversation.", field="conversationId"
        )
    limit = files.settings.context_import_max_bytes
    await files.run(_check_target, target, limit)
    check = partial(_check_replaceable, max_bytes=limit)
    report = _reporter(files.store.clock)
    return await in_thread(
        lambda stop: export(folder, target, stop, report, rounds, check_target=check)
    )


async def conversation_in(files: ContextFiles, path: str) -> str:
    """Return the id of the conversation that an archive at an absolute path holds."""
    limit = files.settings.context_import_max_bytes
    return await files.run(_read_conversation_id, _absolute(path), limit)


async def import_conversation(
    files: ContextFiles,
    conversation: ConversationKey,
    path: str,
    new_rounds: Callable[[bytes], NewRounds | None],
) -> ImportResult:
    """Import an archive at an absolute path into a conversation, all of it or nothing."""
    source = _absolute(path)
    target = ImportTarget(*conversation)
    rules = ImportRules(
        files.settings.context_import_max_bytes,
        files.recipes.check,
        files.views.visible_text,
        new_rounds,
    )
    report = _reporter(files.store.clock)
    return await in_thread(
        lambda stop: import_archive(files.store, target, source, rules, stop=stop, report=report)
    )


def _absolute(path: str) -> Path:
    if "\0" in path or not (absolute := Path(path)).is_absolute():
        raise _invalid_target("relative", _RELATIVE)
    if path.endswith(("/", os.sep)) and absolute.name:
        raise _invalid_target("folder", _FOLDER)
    problem = problem_with_name(absolute.name) if absolute.name else "length"
    if any(len(part) > MAX_NAME for part in absolute.parts):
        problem = "length"  # Windows only says that it is not there
    if problem is not None or not _has_status(absolute):
        raise _invalid_target(problem or "length", _NOT_PORTABLE)
    return absolute


def _has_status(path: Path) -> bool:
    """Return whether the system can look for a path, be there something or not."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return True
    except (OSError, ValueError):
        return False
    return True


def _check_target(path: Path, max_bytes: int) -> None:
    """Refuse to write an archive over anything but an archive of ours."""
    if stored_files.is_temporary(path.name):
        raise _invalid_target("reserved_name", _RESERVED)
    if path.is_dir():
        raise _invalid_target("folder", _FOLDER)
    if not path.parent.is_dir():
        raise DaemonError(
            ErrorCode.NOT_FOUND, "The folder of the archive does not exist.", field="path"
        )
    with _enter_folder(path) as (within, place):
        _check_replaceable(place, within, max_bytes)


@contextlib.contextmanager
def _enter_folder(path: Path) -> Generator[tuple[int | None, Path]]:
    """Keep the folder of an archive open: yield its descriptor, and the archive relative to that.

    Whatever takes the folder's place meanwhile, nothing is written there.
    """
    folder = SafeFolder(_folder_of(path), partial(_invalid_target, "link", _LINK))
    with disk_errors("the archive"), folder.enter("") as (within, place):
        yield within, place / path.name


def _folder_of(path: Path) -> Path:
    """Return the folder of an archive; a link that only root can exchange, such as `/tmp` of macOS, is followed."""
    folder = path.parent
    if sys.platform == "win32" or os.getuid() == 0:
        return folder
    with contextlib.suppress(OSError):
        status, above = folder.lstat(), folder.parent.stat()
        if stat.S_ISLNK(status.st_mode) and status.st_uid == above.st_uid == 0:
            return folder if above.st_mode & _WRITABLE_BY_OTHERS else folder.resolve()
    return folder


def _check_replaceable(path: Path, within: int | None, max_bytes: int) -> None:
    """Refuse a name that is taken by anything but an archive of ours."""
    try:
        status = os.stat(path, dir_fd=within, follow_symlinks=False)
    except FileNotFoundError:
        return
    if stat.S_ISDIR(status.st_mode):
        raise _invalid_target("folder", _FOLDER)
    if stat.S_ISLNK(status.st_mode) or not is_archive(path, max_bytes, within=within):
        raise _invalid_target("not_an_archive", _NOT_OURS)


def _invalid_target(reason: str, wording: Wording) -> DaemonError:
    return DaemonError(ErrorCode.INVALID_ARGUMENT, wording, field="path", reason=reason)


def _reporter(clock: Clock) -> ReportProgress:
    """Return a function that sends progress from a thread to the client, ten times a second."""
    last = 0.0

    def report(progress: ArchiveProgress) -> None:
        nonlocal last
        now = clock.monotonic()
        finished = progress.files == progress.total_files
        if finished or now - last >= _SECONDS_BETWEEN_REPORTS:
            last = now
            value = {
                "files": progress.files,
                "totalFiles": progress.total_files,
                "bytes": progress.bytes,
                "totalBytes": progress.total_bytes,
            }
            from_thread.run_sync(report_progress, value)

    return report


def export(
    conversation: ConversationFolder,
    path: Path,
    stop: StopSignal,
    report: ReportProgress,
    rounds: bytes | None = None,
    *,
    check_target: Callable[[Path, int | None], None] = lambda _path, _within: None,
) -> ExportResult:
    """Pack every file that is there, the recipes of those that are not, and the rounds.

    `check_target` refuses files that may not be replaced, by their path and the descriptor that it is
    relative to. It is called last, and again on the file that was replaced: if it refuses that one,
    the file is put back.
    """
    records = conversation.records()
    with conversation.hold(record.id for record in records), _enter_folder(path) as (within, place):
        temporary, descriptor = stored_files.create_temporary(place.parent, 0o600, within=within)
        try:
            with os.fdopen(descriptor, "w+b") as file:
                with ZipFile(file, "w", ZIP_DEFLATED) as archive:
                    count = _Packer(conversation, archive, stop, report).pack(records, rounds)
                os.fsync(file.fileno())
                size = os.fstat(file.fileno()).st_size
            stop.check()
            stored_files.move_over(
                temporary, place, lambda found: check_target(found, within), within=within
            )
            stored_files.sync_folder(place.parent, within=within)
        finally:
            stored_files.remove(temporary, within=within)
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


MAX_FILES = 100_000
MAX_DIRECTORY_BYTES = 32 * 1024 * 1024
MAX_MANIFEST_BYTES = 64 * 1024 * 1024
MAX_ROUNDS_BYTES = 64 * 1024 * 1024
MAX_ALL_RECIPES_BYTES = 8 * 1024 * 1024

_MAX_INTEGER = 1 << 53
_MAX_MIME_TYPE_LENGTH = 200
_NO_RECIPE = Raw(b"null")
_ENCRYPTED = 0x1
_DAMAGE = (
    BadZipFile,
    EOFError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    struct.error,
    ValueError,
    zlib.error,
)


def import_archive(
    store: Store,
    target: ImportTarget,
    path: Path,
    rules: ImportRules,
    *,
    stop: StopSignal,
    report: ReportProgress,
) -> ImportResult:
    """Check an archive, stage its files, and put all of them into a conversation."""
    with _open_archive(path, rules.max_bytes) as (archive, size):
        layout = _check_layout(archive.infolist(), size, rules.max_bytes)
        conversation_id = target.conversation_id or layout.conversation_id
        store.find(target.project_id, conversation_id)
        with record_store.staging_folder(
            store.root, store.clock.new_id(record_store.IMPORT_PREFIX)
        ) as staging:
            unpacker = _Unpacker(archive, layout, staging, stop, report)
            rounds = unpacker.unpack_rounds(rules)
            moves = unpacker.unpack(rules, store.clock)
            stop.check()
            conversation = store.find_or_create(target.project_id, conversation_id)
            _move_into(conversation, store.root, staging, moves, rounds)
    ids = {move.record.id for move in moves}
    return ImportResult(conversation, [r for r in conversation.records() if r.id in ids])


def is_archive(path: Path, max_bytes: int, *, within: int | None = None) -> bool:
    """Return whether a file is an archive that a daemon wrote, as far as its names can say.

    IO_ERROR if the disk does not let us look.
    """
    try:
        with _open_archive(path, max_bytes, within) as (archive, size):
            return _check_layout(archive.infolist(), size, max_bytes).manifest is not None
    except DaemonError as error:
        if error.code is ErrorCode.IO_ERROR:
            raise
        return False


def _read_conversation_id(path: Path, max_bytes: int) -> str:
    """Return the id of the conversation that an archive holds."""
    with _open_archive(path, max_bytes) as (archive, size):
        return _check_layout(archive.infolist(), size, max_bytes).conversation_id


def _move_into(
    conversation: ConversationFolder,
    root: Path,
    staging: Path,
    moves: Sequence[Move],
    rounds: NewRounds | None,
) -> None:
    staged = {move.record.id: move.staged for move in moves}

    def write_files(additions: list[Record]) -> None:
        plan = ImportPlan(
            conversation_id=conversation.id,
            project_id=conversation.project_id,
            moves=tuple(Move(record=record, staged=staged[record.id]) for record in additions),
        )
        record_store.apply_plan(root, staging, plan, rounds)

    conversation.import_records([move.record for move in moves], write_files)


def invalid_archive(reason: str, message: str) -> DaemonError:
    """Return the error of an archive that no daemon wrote, or that was changed since."""
    return DaemonError(
        ErrorCode.INVALID_ARGUMENT,
        f"{message} Nothing was imported; export the conversation again.",
        field="path",
        reason=reason,
    )


class _BoundedReader(io.BufferedReader):
    """A file that refuses to read more at once than a plausible table of contents needs.

    `ZipFile` reads that table whole, and makes an object of every entry, before one can be counted.
    """

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > MAX_DIRECTORY_BYTES:
            raise invalid_archive("too_many_files", "The archive's table of contents is too long.")
        return super().read(size)


@contextlib.contextmanager
def _open_archive(
    path: Path, max_bytes: int, within: int | None = None
) -> Generator[tuple[ZipFile, int]]:
    with disk_errors("the archive"):
        try:
            status = os.stat(path, dir_fd=within)
        except FileNotFoundError:
            raise DaemonError(
                ErrorCode.NOT_FOUND, "There is no such archive.", field="path"
            ) from None
        if not stat.S_ISREG(status.st_mode):
            raise invalid_archive("not_an_archive", "The path is no file.")
        if status.st_size > max_bytes:
            raise invalid_archive("too_large", f"The archive is over {max_bytes} bytes.")
        try:
            opened = io.FileIO(path, opener=partial(os.open, dir_fd=within))
            with _BoundedReader(opened) as file, ZipFile(file) as archive:
                yield archive, status.st_size
        except _DAMAGE:
            raise invalid_archive("damaged", "The file is no zip archive, or damaged.") from None


class _Layout(NamedTuple):
    """The entries of an archive; `files` by their path in the conversation's folder."""

    conversation_id: str
    manifest: ZipInfo | None
    rounds: ZipInfo | None
    files: dict[str, ZipInfo]


def _check_layout(entries: Sequence[ZipInfo], archive_bytes: int, max_bytes: int) -> _Layout:
    """Check every entry before a byte is unpacked, and find the manifest and the files."""
    _check_sizes(entries, archive_bytes, max_bytes)
    ids: set[str] = set()
    paths: set[str] = set()
    files: dict[str, ZipInfo] = {}
    for entry in entries:
        conversation_id, path = _split_name(entry)
        ids.add(conversation_id)
        if _is_folder(entry):
            continue
        if path.lower() in paths:
            raise invalid_archive("duplicate", "Two entries have one name, or differ only in case.")
        paths.add(path.lower())
        files[path] = entry
    if len(ids) != 1:
        raise invalid_archive(
            "not_one_conversation", "The archive must hold exactly one conversation."
        )
    return _Layout(ids.pop(), files.pop(MANIFEST, None), files.pop(ROUNDS, None), files)


def _check_sizes(entries: Sequence[ZipInfo], archive_bytes: int, max_bytes: int) -> None:
    if len(entries) > MAX_FILES:
        raise invalid_archive("too_many_files", f"The archive holds more than {MAX_FILES} entries.")
    if sum(entry.file_size for entry in entries) > max_bytes:
        raise invalid_archive("too_large", f"The archive unpacks to more than {max_bytes} bytes.")
    # Entries that share their bytes claim together more than the file has.
    overlapping = sum(entry.compress_size for entry in entries) > archive_bytes
    total = (sum(e.file_size for e in entries), sum(e.compress_size for e in entries))
    sizes = ((entry.file_size, entry.compress_size) for entry in entries)
    if overlapping or any(is_too_dense(*size) for size in (total, *sizes)):
        raise invalid_archive(
            "bomb", "The archive unpacks to far more than an archive of its size can hold."
        )


def _is_folder(entry: ZipInfo) -> bool:
    """Return whether the entry is a folder; `ZipInfo.is_dir` fails on a name that begins with NUL."""
    return entry.orig_filename.endswith("/")


def _split_name(entry: ZipInfo) -> tuple[str, str]:
    """Split an entry's name into conversation and path; refuse what no export would contain."""
    plain = stat.S_IFDIR if _is_folder(entry) else stat.S_IFREG
    if stat.S_IFMT(entry.external_attr >> 16) not in {0, plain}:
        raise invalid_archive("link", "An entry is a link or no plain file.")
    if entry.flag_bits & _ENCRYPTED:
        raise invalid_archive("encrypted", "An entry is encrypted.")
    if entry.compress_type not in {ZIP_STORED, ZIP_DEFLATED}:
        raise invalid_archive(
            "compression", "An entry is packed by a method that is not supported."
        )
    prefix, _, rest = entry.orig_filename.partition("/")
    conversation_id, _, path = rest.partition("/")
    if _is_folder(entry):
        folders = {"", *records.FOLDERS.values(), *records.ORIGIN_FOLDERS.values()}
        allowed = path.rstrip("/") in folders
    else:
        allowed = path in {MANIFEST, ROUNDS} or records.is_path(path)
    if prefix != PREFIX or not records.is_conversation_id(conversation_id) or not allowed:
        raise invalid_archive("name", "An entry has a name that no context file has.")
    return conversation_id, path


class _ManifestHash(Model):
    sha256: str


class _ManifestItem(Model):
    id: str
    kind: Kind
    origin: Origin
    retention: Retention
    path: str
    hint: str
    mime_type: str
    created_at: int
    sequence: int
    key: str | None = None
    recipe: Raw = _NO_RECIPE
    stats: _ManifestHash | None = msgspec.field(default=None, name="survey")


class _ManifestItems(Model):
    items: tuple[_ManifestItem, ...] = ()


class _DeclaredFile(NamedTuple):
    """A record as the manifest describes it, and the hash that its file must have."""

    record: Record
    sha256: str | None


class _Unpacker:
    """Unpacks an archive into a staging folder."""

    def __init__(
        self,
        archive: ZipFile,
        layout: _Layout,
        staging: Path,
        stop: StopSignal,
        report: ReportProgress,
    ) -> None:
        self._archive = archive
        self._layout = layout
        self._staging = staging
        self._stop = stop
        self._report = report
        total = sum(entry.file_size for entry in layout.files.values())
        self._progress = ArchiveProgress(0, len(layout.files), 0, total)

    def unpack(self, rules: ImportRules, clock: Clock) -> list[Move]:
        """Unpack every file; without a manifest, each gets a new id."""
        manifest = self._layout.manifest
        if manifest is None:
            return [self._unpack_undeclared(path, clock) for path in sorted(self._layout.files)]
        if manifest.file_size > MAX_MANIFEST_BYTES:
            raise invalid_archive("manifest", "The manifest is too large.")
        data = b"".join(self._chunks(manifest))
        declared = _read_manifest(data, self._layout.files.keys(), rules)
        return [self._unpack_declared(one) for one in declared]

    def unpack_rounds(self, rules: ImportRules) -> NewRounds | None:
        """Read the rounds, if there are any, and return those that are new here."""
        entry = self._layout.rounds
        if entry is None:
            return None
        if entry.file_size > MAX_ROUNDS_BYTES:
            raise invalid_archive("rounds", f"The rounds are over {MAX_ROUNDS_BYTES} bytes.")
        return rules.new_rounds(b"".join(self._chunks(entry)))

    def _unpack_declared(self, declared: _DeclaredFile) -> Move:
        entry = self._layout.files.get(declared.record.path)
        if entry is None:
            return Move(record=declared.record, staged=None)
        number, stats = self._unpack_entry(entry)
        if declared.sha256 != stats.sha256:
            raise invalid_archive("hash", "A file is not the one that the manifest lists.")
        record = msgspec.structs.replace(declared.record, stats=stats)
        return Move(record=record, staged=number)

    def _unpack_undeclared(self, path: str, clock: Clock) -> Move:
        import calendar

        entry = self._layout.files[path]
        number, stats = self._unpack_entry(entry)
        packed_at = calendar.timegm((*entry.date_time, 0, 0, 0)) * 1000
        record = records.record_of_file(path, stats, clock, created_at=packed_at, sequence=number)
        return Move(record=record, staged=number)

    def _unpack_entry(self, entry: ZipInfo) -> tuple[int, FileStats]:
        number = self._progress.files
        with write_new_file(record_store.plain_folder(self._staging)) as writer:
            for chunk in self._chunks(entry):
                writer.write(chunk)
                self._progress = self._progress._replace(bytes=self._progress.bytes + len(chunk))
                self._report(self._progress)
            stats = writer.move_to(str(number))
        self._progress = self._progress._replace(files=number + 1)
        return number, stats

    def _chunks(self, entry: ZipInfo) -> Iterator[bytes]:
        """Read an entry, and no more of it than it declares."""
        left = entry.file_size
        with self._archive.open(entry) as packed:
            while chunk := packed.read(BLOCK):
                self._stop.check()
                left -= len(chunk)
                if left < 0:
                    raise invalid_archive("bomb", "An entry holds more than it declares.")
                yield chunk


def _read_manifest(data: bytes, packed: Collection[str], rules: ImportRules) -> list[_DeclaredFile]:
    """Read a manifest and check it against the paths that are `packed`."""
    try:
        items = stored_files.decode(data, _ManifestItems, version=VERSION, name=MANIFEST).items
    except stored_files.DamagedFileError:
        raise invalid_archive("manifest", "The manifest cannot be understood.") from None
    _check_recipe_sizes(items)
    declared = [_declared_file(item, rules) for item in items]
    _check_consistency([one.record for one in declared], packed)
    return declared


def _check_recipe_sizes(items: Sequence[_ManifestItem]) -> None:
    sizes = [len(memoryview(item.recipe)) for item in items]
    if len(items) > MAX_FILES or sum(sizes) > MAX_ALL_RECIPES_BYTES:
        raise invalid_archive(
            "manifest", "The manifest is larger than any that a daemon would write."
        )
    if max(sizes, default=0) > MAX_RECIPE_BYTES:
        raise invalid_archive("manifest", f"A recipe is larger than {MAX_RECIPE_BYTES} bytes.")


def _declared_file(item: _ManifestItem, rules: ImportRules) -> _DeclaredFile:
    record = Record(
        id=item.id,
        kind=item.kind,
        origin=item.origin,
        retention=item.retention,
        path=item.path,
        hint=rules.visible_text(item.hint)[:MAX_HINT_LENGTH],
        mime_type=item.mime_type,
        created_at=item.created_at,
        stored_at=0,
        sequence=item.sequence,
        project_id="",
        key=item.key,
        recipe=_decode_recipe(item, rules),
    )
    valid = (
        record_store.is_valid(record)
        and 0 <= record.created_at <= _MAX_INTEGER
        and 0 <= record.sequence <= _MAX_INTEGER
        and len(record.mime_type) <= _MAX_MIME_TYPE_LENGTH
        and len(record.key or "") <= MAX_KEY_LENGTH
    )
    if not valid:
        raise invalid_archive(
            "manifest", "The manifest describes a file that no daemon would make."
        )
    return _DeclaredFile(record, None if item.stats is None else item.stats.sha256)


def _decode_recipe(item: _ManifestItem, rules: ImportRules) -> dict[str, Any] | None:
    try:
        recipe = msgspec.json.decode(item.recipe, type=dict[str, Any] | None)
    except msgspec.DecodeError:
        raise invalid_archive("manifest", "A recipe cannot be understood.") from None
    if recipe is not None:
        rules.check_recipe(recipe)
    return recipe


def _check_consistency(declared: Sequence[Record], packed: Collection[str]) -> None:
    ids = {record.id for record in declared}
    paths = {record.path.lower() for record in declared}
    keys = [record.key for record in declared if record.key is not None]
    eager = {record.path for record in declared if not record.lazy}
    if len(ids) != len(declared) or len(paths) != len(declared) or len(set(keys)) != len(keys):
        raise invalid_archive("manifest", "The manifest names an id, a path or a key twice.")
    if set(packed) - {record.path for record in declared}:
        raise invalid_archive(
            "manifest", "The archive holds a file that its manifest does not name."
        )
    if eager - set(packed):
        raise invalid_archive(
            "manifest", "The manifest names a file that the archive does not hold."
        )
