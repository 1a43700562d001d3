"""The `.creonow` folder of a project: making it, listing it, reading it.

Knows the tree of a project and its default files; knows nothing of what the texts mean.
"""

import errno
import os
import stat
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import Literal

import structlog
from anyio import to_thread

from creonowd.clock import Clock
from creonowd.errors import DaemonError, ErrorCode, disk_error
from creonowd.memo import Memo
from creonowd.model import Model
from creonowd.storage import atomic
from creonowd.storage.atomic import is_temporary
from creonowd.storage.file_cache import CAPACITY_BYTES, FileCache
from creonowd.storage.relative_paths import (
    TREE,
    CreonowFolder,
    folder_of,
    in_scope,
    problem_with_name,
)
from creonowd.storage.safe_folder import (
    EFFECTIVE,
    FileSnapshot,
    Found,
    files_below,
    is_plain,
    lies_inside,
    mark_of,
    opened_door,
    read_inside,
    real_folder,
    refuse_links,
)
from creonowd.workspace.projects import Project

LIMIT_BYTES = 4 * 1024 * 1024
FILE_WEIGHT = 500
FOLDERS = ("rules", "settings", "skills", "characters", "conversations", "cache")
DEFAULTS = {
    "rules/style.md": b"# Style\n\n",
    "rules/terminology.json": b'{\n  "terms": []\n}\n',
    "rules/constraints.json": b'{\n  "version": 1,\n  "items": []\n}\n',
}
SUFFIXES = {
    CreonowFolder.RULES: (".md", ".txt", ".json"),
    CreonowFolder.SETTINGS: (".md", ".txt", ".json"),
    CreonowFolder.CHARACTERS: (".md", ".json"),
}

Seen = tuple[list[tuple[str, tuple[int, ...]]], list[str]]

log = structlog.get_logger(__name__)


class FileInfo(Model):
    """A file of the tree; `path` is project-relative with `/` between its names."""

    path: str
    size_bytes: int
    updated_at_ms: int


class TreeFile(FileInfo, gc=False):
    """A file of the tree and its bytes, as they are on disk."""

    data: bytes


class Problem(Model, eq=False):
    """A file that could not be used, and why; the same failure again is the same problem."""

    path: str
    error: DaemonError

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Problem) and self._told == other._told

    def __hash__(self) -> int:
        return hash((self.path, self.error.code))

    @property
    def _told(self) -> tuple[object, ...]:
        return self.path, self.error.code, self.error.details


class Folder(Model, cache_hash=True):
    """All that one scope holds: what could be read, and what could not.

    A folder in which nothing changed is the very same value again.
    """

    files: tuple[TreeFile, ...] = ()
    problems: tuple[Problem, ...] = ()


