"""The records of a conversation on the disk: one small file each, and `manifest.json`, their index.

The record files are the truth. A record is written before its file and removed after it, so a
file without a record came from elsewhere and an eager record without a file is what a crash left.
Nothing here holds a lock.
"""

import contextlib
import re
import shutil
import stat
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec
import structlog

from creonowd.context_files import records
from creonowd.context_files.records import ORIGIN_FOLDERS, VERSION, Record, Retention
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model
from creonowd.storage import journal, safe_folder, stored_files
from creonowd.storage.safe_folder import SafeFolder
from creonowd.storage.stored_files import disk_errors

FOLDER = "context"
HISTORIES = "histories"
MANIFEST = "manifest.json"
ROUNDS = "rounds.json"
BINDING = "conversation.json"
IMPORTS = ".import"
IMPORT_PREFIX = "imp"

_STAGING = re.compile(rf"{IMPORT_PREFIX}_[a-z0-9]+", re.ASCII)
_PLAN = "plan.json"
_UNDONE = "undone.json"
_NEW_ROUNDS = "rounds.jsonl"

T = TypeVar("T")

log = structlog.stdlib.get_logger(__name__)


class Manifest(Model):
    """What `manifest.json` holds: every ref with its path, origin, hash, size, time and expiry."""

    version: int = VERSION
    conversation_id: str
    project_id: str
    items: tuple[Record, ...] = ()


def plain_folder(folder: Path) -> SafeFolder:
    """Return a folder in which a link is CONTEXT_SCOPE_VIOLATION."""
    return SafeFolder(folder, _not_a_plain_file)


def write_record(folder: Path, record: Record) -> None:
    """Write a record beside the files."""
    path = records.record_path(record.kind, record.id)
    plain_folder(folder).write(path, msgspec.json.encode(record))


def remove_record(folder: Path, record: Record) -> None:
    """Remove a record, but not its file."""
    path = records.record_path(record.kind, record.id)
    plain_folder(folder).remove(path)
    above = plain_folder(folder).enter(path.rpartition("/")[0])
    with contextlib.suppress(FileNotFoundError, DaemonError), above as (within, place):
        stored_files.sync_folder(place, within=within)


def erase(folder: Path, record: Record) -> None:
    """Remove a file, and then its record."""
    try:
        plain_folder(folder).remove(record.path)
    except PermissionError:
        # Windows keeps a file that someone reads; it goes when the conversation is loaded again.
        write_record(folder, msgspec.structs.replace(record, deleted=True))
    else:
        remove_record(folder, record)


def encode_manifest(manifest: Manifest) -> bytes:
    """Return the bytes of `manifest.json`."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replace the index."""
    with disk_errors(MANIFEST):
        plain_folder(folder).replace(MANIFEST, encode_manifest(manifest))


def read_manifest(folder: Path) -> Manifest | None:
    """Read the index; None if it is lost or damaged, VERSION_TOO_NEW if it is from the future."""
    files = plain_folder(folder)
    if files.status(MANIFEST) is None:
        return None
    return _decode(files.read(MANIFEST), MANIFEST, Manifest)


def load_records(folder: Path, manifest: Manifest | None) -> list[Record]:
    """Read every record whose file is there or can be made; repair lost ones from the index."""
    in_manifest = {record.id: record for record in manifest.items} if manifest else {}
    on_disk = list(_read_records(folder, in_manifest))
    by_path = _drop_dead_records(folder, on_disk)
    ids = {record.id for record in on_disk}
    for record in in_manifest.values():
        # An index that is behind may still list a file whose name another has now.
        if record.id in ids or record.path.lower() in by_path:
            continue
        if is_valid(record) and plain_folder(folder).status(record.path) is not None:
            write_record(folder, record)
            by_path[record.path.lower()] = record
    return list(by_path.values())


def is_valid(record: Record) -> bool:
    """Return whether this daemon could have written a record: its id, and a path of its origin."""
    return (
        records.is_ref_id(record.id)
        and records.is_path(record.path)
        and records.origin_of(record.path) is record.origin
        and records.kind_of(record.origin) is record.kind
        and (record.retention is Retention.LAZY) == record.lazy
    )


def paths_without_record(folder: Path, known: Iterable[Record]) -> Iterator[str]:
    """List the paths of files that have no record, removing what a killed writer left."""
    known_paths = {record.path for record in known}
    for place in ORIGIN_FOLDERS.values():
        for name in _plain_files(folder, place):
            path = f"{place}/{name}"
            if path not in known_paths and records.is_path(path):
                yield path


