"""Imported files on their way in: all of them, or none, even if the daemon is killed half-way.

Everything is staged in `<root>/.import/`, synced, and then a plan is written. From then on the
import has happened: what is not yet in place is moved there, by whoever comes next if need be.
Knows files and records; knows no archive.
"""

import contextlib
import shutil
from collections.abc import Generator
from pathlib import Path

import msgspec

from creonowd.artifacts import binding, ledger, names, tree
from creonowd.artifacts.refs import VERSION, Record
from creonowd.model import Model
from creonowd.workspace import atomic, stored

FOLDER = ".import"

_PLAN = "plan.json"


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
        if not (place / _PLAN).exists():
            shutil.rmtree(place, ignore_errors=True)
        with contextlib.suppress(OSError):
            place.parent.rmdir()


def carry_out(root: Path, place: Path, plan: Plan) -> None:
    """Write the plan down, and follow it."""
    atomic.replace(place / _PLAN, msgspec.json.encode(plan))
    _follow(root, place, plan)
    (place / _PLAN).unlink()


def recover(root: Path) -> None:
    """Finish imports that had happened, and forget those that had not."""
    for entry in tree.entries(root, FOLDER):
        place = Path(entry.path)
        plan: Plan | None = None
        with contextlib.suppress(stored.DamagedFileError):
            plan = stored.load(place / _PLAN, Plan, version=VERSION)
        if plan is not None:
            _follow(root, place, plan)
        shutil.rmtree(place)


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
