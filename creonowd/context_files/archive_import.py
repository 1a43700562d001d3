"""What an archive's manifest says of its files: a stranger's word, read sparingly and checked.

Knows which records a daemon could have written; unpacks nothing. Recipes stay bytes until they
have been weighed: a few bytes of JSON can become a thousand times as much in memory.
"""

import calendar
import contextlib
import io
import stat
import struct
import zlib
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile, ZipFile, ZipInfo

import msgspec
from msgspec import Raw

from creonowd.clock import Clock
from creonowd.context_files import archive_export, lazy_files, record_store, records
from creonowd.context_files.archive_export import (
    MOST_FILES,
    ArchiveProgress,
    Layout,
    Report,
    invalid_archive,
)
from creonowd.context_files.folder import ConversationFolder
from creonowd.context_files.new_file import write_new_file
from creonowd.context_files.record_store import MANIFEST, Move, StagingPlan, is_sound
from creonowd.context_files.records import (
    BLOCK,
    LONGEST_HINT,
    LONGEST_KEY,
    VERSION,
    FileStats,
    Kind,
    Origin,
    Record,
    Retention,
)
from creonowd.context_files.store import Store
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model
from creonowd.storage import atomic, versioned_json
from creonowd.threads import StopSignal

LARGEST_MANIFEST = 64 * 1024 * 1024
MOST_RECIPE_BYTES = 8 * 1024 * 1024

_LATEST_MS = 1 << 53
_LONGEST_TYPE = 200
_NO_RECIPE = Raw(b"null")


class ImportRules(NamedTuple):
    """What an import may bring: so many bytes, recipes that pass, hints as they may be told."""

    most_bytes: int
    check_recipe: Callable[[dict[str, Any]], object]
    told: Callable[[str], str]


class DeclaredFile(NamedTuple):
    """A record as its archive tells it, and the hash that its file must have."""

    record: Record
    sha256: str | None


class _Hash(Model):
    sha256: str


class _Item(Model):
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
    survey: _Hash | None = None


class _Manifest(Model):
    items: tuple[_Item, ...] = ()


def declared_files(data: bytes, packed: Collection[str], rules: ImportRules) -> list[DeclaredFile]:
    """Understand a manifest beside the paths that are packed, or refuse the archive."""
    try:
        items = versioned_json.decode(data, _Manifest, version=VERSION, name=MANIFEST).items
    except versioned_json.DamagedFileError:
        raise invalid_archive("manifest", "The manifest cannot be understood.") from None
    _refuse_heavy(items)
    told = [_declared(item, rules) for item in items]
    _refuse_contradictions([one.record for one in told], packed)
    return told


def _refuse_heavy(items: Sequence[_Item]) -> None:
    weights = [len(memoryview(item.recipe)) for item in items]
    if len(items) > MOST_FILES or sum(weights) > MOST_RECIPE_BYTES:
        raise invalid_archive(
            "manifest", "The manifest is larger than any that a daemon would write."
        )
    if max(weights, default=0) > lazy_files.LARGEST:
        raise invalid_archive("manifest", f"A recipe is larger than {lazy_files.LARGEST} bytes.")


def _declared(item: _Item, rules: ImportRules) -> DeclaredFile:
    record = Record(
        id=item.id,
        kind=item.kind,
        origin=item.origin,
        retention=item.retention,
        path=item.path,
        hint=rules.told(item.hint)[:LONGEST_HINT],
        mime_type=item.mime_type,
        created_at=item.created_at,
        stored_at=0,
        sequence=item.sequence,
        project_id="",
        key=item.key,
        recipe=_recipe(item, rules),
    )
    key_fits = record.key is None or len(record.key) <= LONGEST_KEY
    fits = 0 <= record.created_at <= _LATEST_MS and len(record.mime_type) <= _LONGEST_TYPE
    if not (is_sound(record) and fits and key_fits and 0 <= record.sequence <= _LATEST_MS):
        raise invalid_archive(
            "manifest", "The manifest describes a file that no daemon would make."
        )
    return DeclaredFile(record, None if item.survey is None else item.survey.sha256)


def _recipe(item: _Item, rules: ImportRules) -> dict[str, Any] | None:
    try:
        recipe = msgspec.json.decode(item.recipe, type=dict[str, Any] | None)
    except msgspec.DecodeError:
        raise invalid_archive("manifest", "A recipe cannot be understood.") from None
    if recipe is not None:
        rules.check_recipe(recipe)
    return recipe


def _refuse_contradictions(listed: Sequence[Record], packed: Collection[str]) -> None:
    ids = {record.id for record in listed}
    paths = {record.path.lower() for record in listed}
    keys = [record.key for record in listed if record.key is not None]
    eager = {record.path for record in listed if not record.lazy}
    if len(ids) != len(listed) or len(paths) != len(listed) or len(set(keys)) != len(keys):
        raise invalid_archive("manifest", "The manifest names an id, a path or a key twice.")
    if set(packed) - {record.path for record in listed}:
        raise invalid_archive(
            "manifest", "The archive holds a file that its manifest does not name."
        )
    if eager - set(packed):
        raise invalid_archive(
            "manifest", "The manifest names a file that the archive does not hold."
        )


class Arrival(NamedTuple):
    """A record of an archive, and the number of its staged file if it has one."""

    record: Record
    staged: int | None


