"""The list of projects: `<userData>/projects.json`, with a spare copy beside it.

A project is an id, a name and a folder; the folder itself is never changed here.
"""

import contextlib
import errno
import itertools
import os
import re
import shutil
import sys
import tempfile
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import anyio
import msgspec
import structlog
from anyio import to_thread

from creonowd.clock import Clock
from creonowd.errors import DaemonError, ErrorCode, Wording, disk_error
from creonowd.model import Model
from creonowd.storage import stored_files
from creonowd.storage.safe_folder import (
    SafeFolder,
    invalid_path,
    problem_with_name,
    same_folder,
)
from creonowd.storage.stored_files import disk_errors

FILE = "projects.json"
SPARE = "projects.spare.json"
FOLDER = "projects"
VERSION = 1
LONGEST_FOLDER_NAME = 60
# What `view --sample` makes before it has the name of the project.
SAMPLE_COPY = re.compile(r"\.sample-[a-z]+-[0-9a-f]{8}")
OWN_FOLDERS = (
    *("assemble", "budgets", "context", "extracts", "histories", "keys", "logs"),
    *("retrieval", "run", "runs", "skills", "tokenizers", "usage"),
)

# The time of a new file may be a tick of the system's clock before the time when it was made.
_TICK_MS = 100
# The folder that commands write into, beside a daemon that runs.
_COMMANDS_FOLDER = "assemble"
_OWN_DEPTH = 6

_NOT_IN_A_NAME = re.compile(r'[\\/:*?"<>|\x00-\x1f\x7f-\x9f\ud800-\udfff]+')
_NO_FOLDER = {errno.ENOTDIR, errno.ELOOP}
_NO_PATH = {errno.ENAMETOOLONG, errno.EINVAL}
_ACCOUNTS = Path("/etc/passwd")
_LONGEST_NAME = 255 if os.name != "nt" else 3 * 255  # in UTF-8; Windows counts UTF-16

log = structlog.get_logger(__name__)


def sweep_user_data(user_data: Path, now_ms: int) -> None:
    """Remove the temporary files that a killed daemon left in our own folders; blocks its thread.

    Only one daemon uses them at a time, so nobody needs what was written before it started. The
    command line writes into a folder of its own meanwhile; what is recent there is left.
    """
    folder = SafeFolder(user_data, lambda: invalid_path("link"))
    folder.sweep("", now_ms - _TICK_MS)
    for name in OWN_FOLDERS:
        age_ms = stored_files.LEFTOVER_MS if name == _COMMANDS_FOLDER else _TICK_MS
        folder.sweep(name, now_ms - age_ms, depth=_OWN_DEPTH)
    _sweep_samples(user_data / FOLDER, now_ms - stored_files.LEFTOVER_MS)


def _sweep_samples(projects: Path, before_ms: int) -> None:
    """Remove what `view --sample` had copied of the sample novel when it was killed."""
    with contextlib.suppress(OSError):
        for copy in projects.iterdir():
            is_old = copy.lstat().st_mtime_ns < before_ms * 1_000_000
            if is_old and SAMPLE_COPY.fullmatch(copy.name) and not copy.is_symlink():
                shutil.rmtree(copy, ignore_errors=True)


class Project(Model):
    """A folder that the user writes in."""

    project_id: str
    name: str
    root: Path


class _StoredProject(Model):
    project_id: str
    name: str
    root_path: str


class _ProjectsFile(Model):
    version: int = VERSION
    current: str | None = None
    projects: tuple[_StoredProject, ...] = ()


