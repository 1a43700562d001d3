"""Make, list and read the `.creonow` folder of a project, and say which layers its files feed.

What assemblies read of it at the same moment is read once: a `ProjectRead` is one such read.
"""

import codecs
import contextlib
import errno
import heapq
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from enum import StrEnum
from functools import lru_cache, partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path, PurePosixPath
from typing import Any, Generic, NamedTuple, TypeVar, cast

import structlog
from anyio import to_thread

from creonowd.clock import Clock
from creonowd.context.fragment import DYNAMIC, Layer
from creonowd.context.language import ManuscriptLanguage
from creonowd.errors import DaemonError, ErrorCode, Wording, disk_error
from creonowd.memo import Memo
from creonowd.model import Model
from creonowd.storage import front_matter, stored_files
from creonowd.storage.safe_folder import (
    FileEntry,
    FileSnapshot,
    FolderContents,
    LinkedFolder,
    invalid_path,
    mark_of,
    missing_root,
    problem_with,
    problem_with_name,
    status_of,
)
from creonowd.storage.stored_files import disk_errors, is_temporary
from creonowd.storage.unchanged_files import CAPACITY_BYTES, RECENT_MS, FileCache, change_times
from creonowd.threads import BatchCache, NotCachedError, SharedReads
from creonowd.workspace.projects import Project

TREE = ".creonow"
TERMINOLOGY_FILE = f"{TREE}/rules/terminology.json"
MEMORY = f"{TREE}/settings/memory.json"
PROJECT_FILE = f"{TREE}/project.json"
PROJECT_VERSION = 1
LARGEST_PROJECT_FILE = 64 * 1024


class CreonowFolder(StrEnum):
    """A folder of `.creonow` whose files are read together."""

    RULES = "rules"
    SETTINGS = "settings"
    CHARACTERS = "characters"
    THREADS = "threads"
    EDITED_SUMMARIES = "summaries"
    MADE_SUMMARIES = "cache/summaries"


LIMIT_BYTES = 4 * 1024 * 1024
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
    CreonowFolder.THREADS: (".md",),
    CreonowFolder.EDITED_SUMMARIES: (".json",),
    CreonowFolder.MADE_SUMMARIES: (".json",),
}
KEPT_PATHS = 8192
DOCUMENT_SUFFIXES = frozenset({".md", ".markdown", ".txt"})
OUTLINE_NAMES = frozenset({"大纲", "提纲", "outline"})
OUTLINE_SUFFIXES = DOCUMENT_SUFFIXES | {".json"}
# Share of the deadline for reading in a batch; the rest is for reading separately.
JOINT_SHARE = 0.25

T = TypeVar("T")


_LAYERS_OF_FOLDER: dict[str, tuple[Layer, ...]] = {
    "rules": (Layer.RULES,),
    # A note that waits to be mentioned is Retrieved.
    "settings": (Layer.SETTINGS, Layer.RETRIEVED),
    "project.json": tuple(Layer),
    "threads": (Layer.SETTINGS,),
    "summaries": (Layer.RETRIEVED,),
    # A character may be injected always, which is Rules, or when mentioned, which is Retrieved.
    "characters": (Layer.RULES, Layer.RETRIEVED),
}
_FOREIGN_FOLDERS = frozenset({"node_modules", "__pycache__", "__MACOSX", "$RECYCLE.BIN"})
# The weight of a cached file beside its bytes.
_FILE_WEIGHT = 500

# How much of a file is read to see whether it has front matter, at the top of a project of how many
# files, and of how many files of all projects it is remembered.
_HEAD_BYTES = 4096
_MOST_TOP_FILES = 2048
_KNOWN_HEADS = 8192

_SWEPT_PROJECTS = 1024
_SWEPT_DEPTH = 4

_Marks = tuple[list[tuple[str, tuple[int, ...]]], tuple[int, ...], list[str], bool]

# How many files of a folder are read, and how many bytes of them together. An input may have 64 000
# tokens; 50 000 rules, or 30 of 4 MB, took up to 830 MB.
_MOST_TEXTS = (1024, LIMIT_BYTES)
# Each chapter has one.
_MOST_SUMMARIES = (8192, 16 * 1024 * 1024)
_SUMMARIES = (CreonowFolder.EDITED_SUMMARIES, CreonowFolder.MADE_SUMMARIES)
_LEFT_OUT = Wording(
    "Of {} only the first {} files are read, of {} MiB together; remove or shorten some.",
    "{} 中只读取前 {} 个文件，合计至多 {} MiB；请删去或缩短一些。",
)