def _read_records(folder: Path, in_manifest: dict[str, Record]) -> Iterator[Record]:
    for kind, place in records.FOLDERS.items():
        refs = f"{place}/{records.REFS}"
        for name in _plain_files(folder, refs):
            ref_id = name.removesuffix(".json")
            record = _decode(plain_folder(folder).read(f"{refs}/{name}"), name, Record)
            if record is None and ref_id in in_manifest:
                record = in_manifest[ref_id]
                write_record(folder, record)
            if record is None or record.id != ref_id or record.kind is not kind:
                continue
            if is_valid(record):
                yield record


def _drop_dead_records(folder: Path, on_disk: Iterable[Record]) -> dict[str, Record]:
    """Return the newest record of each path; remove the others, and those that lost their file."""
    by_path: dict[str, Record] = {}
    for record in sorted(on_disk, key=lambda record: record.order, reverse=True):
        if record.path.lower() in by_path:
            remove_record(folder, record)
        elif record.deleted or (not record.lazy and plain_folder(folder).is_missing(record.path)):
            erase(folder, record)
        else:
            by_path[record.path.lower()] = record
    return by_path


def _plain_files(folder: Path, path: str) -> Iterator[str]:
    """List the plain files of a folder, removing the temporary ones of a killed writer."""
    files = plain_folder(folder)
    for name, status in files.entries(path):
        if stored_files.is_temporary(name):
            files.remove(f"{path}/{name}")
        elif stat.S_ISREG(status.st_mode):
            yield name


def _not_a_plain_file() -> DaemonError:
    return DaemonError(
        ErrorCode.CONTEXT_SCOPE_VIOLATION,
        "Something in the conversation's folder is a link or no plain file; it is not followed.",
    )


def _decode(data: bytes, name: str, form: type[T]) -> T | None:
    try:
        return stored_files.decode(data, form, version=VERSION, name=name)
    except stored_files.DamagedFileError:
        return None


class Binding(Model):
    """What `conversation.json` holds: the project that the conversation belongs to."""

    version: int = VERSION
    conversation_id: str
    project_id: str


def bind(folder: Path, project_id: str) -> None:
    """Make a folder the conversation of a project, for good."""
    for place in records.FOLDERS.values():
        plain_folder(folder).make_folder(place)
    binding = Binding(conversation_id=folder.name, project_id=project_id)
    with disk_errors(BINDING):
        plain_folder(folder).replace(BINDING, msgspec.json.encode(binding))


def project_of(folder: Path) -> str | None:
    """Return a conversation's project, from its records if need be; None if it has no project."""
    with contextlib.suppress(FileNotFoundError, stored_files.DamagedFileError, UnicodeError):
        data = plain_folder(folder).read(BINDING)
        return stored_files.decode(data, Binding, version=VERSION, name=BINDING).project_id
    manifest = read_manifest(folder)
    found = manifest.items if manifest is not None else load_records(folder, None)
    return next((record.project_id for record in found), None)


def unbind(folder: Path) -> None:
    """Remove what makes a folder a conversation, and the folder itself if nothing else is in it."""
    plain_folder(folder).remove(BINDING)
    refs = [f"{place}/{records.REFS}" for place in records.FOLDERS.values()]
    for path in (*refs, *ORIGIN_FOLDERS.values(), *records.FOLDERS.values(), ""):
        plain_folder(folder).remove_folder(path)


class Move(Model):
    """One record of an import; its file, if it has one, waits under the number `staged`."""

    record: Record
    staged: int | None


class NewRounds(NamedTuple):
    """Lines for the journal of a conversation's rounds, behind its first `size` bytes."""

    size: int
    lines: bytes


class ImportPlan(Model):
    """What an import brings into a conversation: records, and rounds behind `rounds_at` bytes."""

    version: int = VERSION
    conversation_id: str
    project_id: str
    moves: tuple[Move, ...]
    rounds_at: int | None = None


@contextlib.contextmanager
def staging_folder(root: Path, name: str) -> Generator[Path]:
    """Make a folder for the files of an import; remove it afterwards unless a plan is unfinished."""
    stored_files.make_folders(root)
    staging = plain_folder(root).make_folder(f"{IMPORTS}/{name}")
    try:
        yield staging
    finally:
        if not any((staging / plan).exists() for plan in (_PLAN, _UNDONE)):
            shutil.rmtree(staging, ignore_errors=True)
        with contextlib.suppress(OSError):
            staging.parent.rmdir()