class Projects:
    """The projects of this user; changes are on the disk before they are acknowledged."""

    def __init__(self, user_data: Path, clock: Clock) -> None:
        self._user_data = user_data
        self._path = user_data / FILE
        self._clock = clock
        self._lock = anyio.Lock()
        self._file: _ProjectsFile | None = None
        self.set_aside: str | None = None

    async def find(self, project_id: str) -> Project:
        """Look up a project: NOT_FOUND if unknown, INVALID_ARGUMENT if blank."""
        return _find(await self._read(), project_id)

    async def list(self) -> list[Project]:
        """List the projects in the order in which they came."""
        return [_project(entry) for entry in (await self._read()).projects]

    async def create(self, root_path: str, name: str | None = None) -> Project:
        """Make a folder a project, or return the project that it is already."""
        root = await to_thread.run_sync(project_root, root_path, self._user_data)
        return await self._create(root, name)

    async def create_folder(self, name: str) -> Project:
        """Make a project with a new folder of its own below `<userData>/projects/`."""
        root = await to_thread.run_sync(self._make_folder, name)
        return await self._create(root, name)

    def _make_folder(self, name: str) -> Path:
        place = self._user_data / FOLDER
        with disk_errors(FOLDER):
            stored_files.make_folders(place)
            base = folder_name(name)
            names = itertools.chain([base], (f"{base} {number}" for number in itertools.count(2)))
            root = next(place / one for one in names if stored_files.make_folder(place / one))
            return Path(os.path.realpath(root))

    async def _create(self, root: Path, name: str | None) -> Project:
        async with self._lock:
            file = await self._load()
            entry = await to_thread.run_sync(_find_folder, file, root)
            if entry is None:
                entry = self._entry(root, name)
                await self._save(file, projects=(*file.projects, entry))
            return _project(entry)

    async def current(self) -> Project:
        """Return the project that the user works in: NOT_FOUND if there is none."""
        file = await self._read()
        if file.current is None:
            raise DaemonError(ErrorCode.NOT_FOUND, "No project is current; set one first.")
        return _find(file, file.current)

    async def set_current(self, project_id: str) -> Project:
        """Remember which project the user works in."""
        async with self._lock:
            file = await self._load()
            project = _find(file, project_id)
            if file.current != project_id:
                await self._save(file, current=project_id)
            return project

    async def delete(self, project_id: str) -> Project:
        """Remove a project from the list; its folder stays as it is."""
        async with self._lock:
            file = await self._load()
            project = _find(file, project_id)
            left = tuple(e for e in file.projects if e.project_id != project_id)
            current = None if file.current == project_id else file.current
            await self._save(file, current=current, projects=left)
            return project

    def _entry(self, root: Path, name: str | None) -> _StoredProject:
        return _StoredProject(
            project_id=self._clock.new_id("prj"),
            name=(name or "").strip() or root.name or str(root),
            root_path=str(root),
        )

    async def _read(self) -> _ProjectsFile:
        if self._file is not None:
            return self._file
        async with self._lock:
            return await self._load()

    async def _load(self) -> _ProjectsFile:
        if self._file is None:
            self._file = await to_thread.run_sync(self._read_file)
        return self._file

    def _read_file(self) -> _ProjectsFile:
        try:
            found = stored_files.load(self._path, _ProjectsFile, version=VERSION)
        except stored_files.DamagedFileError as damage:
            self.set_aside = stored_files.set_aside(self._path)
            log.warning("projects_set_aside", file=self.set_aside, damage=str(damage))
            found = None
        return self._read_spare() if found is None else found

    def _read_spare(self) -> _ProjectsFile:
        try:
            found = stored_files.load(self._path.with_name(SPARE), _ProjectsFile, version=VERSION)
        except stored_files.DamagedFileError:
            found = None
        if found is not None:
            self._write(found)
        return found or _ProjectsFile()

    async def _save(self, file: _ProjectsFile, **changes: Any) -> None:
        projects = msgspec.structs.replace(file, **changes)
        await to_thread.run_sync(self._write, projects)
        self._file = projects

    def _write(self, projects: _ProjectsFile) -> None:
        with disk_errors(FILE):
            stored_files.make_folders(self._path.parent)
        data = msgspec.json.format(msgspec.json.encode(projects), indent=2) + b"\n"
        stored_files.replace(self._path, data)
        # Without this list, what is stored under the id of a project could not be found again.
        with contextlib.suppress(DaemonError):
            stored_files.replace(self._path.with_name(SPARE), data)


def read(user_data: Path) -> list[Project]:
    """Read the list and change nothing, not even a damaged file."""
    found = stored_files.load(user_data / FILE, _ProjectsFile, version=VERSION)
    return [] if found is None else [_project(entry) for entry in found.projects]