class Tree:
    """Reads the trees of all projects; what has not changed on disk is not read again."""

    def __init__(self, clock: Clock) -> None:
        self._cache = FileCache(clock)
        self._folders: Memo[tuple[Path, CreonowFolder], tuple[Seen, Folder]] = Memo(
            CAPACITY_BYTES, _weigh
        )

    async def ensure(self, project: Project) -> None:
        """Make what is missing of the tree; nothing that exists is changed."""
        made = await to_thread.run_sync(make_tree, project.root)
        log.info("context_ensure", project_id=project.project_id, made=made)

    async def exists(self, project: Project) -> bool:
        """Tell whether the project has its tree."""
        return await to_thread.run_sync(_is_folder, project.root / TREE)

    async def list(self, project: Project, scope: CreonowFolder) -> list[FileInfo]:
        """List the files of a scope, recursively and sorted; nothing if there is no tree."""
        return await to_thread.run_sync(_listed, project.root, scope)

    async def read(self, project: Project, scope: CreonowFolder, path: str) -> TreeFile:
        """Read one file that a client named."""
        in_scope(path, scope)
        return await to_thread.run_sync(self.read_now, project.root, scope, path)

    async def read_all(self, project: Project, scope: CreonowFolder) -> Folder:
        """Read every file of a scope in one go; a file that fails is a problem, not a failure."""
        return await to_thread.run_sync(
            self.read_all_now, project.root, scope, abandon_on_cancel=True
        )

    @property
    def reads(self) -> int:
        """How many files were really read."""
        return self._cache.reads

    def read_now(self, root: Path, scope: CreonowFolder, path: str) -> TreeFile:
        """Read one file whose path was checked before; for those who are in a thread already."""
        folder = folder_of(scope)
        with atomic.disk_errors(path):
            status = _status_inside(root, folder, path)
            if status is None:
                return _file(path, read_inside(root, folder, path, limit=LIMIT_BYTES))
            opened = self._cache.fetch(root, folder, path, status, limit=LIMIT_BYTES)
        return _file(path, opened)

    def read_all_now(self, root: Path, scope: CreonowFolder) -> Folder:
        """Read every file of a scope; for those who are in a thread already."""
        closed: list[str] = []
        found = _found(root, scope, closed)
        marks = [(path, mark_of(status)) for path, status in found]
        known = self._folders.recall((root, scope))
        if known is not None and known[0] == (marks, closed):
            return known[1]
        folder = self._read_files(root, folder_of(scope), found, closed)
        if all(self._cache.holds(root, path, mark) for path, mark in marks):
            self._folders.put((root, scope), ((marks, closed), folder))
        return folder

    def _read_files(
        self, root: Path, folder: str, found: Sequence[Found], closed: Sequence[str]
    ) -> Folder:
        files: list[TreeFile] = []
        problems = [Problem(path=path, error=disk_error(_not_allowed(), path)) for path in closed]
        for inside, beside in groupby(found, key=_folder_of):
            with opened_door(root, folder, inside) as door:
                for path, status in beside:
                    try:
                        opened = self._cache.fetch(
                            root, folder, path, status, limit=LIMIT_BYTES, door=door
                        )
                        files.append(_file(path, opened))
                    except DaemonError as error:
                        problems.append(Problem(path=path, error=error))
        return Folder(files=tuple(files), problems=tuple(problems))


def make_tree(root: Path) -> int:
    """Make the folders and default files that are missing, and tell how many."""
    if not root.is_dir():
        raise _gone()
    made = sum(make_folder(root, folder) for folder in (TREE, *(f"{TREE}/{f}" for f in FOLDERS)))
    for name, content in DEFAULTS.items():
        path = f"{TREE}/{name}"
        if (root / path).is_dir():
            raise _in_the_way(path, "a file")
        with atomic.disk_errors(path):
            made += atomic.create(root / path, content, mode=atomic.SHARED)
    return made


def make_folder(root: Path, folder: str) -> bool:
    """Make a folder of the tree unless it is there; refuse what stands in its way."""
    place = root / folder
    try:
        place.mkdir()
    except FileExistsError:
        if not place.is_dir():
            raise _in_the_way(folder, "a folder") from None
        with atomic.disk_errors(folder):
            real_folder(root, folder)
        return False
    except OSError as error:
        raise disk_error(error, folder) from error
    return True


def _is_folder(place: Path) -> bool:
    return place.is_dir() and not place.is_symlink()


def _gone() -> DaemonError:
    return DaemonError(
        ErrorCode.NOT_FOUND, "The project's folder is gone; bring it back or choose another."
    )


def _in_the_way(path: str, wanted: str) -> DaemonError:
    return DaemonError(
        ErrorCode.IO_ERROR,
        f"{path} must be {wanted}; move what stands there and try again.",
        path=path,
        reason="in_the_way",
    )


def _listed(root: Path, scope: CreonowFolder) -> list[FileInfo]:
    return [
        FileInfo(
            path=path, size_bytes=status.st_size, updated_at_ms=status.st_mtime_ns // 1_000_000
        )
        for path, status in _found(root, scope)
    ]


