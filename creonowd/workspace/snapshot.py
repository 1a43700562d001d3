"""What a project's folder looks like at one moment, to tell exactly what changed since.

Change notices alone do not suffice: they name temporary files, come too early for a new
folder, and are lost in a flood. So they only say where to look again.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from creonowd.model import Model
from creonowd.workspace.layers import enters, matters
from creonowd.workspace.opening import mark_of

Identity = tuple[int, int]


class Seen(Model):
    """One folder as it was: itself, its files that matter, and the folders to enter."""

    identity: Identity
    files: dict[str, tuple[int, ...]]
    folders: dict[str, Identity]


Snapshot = Mapping[str, Seen]


def take(
    root: Path, before: Snapshot | None = None, dirty: frozenset[str] = frozenset()
) -> Snapshot:
    """Look at a project, by project-relative folder; the project's own is `""`, if it is there.

    Given an earlier snapshot, only `dirty` folders and those that are new are looked into.
    """
    seen: dict[str, Seen] = {}
    waiting = [("", _identity(Path(os.path.realpath(root))))]
    while waiting:
        folder, identity = waiting.pop()
        old = before.get(folder) if before and folder not in dirty else None
        here = old if old and old.identity == identity else _look(root, folder, identity)
        if here is not None:
            seen[folder] = here
            waiting.extend((_join(folder, name), which) for name, which in here.folders.items())
    return seen


def difference(before: Snapshot, after: Snapshot) -> set[str]:
    """Tell which files came, went or changed, by project-relative path."""
    return {path for folder in before.keys() | after.keys() for path in _in(folder, before, after)}


def _in(folder: str, before: Snapshot, after: Snapshot) -> Iterator[str]:
    old, new = before.get(folder), after.get(folder)
    if old is new:
        return
    was = old.files if old else {}
    now = new.files if new else {}
    for name in was.keys() | now.keys():
        if was.get(name) != now.get(name):
            yield _join(folder, name)


def _look(root: Path, folder: str, identity: Identity | None) -> Seen | None:
    if identity is None:
        return None
    files: dict[str, tuple[int, ...]] = {}
    folders: dict[str, Identity] = {}
    try:
        with os.scandir(root / folder) as entries:
            for entry in entries:
                _note(entry, folder, files, folders)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    return Seen(identity=identity, files=files, folders=folders)


def _note(
    entry: os.DirEntry[str],
    folder: str,
    files: dict[str, tuple[int, ...]],
    folders: dict[str, Identity],
) -> None:
    # Not entry.stat(): on Windows that leaves out what tells one file from another.
    if entry.is_dir(follow_symlinks=False):
        identity = _identity(Path(entry.path)) if enters(folder, entry.name) else None
        if identity:
            folders[entry.name] = identity
    elif matters(folder, entry.name):
        try:
            status = os.lstat(entry.path)
        except OSError:
            return
        if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
            files[entry.name] = mark_of(status)


def _identity(folder: Path) -> Identity | None:
    try:
        status = folder.lstat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISDIR(status.st_mode) else None


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
