"""`creonowd doctor` — what is wrong with this installation or project, and how to mend it.

A check is a function that yields findings; the tables at the end list all checks in order.
"""

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
from creonowd.context.story import DoubtKind
from creonowd.context_files import record_store, store
from creonowd.daemon import endpoint
from creonowd.errors import DaemonError, ErrorCode
from creonowd.history import histories
from creonowd.logs import LOG_FILE, LOG_FOLDER
from creonowd.model import Model
from creonowd.retrieval import database, project_index
from creonowd.skills import skill
from creonowd.skills.library import FILE
from creonowd.sources.chapters import STORY_FILE, read_story
from creonowd.storage import journal, versioned_json
from creonowd.storage.safe_folder import EFFECTIVE
from creonowd.tokens.tables import ENCODINGS, TableError, packaged_tables, verify
from creonowd.workspace import budgets, constraint_file, projects, runs

OK, NOTE, BAD = "ok", "note", "bad"
PACKAGE = "creonowd"
ANSWER_SECONDS = 3.0
STARTED, STOPPED = "daemon_started", "daemon_stopped"
LOG_BYTES = 4 * 1024 * 1024
CLOCK_STEP = timedelta(minutes=1)
WARNING_LEVELS = {"warning", "error", "critical"}
MOST_NAMED = 5
LITTLE_SPACE = 64 * 1024 * 1024

LogLine = dict[str, Any]


class Finding(Model):
    """The result of one check; a remedy where something is wrong."""

    part: str
    state: str
    found: str
    remedy: str = ""


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
    """Print the findings; the exit status is 1 if anything is bad."""
    user_data = settings.user_data_dir(arguments.user_data)
    findings = list(_examine(user_data))
    if arguments.project is not None:
        findings += _check_project(arguments.project)
    if arguments.settings or sys.stdout.isatty():
        reports = _setting_reports(user_data) if arguments.settings else ()
        write("".join((*map(_finding_line, findings), *map(_setting_line, reports))))
    else:
        show(
            {
                "version": __version__,
                "findings": msgspec.to_builtins(findings),
                "settings": msgspec.to_builtins(_setting_reports(user_data)),
            }
        )
    return int(any(finding.state == BAD for finding in findings))


def _examine(user_data: Path) -> Iterator[Finding]:
    """Run all checks that can be run on this user-data folder."""
    checks = CHECKS_OF_INSTALLATION
    if _is_readable(user_data):
        checks += CHECKS_OF_DAEMON
        if user_data.is_dir():
            checks += CHECKS_OF_STORED_FILES
    for check in checks:
        yield from check(user_data)


def _finding_line(finding: Finding) -> str:
    sign = {OK: "✓", NOTE: "·", BAD: "✗"}[finding.state]
    remedy = f"\n    → {finding.remedy}" if finding.remedy else ""
    return f"{sign} {finding.part}: {finding.found}{remedy}\n"


def _setting_line(report: settings.SettingReport) -> str:
    return f"  {report.name} = {report.value} ({report.origin})  {report.description}\n"


def _setting_reports(user_data: Path) -> list[settings.SettingReport]:
    try:
        return settings.origins(user_data)
    except (DaemonError, OSError):
        return []


def _is_readable(folder: Path) -> bool:
    """Return whether this user may read a folder, or it does not exist yet."""
    return not folder.is_dir() or _has_access(folder, os.R_OK | os.X_OK)


def _has_access(path: Path, mode: int) -> bool:
    return os.access(path, mode, effective_ids=EFFECTIVE)


def _unwritable(part: str, found: str) -> Finding:
    remedy = "Give yourself the right to write in it; until then writes are refused with IO_ERROR."
    return Finding(part=part, state=BAD, found=found, remedy=remedy)


def _check_packages(user_data: Path) -> Iterator[Finding]:  # noqa: ARG001 - the form of a check
    yield Finding(part="python", state=OK, found=sys.version.split()[0])
    for name in _required_packages():
        try:
            yield Finding(part=name, state=OK, found=version(name))
        except PackageNotFoundError:
            remedy = "Install creonowd again: pip install --force-reinstall creonowd"
            yield Finding(part=name, state=BAD, found="not installed", remedy=remedy)


def _required_packages() -> list[str]:
    """Return the packages that creonowd requires; itself, if it is not installed as a package."""
    try:
        lines = [line for line in requires(PACKAGE) or () if "extra ==" not in line]
    except PackageNotFoundError:
        return [PACKAGE]
    return [re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in lines]