def _find(file: _ProjectsFile, project_id: str) -> Project:
    if not project_id.strip():
        raise DaemonError(
            ErrorCode.INVALID_ARGUMENT, "projectId must not be blank.", field="projectId"
        )
    for entry in file.projects:
        if entry.project_id == project_id:
            return _project(entry)
    raise DaemonError(
        ErrorCode.NOT_FOUND,
        Wording(
            "There is no such project; create it or list the projects.",
            "没有这个项目；请新建项目，或列出已有的项目。",
        ),
    )


@lru_cache(maxsize=256)
def _project(entry: _StoredProject) -> Project:
    """Return the one `Project` of an entry: its path caches its hash."""
    return Project(project_id=entry.project_id, name=entry.name, root=Path(entry.root_path))


def _find_folder(file: _ProjectsFile, root: Path) -> _StoredProject | None:
    return next((e for e in file.projects if same_folder(Path(e.root_path), root)), None)


def folder_name(name: str) -> str:
    """Return a name that a folder can have on every system."""
    clean = _NOT_IN_A_NAME.sub("_", unicodedata.normalize("NFC", name))
    clean = clean[:LONGEST_FOLDER_NAME].strip(" .") or "project"
    return next(one for one in (clean, f"_{clean}", "project") if not problem_with_name(one))


def project_root(spelling: str, user_data: Path | None = None) -> Path:
    """Return the real path of a writable folder, or report what is wrong with it.

    Anybody's whole home and what holds `user_data` are too much for a project, and the daemon's
    own folders in `user_data` are none.
    """
    if not spelling.strip() or "\0" in spelling or not Path(spelling).is_absolute():
        raise _invalid_root(
            "relative",
            "rootPath must be the absolute path of a folder.",
            "rootPath 须为文件夹的绝对路径。",
        )
    folder = _real_path(Path(spelling))
    if not folder.is_dir():
        raise _invalid_root(
            "not_a_folder",
            "rootPath is not a folder; choose the folder itself.",
            "rootPath 不是文件夹；请选择文件夹本身。",
        )
    _check_not_too_wide(folder, user_data)
    _check_unicode(folder)
    _check_writable(folder)
    return folder


def _check_not_too_wide(folder: Path, user_data: Path | None) -> None:
    homes = (home for home in _homes(folder) if home.is_absolute())
    if any(_contains(folder, home) for home in homes) or _is_profile(folder):
        raise _invalid_root(
            "too_wide",
            "rootPath is a whole home folder or more; choose a folder inside it.",
            "rootPath 是整个主目录或更大；请选择其中的一个文件夹。",
        )
    if folder.parent == folder:
        raise _invalid_root(
            "too_wide",
            "rootPath is a whole disk; choose a folder on it.",
            "rootPath 是整个磁盘；请选择其中的一个文件夹。",
        )
    if user_data is not None and (_contains(folder, user_data) or _is_ours(folder, user_data)):
        raise _invalid_root(
            "user_data",
            "rootPath holds the daemon's own data, or is in it; choose another folder.",
            "rootPath 含有守护进程自己的数据，或在其中；请另选文件夹。",
        )


def _homes(folder: Path) -> Iterator[Path]:
    """Yield the homes that a folder may be or hold: the user's own, and those of other accounts.

    The user's own as the environment has it, and as the system does: they may differ. Of others
    those that the machine's own list has, and, for accounts that a network keeps, those of the
    folder's owner and of the account that has its name. Nothing asks the network for its whole
    list: that takes long in a large one, and `getpwall` stops every thread meanwhile.
    """
    with contextlib.suppress(RuntimeError):
        yield Path.home()
    if sys.platform != "win32":
        import pwd

        questions: tuple[Callable[[], pwd.struct_passwd], ...] = (
            lambda: pwd.getpwuid(os.getuid()),
            lambda: pwd.getpwuid(folder.stat().st_uid),
            lambda: pwd.getpwnam(folder.name),
        )
        for account in questions:
            with contextlib.suppress(KeyError, ValueError, OSError):
                yield Path(account().pw_dir)
        with contextlib.suppress(OSError):
            lines = _ACCOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
            yield from (Path(fields[5]) for line in lines if len(fields := line.split(":")) > 5)


