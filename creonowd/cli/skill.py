"""`creonowd skill lint` — check skills before anyone runs them."""

import argparse
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from creonowd.cli.client import sentence, show, write
from creonowd.errors import DaemonError, ErrorCode, Language, Wording
from creonowd.model import Model
from creonowd.redaction import Redactor
from creonowd.settings import console_language
from creonowd.skills.library import FILE, slug_of
from creonowd.skills.skill import parse
from creonowd.storage import stored_files
from creonowd.storage.front_matter import Fault
from creonowd.workspace.creonow_tree import TREE


class LintResult(Model):
    """One file and every fault in it."""

    path: str
    faults: tuple[Fault, ...]


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser = commands.add_parser("skill", description="Check skills before anyone runs them.")
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    lint = actions.add_parser(
        "lint",
        parents=[shared],
        help="check SKILL.md files",
        description="Check SKILL.md files, folders of skills, or the skills of a project.",
    )
    lint.add_argument(
        "paths", metavar="PATH", nargs="*", type=Path, default=[Path()], help="(default: here)"
    )
    lint.add_argument("--json", action="store_true", help="print JSON")
    lint.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print every fault as `path:line: key: message`; the exit status is 1 if there is any."""
    results = [_lint(file) for path in arguments.paths for file in _files(path)]
    chinese = console_language() is Language.CHINESE
    if arguments.json:
        show([_visible_faults(one, chinese=chinese) for one in results])
    else:
        write("".join(line for one in results for line in _lines(one, chinese=chinese)))
    return int(any(one.faults for one in results))


def _files(path: Path) -> list[Path]:
    """Return the skills at a path: a file, a project, or a folder with skills below it."""
    skills = path / TREE / "skills"
    if path.is_file():
        return [path]
    if skills.is_dir():
        found = [f for f in skills.rglob("*.md") if slug_of(f.relative_to(skills).as_posix())]
    else:
        found = list(path.rglob(FILE)) if path.is_dir() else []
    if not found:
        raise DaemonError(
            ErrorCode.NOT_FOUND,
            _NO_SKILL.format(path, FILE),
        )
    return sorted(found)


def _lint(path: Path) -> LintResult:
    try:
        data = stored_files.content(path, limit=stored_files.LIMIT_BYTES)
        if data is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        faults = parse(data).faults
    except OSError as error:
        faults = (Fault(key="", wording=_UNREADABLE.format(f"{error.strerror}.")),)
    except DaemonError as error:
        faults = (Fault(key="", wording=_UNREADABLE.format(error.wording)),)
    return LintResult(path=str(path), faults=faults)


_NO_SKILL = Wording(
    "There is no skill at {}; name a {}, a folder that holds some, or a project.",
    "{} 处没有技能；请指定一个 {}、含有技能的文件夹，或项目。",
)
_UNREADABLE = Wording("The file cannot be read: {}", "文件无法读取：{}")
_FINE = Wording("ok", "没有问题")


def _visible_faults(result: LintResult, *, chinese: bool) -> dict[str, Any]:
    redactor = Redactor()
    faults = [
        {
            "key": redactor.hide_secrets(fault.key),
            "message": redactor.hide_secrets(fault.wording.text(chinese=chinese)),
            "line": fault.line,
        }
        for fault in result.faults
    ]
    return {"path": redactor.hide_secrets(result.path), "faults": faults}


def _lines(result: LintResult, *, chinese: bool) -> Iterator[str]:
    path = sentence(result.path)
    if not result.faults:
        yield f"{path}: {_FINE.text(chinese=chinese)}\n"
    for fault in result.faults:
        line = "" if fault.line is None else f"{fault.line}:"
        key = f" {sentence(fault.key)}:" if fault.key else ""
        yield f"{path}:{line}{key} {sentence(fault.wording.text(chinese=chinese))}\n"
