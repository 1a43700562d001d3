"""A project's conversations on disk: one file each, and an index that saves reading them all.

The files are the truth. The index is believed only as far as it agrees with what is on disk, is
set aside when damaged, and is left alone when a newer daemon wrote it.
"""

import contextlib
import os
from pathlib import Path

import msgspec
import structlog

from creonowd.clock import iso
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model
from creonowd.workspace import atomic, stored
from creonowd.workspace.conversation_file import (
    INDEX,
    VERSION,
    ConversationEntry,
    Document,
    check,
    check_id,
    entry_of,
)
from creonowd.workspace.opening import lies_inside, mark_of, read_inside, real_folder
from creonowd.workspace.paths import TREE, refused
from creonowd.workspace.tree import Problem
from creonowd.workspace.walk import files_below

FOLDER = f"{TREE}/conversations"
LIMIT_BYTES = 32 * 1024 * 1024

# Within the coarsest clock of a disk in use (FAT), two writes may look like one.
_YOUNG_MS = 2000

log = structlog.get_logger(__name__)


class Known(Model):
    """An entry of the index, and by what to tell whether its file is still the same."""

    entry: ConversationEntry
    mark: tuple[int, ...]
    settled: bool


class _Index(Model):
    items: tuple[Known, ...]
    version: int = VERSION


class Listing(Model):
    """Every conversation, newest first, the files that are none, and whether the index knew."""

    known: tuple[Known, ...]
    problems: tuple[Problem, ...]
    fresh: bool


def path_of(conversation_id: str) -> str:
    """Tell the project-relative path of a conversation."""
    return f"{FOLDER}/{conversation_id}.json"


def read_document(root: Path, conversation_id: str) -> Document:
    """Read a conversation; IO_ERROR if the file is damaged."""
    path = path_of(conversation_id)
    data = read_inside(root, FOLDER, path, limit=LIMIT_BYTES).data
    try:
        document = stored.decode(data, Document, version=VERSION, name=path)
        check(document, "conversation")
    except (stored.DamagedFileError, DaemonError) as error:
        if isinstance(error, DaemonError) and error.code is ErrorCode.VERSION_TOO_NEW:
            raise
        raise _damaged(path) from None
    return document


def write_document(root: Path, conversation_id: str, document: Document) -> None:
    """Write a conversation, all at once."""
    path = path_of(conversation_id)
    with atomic.disk_errors(path):
        place = Path(os.path.realpath(root / path))
        if not lies_inside(place, real_folder(root, FOLDER)):
            raise refused("link", f"{path} is a link that leads elsewhere.")
    data = msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
    atomic.replace(place, data, mode=atomic.SHARED)


def find_all(root: Path, now_ms: int) -> Listing:
    """List the conversations, reading only the files that the index does not know as they are."""
    if not (root / FOLDER).is_dir():
        return Listing(known=(), problems=(), fresh=True)
    indexed = _load_index(root)
    known: list[Known] = []
    problems: list[Problem] = []
    for conversation_id, status in _files(root):
        try:
            known.append(_looked_up(root, conversation_id, status, indexed or {}, now_ms))
        except DaemonError as error:
            problems.append(Problem(path=path_of(conversation_id), error=error))
    known.sort(key=lambda each: (each.entry.updated_at, each.mark[-2], each.entry.id), reverse=True)
    fresh = {each.entry.id: each for each in known} == indexed
    return Listing(known=tuple(known), problems=tuple(problems), fresh=fresh)


def write_index(root: Path, listing: Listing) -> None:
    """Remember a listing, for who holds the lock; failing to only costs time."""
    path = root / FOLDER / f"{INDEX}.json"
    with contextlib.suppress(DaemonError):
        _make_way(path)
        data = msgspec.json.encode(_Index(items=listing.known))
        atomic.replace(path, msgspec.json.format(data, indent=2) + b"\n", mode=atomic.SHARED)


def _make_way(path: Path) -> None:
    try:
        stored.load(path, _Index, version=VERSION)
    except stored.DamagedFileError:
        kept = stored.set_aside(path)
        log.warning("conversation_index_set_aside", file=f"{FOLDER}/{kept}")


def _load_index(root: Path) -> dict[str, Known] | None:
    """Read the index; None if it is damaged. It stays in place: others may be reading as well."""
    path = root / FOLDER / f"{INDEX}.json"
    try:
        found = stored.load(path, _Index, version=VERSION)
    except stored.DamagedFileError:
        return None
    except DaemonError as error:
        log.warning("conversation_index_unused", code=error.code)
        found = None
    return {known.entry.id: known for known in found.items} if found else {}


def _files(root: Path) -> list[tuple[str, os.stat_result]]:
    """Find the files whose names are ids; whatever else lies there is not ours."""
    with atomic.disk_errors(FOLDER):
        real_folder(root, FOLDER)
    found = files_below(root, FOLDER, lambda name: name.endswith(".json"))
    named = ((path.removeprefix(f"{FOLDER}/").removesuffix(".json"), s) for path, s in found)
    return [(name, status) for name, status in named if _is_id(name)]


def _is_id(name: str) -> bool:
    try:
        check_id(name)
    except DaemonError:
        return False
    return True


def _looked_up(
    root: Path,
    conversation_id: str,
    status: os.stat_result,
    indexed: dict[str, Known],
    now_ms: int,
) -> Known:
    mark = mark_of(status)
    known = indexed.get(conversation_id)
    if known and known.settled and known.mark == mark:
        return known
    updated_ms = status.st_mtime_ns // 1_000_000
    entry = entry_of(conversation_id, read_document(root, conversation_id), iso(updated_ms))
    return Known(entry=entry, mark=mark, settled=now_ms - updated_ms > _YOUNG_MS)


def _damaged(path: str) -> DaemonError:
    return DaemonError(
        ErrorCode.IO_ERROR,
        "The conversation's file is damaged; mend or delete it.",
        path=path,
        reason="invalid_format",
    )