def _status_inside(root: Path, folder: str, path: str) -> os.stat_result | None:
    """Look at a plain file that surely lies in the folder; None leaves it to opening it to tell."""
    place = f"{root}{os.sep}{path}"
    plain = is_plain(root, path)
    if not plain and not lies_inside(os.path.realpath(place), real_folder(root, folder)):
        return None
    try:
        status = os.stat(place)  # noqa: PTH116 - as text, see `read_inside`
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def _weigh(_place: tuple[Path, CreonowFolder], known: tuple[Seen, Folder]) -> int:
    return sum(FILE_WEIGHT + file.size_bytes for file in known[1].files)


def _found(root: Path, scope: CreonowFolder, closed: list[str] | None = None) -> list[Found]:
    folder = folder_of(scope)
    place = f"{root}{os.sep}{folder}"
    with atomic.disk_errors(folder):
        try:
            os.lstat(place)
        except (FileNotFoundError, NotADirectoryError):
            if root.is_dir():
                return []
            raise _gone() from None
        if not os.path.isdir(place):  # noqa: PTH112 - as text, see `read_inside`
            raise _in_the_way(folder, "a folder")
        refuse_links(root, folder)
        if not os.access(place, os.R_OK | os.X_OK, effective_ids=EFFECTIVE):
            raise _not_allowed()
    suffixes = SUFFIXES[scope]
    return files_below(root, folder, lambda name: name.lower().endswith(suffixes), closed)


def _not_allowed() -> PermissionError:
    return PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _folder_of(found: Found) -> str:
    return found[0].rpartition("/")[0]


def _file(path: str, opened: FileSnapshot) -> TreeFile:
    return TreeFile(
        path=path,
        size_bytes=opened.size_bytes,
        updated_at_ms=opened.updated_at_ms,
        data=opened.data,
    )


Layer = Literal["rules", "settings", "retrieved", "immediate"]

LAYERS: tuple[Layer, ...] = ("rules", "settings", "retrieved", "immediate")
DOCUMENT_SUFFIXES = frozenset({".md", ".markdown", ".txt"})

_OF_FOLDER: dict[str, tuple[Layer, ...]] = {
    "rules": ("rules",),
    "settings": ("settings",),
    # A character may be injected always, which is Rules, or when mentioned, which is Retrieved.
    "characters": ("rules", "retrieved"),
}
_FOREIGN = frozenset({"node_modules", "__pycache__", "__MACOSX", "$RECYCLE.BIN"})


def layers_of(paths: frozenset[str] | set[str]) -> tuple[Layer, ...]:
    """Tell which layers change when these project-relative paths do, in reading order."""
    touched = {layer for path in paths for layer in _touched(path)}
    return tuple(layer for layer in LAYERS if layer in touched)


def is_document(path: str) -> bool:
    """Tell whether a project-relative path names a text that the user writes."""
    pure = PurePosixPath(path)
    return pure.suffix.lower() in DOCUMENT_SUFFIXES and all(map(_is_open, pure.parts))


def matters(folder: str, name: str) -> bool:
    """Tell whether a file called `name` in a project-relative `folder` is worth watching."""
    path = f"{folder}/{name}" if folder else name
    if path.startswith(f"{TREE}/"):
        return not _is_leftover(name) and not problem_with_name(name)
    return is_document(path)


def enters(folder: str, name: str) -> bool:
    """Tell whether a folder called `name` in a project-relative `folder` may hold what matters."""
    if not folder:
        return name == TREE or _is_open(name)
    return (folder, name) != (TREE, "cache") and _is_open(name)


def _touched(path: str) -> tuple[Layer, ...]:
    first, _, rest = path.partition("/")
    if first == TREE:
        return _OF_FOLDER.get(rest.partition("/")[0], ())
    return ("retrieved", "immediate")


def _is_open(name: str) -> bool:
    return not name.startswith(".") and name not in _FOREIGN and not problem_with_name(name)


def _is_leftover(name: str) -> bool:
    """Recognise what editors and we ourselves put beside a file while saving it."""
    return is_temporary(name) or name.startswith((".", "#", "~$")) or name.endswith(("~", ".tmp"))
