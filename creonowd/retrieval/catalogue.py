"""Which documents a project has on disk: text files, less what is hidden, linked or ignored.

Reads names and ignore files, never a document. Blocks its thread.
"""

import contextlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from creonowd.storage.relative_paths import problem_with_name
from creonowd.workspace.creonow_tree import is_document, is_relevant_folder

FILES = (".gitignore", ".ignore")

_WILD = {"**/": "(?:.*/)?", "/**": "/.*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_PARTS = re.compile(r"\*\*/|/\*\*|\*\*|\*|\?|\[!?[^\]]+\]|\\.|.")


class IgnorePattern(NamedTuple):
    """One line of an ignore file, for paths relative to the folder it lies in."""

    fits: Callable[[str], object]
    folders_only: bool
    keeps: bool


class IgnoreRules(NamedTuple):
    """The ignore files that hold for a folder: where each lies, and its patterns, outermost first."""

    levels: tuple[tuple[str, tuple[IgnorePattern, ...]], ...] = ()

    def inside(self, folder: str, text: str) -> "IgnoreRules":
        """Add the rules of an ignore file that lies in `folder`."""
        return IgnoreRules((*self.levels, (folder, _patterns(text))))

    def ignore(self, path: str, *, is_folder: bool) -> bool:
        """Tell whether a project-relative path is left out; the last pattern that fits decides."""
        ignored = False
        for folder, patterns in self.levels:
            below = path.removeprefix(f"{folder}/") if folder else path
            for pattern in patterns:
                if (is_folder or not pattern.folders_only) and pattern.fits(below):
                    ignored = not pattern.keeps
        return ignored


@lru_cache(maxsize=256)
def _patterns(text: str) -> tuple[IgnorePattern, ...]:
    return tuple(_parsed(text.splitlines()))


def _parsed(lines: Iterable[str]) -> Iterable[IgnorePattern]:
    for line in lines:
        said = line.rstrip()
        if not said or said.startswith("#"):
            continue
        keeps = said.startswith("!")
        glob = said.removeprefix("!").removeprefix("\\")
        folders_only = glob.endswith("/")
        fits = _compiled(_expression(glob.rstrip("/")))
        if fits is not None:
            yield IgnorePattern(fits, folders_only, keeps)


def _compiled(expression: str) -> Callable[[str], object] | None:
    import re2

    engine: Any = re2
    options: Any = engine.Options()
    options.log_errors = False
    try:
        return engine.compile(expression, options).fullmatch
    except engine.error:
        return None


def _expression(glob: str) -> str:
    anchored = "/" in glob
    spelled = "".join(map(_spelled, _PARTS.findall(glob.removeprefix("/"))))
    return spelled if anchored else f"(?:.*/)?{spelled}"


def _spelled(part: str) -> str:
    if part in _WILD:
        return _WILD[part]
    if part.startswith("[") and len(part) > 1:
        return part.replace("[!", "[^").replace("\\", "\\\\")
    return re.escape(part[-1])


LARGEST = 16 * 1024 * 1024

_LARGEST_RULES = 64 * 1024

Listed = dict[str, os.stat_result]


def documents_in(root: Path) -> Listed:
    """List a project's documents by project-relative path; what vanishes meanwhile was never there."""
    return dict(_walk(root))


def is_left_out(root: Path, path: str) -> bool:
    """Tell whether what an editor calls so lies where no documents are: hidden or ignored."""
    names = path.split("/")
    if any(name.startswith(".") for name in names):
        return True
    rules = IgnoreRules()
    for depth, name in enumerate(names):
        if problem_with_name(name):
            return False
        rules = _rules(root, "/".join(names[:depth]), rules)
        is_folder = depth < len(names) - 1
        if rules.ignore("/".join(names[: depth + 1]), is_folder=is_folder):
            return True
    return False


def _walk(root: Path) -> Iterator[tuple[str, os.stat_result]]:
    waiting: list[tuple[str, IgnoreRules]] = [("", IgnoreRules())]
    while waiting:
        folder, above = waiting.pop()
        rules = _rules(root, folder, above)
        for entry in _scan(root / folder):
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.name.startswith(".") or entry.is_symlink():
                continue
            if entry.is_dir(follow_symlinks=False):
                if is_relevant_folder(folder, entry.name) and not rules.ignore(
                    path, is_folder=True
                ):
                    waiting.append((path, rules))
            elif is_document(path) and not rules.ignore(path, is_folder=False):
                yield from _plain(path, entry)


def _scan(folder: Path) -> list[os.DirEntry[str]]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        return list(entries)
    return []


def _rules(root: Path, folder: str, rules: IgnoreRules) -> IgnoreRules:
    for name in FILES:
        place = root / folder / name
        with contextlib.suppress(OSError):
            if stat.S_ISREG(place.lstat().st_mode):
                with place.open("rb") as file:
                    said = file.read(_LARGEST_RULES).decode("utf-8-sig", "replace")
                rules = rules.inside(folder, said)
    return rules


def _plain(path: str, entry: os.DirEntry[str]) -> Iterator[tuple[str, os.stat_result]]:
    # Not entry.stat(): on Windows that leaves out what tells one file from another.
    with contextlib.suppress(OSError):
        status = os.stat(entry.path, follow_symlinks=False)  # noqa: PTH116
        if stat.S_ISREG(status.st_mode):
            yield path, status
