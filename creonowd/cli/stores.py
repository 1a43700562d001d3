"""What `doctor` finds among the stored files: broken, newer, torn, kept aside, out of reach.

Only reads; whatever can be mended is mended by the daemon when it next uses the file.
"""

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import msgspec

from creonowd.cli.finding import BAD, NOTE, OK, Finding
from creonowd.context_files import record_store, store
from creonowd.errors import DaemonError, ErrorCode
from creonowd.history import histories
from creonowd.retrieval import database, indexes
from creonowd.storage import journal, versioned_json
from creonowd.workspace import budgets, projects, runs

LITTLE_SPACE = 64 * 1024 * 1024

Check = Callable[[Path], str]


def look(user_data: Path) -> Iterator[Finding]:
    """Tell what is wrong with what is kept; nothing about what is sound but the number of files."""
    if not user_data.is_dir():
        return
    yield from _space(user_data)
    yield from _folders(user_data)
    found = [*_projects(user_data), *_troubles(user_data)]
    yield from found
    yield from _kept_aside(user_data)
    if not any("." in finding.part for finding in found):
        yield Finding(part="stored files", state=OK, found="all can be read")


def _space(user_data: Path) -> Iterator[Finding]:
    free = shutil.disk_usage(user_data).free
    if free < LITTLE_SPACE:
        found = f"only {free // 1024} KiB are free where user data lies"
        remedy = "Free some space; until then writes are refused with STORAGE_FULL."
        yield Finding(part="disk", state=BAD, found=found, remedy=remedy)


def _folders(user_data: Path) -> Iterator[Finding]:
    for place in sorted(filter(Path.is_dir, user_data.iterdir())):
        if not os.access(place, os.W_OK):
            yield _unwritable(place.name, "the folder cannot be written")


def _unwritable(part: str, found: str) -> Finding:
    remedy = "Give yourself the right to write in it; until then writes are refused with IO_ERROR."
    return Finding(part=part, state=BAD, found=found, remedy=remedy)


def _projects(user_data: Path) -> Iterator[Finding]:
    try:
        known = projects.read(user_data)
    except (versioned_json.DamagedFileError, DaemonError) as error:
        remedy = _remedy(
            error, "At the next use it is kept aside; then create your projects again."
        )
        yield Finding(part=projects.FILE, state=BAD, found=_said(error), remedy=remedy)
        return
    for project in known:
        if not project.root.is_dir():
            found = f"the folder of {project.name} is not there: {project.root}"
            remedy = "Bring it back, or forget the project with project:delete."
            yield Finding(part=project.project_id, state=BAD, found=found, remedy=remedy)
        elif not os.access(project.root, os.W_OK):
            found = f"the folder of {project.name} cannot be written: {project.root}"
            yield _unwritable(project.project_id, found)


def _troubles(user_data: Path) -> Iterator[Finding]:
    conversations = f"{store.FOLDER}/*"
    looked: tuple[tuple[str, Check, str], ...] = (
        (f"{budgets.FOLDER}/*.json", _budget, "The default serves; set the budget again."),
        (
            f"{histories.FOLDER}/*/*.jsonl",
            _history,
            "What was whole is kept; it goes on from there.",
        ),
        (f"{runs.FOLDER}/*/*.jsonl", _runs, "It is mended with the next run."),
        (
            f"{conversations}/{record_store.MANIFEST}",
            _manifest,
            "It is made anew from the records.",
        ),
        (f"{conversations}/{record_store.FILE}", _binding, "It is read from the records instead."),
        (f"{indexes.FOLDER}/*.sqlite3", _index, "It is made anew at the next use."),
    )
    for pattern, check, remedy in looked:
        for path in sorted(user_data.glob(pattern)):
            if not versioned_json.is_aside(path) and (trouble := _found(check, path)):
                part = path.relative_to(user_data).as_posix()
                found, mend = _said(trouble), _remedy(trouble, remedy)
                yield Finding(part=part, state=BAD, found=found, remedy=mend)


def _kept_aside(user_data: Path) -> Iterator[Finding]:
    for path in sorted(user_data.rglob("*.damaged-*")):
        if versioned_json.is_aside(path):
            part = path.relative_to(user_data).as_posix()
            found = "could not be read once and was kept aside"
            remedy = "Look into it for what you miss, then delete it."
            yield Finding(part=part, state=NOTE, found=found, remedy=remedy)


def _found(check: Check, path: Path) -> Exception | str:
    try:
        return check(path)
    except (versioned_json.DamagedFileError, DaemonError, OSError) as error:
        return error


def _said(trouble: Exception | str) -> str:
    if isinstance(trouble, DaemonError):
        return trouble.message
    return trouble if isinstance(trouble, str) else f"cannot be read: {trouble}"


def _remedy(trouble: Exception | str, usual: str) -> str:
    """Say what to do; a file of a newer version is whole, and nobody overwrites it."""
    newer = isinstance(trouble, DaemonError) and trouble.code is ErrorCode.VERSION_TOO_NEW
    return "Start the newer creonowd again; this one leaves the file as it is." if newer else usual


def _budget(path: Path) -> str:
    budgets.load(path)
    return ""


def _history(path: Path) -> str:
    found = journal.replay(path)
    lost = f"{found.damaged} damaged lines" if found.damaged else ""
    return ", ".join(filter(None, (lost, "its last line is torn" if found.torn else "")))


def _runs(path: Path) -> str:
    head, *lines = path.read_bytes().split(b"\n")
    versioned_json.decode(head, msgspec.Raw, version=runs.VERSION, name=path.name)
    torn = sum(not runs.is_whole(line) for line in lines if line)
    return f"{torn} damaged lines" if torn else ""


def _manifest(path: Path) -> str:
    return "" if record_store.read_manifest(path.parent) else "cannot be read"


def _binding(path: Path) -> str:
    versioned_json.load(path, record_store.Binding, version=record_store.VERSION)
    return ""


def _index(path: Path) -> str:
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            (mark,) = connection.execute("PRAGMA application_id").fetchone()
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        return f"is damaged: {error}" if database.is_damage(error) else ""
    return "" if (mark, verdict) == (database.MARK, "ok") else "is damaged"
