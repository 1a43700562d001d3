"""`context:creonow:*` — the `.creonow` folder: making it, listing and reading what is in it."""

import structlog
from msgspec import UNSET, UnsetType

from creonowd.channels.project import ProjectId
from creonowd.channels.redacting import redacted
from creonowd.channels.session import Session
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Params, Result
from creonowd.redaction import RedactionEvidence
from creonowd.rpc.channel import Channel
from creonowd.storage.relative_paths import CreonowFolder
from creonowd.text import as_text
from creonowd.workspace.creonow_tree import FileInfo

log = structlog.get_logger(__name__)


class Ensured(Result):
    """The tree is there; `rootPath` is the project's folder, in which `.creonow` lies."""

    root_path: str
    ensured: bool


class CreonowStatus(Result):
    """Whether the tree is there (then with the project's folder) and whether anyone watches it."""

    exists: bool
    watching: bool
    root_path: str | UnsetType = UNSET


class FileList(Result):
    """The files of one folder of the tree, recursively, sorted by path."""

    items: list[FileInfo]


class ReadFile(Params):
    """A project-relative path as the list gives it, such as `.creonow/settings/世界观.md`."""

    project_id: str
    path: str


class FileContent(Result):
    """A file's text without its secrets; `sizeBytes` is its size on disk."""

    path: str
    content: str
    size_bytes: int
    updated_at_ms: int
    redaction_evidence: list[RedactionEvidence]


async def ensure_creonow(session: Session, params: ProjectId) -> Ensured:
    """Make what is missing of the tree; nothing that exists is changed."""
    project = await session.projects.find(params.project_id)
    await session.tree.ensure(project)
    return Ensured(root_path=str(project.root), ensured=True)


async def creonow_status(session: Session, params: ProjectId) -> CreonowStatus:
    """Tell whether the tree is there and watched."""
    project = await session.projects.find(params.project_id)
    exists = await session.tree.exists(project)
    return CreonowStatus(
        exists=exists,
        watching=session.watcher.watching(project.project_id),
        root_path=str(project.root) if exists else UNSET,
    )


async def list_rules(session: Session, params: ProjectId) -> FileList:
    """List the files of `.creonow/rules`."""
    return await _list(session, params, CreonowFolder.RULES)


async def list_settings(session: Session, params: ProjectId) -> FileList:
    """List the files of `.creonow/settings`."""
    return await _list(session, params, CreonowFolder.SETTINGS)


async def list_characters(session: Session, params: ProjectId) -> FileList:
    """List the files of `.creonow/characters`."""
    return await _list(session, params, CreonowFolder.CHARACTERS)


async def read_rule(session: Session, params: ReadFile) -> FileContent:
    """Read a file of `.creonow/rules`, redacted."""
    return await _read(session, params, CreonowFolder.RULES)


async def read_setting(session: Session, params: ReadFile) -> FileContent:
    """Read a file of `.creonow/settings`, redacted."""
    return await _read(session, params, CreonowFolder.SETTINGS)


async def read_character(session: Session, params: ReadFile) -> FileContent:
    """Read a file of `.creonow/characters`, redacted."""
    return await _read(session, params, CreonowFolder.CHARACTERS)


async def _list(session: Session, params: ProjectId, scope: CreonowFolder) -> FileList:
    project = await session.projects.find(params.project_id)
    return FileList(items=await session.tree.list(project, scope))


async def _read(session: Session, params: ReadFile, scope: CreonowFolder) -> FileContent:
    project = await session.projects.find(params.project_id)
    try:
        file = await session.tree.read(project, scope, params.path)
    except DaemonError as error:
        if error.code is ErrorCode.INVALID_ARGUMENT:
            reason = error.details.get("reason")
            log.warning("context_scope_violation", project_id=project.project_id, reason=reason)
        raise
    if (text := as_text(file.data)) is None:
        raise DaemonError(
            ErrorCode.UNSUPPORTED,
            "The file is not UTF-8 text; save it as UTF-8.",
            path=file.path,
            reason="invalid_format",
        )
    (content,), evidence = await redacted(session, project.project_id, [(file.path, text)])
    return FileContent(
        path=file.path,
        content=content,
        size_bytes=file.size_bytes,
        updated_at_ms=file.updated_at_ms,
        redaction_evidence=evidence,
    )


CHANNELS = (
    Channel("context:creonow:ensure", ensure_creonow),
    Channel("context:creonow:status", creonow_status),
    Channel("context:creonow:rules:list", list_rules),
    Channel("context:creonow:rules:read", read_rule),
    Channel("context:creonow:settings:list", list_settings),
    Channel("context:creonow:settings:read", read_setting),
    Channel("context:creonow:characters:list", list_characters),
    Channel("context:creonow:characters:read", read_character),
)