def _is_profile(folder: Path) -> bool:
    """Return whether it is somebody's profile on Windows: it lies beside the user's own."""
    if sys.platform != "win32":
        return False
    with contextlib.suppress(RuntimeError):
        profiles = Path.home().parent
        return profiles != profiles.parent and same_folder(folder.parent, profiles)
    return False


def _is_ours(folder: Path, user_data: Path) -> bool:
    """Return whether it lies in one of the folders that the daemon keeps its own data in."""
    return any(_contains(user_data / name, folder) for name in OWN_FOLDERS) or same_folder(
        user_data / FOLDER, folder
    )


def _contains(outer: Path, inner: Path) -> bool:
    """Return whether a folder is another one or contains it."""
    real = Path(os.path.realpath(inner))
    return any(same_folder(outer, each) for each in (real, *real.parents))


def _real_path(path: Path) -> Path:
    try:
        return Path(os.path.realpath(_on_disk(path), strict=True))
    except FileNotFoundError:
        reason = absence_reason(path)
    except OSError as error:
        if error.errno not in _NO_FOLDER | _NO_PATH:
            raise disk_error(error, "the project folder") from error
        reason = "not_a_folder" if error.errno in _NO_FOLDER else "invalid"
    if reason == "not_a_folder":
        raise _invalid_root(
            reason, "rootPath does not lead to a folder.", "rootPath 并不通向文件夹。"
        )
    if reason == "invalid":
        raise _invalid_root(
            reason,
            "rootPath is not a path that this system can have.",
            "rootPath 不是此系统可用的路径。",
        )
    raise DaemonError(
        ErrorCode.NOT_FOUND,
        "The folder does not exist; create it first or check its spelling.",
        field="rootPath",
        reason=reason,
    )


def absence_reason(path: Path) -> str:
    """Return why nothing is found at a path: `missing`, `not_a_folder` or `invalid`.

    POSIX has an error for each. Windows reports that nothing was found in all three cases: also
    below a file, behind a link that leads to itself, and for a name that it cannot have.
    """
    if any(len(os.fsencode(step)) > _LONGEST_NAME for step in path.parts):
        return "invalid"
    for step in (path, *path.parents):
        seen: set[Path] = set()
        while step.is_symlink():
            if step in seen:
                return "not_a_folder"
            seen.add(step)
            step = step.parent / step.readlink()  # noqa: PLW2901 - along the links
        if os.path.lexists(step):
            return "missing" if step.is_dir() else "not_a_folder"
    return "missing"


def _on_disk(path: Path) -> Path:
    """Return a path with its names as the disk has them: macOS stores them in NFD."""
    if path.exists():
        return path
    found = Path(path.anchor)
    for part in path.parts[1:]:
        found /= part if (found / part).exists() else _name_on_disk(found, part)
    return found


def _name_on_disk(folder: Path, part: str) -> str:
    name = unicodedata.normalize("NFC", part)
    if name.isascii() or not folder.is_dir():
        return part
    others = (entry.name for entry in folder.iterdir())
    return next((each for each in others if unicodedata.normalize("NFC", each) == name), part)


def _check_unicode(folder: Path) -> None:
    try:
        str(folder).encode("utf-8")
    except UnicodeEncodeError:
        raise _invalid_root(
            "not_unicode",
            "The folder's name is not valid Unicode; rename it.",
            "文件夹名不是合法的 Unicode；请改名。",
        ) from None


def _check_writable(folder: Path) -> None:
    """Try to write a file: permission bits do not decide on Windows, on network drives or for root."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError:
        raise DaemonError(
            ErrorCode.IO_ERROR,
            "The folder cannot be written to; change its permissions or choose another.",
            field="rootPath",
            reason="not_writable",
        ) from None


def _invalid_root(reason: str, english: str, chinese: str) -> DaemonError:
    wording = Wording(english, chinese)
    return DaemonError(ErrorCode.INVALID_ARGUMENT, wording, field="rootPath", reason=reason)
