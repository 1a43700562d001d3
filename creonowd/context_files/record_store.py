"""The records of a conversation on the disk: one small file each, and `manifest.json`, their index.

The record files are the truth. A record is written before its file and removed after it, so a
file without a record is a stranger's and an eager record without a file is what a crash left.
Knows files and records; holds no lock.
"""

import contextlib
import shutil
import stat
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec
import structlog

from creonowd.context_files import records
from creonowd.context_files.records import PLACES, VERSION, Record, Retention, is_id, is_path
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model
from creonowd.storage import atomic, versioned_json
from creonowd.storage.safe_folder import SafeFolder

MANIFEST = "manifest.json"

T = TypeVar("T")


class Manifest(Model):
    """What `manifest.json` holds: every ref with its path, origin, hash, size, time and expiry."""

    version: int = VERSION
    conversation_id: str
    project_id: str
    items: tuple[Record, ...] = ()


def plain_folder(folder: Path) -> SafeFolder:
    """Return a folder in which a link is CONTEXT_SCOPE_VIOLATION."""
    return SafeFolder(folder, _foreign)


def write_record(folder: Path, record: Record) -> None:
    """Keep a record beside the files."""
    path = records.ref_path(record.kind, record.id)
    plain_folder(folder).write(path, msgspec.json.encode(record))


def remove_record(folder: Path, record: Record) -> None:
    """Take a record away."""
    path = records.ref_path(record.kind, record.id)
    plain_folder(folder).remove(path)
    with contextlib.suppress(FileNotFoundError):
        atomic.sync_folder((folder / path).parent)


def erase(folder: Path, record: Record) -> None:
    """Take a file away, and then its record."""
    try:
        plain_folder(folder).remove(record.path)
    except PermissionError:
        # Windows keeps a file that someone reads; it goes when the conversation is loaded again.
        write_record(folder, msgspec.structs.replace(record, deleted=True))
    else:
        remove_record(folder, record)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the index anew."""
    data = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
    atomic.replace(folder / MANIFEST, data + b"\n")


def read_manifest(folder: Path) -> Manifest | None:
    """Read the index; None if it is lost or damaged, VERSION_TOO_NEW if it is from the future."""
    files = plain_folder(folder)
    if files.status(MANIFEST) is None:
        return None
    return _understood(files.read(MANIFEST), MANIFEST, Manifest)


def load(folder: Path, manifest: Manifest | None) -> list[Record]:
    """Read every record whose file is there or can be made, mending from the index what is broken."""
    listed = {record.id: record for record in manifest.items} if manifest else {}
    written = list(_written_records(folder, listed))
    kept = _kept(folder, written)
    for record in _unwritten(folder, listed, {one.id for one in written}):
        # An index that is behind may still list a file whose name another has now.
        if record.path.lower() not in kept:
            write_record(folder, record)
            kept[record.path.lower()] = record
    return list(kept.values())


def is_sound(record: Record) -> bool:
    """Tell whether a record is one that we could have written: its id, and a path of its origin."""
    return (
        is_id(record.id)
        and is_path(record.path)
        and records.origin_of(record.path) is record.origin
        and records.kind_of(record.origin) is record.kind
        and (record.retention is Retention.LAZY) == record.lazy
    )


def strangers(folder: Path, records: Iterable[Record]) -> Iterator[str]:
    """List the paths of files that no record speaks of, sweeping what a killed writer left."""
    known = {record.path for record in records}
    for place in PLACES.values():
        for name in _swept(folder, place):
            path = f"{place}/{name}"
            if path not in known and is_path(path):
                yield path


def _written_records(folder: Path, listed: dict[str, Record]) -> Iterator[Record]:
    for kind, place in records.FOLDERS.items():
        refs = f"{place}/{records.REFS}"
        for name in _swept(folder, refs):
            ref_id = name.removesuffix(".json")
            record = _understood(plain_folder(folder).read(f"{refs}/{name}"), name, Record)
            if record is None and ref_id in listed:
                record = listed[ref_id]
                write_record(folder, record)
            fits = record is not None and record.id == ref_id and record.kind is kind
            if record is not None and fits and is_sound(record):
                yield record


def _kept(folder: Path, written: Iterable[Record]) -> dict[str, Record]:
    """Choose one record for each path, the newest, and forget those that have no file."""
    kept: dict[str, Record] = {}
    for record in sorted(written, key=lambda record: record.order, reverse=True):
        if record.path.lower() in kept:
            remove_record(folder, record)
        elif record.deleted or (not record.lazy and plain_folder(folder).is_missing(record.path)):
            erase(folder, record)
        else:
            kept[record.path.lower()] = record
    return kept


def _unwritten(folder: Path, listed: dict[str, Record], written: set[str]) -> Iterator[Record]:
    """List what only the index tells of, if its file is there."""
    for ref_id, record in listed.items():
        there = is_sound(record) and plain_folder(folder).status(record.path) is not None
        if there and ref_id not in written:
            yield record


def _swept(folder: Path, path: str) -> Iterator[str]:
    """List the plain files of a folder, removing what a killed writer left in it."""
    files = plain_folder(folder)
    for name, status in files.entries(path):
        if atomic.is_temporary(name):
            files.remove(f"{path}/{name}")
        elif stat.S_ISREG(status.st_mode):
            yield name


def _foreign() -> DaemonError:
    return DaemonError(
        ErrorCode.CONTEXT_SCOPE_VIOLATION,
        "Something in the conversation's folder is a link or no plain file; it is not followed.",
    )


def _understood(data: bytes, name: str, form: type[T]) -> T | None:
    try:
        return versioned_json.decode(data, form, version=VERSION, name=name)
    except versioned_json.DamagedFileError:
        return None


FILE = "conversation.json"


class Binding(Model):
    """What `conversation.json` holds."""

    version: int = VERSION
    conversation_id: str
    project_id: str


def bind(folder: Path, project_id: str) -> None:
    """Make a folder the conversation of a project, for good."""
    for place in records.FOLDERS.values():
        plain_folder(folder).make_folder(place)
    binding = Binding(conversation_id=folder.name, project_id=project_id)
    atomic.replace(folder / FILE, msgspec.json.encode(binding))


def project_of(folder: Path) -> str | None:
    """Tell whose conversation a folder is, from its records if need be; None if it is nobody's."""
    with contextlib.suppress(FileNotFoundError, versioned_json.DamagedFileError, UnicodeError):
        data = plain_folder(folder).read(FILE)
        return versioned_json.decode(data, Binding, version=VERSION, name=FILE).project_id
    manifest = read_manifest(folder)
    records = manifest.items if manifest is not None else load(folder, None)
    return next((record.project_id for record in records), None)


