"""The documents that a project has on disk: text files that are not hidden, linked or ignored.

Reads names and ignore files, never a document. Blocks its thread.
"""

import contextlib
import os
import re
import stat
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from creonowd.storage.safe_folder import problem_with_name
from creonowd.workspace.creonow_tree import is_document, is_relevant_folder

LARGEST = 16 * 1024 * 1024
IGNORE_FILES = (".gitignore", ".ignore")

_LARGEST_IGNORE_FILE = 64 * 1024

_WILDCARDS = {"**/": "(?:.*/)?", "/**": "/.*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_GLOB_PARTS = re.compile(r"\*\*/|/\*\*|\*\*|\*|\?|\[!?[^\]]+\]|\\.|.")


def documents_in(root: Path) -> dict[str, os.stat_result]:
    """Return a project's documents by project-relative path; what vanishes meanwhile is skipped."""
    return dict(_walk(root))


def is_excluded(root: Path, path: str) -> bool:
    """Return whether the path of an open document is hidden or ignored."""
    names = path.split("/")
    if any(name.startswith(".") for name in names):
        return True
    rules = IgnoreRules()
    for depth, name in enumerate(names):
        if problem_with_name(name):
            return False
        rules = _with_ignore_files(rules, root, "/".join(names[:depth]))
        is_folder = depth < len(names) - 1
        if rules.ignore("/".join(names[: depth + 1]), is_folder=is_folder):
            return True
    return False


def _walk(root: Path) -> Iterator[tuple[str, os.stat_result]]:
    folders: list[tuple[str, IgnoreRules]] = [("", IgnoreRules())]
    while folders:
        folder, above = folders.pop()
        rules = _with_ignore_files(above, root, folder)
        for entry in _scan(root / folder):
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.name.startswith(".") or entry.is_symlink():
                continue
            if entry.is_dir(follow_symlinks=False):
                if is_relevant_folder(folder, entry.name) and not rules.ignore(
                    path, is_folder=True
                ):
                    folders.append((path, rules))
            elif is_document(path) and not rules.ignore(path, is_folder=False):
                # Not entry.stat(): on Windows that lacks what distinguishes files.
                with contextlib.suppress(OSError):
                    status = os.stat(entry.path, follow_symlinks=False)  # noqa: PTH116
                    if stat.S_ISREG(status.st_mode):
                        yield path, status


def _scan(folder: Path) -> list[os.DirEntry[str]]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        return list(entries)
    return []


def _with_ignore_files(rules: "IgnoreRules", root: Path, folder: str) -> "IgnoreRules":
    for name in IGNORE_FILES:
        path = root / folder / name
        with contextlib.suppress(OSError):
            if stat.S_ISREG(path.lstat().st_mode):
                with path.open("rb") as file:
                    text = file.read(_LARGEST_IGNORE_FILE).decode("utf-8-sig", "replace")
                rules = rules.inside(folder, text)
    return rules


class IgnorePattern(NamedTuple):
    """One line of an ignore file, for paths relative to the folder it lies in."""

    matches: Callable[[str], object]
    folders_only: bool
    is_exception: bool


class IgnoreRules(NamedTuple):
    """The ignore files of a folder and those above it: where each lies, and its patterns."""

    levels: tuple[tuple[str, tuple[IgnorePattern, ...]], ...] = ()

    def inside(self, folder: str, text: str) -> "IgnoreRules":
        """Return the rules with an ignore file added that lies in `folder`."""
        return IgnoreRules((*self.levels, (folder, _patterns(text))))

    def ignore(self, path: str, *, is_folder: bool) -> bool:
        """Return whether a project-relative path is ignored; the last pattern to match decides."""
        ignored = False
        for folder, patterns in self.levels:
            below = path.removeprefix(f"{folder}/") if folder else path
            for pattern in patterns:
                if (is_folder or not pattern.folders_only) and pattern.matches(below):
                    ignored = not pattern.is_exception
        return ignored


@lru_cache(maxsize=256)
def _patterns(text: str) -> tuple[IgnorePattern, ...]:
    patterns: list[IgnorePattern] = []
    for line in text.splitlines():
        stripped = line.rstrip()
        if not stripped or stripped.startswith("#"):
            continue
        glob = stripped.removeprefix("!").removeprefix("\\")
        matches = _compile(_expression(glob.rstrip("/")))
        if matches is not None:
            patterns.append(IgnorePattern(matches, glob.endswith("/"), stripped.startswith("!")))
    return tuple(patterns)


def _compile(expression: str) -> Callable[[str], object] | None:
    import re2

    engine: Any = re2
    options: Any = engine.Options()
    options.log_errors = False
    try:
        return engine.compile(expression, options).fullmatch
    except engine.error:
        return None


def _expression(glob: str) -> str:
    expression = "".join(map(_part_expression, _GLOB_PARTS.findall(glob.removeprefix("/"))))
    return expression if "/" in glob else f"(?:.*/)?{expression}"


def _part_expression(part: str) -> str:
    if part in _WILDCARDS:
        return _WILDCARDS[part]
    if part.startswith("[") and len(part) > 1:
        return part.replace("[!", "[^").replace("\\", "\\\\")
    return re.escape(part[-1])
