"""`creonowd check` — what an assembly would make of each file of a novel's `.creonow` folder.

Files are read as the sources read them and checked as the doctor checks them.
"""

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from creonowd import settings
from creonowd.cli.assemble import LAYERS
from creonowd.cli.client import (
    pad,
    sentence,
    show,
    terminal_safe,
    width,
    without_secrets,
    write,
)
from creonowd.cli.doctor import BAD, OK, Finding, check_project, paint
from creonowd.clock import make_clock
from creonowd.context.budget import BudgetProfile
from creonowd.context.candidates import Unit, count_fragments, redact_fragments
from creonowd.context.fragment import Fragment, Layer
from creonowd.context.text_tools import Memory, TextTools
from creonowd.errors import DaemonError, ErrorCode, Language, Wording
from creonowd.model import Model
from creonowd.providers.configured import Backends
from creonowd.skills.library import slug_of
from creonowd.sources.characters import Inject, entities_in, waiting_notes
from creonowd.sources.project_files import every_fragment
from creonowd.sources.synopsis import STORY_FILE
from creonowd.storage import stored_files
from creonowd.tokens.models import KnownTables
from creonowd.tokens.tables import list_tables
from creonowd.tokens.tokenizer import Tokenizers
from creonowd.workspace import budgets, projects
from creonowd.workspace.constraints import Constraints
from creonowd.workspace.creonow_tree import (
    PROJECT_FILE,
    SUFFIXES,
    TREE,
    CreonowFolder,
    Tree,
    folder_of,
)
from creonowd.workspace.projects import Project

MOST_FILES = 10_000
OWN_FOLDERS = ("cache", "conversations", "summaries")
SKILLS = f"{TREE}/skills/"

WHEN_ASKED = "asked"
WHEN_ROOM = "room"
WHEN_CHOSEN = "chosen"
WHEN_PROGRAM = "program"
WHEN_EMPTY = "empty"
WHEN_UNREAD = "unread"

_WHEN_TEXTS = {
    Inject.ALWAYS: Wording("always", "始终"),
    Inject.MENTIONED: Wording("when mentioned", "提到时"),
    Inject.MANUAL: Wording("by hand", "手动"),
    Inject.NEVER: Wording("never", "从不"),
    WHEN_ASKED: Wording("if the skill asks", "技能要求时"),
    WHEN_ROOM: Wording("while there is room", "有空位时"),
    WHEN_CHOSEN: Wording("when it is run", "运行时"),
    WHEN_PROGRAM: Wording("for the program", "供程序使用"),
    WHEN_EMPTY: Wording("nothing to send", "没有内容"),
    WHEN_UNREAD: Wording("nothing reads it", "不会被读取"),
}
_WHEN_OF_SOURCE = {
    "rules": Inject.ALWAYS,
    "constraints": Inject.ALWAYS,
    "settings": WHEN_ROOM,
    "outline": WHEN_ASKED,
    "threads": WHEN_ASKED,
    "memory": WHEN_ASKED,
}


