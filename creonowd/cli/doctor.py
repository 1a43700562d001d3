"""`creonowd doctor` — what is wrong with this installation or project, and how to mend it."""

import argparse
import os
import re
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

import msgspec

from creonowd import __version__, settings
from creonowd.cli import last_end, stores
from creonowd.cli.client import connect
from creonowd.cli.finding import BAD, NOTE, OK, Finding
from creonowd.cli.output import show, write
from creonowd.daemon import endpoint
from creonowd.errors import DaemonError
from creonowd.skills import skill
from creonowd.skills.library import FILE
from creonowd.storage.safe_folder import EFFECTIVE
from creonowd.tokens.tables import ENCODINGS, TableError, packaged_tables, verify
from creonowd.workspace import constraint_file

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
        findings += [*_daemon(user_data), *last_end.look(user_data), *stores.look(user_data)]
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
