"""Walk a folder of a project without ever leaving it.

Knows names, links and files; knows nothing of scopes and never reads a file.
"""

import os
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from creonowd.workspace.opening import lies_inside
from creonowd.workspace.paths import problem_with_name

EFFECTIVE = os.access in os.supports_effective_ids
Found = tuple[str, os.stat_result]

# Asked from its folder a file is found in less time. Windows cannot do that, and there an entry
# leaves out what tells one file from another.
_FROM_FOLDER = os.scandir in os.supports_fd and os.name != "nt"


class _Seen(NamedTuple):
    """What lies in one folder: folders, links, and files with what tells their states apart."""

    folders: list[str]
    links: list[str]
    files: list[Found]


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
        seen = _look(where, wanted)
        if seen is None:
            if closed is not None:
                closed.append(prefix)
            continue
        waiting += [(f"{where}{os.sep}{name}", f"{prefix}/{name}") for name in seen.folders]
        linked = ((name, _behind(f"{where}{os.sep}{name}", place)) for name in seen.links)
        plain = [*seen.files, *((name, status) for name, status in linked if status)]
        found += [(f"{prefix}/{name}", status) for name, status in plain]
    return sorted(found, key=itemgetter(0))


def _look(where: str, wanted: Callable[[str], bool]) -> _Seen | None:
    """Look into a folder; None if this user may not, in part or at all."""
    seen = _Seen([], [], [])
    try:
        with _opened(where) as place, os.scandir(place) as entries:
            found = [entry for entry in entries if not _is_passed_over(entry.name)]
            if found and not os.access(where, os.X_OK, effective_ids=EFFECTIVE):
                return None
            for entry in found:
                if entry.is_dir(follow_symlinks=False):
                    seen.folders.append(entry.name)
                elif wanted(entry.name):
                    _note(entry, seen)
    except (FileNotFoundError, NotADirectoryError):
        return _Seen([], [], [])
    except PermissionError:
        return None
    return seen


@contextmanager
def _opened(where: str) -> Generator[str | int]:
    if not _FROM_FOLDER:
        yield where
        return
    descriptor = os.open(where, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _note(entry: "os.DirEntry[str]", seen: _Seen) -> None:
    if entry.is_symlink():
        seen.links.append(entry.name)
        return
    try:
        status = entry.stat(follow_symlinks=False) if _FROM_FOLDER else Path(entry.path).stat()
    except OSError:
        return
    if stat.S_ISREG(status.st_mode):
        seen.files.append((entry.name, status))


def _behind(link: str, place: str) -> os.stat_result | None:
    """Tell the state of the file that a link leads to, if it lies below the place too."""
    try:
        if not lies_inside(os.path.realpath(link), os.path.realpath(place)):
            return None
        status = os.stat(link)  # noqa: PTH116 - as text, see `read_inside`
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None


@lru_cache(maxsize=8192)
def _is_passed_over(name: str) -> bool:
    return name.startswith(".") or problem_with_name(name) is not None