class Unpacker:
    """An archive that is being staged."""

    def __init__(
        self, zipped: ZipFile, layout: Layout, stage: Path, stop: StopSignal, report: Report
    ) -> None:
        self._zip = zipped
        self._layout = layout
        self._stage = stage
        self._stop = stop
        self._report = report
        total = sum(info.file_size for info in layout.files.values())
        self._done = ArchiveProgress(0, len(layout.files), 0, total)

    def arrivals(self, rules: ImportRules, clock: Clock) -> list[Arrival]:
        """Stage every file; without a manifest, each gets a new id."""
        if self._layout.manifest is None:
            return [self._stranger(path, clock) for path in sorted(self._layout.files)]
        manifest = self._read_manifest(self._layout.manifest)
        told = declared_files(manifest, self._layout.files.keys(), rules)
        return [self._arrival(one) for one in told]

    def _read_manifest(self, info: ZipInfo) -> bytes:
        if info.file_size > LARGEST_MANIFEST:
            raise invalid_archive("manifest", "The manifest is too large.")
        return b"".join(self._chunks(info))

    def _arrival(self, told: DeclaredFile) -> Arrival:
        info = self._layout.files.get(told.record.path)
        if info is None:
            return Arrival(told.record, None)
        number, surveyed = self._staged(info)
        if told.sha256 != surveyed.sha256:
            raise invalid_archive("hash", "A file is not the one that the manifest tells of.")
        return Arrival(msgspec.structs.replace(told.record, survey=surveyed), number)

    def _stranger(self, path: str, clock: Clock) -> Arrival:
        info = self._layout.files[path]
        number, surveyed = self._staged(info)
        origin = records.origin_of(path)
        record = Record(
            id=clock.new_id("ctx"),
            kind=records.kind_of(origin),
            origin=origin,
            retention=Retention.EAGER,
            path=path,
            hint=path.rpartition("/")[2],
            mime_type="text/plain" if surveyed.utf8 else "application/octet-stream",
            created_at=calendar.timegm((*info.date_time, 0, 0, 0)) * 1000,
            stored_at=0,
            sequence=number,
            project_id="",
            survey=surveyed,
        )
        return Arrival(record, number)

    def _staged(self, info: ZipInfo) -> tuple[int, FileStats]:
        number = self._done.files
        with write_new_file(self._stage) as file:
            for chunk in self._chunks(info):
                file.write(chunk)
                self._done = self._done._replace(bytes=self._done.bytes + len(chunk))
                self._report(self._done)
            surveyed = file.place(self._stage / str(number))
        self._done = self._done._replace(files=number + 1)
        return number, surveyed

    def _chunks(self, info: ZipInfo) -> Iterator[bytes]:
        """Read an entry, and no more of it than it declares."""
        left = info.file_size
        with self._zip.open(info) as entry:
            while chunk := entry.read(BLOCK):
                self._stop.check()
                left -= len(chunk)
                if left < 0:
                    raise invalid_archive("bomb", "An entry holds more than it declares.")
                yield chunk


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


class _Sparing(io.BufferedReader):
    """An archive that is never asked for more at once than a decent table of contents needs.

    `ZipFile` reads that table whole, and makes an object of every entry, before one can be counted.
    """

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > archive_export.LARGEST_DIRECTORY:
            raise archive_export.invalid_archive(
                "too_many_files", "The archive's table of contents is too long."
            )
        return super().read(size)


class ImportTarget(NamedTuple):
    """Where an archive goes: into a conversation of a project; by default the archive's own."""

    project_id: str
    conversation_id: str | None


class Imported(NamedTuple):
    """Where the files went, and which they are."""

    conversation: ConversationFolder
    records: list[Record]


def import_archive(
    store: Store,
    target: ImportTarget,
    path: Path,
    rules: ImportRules,
    *,
    stop: StopSignal,
    report: Report,
) -> Imported:
    """Check an archive, stage its files, and put all of them into a conversation."""
    with _opened(path, rules.most_bytes) as (zipped, size):
        layout = archive_export.lay_out(zipped.infolist(), size, rules.most_bytes)
        conversation_id = target.conversation_id or layout.conversation_id
        store.find(target.project_id, conversation_id)
        with record_store.stage(store.root, store.clock.new_id("imp")) as place:
            unpacking = Unpacker(zipped, layout, place, stop, report)
            arrived = unpacking.arrivals(rules, store.clock)
            stop.check()
            conversation = store.bound(target.project_id, conversation_id)
            _settle(store, conversation, place, arrived)
    ids = {one.record.id for one in arrived}
    return Imported(conversation, [r for r in conversation.records() if r.id in ids])


def _settle(
    store: Store, conversation: ConversationFolder, place: Path, arrived: Sequence[Arrival]
) -> None:
    staged = {one.record.id: one.staged for one in arrived}

    def put_in_place(fresh: list[Record]) -> None:
        moves = tuple(Move(record=record, staged=staged[record.id]) for record in fresh)
        plan = StagingPlan(
            conversation_id=conversation.id, project_id=conversation.project_id, moves=moves
        )
        record_store.apply_plan(store.root, place, plan)

    conversation.take_in([one.record for one in arrived], put_in_place)


@contextlib.contextmanager
def _opened(path: Path, most_bytes: int) -> Generator[tuple[ZipFile, int]]:
    with atomic.disk_errors("the archive"):
        try:
            status = path.stat()
        except FileNotFoundError:
            raise DaemonError(
                ErrorCode.NOT_FOUND, "There is no such archive.", field="path"
            ) from None
        if not stat.S_ISREG(status.st_mode):
            raise archive_export.invalid_archive("not_an_archive", "The path is no file.")
        if status.st_size > most_bytes:
            raise archive_export.invalid_archive(
                "too_large", f"The archive is over {most_bytes} bytes."
            )
        try:
            with _Sparing(path.open("rb", buffering=0)) as file, ZipFile(file) as zipped:
                yield zipped, status.st_size
        except _DAMAGE:
            raise archive_export.invalid_archive(
                "damaged", "The file is no zip archive, or damaged."
            ) from None