log = structlog.get_logger(__name__)


def folder_of(scope: CreonowFolder) -> str:
    """Return the project-relative path of a scope's folder."""
    return f"{TREE}/{scope}"


def in_scope(path: str, scope: CreonowFolder) -> str:
    """Return `path` if it names something in the scope, else fail with INVALID_ARGUMENT."""
    if problem := problem_with(path):
        raise invalid_path(problem)
    if path != folder_of(scope) and not path.startswith(f"{folder_of(scope)}/"):
        raise invalid_path("other_scope", f"path must begin with {folder_of(scope)}/.")
    if not _is_shown(path):
        raise invalid_path("hidden", "path is hidden; list the folder and read its files.")
    return path


def _is_shown(path: str) -> bool:
    """Return whether no name in a path is hidden but that of the tree itself."""
    return not any(name.startswith(".") for name in path.removeprefix(TREE).split("/"))


class ProjectFile(Model):
    """`.creonow/project.json`: what the author decided for the project as a whole.

    `language` is that of the words around the manuscript in a prompt; without one, the manuscript
    decides.
    """

    version: int = PROJECT_VERSION
    language: ManuscriptLanguage | None = None


class FileInfo(Model):
    """A file of the tree; `path` is project-relative with `/` between its names."""

    path: str
    """Its path below the project's folder, with `/` between the names."""
    size_bytes: int
    """Its size on disk, in bytes."""
    updated_at_ms: int
    """When it was last changed, in milliseconds since 1970 (UTC)."""


class TreeFile(FileInfo, gc=False):
    """A file of the tree and its bytes, as they are on disk."""

    data: bytes


class Problem(Model, eq=False):
    """A file that could not be used, and why; the same failure again is the same problem."""

    path: str
    error: DaemonError

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Problem) and self._key == other._key

    def __hash__(self) -> int:
        return hash((self.path, self.error.code))

    @property
    def _key(self) -> tuple[object, ...]:
        return self.path, self.error.code, self.error.details


