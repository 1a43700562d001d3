"""Walk a folder of a project without ever leaving it.

Knows names, links and files; knows nothing of scopes and never reads a file.
"""

import os
import stat
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path

from creonowd.workspace.opening import lies_inside
from creonowd.workspace.paths import problem_with_name

EFFECTIVE = os.access in os.supports_effective_ids
Found = tuple[str, os.stat_result]


def files_below(
    root: Path, folder: str, wanted: Callable[[str], bool], closed: list[str] | None = None
) -> list[Found]:
    """Find the plain files below `folder` whose name is wanted, as sorted project-relative paths.

    Hidden names and names that no client could ask for are passed over. Links to folders are
    not followed; a link to a file counts if the file lies below `folder` too. What vanishes
    during the walk was never there; folders that may not be looked into are added to `closed`.
    """
    place = f"{root}{os.sep}{folder}"
    found: list[Found] = []
    waiting = [(place, folder)]
    while waiting:
        where, prefix = waiting.pop()
        if (entries := _scan(where)) is None:
            if closed is not None:
                closed.append(prefix)
            continue
        for entry in entries:
            name = entry.name
            if name.startswith(".") or problem_with_name(name):
                continue
            if entry.is_dir(follow_symlinks=False):
                waiting.append((entry.path, f"{prefix}/{name}"))
            elif wanted(name) and (status := _plain_file(entry, place)):
                found.append((f"{prefix}/{name}", status))
    return sorted(found, key=itemgetter(0))


def _scan(where: str) -> list[os.DirEntry[str]] | None:
    """List a folder; None if this user may not, in part or at all."""
    try:
        with os.scandir(where) as entries:
            found = list(entries)
        if found and not os.access(where, os.X_OK, effective_ids=EFFECTIVE):
            return None
    except (FileNotFoundError, NotADirectoryError):
        return []
    except PermissionError:
        return None
    return found


def _plain_file(entry: os.DirEntry[str], place: str) -> os.stat_result | None:
    try:
        if entry.is_symlink() and not lies_inside(
            os.path.realpath(entry.path), os.path.realpath(place)
        ):
            return None
        # Not entry.stat(): on Windows that leaves out what tells one file from another.
        status = os.stat(entry.path)  # noqa: PTH116
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None
