"""Which folders are projects: `<userData>/projects.json`, with a spare copy beside it.

Knows ids, names and roots; never looks into a project and never changes one.
"""

import contextlib
import errno
import os
import tempfile
import unicodedata
from functools import lru_cache
from pathlib import Path
from typing import Any

import anyio
import msgspec
import structlog
from anyio import to_thread

from creonowd.clock import Clock
from creonowd.errors import DaemonError, ErrorCode, disk_error
from creonowd.model import Model
from creonowd.storage import atomic, versioned_json
from creonowd.storage.safe_folder import same_folder

FILE = "projects.json"
SPARE = "projects.spare.json"
VERSION = 1

_NO_FOLDER = {errno.ENOTDIR, errno.ELOOP}
_NO_PATH = {errno.ENAMETOOLONG, errno.EINVAL}

log = structlog.get_logger(__name__)


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
        self._path = user_data / FILE
        self._clock = clock
        self._lock = anyio.Lock()
        self._known: _ProjectsFile | None = None
        self.set_aside: str | None = None

    async def find(self, project_id: str) -> Project:
        """Look up a project: NOT_FOUND if unknown, INVALID_ARGUMENT if blank."""
        return _find(await self._read(), project_id)

    async def list(self) -> list[Project]:
        """List the projects in the order in which they came."""
        return [_project(entry) for entry in (await self._read()).projects]

    async def create(self, root_path: str, name: str | None = None) -> Project:
        """Make a folder a project, or find the project that it is already."""
        root = await to_thread.run_sync(project_root, root_path)
        async with self._lock:
            known = await self._loaded()
            entry = await to_thread.run_sync(_of_folder, known, root)
            if entry is None:
                entry = self._entry(root, name)
                await self._save(known, projects=(*known.projects, entry))
            return _project(entry)

    async def current(self) -> Project:
        """Tell the project that the user works in: NOT_FOUND if none is."""
        known = await self._read()
        if known.current is None:
            raise DaemonError(ErrorCode.NOT_FOUND, "No project is current; set one first.")
        return _find(known, known.current)

    async def set_current(self, project_id: str) -> Project:
        """Remember which project the user works in."""
        async with self._lock:
            known = await self._loaded()
            project = _find(known, project_id)
            if known.current != project_id:
                await self._save(known, current=project_id)
            return project

    async def delete(self, project_id: str) -> Project:
        """Forget a project; its folder stays as it is."""
        async with self._lock:
            known = await self._loaded()
            project = _find(known, project_id)
            left = tuple(e for e in known.projects if e.project_id != project_id)
            current = None if known.current == project_id else known.current
            await self._save(known, current=current, projects=left)
            return project

    def _entry(self, root: Path, name: str | None) -> _StoredProject:
        return _StoredProject(
            project_id=self._clock.new_id("prj"),
            name=(name or "").strip() or root.name or str(root),
            root_path=str(root),
        )

    async def _read(self) -> _ProjectsFile:
        if self._known is not None:
            return self._known
        async with self._lock:
            return await self._loaded()

    async def _loaded(self) -> _ProjectsFile:
        if self._known is None:
            self._known = await to_thread.run_sync(self._load)
        return self._known

    def _load(self) -> _ProjectsFile:
        try:
            found = versioned_json.load(self._path, _ProjectsFile, version=VERSION)
        except versioned_json.DamagedFileError as damage:
            self.set_aside = versioned_json.set_aside(self._path)
            log.warning("projects_set_aside", file=self.set_aside, damage=str(damage))
            found = None
        return self._spared() if found is None else found

    def _spared(self) -> _ProjectsFile:
        try:
            found = versioned_json.load(self._path.with_name(SPARE), _ProjectsFile, version=VERSION)
        except versioned_json.DamagedFileError:
            found = None
        if found is not None:
            self._write(found)
        return found or _ProjectsFile()

    async def _save(self, known: _ProjectsFile, **changes: Any) -> None:
        projects = msgspec.structs.replace(known, **changes)
        await to_thread.run_sync(self._write, projects)
        self._known = projects

    def _write(self, projects: _ProjectsFile) -> None:
        with atomic.disk_errors(FILE):
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        data = msgspec.json.format(msgspec.json.encode(projects), indent=2) + b"\n"
        atomic.replace(self._path, data)
        # Without the ids in it, whatever is kept of a project would be nobody's.
        with contextlib.suppress(DaemonError):
            atomic.replace(self._path.with_name(SPARE), data)


