"""`creonowd init` — a commented `.creonow` folder to begin with, in the author's language."""

import argparse
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from creonowd.cli.client import terminal_safe, write
from creonowd.errors import Language, Wording
from creonowd.settings import console_language, user_data_dir
from creonowd.workspace.creonow_tree import DEFAULTS, PROJECT_FILE, PROJECT_VERSION, TREE, make_tree
from creonowd.workspace.projects import project_root

TEMPLATES = Path(__file__).parents[1] / "templates"
LANGUAGES = ("en", "zh")


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "init",
        parents=[shared],
        description="Write a commented .creonow folder into the folder of a novel. No file that is "
        "there is changed, and nothing of the examples is sent to an AI before you edit them.",
    )
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), metavar="DIR")
    parser.add_argument(
        "--language",
        choices=LANGUAGES,
        help="of the comments and of prompts (default: the terminal's; prompts follow the novel)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write what is missing, and print what was written and what was there."""
    chinese = console_language() is Language.CHINESE
    root = _folder(arguments.folder.expanduser().absolute(), user_data_dir(arguments.user_data))
    files = template(arguments.language or console_language().value)
    if arguments.language:
        chosen = {"version": PROJECT_VERSION, "language": arguments.language}
        files[PROJECT_FILE.removeprefix(f"{TREE}/")] = json.dumps(chosen).encode() + b"\n"
    made = set(make_tree(root, files))
    paths = [f"{TREE}/{name}" for name in files]
    lines = _report(root, made, paths)
    write("".join(f"{terminal_safe(line.text(chinese=chinese))}\n" for line in lines))
    return 0


def template(language: str) -> dict[str, bytes]:
    """Return the files of a new folder, by their paths in it."""
    place = TEMPLATES / language
    own = {
        path.relative_to(place).as_posix(): path.read_bytes()
        for path in sorted(place.rglob("*"))
        if path.is_file()
    }
    return dict(sorted((DEFAULTS | own).items()))


def _folder(folder: Path, user_data: Path) -> Path:
    """Return the folder of a project, made if only it itself is missing; refuse what a project may not be."""
    made = not folder.exists() and folder.parent.is_dir()
    if made:
        folder.mkdir()
    try:
        return project_root(str(folder), user_data)
    except BaseException:
        if made:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise


def _report(root: Path, made: set[str], paths: list[str]) -> Iterator[Wording]:
    written = [path for path in paths if path in made]
    kept = [path for path in paths if path not in made]
    yield (_WROTE if written else _NOTHING).format(len(written), root)
    for path in written:
        yield Wording("  + {}", "  + {}").format(path)
    if kept:
        yield _KEPT
    for path in kept:
        yield Wording("  = {}", "  = {}").format(path)
    yield _NEXT.format(f"{TREE}/README.md", root)


_WROTE = Wording("Wrote {} files in {}:", "在 {1} 写入了 {0} 个文件：")
_NOTHING = Wording(
    "Nothing is missing in {1}; nothing was written.", "{1} 中没有缺少的文件，未写入。"
)
_KEPT = Wording("Were there already, and are as they were:", "已经存在，未作改动：")
_NEXT = Wording(
    "{} says what goes where. See what an AI call would make of it:  creonowd check {}",
    "{} 说明什么写在哪里。查看各文件的去向：creonowd check {}",
)