class Folder(Model, cache_hash=True):
    """All files of one scope, and the problems of those that could not be read.

    As long as nothing changes, reading again returns the very same value.
    """

    files: tuple[TreeFile, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def weight(self) -> int:
        """Return about how many bytes keeping this takes."""
        return sum(_FILE_WEIGHT + len(file.data) for file in self.files)


class Tree:
    """Reads the trees of all projects; what has not changed on disk is not read again."""

    def __init__(self, clock: Clock) -> None:
        self._cache = FileCache(clock)
        self._clock = clock
        self._folders: Memo[tuple[Path, CreonowFolder | None], tuple[_Marks, Folder]] = Memo(
            CAPACITY_BYTES, _weigh
        )
        self._swept: Memo[Path, bool] = Memo(_SWEPT_PROJECTS)
        self._outlines: Memo[Path, dict[str, _FrontMatterMark]] = Memo(_KNOWN_HEADS, _weigh_heads)

    async def ensure(self, project: Project) -> None:
        """Make what is missing of the tree; change nothing that exists."""
        made = await to_thread.run_sync(make_tree, project.root)
        log.info("context_ensure", project_id=project.project_id, made=len(made))

    async def create(self, project: Project, path: str, content: str) -> None:
        """Write a new file of the tree; CONFLICT if there is one already."""
        data = content.encode("utf-8", "replace")
        await to_thread.run_sync(create_file, project.root, path, data)

    async def exists(self, project: Project) -> bool:
        """Return whether the project has its tree."""
        places = (project.root, project.root / TREE)
        return await to_thread.run_sync(
            lambda: all(place.is_dir() and not place.is_symlink() for place in places)
        )

    async def list(self, project: Project, scope: CreonowFolder) -> list[FileInfo]:
        """List the files of a scope, recursively and sorted; nothing if there is no tree."""
        return await to_thread.run_sync(_list, project.root, scope)

    async def read(self, project: Project, scope: CreonowFolder, path: str) -> TreeFile:
        """Read one file that a client named."""
        in_scope(path, scope)
        return await to_thread.run_sync(self.read_now, project.root, scope, path)

    async def read_all(self, project: Project, scope: CreonowFolder) -> Folder:
        """Read every file of a scope; one that cannot be read is a problem, not an exception."""
        return await to_thread.run_sync(
            self.read_all_now, project.root, scope, abandon_on_cancel=True
        )

    @property
    def reads(self) -> int:
        """How many files were read from the disk, not from the cache."""
        return self._cache.reads

    def read_now(self, root: Path, scope: CreonowFolder, path: str) -> TreeFile:
        """Read one file whose path was checked before; blocks its thread."""
        folder = LinkedFolder(root, folder_of(scope), _is_shown)
        return _file(path, self._cache.fetch(folder, path, limit=LIMIT_BYTES))

    def read_all_now(self, root: Path, scope: CreonowFolder) -> Folder:
        """Read every file of a scope; blocks its thread."""
        self._sweep_once(root)
        return self._read_contents(root, scope, _contents(root, scope))

    def _sweep_once(self, root: Path) -> None:
        """When a project is first used, remove what killed writers left in its tree."""
        if self._swept.peek(root) is None:
            self._swept.put(root, True)
            before_ms = self._clock.now_ms() - stored_files.LEFTOVER_MS
            LinkedFolder(root, TREE).sweep(TREE, before_ms, depth=_SWEPT_DEPTH)

    def read_project_file_now(self, root: Path) -> ProjectFile | None:
        """Read what the author decided for a project; None if the file cannot be used.

        Blocks its thread.
        """
        folder = LinkedFolder(root, TREE)
        try:
            status = folder.status(PROJECT_FILE)
            if status is None:
                return ProjectFile()
            limit = LARGEST_PROJECT_FILE
            data = self._cache.fetch(folder, PROJECT_FILE, limit=limit, status=status).data
            body = data.removeprefix(codecs.BOM_UTF8)
            return stored_files.decode(
                body, ProjectFile, version=PROJECT_VERSION, name=PROJECT_FILE
            )
        except (DaemonError, stored_files.DamagedFileError):
            return None

    def read_outlines_now(self, root: Path) -> Folder:
        """Read the outlines at the top of a project; blocks its thread. Links are skipped."""
        before = self._outlines.peek(root) or {}
        heads: dict[str, _FrontMatterMark] = {}
        found: list[FileEntry] = []
        for name, status in _top_files(root):
            head = self._head(root, name, status, before.get(name))
            if head.is_outline:
                found.append((name, status))
            heads[name] = head
        self._outlines.put(root, heads)
        return self._read_contents(root, None, FolderContents(sorted(found, key=itemgetter(0)), []))

    def forget(self, root: Path) -> None:
        """Drop what is known of a project that was removed."""
        self._outlines.forget(root)
        for scope in (None, *CreonowFolder):
            self._folders.forget((root, scope))
        self._cache.forget(root)

    def _head(
        self, root: Path, name: str, status: os.stat_result, known: "_FrontMatterMark | None"
    ) -> "_FrontMatterMark":
        """Return whether a file at the top of a project is an outline, by its name or by its head."""
        if _is_called_outline(name):
            return _FrontMatterMark((), is_outline=True)
        mark = mark_of(status)
        is_recent = self._clock.file_time_ms() - status.st_mtime_ns // 1_000_000 <= RECENT_MS
        if known is None or is_recent or known.mark != mark:
            return _FrontMatterMark(mark, is_outline(name, _front_matter_of(root, name)))
        return known

    def _read_contents(
        self, root: Path, scope: CreonowFolder | None, contents: FolderContents
    ) -> Folder:
        marks = [(path, mark_of(status)) for path, status in contents.files]
        changes = change_times(root, (path for path, _ in marks))
        seen = (marks, changes, contents.unreadable, contents.is_cut)
        before = self._folders.peek((root, scope))
        if before is not None and before[0] == seen:
            return before[1]
        folder = LinkedFolder(root, "" if scope is None else folder_of(scope), _is_shown)
        read = self._read_files(folder, scope, contents)
        if all(self._cache.is_current(root, path, mark) for path, mark in marks):
            self._folders.put((root, scope), (seen, read))
        return read

    def _read_files(
        self, folder: LinkedFolder, scope: CreonowFolder | None, contents: FolderContents
    ) -> Folder:
        files: list[TreeFile] = []
        problems = [
            Problem(path=path, error=disk_error(_permission_error(), path))
            for path in contents.unreadable
        ]
        if contents.is_cut and scope is not None:
            problems.append(_left_out(folder_of(scope), len(contents.files), scope))
        for above, entries in groupby(contents.files, key=lambda each: each[0].rpartition("/")[0]):
            with folder.hold(above) as held:
                for path, status in entries:
                    try:
                        read = self._cache.fetch(held, path, limit=LIMIT_BYTES, status=status)
                        files.append(_file(path, read))
                    except DaemonError as error:
                        problems.append(Problem(path=path, error=error))
        return Folder(files=tuple(files), problems=tuple(problems))


class _FrontMatterMark(NamedTuple):
    """Whether a file says that it is an outline, and its mark then."""

    mark: tuple[int, ...]
    is_outline: bool


def make_tree(root: Path, files: Mapping[str, bytes] = DEFAULTS) -> list[str]:
    """Make the folders, and these files in them, that are missing; return what was made."""
    if not root.is_dir():
        raise missing_root()
    parents = (parent.as_posix() for name in files for parent in PurePosixPath(name).parents)
    folders = sorted({*FOLDERS, *parents} - {"."})
    made = [f for f in (TREE, *(f"{TREE}/{f}" for f in folders)) if make_folder(root, f)]
    tree = LinkedFolder(root, TREE)
    for name, content in files.items():
        path = f"{TREE}/{name}"
        if (root / path).is_dir():
            raise _in_the_way(path, "a file")
        with disk_errors(path):
            if tree.is_missing(path) and tree.create(path, content, mode=stored_files.SHARED):
                made.append(path)
    return made


def make_folder(root: Path, folder: str) -> bool:
    """Make a folder of the tree and return True; False if it is there already."""
    try:
        return LinkedFolder(root, folder).add_folder(folder)
    except NotADirectoryError:
        raise _in_the_way(folder, "a folder") from None
    except OSError as error:
        raise disk_error(error, folder) from error


def create_file(root: Path, path: str, data: bytes) -> None:
    """Write a new file of the tree, and the folders above it; CONFLICT if it is there already."""
    folder, _, _ = path.rpartition("/")
    for missing in (TREE, folder):
        make_folder(root, missing)
    with disk_errors(path):
        made = LinkedFolder(root, TREE).create(path, data, mode=stored_files.SHARED)
    if not made:
        raise DaemonError(ErrorCode.CONFLICT, f"{path} is there already.", path=path)


def layers_of(paths: frozenset[str] | set[str]) -> tuple[Layer, ...]:
    """Return the layers that change with these project-relative paths, in reading order."""
    found = {layer for path in paths for layer in _layers_of_file(path)}
    return tuple(layer for layer in Layer if layer in found)


# A walk over a project asks for the same paths again and again.
@lru_cache(maxsize=KEPT_PATHS)
def is_document(path: str) -> bool:
    """Return whether a project-relative path names a text that the user writes."""
    steps = [step for step in path.split("/") if step not in {"", "."}]
    return (
        not path.startswith("/")
        and bool(steps)
        and suffix_of(steps[-1]) in DOCUMENT_SUFFIXES
        and all(map(_is_visible, steps))
    )


def is_hidden_name(name: str) -> bool:
    """Return whether nothing of this name, or below it, is the author's: a hidden one or a foreign folder."""
    return name.startswith(".") or name in _FOREIGN_FOLDERS


def is_outline(path: str, text: str) -> bool:
    """Return whether a file is the outline of its project.

    It is if it lies at the top of the project or in `settings/` and is called `大纲`, `提纲` or
    `outline`, or if its front matter says `kind: outline`.
    """
    folder, _, name = path.rpartition("/")
    settings = folder_of(CreonowFolder.SETTINGS)
    if folder and folder != settings and not folder.startswith(f"{settings}/"):
        return False
    if folder in {"", settings} and _is_called_outline(name):
        return True
    kind = front_matter.split(text).values.get("kind")
    return isinstance(kind, str) and kind.strip().casefold() == "outline"


def _is_called_outline(name: str) -> bool:
    return name.partition(".")[0].casefold() in OUTLINE_NAMES


def suffix_of(name: str) -> str:
    """Return the ending of a name with its point, in small letters; empty if it has none."""
    stem, point, ending = name.rpartition(".")
    return f"{point}{ending.lower()}" if stem and ending else ""


def is_relevant_file(folder: str, name: str) -> bool:
    """Return whether a change of the file `name` in a project-relative `folder` is reported."""
    path = f"{folder}/{name}" if folder else name
    if path.startswith(f"{TREE}/"):
        return not _is_leftover(name) and not problem_with_name(name)
    return is_document(path)


def is_relevant_folder(folder: str, name: str) -> bool:
    """Return whether the folder `name` in a project-relative `folder` may hold relevant files."""
    if not folder:
        return name == TREE or _is_visible(name)
    return (folder, name) != (TREE, "cache") and _is_visible(name)


def _in_the_way(path: str, wanted: str) -> DaemonError:
    return DaemonError(
        ErrorCode.IO_ERROR,
        f"{path} must be {wanted}; move what stands there and try again.",
        path=path,
        reason="in_the_way",
    )


def _list(root: Path, scope: CreonowFolder) -> list[FileInfo]:
    return [
        FileInfo(
            path=path, size_bytes=status.st_size, updated_at_ms=status.st_mtime_ns // 1_000_000
        )
        for path, status in _contents(root, scope).files
    ]


def _top_files(root: Path) -> list[FileEntry]:
    """Return the plain files at the top of a project that could be an outline.

    Of very many those that are called so, and the first by name.
    """
    with contextlib.suppress(OSError, DaemonError), LinkedFolder(root).scan("") as entries:
        named = ((not _is_called_outline(entry.name), entry.name, entry) for entry in entries)
        texts = (one for one in named if suffix_of(one[1]) in OUTLINE_SUFFIXES)
        first = heapq.nsmallest(_MOST_TOP_FILES, (one for one in texts if _is_visible(one[1])))
        found = ((name, status_of(entry)) for _, name, entry in first)
        return [(name, status) for name, status in found if status is not None]
    return []


def _front_matter_of(root: Path, name: str) -> str:
    """Return the beginning of a text with its front matter; empty if it has none."""
    with contextlib.suppress(OSError, DaemonError), LinkedFolder(root).open_file(name) as file:
        head = file.read_at(0, _HEAD_BYTES)
        if head.removeprefix(codecs.BOM_UTF8).startswith(b"---"):
            head += file.read_at(_HEAD_BYTES, 2 * front_matter.MAX_BYTES)
            return head.decode("utf-8", "replace")
    return ""


def _weigh(_place: tuple[Path, CreonowFolder | None], known: tuple[_Marks, Folder]) -> int:
    return known[1].weight


def _weigh_heads(_root: Path, heads: dict[str, _FrontMatterMark]) -> int:
    return 1 + len(heads)


def _contents(root: Path, scope: CreonowFolder) -> FolderContents:
    folder, suffixes = folder_of(scope), SUFFIXES[scope]
    with disk_errors(folder):
        try:
            tree = LinkedFolder(root, folder, _is_shown)
            most, most_bytes = _MOST_SUMMARIES if scope in _SUMMARIES else _MOST_TEXTS
            contents = tree.walk(
                lambda name: name.lower().endswith(suffixes), most=most, most_bytes=most_bytes
            )
        except DaemonError:
            _check_place(root, folder)
            raise
        if folder in contents.unreadable:
            raise _permission_error()
    if not contents.files:
        _check_place(root, folder)
    return contents


def _left_out(folder: str, files: int, scope: CreonowFolder) -> Problem:
    limit = (_MOST_SUMMARIES if scope in _SUMMARIES else _MOST_TEXTS)[1]
    wording = _LEFT_OUT.format(folder, files, limit >> 20)
    return Problem(
        path=folder,
        error=DaemonError(
            ErrorCode.IO_ERROR, wording, path=folder, reason="too_large", limitBytes=limit
        ),
    )


def _check_place(root: Path, folder: str) -> None:
    """Fail if the project's folder is gone, or if something else has the name of `folder`."""
    if (root / folder).is_dir():
        return
    if os.path.lexists(root / folder):
        raise _in_the_way(folder, "a folder")
    if not root.is_dir():
        raise missing_root()


def _permission_error() -> PermissionError:
    return PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _file(path: str, snapshot: FileSnapshot) -> TreeFile:
    return TreeFile(
        path=path,
        size_bytes=snapshot.size_bytes,
        updated_at_ms=snapshot.updated_at_ms,
        data=snapshot.data,
    )


def _layers_of_file(path: str) -> tuple[Layer, ...]:
    first, _, rest = path.partition("/")
    if first == TREE:
        return _LAYERS_OF_FOLDER.get(rest.partition("/")[0], ())
    return (Layer.SETTINGS, *DYNAMIC) if is_outline(path, "") else DYNAMIC


def _is_visible(name: str) -> bool:
    return not is_hidden_name(name) and not problem_with_name(name)


def _is_leftover(name: str) -> bool:
    """Return whether a name is that of a temporary file, of an editor or of the daemon."""
    return is_temporary(name) or name.startswith((".", "#", "~$")) or name.endswith(("~", ".tmp"))


class FolderReader:
    """Reads each folder of a project's `.creonow` tree at most once. Blocks its thread."""

    def __init__(self, tree: Tree, project: Project, cache: BatchCache | None = None) -> None:
        """Make a reader; all with the cache of one batch share what they read."""
        self._tree, self.root = tree, project.root
        self._cache = cache or BatchCache()
        # What could not be read may be readable the next time.
        self.has_problems = False

    def folder(self, scope: CreonowFolder) -> Folder:
        """Return all files of a folder."""
        return self._once(("folder", scope), partial(self._tree.read_all_now, self.root, scope))

    def outlines(self) -> Folder:
        """Return the outlines at the top of the project."""
        return self._once("outlines", partial(self._tree.read_outlines_now, self.root))

    def _once(self, key: Hashable, read: Callable[[], Folder]) -> Folder:
        found = self._cache.once(key, read, lambda folder: not folder.problems)
        self.has_problems = self.has_problems or bool(found.problems)
        return found


class ReadPlace(NamedTuple):
    """Where the sources of one assembly read, and the reads that assemblies share."""

    tree: Tree
    project: Project
    shared: SharedReads[Any]


class ProjectRead(ABC, Generic[T]):
    """What one assembly reads of a project's files: ahead in a batch, or alone when asked for it.

    A folder that hangs ends the batch. Then each read is made alone, and only those of that folder
    fail.
    """

    name: str

    def __init__(self, place: ReadPlace) -> None:
        self._place = place
        self._found: T | Exception | None = None

    @abstractmethod
    def read(self, folders: FolderReader) -> T:
        """Read it now; blocks its thread."""

    def read_ahead(self, cache: BatchCache) -> None:
        """Read it in the thread of a batch; an error is kept, and raised by `peek` and `get`."""
        key = ("read", self.name)
        self._found = self._found or cache.peek(key)
        if self._found is not None:
            return
        folders = FolderReader(self._place.tree, self._place.project, cache)
        read = partial(self.read, folders)
        try:
            self._found = cache.once(key, read, lambda _found: not folders.has_problems)
        except NotCachedError:
            raise
        except Exception as error:  # noqa: BLE001 - what fails must not cost the others theirs
            self._found = error

    def peek(self) -> T | None:
        """Return what was read, or raise the error of the read; None if nothing was read yet."""
        if isinstance(self._found, Exception):
            raise self._found
        return self._found

    def revision(self) -> T | None:
        """Return what was read: the same object as before if no file has changed."""
        return None if isinstance(self._found, Exception) else self._found

    async def get(self) -> T:
        """Read it unless it was read; all who ask at the same time share one read and its error."""
        if self._found is None:
            key = (self._place.project.root, self.name)
            self._found = await self._place.shared.read(key, self._read_alone)
        return cast("T", self.peek())

    async def _read_alone(self) -> T | Exception:
        folders = FolderReader(self._place.tree, self._place.project)
        try:
            return await to_thread.run_sync(self.read, folders, abandon_on_cancel=True)
        except Exception as error:  # noqa: BLE001 - all who wait get what fails
            return error