def _check_tokenizer_tables(user_data: Path) -> Iterator[Finding]:
    try:
        folder = settings.load(user_data, {}).tokenizer_tables
    except (DaemonError, OSError):
        folder = ""
    for name in ENCODINGS:
        try:
            verify(name, Path(folder) if folder else packaged_tables())
            yield Finding(part=name, state=OK, found="the table is whole")
        except TableError as error:
            remedy = "Install creonowd again; until then prompts hold less than they could."
            yield Finding(part=name, state=BAD, found=str(error), remedy=remedy)


def _check_user_data(user_data: Path) -> Iterator[Finding]:
    existing = next(place for place in (user_data, *user_data.parents) if place.exists())
    if existing.is_dir() and _is_readable(existing) and _has_access(existing, os.W_OK):
        state = "writable" if existing == user_data else "will be made at the first start"
        yield Finding(part="user data", state=OK, found=f"{user_data} ({state})")
        return
    trouble = "is not a folder"
    if existing.is_dir():
        trouble = "is not writable" if _is_readable(existing) else "cannot be read"
    remedy = "Mend that, or name another with --user-data or CREONOW_USER_DATA_DIR."
    yield Finding(part="user data", state=BAD, found=f"{existing} {trouble}", remedy=remedy)


def _check_settings(user_data: Path) -> Iterator[Finding]:
    try:
        changed = [one for one in settings.origins(user_data) if one.origin != "default"]
        listed = ", ".join(f"{one.name}={one.value} ({one.origin})" for one in changed)
        yield Finding(part="settings", state=OK, found=listed or "all defaults")
    except DaemonError as error:
        yield Finding(part="settings", state=BAD, found=error.message, remedy="Mend or remove it.")
    for name in settings.unknown_variables():
        remedy = "It changes nothing; `creonowd doctor --settings` lists what would."
        yield Finding(part="environment", state=NOTE, found=f"{name} is no setting", remedy=remedy)


def _check_daemon(user_data: Path) -> Iterator[Finding]:
    if not endpoint.is_running(user_data):
        stale = (user_data / endpoint.RUN / endpoint.FILE).exists()
        found = "not running; it left an endpoint file behind" if stale else "not running"
        yield Finding(part="daemon", state=NOTE, found=found)
        return
    try:
        with connect(user_data, ANSWER_SECONDS) as client:
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


def _check_log(user_data: Path) -> Iterator[Finding]:
    """Report a clock that was set back, the warnings since the last start, and the last end."""
    lines = _log_lines(user_data / LOG_FOLDER / LOG_FILE)
    starts = [index for index, line in enumerate(lines) if line.get("event") == STARTED]
    yield from _clock_steps(lines)
    if starts:
        yield from _warnings(lines[starts[-1] :])
    last_pid = endpoint.running_pid(user_data)
    running = last_pid if endpoint.is_running(user_data) else None
    ended = [index for index in starts if lines[index].get("pid") != running]
    if last_pid != running:
        yield _killed(f"with pid {last_pid}")
    elif ended:
        yield _last_end(lines[ended[-1] :])


