"""`creonowd doctor` — what is wrong with this installation or project, and how to mend it."""

import argparse
import os
import re
import shutil
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime, timedelta
from importlib.metadata import PackageNotFoundError, requires, version
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from creonowd import __version__, settings
from creonowd.cli.client import connect, show, write
from creonowd.context_files import record_store, store
from creonowd.daemon import endpoint
from creonowd.errors import DaemonError, ErrorCode
from creonowd.history import histories
from creonowd.logs import LOG_FILE, LOG_FOLDER
from creonowd.model import Model
from creonowd.retrieval import database, indexes
from creonowd.skills import skill
from creonowd.skills.library import FILE
from creonowd.storage import journal, versioned_json
from creonowd.storage.safe_folder import EFFECTIVE
from creonowd.tokens.tables import ENCODINGS, TableError, packaged_tables, verify
from creonowd.workspace import budgets, constraint_file, projects, runs

OK, NOTE, BAD = "ok", "note", "bad"


class Finding(Model):
    """One thing that was looked at; a remedy where something is wrong."""

    part: str
    state: str
    found: str
    remedy: str = ""


STARTED, STOPPED = "daemon_started", "daemon_stopped"
READ_BYTES = 4 * 1024 * 1024
STEP_BACK = timedelta(minutes=1)
GRAVE = {"warning", "error", "critical"}


def last_end(user_data: Path) -> Iterator[Finding]:
    """Tell how the last daemon that is no more ended, and which warnings the log holds since its start."""
    lines = _lines(user_data / LOG_FOLDER / LOG_FILE)
    signed = endpoint.running_pid(user_data)
    running = signed if endpoint.is_running(user_data) else None
    yield from _clock(lines)
    lives = [at for at, line in enumerate(lines) if line.get("event") == STARTED]
    if lives:
        yield from _complaints(lines[lives[-1] :])
    over = [at for at in lives if lines[at].get("pid") != running]
    if signed != running:
        yield _killed(f"with pid {signed}")
    elif over:
        yield _end(lines[over[-1] :])


def _end(lines: list[dict[str, Any]]) -> Finding:
    following = [line["event"] for line in lines[1:] if line.get("event") in {STARTED, STOPPED}]
    if following[:1] == [STOPPED]:
        reason = next(line.get("reason") for line in lines if line.get("event") == STOPPED)
        return Finding(part="last end", state=OK, found=f"in order: {reason}")
    return _killed(f"of {lines[0].get('time')}")


def _killed(which: str) -> Finding:
    found = f"the daemon {which} was killed or the machine went down"
    remedy = "Nothing to mend: what was acknowledged is on the disk."
    return Finding(part="last end", state=NOTE, found=found, remedy=remedy)


def _clock(lines: list[dict[str, Any]]) -> Iterator[Finding]:
    """Tell of a clock that was set back; one that was set ahead looks like a long silence."""
    times = [time for line in lines if (time := _time(line)) is not None]
    back = [pair for pair in pairwise(times) if pair[0] - pair[1] > STEP_BACK]
    if back:
        before, after = (time.isoformat(timespec="seconds") for time in back[-1])
        found = f"it was set back from {before} to {after}"
        remedy = "Nothing to mend: what is kept is in the order in which it came."
        yield Finding(part="clock", state=NOTE, found=found, remedy=remedy)


def _time(line: dict[str, Any]) -> datetime | None:
    try:
        return datetime.fromisoformat(str(line.get("time")))
    except ValueError:
        return None


def _complaints(lines: list[dict[str, Any]]) -> Iterator[Finding]:
    told = Counter(_told(line) for line in lines if line.get("level") in GRAVE)
    if told:
        found = ", ".join(f"{count} × {name}" for name, count in told.most_common())
        remedy = f"{LOG_FOLDER}/{LOG_FILE} has them in full."
        yield Finding(part="log", state=NOTE, found=found, remedy=remedy)


def _told(line: dict[str, Any]) -> str:
    code = line.get("code")
    return f"{line.get('event')} ({code})" if isinstance(code, str) else str(line.get("event"))