def read(user_data: Path) -> list[Project]:
    """Read which projects there are and change nothing, not even a damaged file."""
    found = versioned_json.load(user_data / FILE, _ProjectsFile, version=VERSION)
    return [] if found is None else [_project(entry) for entry in found.projects]


def _find(known: _ProjectsFile, project_id: str) -> Project:
    if not project_id.strip():
        raise DaemonError(
            ErrorCode.INVALID_ARGUMENT, "projectId must not be blank.", field="projectId"
        )
    for entry in known.projects:
        if entry.project_id == project_id:
            return _project(entry)
    raise DaemonError(
        ErrorCode.NOT_FOUND, "There is no such project; create it or list the projects."
    )


@lru_cache(maxsize=256)
def _project(entry: _StoredProject) -> Project:
    """Make one `Project` of an entry: its path keeps what is found out about it, such as its hash."""
    return Project(project_id=entry.project_id, name=entry.name, root=Path(entry.root_path))


def _of_folder(known: _ProjectsFile, root: Path) -> _StoredProject | None:
    return next((e for e in known.projects if same_folder(Path(e.root_path), root)), None)


def project_root(spelling: str) -> Path:
    """Find the one real path of a writable folder, or say what is wrong with it."""
    if not spelling.strip() or "\0" in spelling or not Path(spelling).is_absolute():
        raise _refused("relative", "rootPath must be the absolute path of a folder.")
    folder = _real(Path(spelling))
    if not folder.is_dir():
        raise _refused("not_a_folder", "rootPath is not a folder; choose the folder itself.")
    _refuse_unspeakable(folder)
    _refuse_unwritable(folder)
    return folder


def _real(path: Path) -> Path:
    try:
        return Path(os.path.realpath(_respelt(path), strict=True))
    except FileNotFoundError:
        raise DaemonError(
            ErrorCode.NOT_FOUND,
            "The folder does not exist; create it first or check its spelling.",
            field="rootPath",
            reason="missing",
        ) from None
    except OSError as error:
        if error.errno in _NO_FOLDER:
            raise _refused("not_a_folder", "rootPath does not lead to a folder.") from None
        if error.errno in _NO_PATH:
            raise _refused("invalid", "rootPath is not a path that this system can have.") from None
        raise disk_error(error, "the project folder") from error


def _respelt(path: Path) -> Path:
    """Follow the disk where it spells a name in another Unicode form (macOS hands out NFD)."""
    if path.exists():
        return path
    found = Path(path.anchor)
    for part in path.parts[1:]:
        found /= part if (found / part).exists() else _other_form(found, part)
    return found


def _other_form(folder: Path, part: str) -> str:
    wanted = unicodedata.normalize("NFC", part)
    if wanted.isascii() or not folder.is_dir():
        return part
    names = (entry.name for entry in folder.iterdir())
    return next((name for name in names if unicodedata.normalize("NFC", name) == wanted), part)


def _refuse_unspeakable(folder: Path) -> None:
    try:
        str(folder).encode("utf-8")
    except UnicodeEncodeError:
        raise _refused(
            "not_unicode", "The folder's name is not valid Unicode; rename it."
        ) from None


def _refuse_unwritable(folder: Path) -> None:
    """Ask by doing: permission bits tell little on Windows, on network drives and to root."""
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


def _refused(reason: str, message: str) -> DaemonError:
    return DaemonError(ErrorCode.INVALID_ARGUMENT, message, field="rootPath", reason=reason)