class FileUse(Model, omit_defaults=False):
    """What an assembly makes of one file; `when` it is seen, `pieces` it has, `secrets` blacked out."""

    path: str
    layer: Layer | None
    when: str
    tokens: int
    pieces: int
    secrets: int
    since: str
    until: str


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "check",
        parents=[shared],
        description="List what an AI call would make of each file in .creonow: its layer, its "
        "tokens, when it is seen, where in the story it holds, and what is wrong with it.",
    )
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), metavar="DIR")
    parser.add_argument("--json", action="store_true", help="the same, for scripts")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print a line for each file; the exit status is 1 if a file cannot be used."""
    user_data = settings.user_data_dir(arguments.user_data)
    chinese = settings.console_language() is Language.CHINESE
    root = arguments.folder.expanduser().absolute()
    if not root.is_dir():
        wording = Wording("{} is not a folder.", "{} 不是文件夹。").format(root)
        raise DaemonError(ErrorCode.NOT_FOUND, wording)
    findings = [finding for finding in check_project(root) if finding.state != OK]
    uses = file_uses(root, user_data)
    if arguments.json:
        show(_as_json(uses, findings, chinese=chinese))
    else:
        colour = sys.stdout.isatty()
        write("".join(_lines(uses, findings, chinese=chinese, colour=colour)), painted=True)
    return int(any(finding.state == BAD for finding in findings))


def file_uses(root: Path, user_data: Path) -> list[FileUse]:
    """Return what an assembly makes of each file, by path."""
    clock = make_clock(deterministic=False)
    tree, project = Tree(clock), Project(project_id="", name=root.name, root=root)
    chosen = settings.load(user_data)
    redactor = settings.user_redactor(chosen, user_data)
    constraints = Constraints(tree, clock, redactor)
    tools = TextTools(
        _tokenizers(chosen, user_data).load(_encoding(chosen, user_data, root)),
        redactor,
        Memory(),
        size_limit=chosen.fragment_limit,
    )
    fragments = every_fragment(tree, constraints, project)
    units = count_fragments(redact_fragments(fragments, tools), tools)
    found: dict[str, list[Unit]] = defaultdict(list)
    for unit in units:
        found[_file_of(unit.fragment)].append(unit)
    cards = entities_in(tree.read_all_now(root, CreonowFolder.CHARACTERS))
    injected = {path: entity.inject for path, entity in cards.items()}
    injected |= waiting_notes(tree.read_all_now(root, CreonowFolder.SETTINGS))
    paths = {*_files(root), *found}
    return [_use(path, found.get(path, []), injected) for path in sorted(paths)]


def _tokenizers(chosen: settings.Settings, user_data: Path) -> Tokenizers:
    tables = Path(chosen.tokenizer_tables) if chosen.tokenizer_tables else None
    return Tokenizers(tables, known=KnownTables(list_tables(user_data)))


def _encoding(chosen: settings.Settings, user_data: Path, root: Path) -> str:
    """Return the encoding that an assembly would count with: of the back end's model, or the budget's."""
    known = KnownTables(list_tables(user_data))
    profile = _profile(user_data, root)
    backends = Backends(chosen, user_data, time.monotonic)
    model = backends.get(backends.chosen_name).model or profile.model
    return known.encoding_for(model, profile.tokenizer_id).encoding


def _profile(user_data: Path, root: Path) -> BudgetProfile:
    """Return the budget of the project, else the user's own, else the usual one."""
    try:
        mine = [one.project_id for one in projects.read(user_data) if one.root == root.resolve()]
    except (stored_files.DamagedFileError, DaemonError):
        mine = []
    for name in (*mine, budgets.DEFAULT):
        try:
            stored = budgets.load(user_data / budgets.FOLDER / f"{name}.json")
        except (stored_files.DamagedFileError, DaemonError):
            continue
        if stored is not None:
            return stored
    return BudgetProfile()


def _file_of(fragment: Fragment) -> str:
    return fragment.source_ref.partition("#")[0]


def _files(root: Path) -> Iterator[str]:
    """Yield the author's files in the tree; what the daemon keeps there is left out."""
    paths = (path for path in (root / TREE).rglob("*") if path.is_file())
    for path in islice(paths, MOST_FILES):
        inner = path.relative_to(root / TREE)
        if inner.parts[0] not in OWN_FOLDERS:
            yield path.relative_to(root).as_posix()


def _use(path: str, units: Sequence[Unit], injected: dict[str, Inject]) -> FileUse:
    fragments = [unit.fragment for unit in units]
    first = fragments[0] if fragments else None
    return FileUse(
        path=path,
        layer=None if first is None else first.layer,
        when=_time_of_use(path, first, injected),
        tokens=sum(unit.before_tokens for unit in units),
        pieces=len(units),
        secrets=sum(row.match_count for unit in units for row in unit.evidence),
        since=_common_place([fragment.since for fragment in fragments]),
        until=_common_place([fragment.until for fragment in fragments]),
    )


def _time_of_use(path: str, fragment: Fragment | None, injected: dict[str, Inject]) -> str:
    if fragment is not None and fragment.excluded is not None:
        return Inject.NEVER
    if path in injected:
        return injected[path] if fragment or injected[path] is Inject.NEVER else WHEN_EMPTY
    if fragment is not None:
        return _WHEN_OF_SOURCE[fragment.source]
    if path.startswith(SKILLS):
        return WHEN_CHOSEN if slug_of(path.removeprefix(SKILLS)) else WHEN_UNREAD
    if path in {STORY_FILE, PROJECT_FILE}:
        return WHEN_PROGRAM
    return WHEN_EMPTY if _is_read(path) else WHEN_UNREAD