def unbind(folder: Path) -> None:
    """Remove what makes a folder a conversation, and the folder itself if nothing else is in it."""
    plain_folder(folder).remove(FILE)
    refs = [f"{place}/{records.REFS}" for place in records.FOLDERS.values()]
    for path in (*refs, *PLACES.values(), *records.FOLDERS.values(), ""):
        plain_folder(folder).remove_folder(path)


FOLDER = ".import"

_PLAN = "plan.json"
_UNDONE = "undone.json"

log = structlog.stdlib.get_logger(__name__)


class Move(Model):
    """One record to put in place; `staged` is the number of its file if it has one."""

    record: Record
    staged: int | None


class StagingPlan(Model):
    """What belongs where."""

    version: int = VERSION
    conversation_id: str
    project_id: str
    moves: tuple[Move, ...]


@contextlib.contextmanager
def stage(root: Path, name: str) -> Generator[Path]:
    """Make a place for files to wait in; it goes with the block, unless a plan is not yet done."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    place = plain_folder(root).make_folder(f"{FOLDER}/{name}")
    try:
        yield place
    finally:
        if not any((place / name).exists() for name in (_PLAN, _UNDONE)):
            shutil.rmtree(place, ignore_errors=True)
        with contextlib.suppress(OSError):
            place.parent.rmdir()


def apply_plan(root: Path, place: Path, plan: StagingPlan) -> None:
    """Write the plan down, and follow it to the end or not at all."""
    atomic.replace(place / _PLAN, msgspec.json.encode(plan))
    _complete(root, place, plan)


def recover(root: Path) -> None:
    """Finish imports that had happened, take back what was being taken back, forget the others."""
    for name, _ in plain_folder(root).entries(FOLDER):
        place = root / FOLDER / name
        try:
            plan, undone = _read(place / _PLAN), _read(place / _UNDONE)
        except DaemonError as error:
            log.warning("context_files_import_left_alone", reason=error.code)
            continue
        if undone is not None:
            _take_back(root, undone)
        elif plan is not None:
            _complete(root, place, plan)
        shutil.rmtree(place)


def _complete(root: Path, place: Path, plan: StagingPlan) -> None:
    try:
        _follow(root, place, plan)
    except BaseException:
        # A rename needs no space, so a full disk cannot refuse it.
        (place / _PLAN).rename(place / _UNDONE)
        _take_back(root, plan)
        (place / _UNDONE).unlink()
        raise
    (place / _PLAN).unlink()


def _read(path: Path) -> StagingPlan | None:
    """Read a plan that we could have written; one from the future is VERSION_TOO_NEW."""
    if path.is_symlink():
        return None
    try:
        plan = versioned_json.load(path, StagingPlan, version=VERSION)
    except versioned_json.DamagedFileError:
        return None
    if plan is None or not records.is_conversation_id(plan.conversation_id):
        return None
    return plan if all(is_sound(move.record) for move in plan.moves) else None


def _follow(root: Path, place: Path, plan: StagingPlan) -> None:
    folder = plain_folder(root).make_folder(plan.conversation_id)
    if project_of(folder) is None:
        bind(folder, plan.project_id)
    for move in plan.moves:
        write_record(folder, move.record)
        there = plain_folder(folder).make_folder(PLACES[move.record.origin])
        if move.staged is not None and (staged := place / str(move.staged)).exists():
            atomic.move(staged, folder / move.record.path)
            atomic.sync_folder(there)


def _take_back(root: Path, plan: StagingPlan) -> None:
    for move in plan.moves:
        erase(root / plan.conversation_id, move.record)