def _lines(path: Path) -> list[dict[str, Any]]:
    """Read the end of the log; a line that a kill or a full disk has torn is left out."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - READ_BYTES))
            data = file.read()
    except OSError:
        return []
    return [line for text in data.split(b"\n") if (line := _log_line(text)) is not None]


def _log_line(text: bytes) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


LITTLE_SPACE = 64 * 1024 * 1024

Check = Callable[[Path], str]


def stored_files(user_data: Path) -> Iterator[Finding]:
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
        (
            f"{conversations}/{record_store.BINDING}",
            _binding,
            "It is read from the records instead.",
        ),
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


OURS = "creonowd"
PATIENCE_SECONDS = 3.0


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "doctor",
        parents=[shared],
        description="Look at the installation, the user data, the running daemon and a project.",
    )
    parser.add_argument("--project", type=Path, metavar="DIR", help="also look at this project")
    parser.add_argument(
        "--settings", action="store_true", help="list every setting, its value and its origin"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print what was found; the exit status is 1 if anything is bad."""
    user_data = settings.user_data_dir(arguments.user_data)
    findings = [*_packages(), *_tables(user_data), *_user_data(user_data)]
    if _is_open(user_data):
        findings += [*_daemon(user_data), *last_end(user_data), *stored_files(user_data)]
    if arguments.project is not None:
        findings += _project(arguments.project)
    if arguments.settings or sys.stdout.isatty():
        listed = _settings(user_data) if arguments.settings else ()
        write("".join((*map(_line, findings), *map(_setting, listed))))
    else:
        show(
            {
                "version": __version__,
                "findings": msgspec.to_builtins(findings),
                "settings": msgspec.to_builtins(_settings(user_data)),
            }
        )
    return int(any(finding.state == BAD for finding in findings))


def _line(finding: Finding) -> str:
    sign = {OK: "✓", NOTE: "·", BAD: "✗"}[finding.state]
    remedy = f"\n    → {finding.remedy}" if finding.remedy else ""
    return f"{sign} {finding.part}: {finding.found}{remedy}\n"


def _setting(place: settings.SettingReport) -> str:
    return f"  {place.name} = {place.value} ({place.origin})  {place.description}\n"


def _packages() -> Iterator[Finding]:
    yield Finding(part="python", state=OK, found=sys.version.split()[0])
    for name in _needed():
        try:
            yield Finding(part=name, state=OK, found=version(name))
        except PackageNotFoundError:
            remedy = "Install creonowd again: pip install --force-reinstall creonowd"
            yield Finding(part=name, state=BAD, found="not installed", remedy=remedy)


def _needed() -> list[str]:
    """Name the packages that we need; ourselves, where nobody can tell what those are."""
    try:
        lines = [line for line in requires(OURS) or () if "extra ==" not in line]
    except PackageNotFoundError:
        return [OURS]
    return [re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in lines]


def _tables(user_data: Path) -> Iterator[Finding]:
    try:
        chosen = settings.load(user_data, {}).tokenizer_tables
    except (DaemonError, OSError):
        chosen = ""
    for name in ENCODINGS:
        try:
            verify(name, Path(chosen) if chosen else packaged_tables())
            yield Finding(part=name, state=OK, found="the table is whole")
        except TableError as error:
            remedy = "Install creonowd again; until then prompts hold less than they could."
            yield Finding(part=name, state=BAD, found=str(error), remedy=remedy)


def _user_data(user_data: Path) -> Iterator[Finding]:
    existing = next(place for place in (user_data, *user_data.parents) if place.exists())
    if existing.is_dir() and _is_open(existing) and _may(existing, os.W_OK):
        state = "writable" if existing == user_data else "will be made at the first start"
        yield Finding(part="user data", state=OK, found=f"{user_data} ({state})")
    else:
        trouble = "is not a folder"
        if existing.is_dir():
            trouble = "is not writable" if _is_open(existing) else "cannot be read"
        remedy = "Mend that, or name another with --user-data or CREONOW_USER_DATA_DIR."
        yield Finding(part="user data", state=BAD, found=f"{existing} {trouble}", remedy=remedy)
    if _is_open(user_data):
        yield from _configured(user_data)