def _is_read(path: str) -> bool:
    """Return whether sources read this file, though it offers nothing."""
    return any(
        path.startswith(f"{folder_of(scope)}/") and path.lower().endswith(suffixes)
        for scope, suffixes in SUFFIXES.items()
    )


def _common_place(places: list[str]) -> str:
    """Return a place that all pieces of a file have in common."""
    return places[0] if len(set(places)) == 1 else ""


def _as_json(
    uses: Sequence[FileUse], findings: Sequence[Finding], *, chinese: bool
) -> dict[str, Any]:
    by_path, general = _by_path(uses, findings)

    def problem(finding: Finding) -> dict[str, Any]:
        return finding.in_language(chinese=chinese) | {"line": finding.line}

    return {
        "files": [
            without_secrets(msgspec.to_builtins(use))
            | {"problems": [problem(one) for one in by_path[use.path]]}
            for use in uses
        ],
        "problems": [problem(finding) for finding in general],
    }


def _by_path(
    uses: Sequence[FileUse], findings: Sequence[Finding]
) -> tuple[dict[str, list[Finding]], list[Finding]]:
    """Divide findings into those of a file that is listed, and all others."""
    known = {use.path for use in uses}
    of_file: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.part in known:
            of_file[finding.part].append(finding)
    return of_file, [finding for finding in findings if finding.part not in known]


def _lines(
    uses: Sequence[FileUse], findings: Sequence[Finding], *, chinese: bool, colour: bool
) -> Iterator[str]:
    by_path, general = _by_path(uses, findings)
    rows = [_row(use, broken=bool(by_path[use.path]), chinese=chinese) for use in uses]
    widths = [max(map(width, column), default=0) for column in zip(*rows, strict=True)]
    for use, row in zip(uses, rows, strict=True):
        problems = by_path[use.path]
        mark = paint(BAD if problems else OK, colour=colour)
        path, layer, when, tokens, where = row
        cells = (
            pad(path, widths[0]),
            pad(layer, widths[1]),
            pad(when, widths[2]),
            pad(tokens, widths[3], right=True),
            where,
        )
        yield f"{mark} {'  '.join(cells).rstrip()}\n"
        for finding in problems:
            yield f"    → {sentence(finding.found.text(chinese=chinese))}\n"
    for finding in general:
        shown = terminal_safe(finding.in_language(chinese=chinese))
        yield f"{paint(finding.state, colour=colour)} {shown['part']}: {shown['found']}\n"
    bad = sum(finding.state == BAD for finding in findings)
    total = _TOTAL.format(len(uses), bad) if uses else _NO_TREE
    yield f"{total.text(chinese=chinese)}\n"


def _row(use: FileUse, *, broken: bool, chinese: bool) -> tuple[str, str, str, str, str]:
    layer = "–" if use.layer is None else LAYERS[use.layer].text(chinese=chinese)
    when = "–" if broken and use.layer is None else _WHEN_TEXTS[use.when].text(chinese=chinese)
    tokens = f"{use.tokens} tokens" if use.pieces else ""
    notes = [
        wording.format(value).text(chinese=chinese)
        for wording, value in (
            (_SINCE, use.since),
            (_UNTIL, use.until),
            (_PIECES, use.pieces if use.pieces > 1 else 0),
            (_SECRETS, use.secrets),
        )
        if value
    ]
    return sentence(use.path), layer, when, tokens, sentence(", ".join(notes))


_SINCE = Wording("from {}", "自 {}")
_UNTIL = Wording("until {}", "至 {}")
_PIECES = Wording("{} items", "{} 项")
_SECRETS = Wording("secrets blacked out: {}", "已隐去机密 {} 处")
_TOTAL = Wording("{} files, {} problems.", "{} 个文件，{} 个问题。")
_NO_TREE = Wording(
    "There is nothing in .creonow; `creonowd init` writes examples.",
    ".creonow 中没有文件；creonowd init 会写入示例。",
)