def apply_plan(
    root: Path, staging: Path, plan: ImportPlan, rounds: NewRounds | None = None
) -> None:
    """Write the plan to the disk, then carry out all of it or nothing."""
    if rounds is not None:
        plain_folder(staging).replace(_NEW_ROUNDS, rounds.lines)
        plan = msgspec.structs.replace(plan, rounds_at=rounds.size)
    plain_folder(staging).replace(_PLAN, msgspec.json.encode(plan))
    _finish(root, staging, plan)


def recover(root: Path) -> None:
    """Finish or undo the imports that a killed daemon left: finish a plan, undo a half-undone one."""
    for name, status in plain_folder(root).entries(IMPORTS, _is_staging):
        if not stat.S_ISDIR(status.st_mode):
            continue
        staging = root / IMPORTS / name
        try:
            plan, undone = _read_plan(staging / _PLAN), _read_plan(staging / _UNDONE)
        except DaemonError as error:
            log.warning("context_files_import_unreadable", reason=error.code)
            continue
        if undone is not None:
            _undo(root, staging, undone)
        elif plan is not None:
            _finish(root, staging, plan)
        shutil.rmtree(staging)
    with contextlib.suppress(OSError):
        (root / IMPORTS).rmdir()


def _is_staging(name: str) -> bool:
    return _STAGING.fullmatch(name) is not None


def _read_plan(path: Path) -> ImportPlan | None:
    """Read a plan that this daemon could have written; one from the future is VERSION_TOO_NEW."""
    if path.is_symlink():
        return None
    try:
        plan = stored_files.load(path, ImportPlan, version=VERSION)
    except stored_files.DamagedFileError:
        return None
    if plan is None or not records.is_conversation_id(plan.conversation_id):
        return None
    if plan.rounds_at is not None and safe_folder.problem_with_name(plan.project_id):
        return None
    return plan if all(is_valid(move.record) for move in plan.moves) else None


def _finish(root: Path, staging: Path, plan: ImportPlan) -> None:
    try:
        _move_files(root, staging, plan)
    except BaseException:
        # A rename needs no space, so a full disk cannot refuse it.
        (staging / _PLAN).rename(staging / _UNDONE)
        _undo(root, staging, plan)
        (staging / _UNDONE).unlink()
        raise
    (staging / _PLAN).unlink()


def _move_files(root: Path, staging: Path, plan: ImportPlan) -> None:
    folder = plain_folder(root).make_folder(plan.conversation_id)
    if project_of(folder) is None:
        bind(folder, plan.project_id)
    for move in plan.moves:
        write_record(folder, move.record)
        plain_folder(folder).make_folder(ORIGIN_FOLDERS[move.record.origin])
        waiting = plain_folder(staging)
        if move.staged is not None and not waiting.is_missing(str(move.staged)):
            plain_folder(folder).move_in(waiting, str(move.staged), move.record.path)
    if (rounds := _planned_rounds(root, staging, plan)) is not None:
        journal.append_lines(_journal_of(root, plan), *rounds)


def _undo(root: Path, staging: Path, plan: ImportPlan) -> None:
    for move in plan.moves:
        erase(root / plan.conversation_id, move.record)
    if (rounds := _planned_rounds(root, staging, plan)) is not None:
        journal.cut(_journal_of(root, plan), rounds.size)


def _planned_rounds(root: Path, staging: Path, plan: ImportPlan) -> NewRounds | None:
    """Return the rounds of a plan; none if others were written in their place meanwhile."""
    if plan.rounds_at is None or plain_folder(staging).status(_NEW_ROUNDS) is None:
        return None
    lines = plain_folder(staging).read(_NEW_ROUNDS)
    if journal.has_other_entries(_journal_of(root, plan), plan.rounds_at, lines):
        log.warning("context_files_rounds_conflict")
        return None
    return NewRounds(plan.rounds_at, lines)


def _journal_of(root: Path, plan: ImportPlan) -> Path:
    return history_path(root.parent, plan.project_id, plan.conversation_id)


def history_path(user_data: Path, project_id: str, conversation_id: str) -> Path:
    """Return the path of the journal that holds the rounds of a conversation."""
    return user_data / HISTORIES / project_id / f"{conversation_id}.jsonl"
