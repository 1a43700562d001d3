"""Imported files on their way in: all of them, or none, even if the daemon is killed half-way.

Everything is staged in `<root>/.import/`, synced, and then a plan is written. From then on the
import has happened: what is not yet in place is moved there, by whoever comes next if need be.
If the disk refuses half-way, the plan is renamed, and from then on everything is taken back.
Knows files and records; knows no archive.
"""

import contextlib
import shutil
from collections.abc import Generator
from pathlib import Path

import msgspec
import structlog

from creonowd.artifacts import binding, ledger, names, tree
from creonowd.artifacts.refs import VERSION, Record
from creonowd.errors import DaemonError
from creonowd.model import Model
from creonowd.storage import atomic, versioned_json

FOLDER = ".import"

_PLAN = "plan.json"
_UNDONE = "undone.json"

log = structlog.stdlib.get_logger(__name__)


class Move(Model):
    """One record to put in place; `staged` is the number of its file if it has one."""

    record: Record
    staged: int | None


class Plan(Model):
    """What belongs where."""

    version: int = VERSION
    conversation_id: str
    project_id: str
    moves: tuple[Move, ...]


@contextlib.contextmanager
def stage(root: Path, name: str) -> Generator[Path]:
    """Make a place for files to wait in; it goes with the block, unless a plan is not yet done."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    place = tree.made_folder(root, f"{FOLDER}/{name}")
    try:
        yield place
    finally:
        if not any((place / name).exists() for name in (_PLAN, _UNDONE)):
            shutil.rmtree(place, ignore_errors=True)
        with contextlib.suppress(OSError):
            place.parent.rmdir()


def carry_out(root: Path, place: Path, plan: Plan) -> None:
    """Write the plan down, and follow it to the end or not at all."""
    atomic.replace(place / _PLAN, msgspec.json.encode(plan))
    _complete(root, place, plan)


def recover(root: Path) -> None:
    """Finish imports that had happened, take back what was being taken back, forget the others."""
    for entry in tree.entries(root, FOLDER):
        place = Path(entry.path)
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


def _complete(root: Path, place: Path, plan: Plan) -> None:
    try:
        _follow(root, place, plan)
    except BaseException:
        # A rename needs no space, so a full disk cannot refuse it.
        (place / _PLAN).rename(place / _UNDONE)
        _take_back(root, plan)
        (place / _UNDONE).unlink()
        raise
    (place / _PLAN).unlink()


def _read(path: Path) -> Plan | None:
    """Read a plan that we could have written; one from the future is VERSION_TOO_NEW."""
    if path.is_symlink():
        return None
    try:
        plan = versioned_json.load(path, Plan, version=VERSION)
    except versioned_json.DamagedFileError:
        return None
    if plan is None or not names.is_conversation_id(plan.conversation_id):
        return None
    return plan if all(ledger.is_sound(move.record) for move in plan.moves) else None


def _follow(root: Path, place: Path, plan: Plan) -> None:
    folder = tree.made_folder(root, plan.conversation_id)
    if binding.project_of(folder) is None:
        binding.bind(folder, plan.project_id)
    for move in plan.moves:
        ledger.write_record(folder, move.record)
        there = tree.made_folder(folder, names.PLACES[move.record.origin])
        if move.staged is not None and (staged := place / str(move.staged)).exists():
            atomic.move(staged, folder / move.record.path)
            atomic.sync_folder(there)


def _take_back(root: Path, plan: Plan) -> None:
    for move in plan.moves:
        ledger.erase(root / plan.conversation_id, move.record)