def _is_open(user_data: Path) -> bool:
    """Whether this user may look into it; what is not there yet holds no secrets."""
    return not user_data.is_dir() or _may(user_data, os.R_OK | os.X_OK)


def _may(place: Path, what: int) -> bool:
    return os.access(place, what, effective_ids=EFFECTIVE)


def _configured(user_data: Path) -> Iterator[Finding]:
    try:
        changed = [p for p in settings.origins(user_data) if p.origin != "default"]
        told = ", ".join(f"{p.name}={p.value} ({p.origin})" for p in changed) or "all defaults"
        yield Finding(part="settings", state=OK, found=told)
    except DaemonError as error:
        yield Finding(part="settings", state=BAD, found=error.message, remedy="Mend or remove it.")
    for name in settings.strangers():
        remedy = "It changes nothing; `creonowd doctor --settings` lists what would."
        yield Finding(part="environment", state=NOTE, found=f"{name} is no setting", remedy=remedy)


def _settings(user_data: Path) -> list[settings.SettingReport]:
    try:
        return settings.origins(user_data)
    except (DaemonError, OSError):
        return []


def _daemon(user_data: Path) -> Iterator[Finding]:
    if not endpoint.is_running(user_data):
        stale = (user_data / endpoint.RUN / endpoint.FILE).exists()
        found = "not running; it left an endpoint file behind" if stale else "not running"
        yield Finding(part="daemon", state=NOTE, found=found)
        return
    try:
        with connect(user_data, PATIENCE_SECONDS) as client:
            health = client.request("app:health")
    except DaemonError as error:
        remedy = f"Stop pid {endpoint.running_pid(user_data)} and start it again."
        yield Finding(part="daemon", state=BAD, found=error.message, remedy=remedy)
        return
    pid = endpoint.running_pid(user_data)
    yield Finding(part="daemon", state=OK, found=f"pid {pid}, version {health['version']}")
    for trouble in health["degraded"]:
        yield Finding(
            part=trouble["part"], state=BAD, found=trouble["reason"], remedy=trouble["remedy"]
        )


def _project(root: Path) -> Iterator[Finding]:
    if not root.is_dir():
        yield Finding(
            part="project", state=BAD, found=f"{root} is not a folder", remedy="Name one."
        )
        return
    if not _may(root, os.W_OK):
        remedy = "Give yourself the right to write in it."
        yield Finding(part="project", state=BAD, found=f"{root} is not writable", remedy=remedy)
    folder = root / ".creonow"
    if folder.exists() and not folder.is_dir():
        remedy = "Move it away; `context:creonow:ensure` then makes the folder."
        yield Finding(part=".creonow", state=BAD, found="is not a folder", remedy=remedy)
    elif not folder.exists():
        yield Finding(part=".creonow", state=NOTE, found="absent; context:creonow:ensure makes it")
    else:
        yield Finding(part=".creonow", state=OK, found="present")
        yield from _contents(folder)


def _contents(folder: Path) -> Iterator[Finding]:
    """Read what an assembly would read, and tell what it would leave out."""
    for path in sorted((*folder.rglob("*.json"), *(folder / "skills").rglob(FILE))):
        trouble = _trouble_in(path, folder)
        if trouble:
            part = path.relative_to(folder.parent).as_posix()
            remedy = "Mend the file; until then it is left out."
            yield Finding(part=part, state=BAD, found=trouble, remedy=remedy)


def _trouble_in(path: Path, folder: Path) -> str:
    try:
        data = path.read_bytes()
        if path.name == FILE:
            return " ".join(fault.message for fault in skill.parse(data).faults)
        if path == folder / "rules" / "constraints.json":
            constraint_file.parse(data, "")
        else:
            msgspec.json.decode(data)
    except DaemonError as error:
        return error.message
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return f"cannot be read: {error}"
    return ""