def _log_lines(path: Path) -> list[LogLine]:
    """Read the end of the log; a line that a kill or a full disk has cut is left out."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - LOG_BYTES))
            data = file.read()
    except OSError:
        return []
    return [line for text in data.split(b"\n") if (line := _log_line(text)) is not None]


def _log_line(text: bytes) -> LogLine | None:
    try:
        return msgspec.json.decode(text, type=LogLine)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _clock_steps(lines: list[LogLine]) -> Iterator[Finding]:
    """Report a clock that was set back; one that was set ahead looks like a long pause."""
    times = [time for line in lines if (time := _time(line)) is not None]
    back = [pair for pair in pairwise(times) if pair[0] - pair[1] > CLOCK_STEP]
    if back:
        before, after = (time.isoformat(timespec="seconds") for time in back[-1])
        found = f"it was set back from {before} to {after}"
        remedy = "Nothing to mend: what is kept is in the order in which it came."
        yield Finding(part="clock", state=NOTE, found=found, remedy=remedy)


def _time(line: LogLine) -> datetime | None:
    try:
        return datetime.fromisoformat(str(line.get("time")))
    except ValueError:
        return None


def _warnings(lines: list[LogLine]) -> Iterator[Finding]:
    counts = Counter(_event(line) for line in lines if line.get("level") in WARNING_LEVELS)
    if counts:
        found = ", ".join(f"{count} × {name}" for name, count in counts.most_common())
        remedy = f"{LOG_FOLDER}/{LOG_FILE} has them in full."
        yield Finding(part="log", state=NOTE, found=found, remedy=remedy)


def _event(line: LogLine) -> str:
    code = line.get("code")
    return f"{line.get('event')} ({code})" if isinstance(code, str) else str(line.get("event"))


def _last_end(lines: list[LogLine]) -> Finding:
    following = [line["event"] for line in lines[1:] if line.get("event") in {STARTED, STOPPED}]
    if following[:1] == [STOPPED]:
        reason = next(line.get("reason") for line in lines if line.get("event") == STOPPED)
        return Finding(part="last end", state=OK, found=f"in order: {reason}")
    return _killed(f"of {lines[0].get('time')}")


def _killed(which: str) -> Finding:
    found = f"the daemon {which} was killed or the machine went down"
    remedy = "Nothing to mend: what was acknowledged is on the disk."
    return Finding(part="last end", state=NOTE, found=found, remedy=remedy)


def _check_space(user_data: Path) -> Iterator[Finding]:
    free = shutil.disk_usage(user_data).free
    if free < LITTLE_SPACE:
        found = f"only {free // 1024} KiB are free where user data lies"
        remedy = "Free some space; until then writes are refused with STORAGE_FULL."
        yield Finding(part="disk", state=BAD, found=found, remedy=remedy)


def _check_folders(user_data: Path) -> Iterator[Finding]:
    for place in sorted(filter(Path.is_dir, user_data.iterdir())):
        if not os.access(place, os.W_OK):
            yield _unwritable(place.name, "the folder cannot be written")


def _check_stored_files(user_data: Path) -> Iterator[Finding]:
    findings = [*_project_findings(user_data), *_damaged_files(user_data)]
    yield from findings
    yield from _files_kept_aside(user_data)
    if not any("." in finding.part for finding in findings):
        yield Finding(part="stored files", state=OK, found="all can be read")


def _project_findings(user_data: Path) -> Iterator[Finding]:
    try:
        known = projects.read(user_data)
    except (versioned_json.DamagedFileError, DaemonError) as error:
        usual = "At the next use it is kept aside; then create your projects again."
        yield _damaged(projects.FILE, error, usual)
        return
    for project in known:
        if not project.root.is_dir():
            found = f"the folder of {project.name} is not there: {project.root}"
            remedy = "Bring it back, or forget the project with project:delete."
            yield Finding(part=project.project_id, state=BAD, found=found, remedy=remedy)
        elif not os.access(project.root, os.W_OK):
            found = f"the folder of {project.name} cannot be written: {project.root}"
            yield _unwritable(project.project_id, found)


def _damaged_files(user_data: Path) -> Iterator[Finding]:
    for pattern, problem_in, remedy in STORED_FILES:
        for path in sorted(user_data.glob(pattern)):
            if versioned_json.is_aside(path):
                continue
            try:
                problem = problem_in(path)
            except (versioned_json.DamagedFileError, DaemonError, OSError) as error:
                problem = error
            if problem:
                yield _damaged(path.relative_to(user_data).as_posix(), problem, remedy)


def _damaged(part: str, problem: Exception | str, usual: str) -> Finding:
    """Report a damaged file; one of a newer version is whole, and nobody overwrites it."""
    remedy = usual
    if isinstance(problem, DaemonError):
        found = problem.message
        if problem.code is ErrorCode.VERSION_TOO_NEW:
            remedy = "Start the newer creonowd again; this one leaves the file as it is."
    else:
        found = problem if isinstance(problem, str) else f"cannot be read: {problem}"
    return Finding(part=part, state=BAD, found=found, remedy=remedy)


def _files_kept_aside(user_data: Path) -> Iterator[Finding]:
    for path in sorted(user_data.rglob("*.damaged-*")):
        if versioned_json.is_aside(path):
            part = path.relative_to(user_data).as_posix()
            found = "could not be read once and was kept aside"
            remedy = "Look into it for what you miss, then delete it."
            yield Finding(part=part, state=NOTE, found=found, remedy=remedy)


def _budget_problem(path: Path) -> str:
    budgets.load(path)
    return ""


def _history_problem(path: Path) -> str:
    lines = journal.replay(path)
    damaged = f"{lines.damaged} damaged lines" if lines.damaged else ""
    return ", ".join(filter(None, (damaged, "its last line is torn" if lines.torn else "")))


def _runs_problem(path: Path) -> str:
    head, *lines = path.read_bytes().split(b"\n")
    versioned_json.decode(head, msgspec.Raw, version=runs.VERSION, name=path.name)
    torn = [line for line in lines if line and not runs.is_whole(line)]
    return f"{len(torn)} damaged lines" if torn else ""


def _manifest_problem(path: Path) -> str:
    return "" if record_store.read_manifest(path.parent) else "cannot be read"


def _binding_problem(path: Path) -> str:
    versioned_json.load(path, record_store.Binding, version=record_store.VERSION)
    return ""


def _index_problem(path: Path) -> str:
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            (mark,) = connection.execute("PRAGMA application_id").fetchone()
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        return f"is damaged: {error}" if database.is_damage(error) else ""
    return "" if (mark, verdict) == (database.MARK, "ok") else "is damaged"


def _check_project(root: Path) -> Iterator[Finding]:
    if not root.is_dir():
        yield Finding(
            part="project", state=BAD, found=f"{root} is not a folder", remedy="Name one."
        )
        return
    if not _has_access(root, os.W_OK):
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
        yield from _creonow_files(folder)
    yield from _story_findings(root)


def _story_findings(root: Path) -> Iterator[Finding]:
    """Report the order of the documents, and what is unclear about it."""
    story = read_story(root)
    if story.documents:
        first, last = story.documents[0].path, story.documents[-1].path
        found = f"{len(story.documents)} documents in order, from {first} to {last}"
        yield Finding(part="story", state=OK, found=found)
    for doubt in story.doubts:
        found, remedy = _DOUBTS[doubt.kind]
        named = ", ".join(doubt.paths[:MOST_NAMED])
        more = len(doubt.paths) - MOST_NAMED
        if more > 0:
            named += f" and {more} more"
        state = BAD if doubt.kind is DoubtKind.INVALID_FILE else NOTE
        yield Finding(part="story", state=state, found=f"{found}: {named}", remedy=remedy)


_SETTLE = f"Name them in {STORY_FILE}, or give each an `order` in its front matter."
_DOUBTS = {
    DoubtKind.SAME_PLACE: ("these bear the same number, so their names decide", _SETTLE),
    DoubtKind.NO_NUMBER: (
        "these bear no number among documents that do, so they come last",
        f"{_SETTLE} Notes belong under `outside`.",
    ),
    DoubtKind.NO_MATCH: (f"an entry of {STORY_FILE} fits no document", "Mend or remove it."),
    DoubtKind.INVALID_ORDER: (
        "the `order` in the front matter is no number",
        "Write a number, or `outside`.",
    ),
    DoubtKind.INVALID_FILE: (
        "this cannot be used, so names decide the order",
        'Mend it: {"version": 1, "order": [paths or globs], "outside": [globs]}.',
    ),
}


def _creonow_files(folder: Path) -> Iterator[Finding]:
    """Report the JSON files and skills that an assembly would leave out."""
    for path in sorted((*folder.rglob("*.json"), *(folder / "skills").rglob(FILE))):
        if problem := _creonow_problem(path, folder):
            part = path.relative_to(folder.parent).as_posix()
            remedy = "Mend the file; until then it is left out."
            yield Finding(part=part, state=BAD, found=problem, remedy=remedy)


def _creonow_problem(path: Path, folder: Path) -> str:
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


STORED_FILES: tuple[tuple[str, Callable[[Path], str], str], ...] = (
    (f"{budgets.FOLDER}/*.json", _budget_problem, "The default serves; set the budget again."),
    (
        f"{histories.FOLDER}/*/*.jsonl",
        _history_problem,
        "What was whole is kept; it goes on from there.",
    ),
    (f"{runs.FOLDER}/*/*.jsonl", _runs_problem, "It is mended with the next run."),
    (
        f"{store.FOLDER}/*/{record_store.MANIFEST}",
        _manifest_problem,
        "It is made anew from the records.",
    ),
    (
        f"{store.FOLDER}/*/{record_store.BINDING}",
        _binding_problem,
        "It is read from the records instead.",
    ),
    (f"{project_index.FOLDER}/*.sqlite3", _index_problem, "It is made anew at the next use."),
)

Check = Callable[[Path], Iterator[Finding]]

CHECKS_OF_INSTALLATION: tuple[Check, ...] = (
    _check_packages,
    _check_tokenizer_tables,
    _check_user_data,
)
CHECKS_OF_DAEMON: tuple[Check, ...] = (_check_settings, _check_daemon, _check_log)
CHECKS_OF_STORED_FILES: tuple[Check, ...] = (_check_space, _check_folders, _check_stored_files)
