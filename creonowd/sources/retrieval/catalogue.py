"""Which documents a project has on disk: text files, less what is hidden, linked or ignored.

Reads names and ignore files, never a document. Blocks its thread.
"""

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from creonowd.sources.retrieval.ignored import FILES, Rules
from creonowd.workspace.layers import enters, is_document

LARGEST = 16 * 1024 * 1024

_LARGEST_RULES = 64 * 1024

Listed = dict[str, os.stat_result]


def documents_in(root: Path) -> Listed:
    """List a project's documents by project-relative path; what vanishes meanwhile was never there."""
    return dict(_walk(root))


def _walk(root: Path) -> Iterator[tuple[str, os.stat_result]]:
    waiting: list[tuple[str, Rules]] = [("", Rules())]
    while waiting:
        folder, above = waiting.pop()
        entries = _scan(root / folder)
        rules = _rules(entries, folder, above)
        for entry in entries:
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


def _rules(entries: list[os.DirEntry[str]], folder: str, rules: Rules) -> Rules:
    for entry in sorted(entries, key=lambda entry: entry.name):
        if entry.name in FILES and entry.is_file(follow_symlinks=False):
            with contextlib.suppress(OSError), Path(entry.path).open("rb") as file:
                text = file.read(_LARGEST_RULES).decode("utf-8-sig", "replace")
                rules = rules.inside(folder, text)
    return rules


def _plain(path: str, entry: os.DirEntry[str]) -> Iterator[tuple[str, os.stat_result]]:
    # Not entry.stat(): on Windows that leaves out what tells one file from another.
    with contextlib.suppress(OSError):
        status = os.stat(entry.path, follow_symlinks=False)  # noqa: PTH116
        if stat.S_ISREG(status.st_mode):
            yield path, status
