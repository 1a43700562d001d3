"""Which documents a project has on disk: text files, less what is hidden, linked or ignored.

Reads names and ignore files, never a document. Blocks its thread.
"""

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from creonowd.sources.retrieval.ignored import FILES, Rules
from creonowd.storage.relative_paths import problem_with_name
from creonowd.workspace.creonow_tree import enters, is_document

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
    rules = Rules()
    for depth, name in enumerate(names):
        if problem_with_name(name):
            return False
        rules = _rules(root, "/".join(names[:depth]), rules)
        is_folder = depth < len(names) - 1
        if rules.ignore("/".join(names[: depth + 1]), is_folder=is_folder):
            return True
    return False


def _walk(root: Path) -> Iterator[tuple[str, os.stat_result]]:
    waiting: list[tuple[str, Rules]] = [("", Rules())]
    while waiting:
        folder, above = waiting.pop()
        rules = _rules(root, folder, above)
        for entry in _scan(root / folder):
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.name.startswith(".") or entry.is_symlink():
                continue
            if entry.is_dir(follow_symlinks=False):
                if enters(folder, entry.name) and not rules.ignore(path, is_folder=True):
                    waiting.append((path, rules))
            elif is_document(path) and not rules.ignore(path, is_folder=False):
                yield from _plain(path, entry)


def _scan(folder: Path) -> list[os.DirEntry[str]]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        return list(entries)
    return []


def _rules(root: Path, folder: str, rules: Rules) -> Rules:
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
