"""`context:creonow:*` — the `.creonow` folder: make it, list, read and watch its files."""

from collections.abc import Iterable
from functools import partial
from typing import Literal, TypeVar

import structlog
from anyio import to_thread
from msgspec import UNSET, UnsetType, structs

from creonowd.channels.project import ProjectId
from creonowd.engine.services import Session
from creonowd.errors import DaemonError, ErrorCode, Language, Wording
from creonowd.logs import log_redaction
from creonowd.model import Model, Params, Result
from creonowd.redaction import PLACEHOLDER, RedactionEvidence, Redactor
from creonowd.rpc.channel import Channel, Notification, Role
from creonowd.rpc.connection import Peer
from creonowd.sources.characters import Inject
from creonowd.storage import front_matter
from creonowd.text import as_text, is_json
from creonowd.threads import call_in_thread, until_stopped
from creonowd.workspace.creonow_tree import (
    SUFFIXES,
    CreonowFolder,
    FileInfo,
    Folder,
    Problem,
    TreeFile,
    folder_of,
    in_scope,
    layers_of,
)
from creonowd.workspace.documents import unredacted_path
from creonowd.workspace.file_edits import WrittenFile, changed_since, revision_of
from creonowd.workspace.projects import Project
from creonowd.workspace.watcher import ProjectChange

CHANGED = "context:creonow:changed"
STYLE, TERMINOLOGY, CONSTRAINTS, OTHER = "style", "terminology", "constraints", "other"
KINDS = {
    f"{folder_of(CreonowFolder.RULES)}/style.md": STYLE,
    f"{folder_of(CreonowFolder.RULES)}/terminology.json": TERMINOLOGY,
    f"{folder_of(CreonowFolder.RULES)}/constraints.json": CONSTRAINTS,
}
READING_ORDER = (STYLE, TERMINOLOGY, OTHER, CONSTRAINTS)
# The contract spells the layers of an event out instead of naming the type.
LayerName = Literal["rules", "settings", "retrieved", "immediate"]

log = structlog.get_logger(__name__)


class Ensured(Result):
    """The tree exists; `rootPath` is the project's folder, which contains `.creonow`."""

    root_path: str
    """The project's folder, which contains `.creonow`; an absolute path."""
    ensured: bool
    """Always true: the folders and default files are there."""


class CreonowStatus(Result):
    """Whether the tree exists (then with the project's folder) and whether it is watched."""

    exists: bool
    """Whether the project has a `.creonow` folder."""
    watching: bool
    """Whether any connection watches it; `context:creonow:watch:start` starts that for this one."""
    root_path: str | UnsetType = UNSET
    """The project's folder as an absolute path; absent if there is no `.creonow`."""


class FileList(Result):
    """The files of one folder of the tree, recursively, sorted by path."""

    items: list[FileInfo]
    """The files, sorted by path."""


class ReadFile(Params):
    """A project-relative path as the list gives it, such as `.creonow/settings/世界观.md`."""

    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""
    path: str
    """The path below the project's folder as the list gives it, such as
    `.creonow/settings/Magic.md`."""


class FileContent(Result):
    """A file's text without its secrets; `sizeBytes` is its size on disk."""

    path: str
    """The path that was asked for."""
    content: str
    """The text, without secrets."""
    size_bytes: int
    """Its size on disk, in bytes."""
    updated_at_ms: int
    """When it was last changed, in milliseconds since 1970 (UTC)."""
    redaction_evidence: list[RedactionEvidence]
    """Which kinds of secrets were taken out of this reply, and how often; never the secrets."""


class RuleFragment(Model):
    """One file of the rules, without its secrets."""

    kind: str
    """What the file is: `style`, `terminology`, `constraints` or `other`."""
    path: str
    """Its path below the project's folder."""
    content: str
    """Its text, without secrets."""
    updated_at_ms: int
    """When it was last changed, in milliseconds since 1970 (UTC)."""


class RuleError(Model):
    """A file that cannot be used; `reason` is the same as in trim evidence."""

    path: str
    """Its path below the project's folder."""
    code: ErrorCode
    """What is wrong with it."""
    reason: str
    """Why it cannot be used: `invalid_format`, `too_large` or `read_error`."""
    message: str
    """The same as a sentence, in the connection's language."""


class Rules(Result):
    """The rules in reading order; a file that cannot be used is in `errors` instead."""

    fragments: list[RuleFragment]
    """The rules in the order in which a prompt has them."""
    errors: list[RuleError]
    """The files that cannot be used; an assembly goes on without them and warns."""
    redaction_evidence: list[RedactionEvidence]
    """Which kinds of secrets were taken out of this reply, and how often; never the secrets."""


class Watching(Result):
    """Whether this connection watches the project now."""

    watching: bool
    """Whether changes of the project are sent to this connection as `context:creonow:changed`."""


class CreonowChanged(Model):
    """Files of a watched project were added, removed or changed; `layers` are those they belong to.

    With `watching: false` the watcher has failed; start it again to be notified of changes.
    """

    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""
    paths: list[str]
    """What was added, removed or changed, below the project's folder."""
    layers: list[LayerName]
    """The layers of the prompt that these files belong to."""
    at_ms: int
    """When that was, in milliseconds since 1970 (UTC)."""
    watching: bool | UnsetType = UNSET
    """False if the watcher has failed; call `context:creonow:watch:start` again. Otherwise
    absent."""


class UndoChange(Params):
    """A change of a file that a reply gave an `undo` for."""

    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""
    undo: str
    """The `undo` of that reply."""


class UndoneChange(Result):
    """The file as it was before."""

    path: str
    """The file, relative to the project."""
    revision: str
    """The SHA-256 of its bytes; blank if there is no file, because what was undone had made it."""
    undo: str
    """What makes the change again."""


class SetInject(Params):
    """When a card or a note shall enter prompts."""

    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""
    path: str
    """A text of `.creonow/characters` or `.creonow/settings`, as the lists and `context:subjects`
    name it; JSON is not changed."""
    inject: Inject
    """When it shall enter prompts."""
    expected_revision: str | None = None
    """The `revision` of `context:subjects` that the author saw; CONFLICT if the file has another."""


class InjectSet(Result):
    """The file after the change."""

    path: str
    """The path that was asked for."""
    inject: Inject
    """When it enters prompts now."""
    previous: Inject | UnsetType = UNSET
    """When it did before; absent if its file said something else."""
    revision: str
    """The SHA-256 of its bytes."""
    undo: str
    """What `context:undo` takes it back with; blank if nothing changed."""


async def set_inject(session: Session, params: SetInject) -> InjectSet:
    """Set `inject` in the front matter of a card or a note; the rest of the file stays as it is."""
    project = await session.projects.find(params.project_id)
    before: list[Inject | None] = []

    def change(data: bytes) -> bytes:
        if params.expected_revision not in {None, revision_of(data)}:
            raise changed_since()
        before.append(_inject_of(data))
        return _with_inject(data, params.inject)

    def write() -> WrittenFile:
        path = unredacted_path(project.root, params.path, session.redactor)
        scope = _scope_of(path)
        return session.edits.change_now(project.root, path, change, within=folder_of(scope))

    written = await to_thread.run_sync(write)
    log.info("inject_set", project_id=project.project_id, inject=params.inject.value)
    return InjectSet(
        path=session.redactor.redact_name(written.path),
        inject=params.inject,
        previous=before[0] or UNSET,
        revision=revision_of(written.data),
        undo=written.undo,
    )


def _scope_of(path: str) -> CreonowFolder:
    """Return the folder of a file that may have `inject`; INVALID_ARGUMENT if this one may not."""
    is_note = path.startswith(f"{folder_of(CreonowFolder.SETTINGS)}/")
    scope = CreonowFolder.SETTINGS if is_note else CreonowFolder.CHARACTERS
    in_scope(path, scope)
    suffix = path[path.rfind(".") :].lower()
    if suffix == ".json" or suffix not in SUFFIXES[scope]:
        raise DaemonError(ErrorCode.INVALID_ARGUMENT, _NOT_TEXT, field="path", reason="not_text")
    return scope


def _inject_of(data: bytes) -> Inject | None:
    """Return the `inject` of a file, which is `always` without one; None if it is no valid value."""
    value = front_matter.split(as_text(data) or "").values.get("inject", Inject.ALWAYS)
    return Inject(value) if value in list(Inject) else None


def _with_inject(data: bytes, inject: Inject) -> bytes:
    if (text := as_text(data)) is None:
        raise DaemonError(ErrorCode.UNSUPPORTED, _NOT_UTF8, reason="invalid_format")
    changed = front_matter.with_value(text, "inject", inject.value)
    if changed is None:
        wording = _BY_HAND.format(inject.value)
        raise DaemonError(ErrorCode.UNSUPPORTED, wording, reason="invalid_format")
    bom = data[: len(data) - len(text.encode())]
    return bom + changed.encode()


_NOT_UTF8 = Wording(
    "The file is not UTF-8 text; save it as UTF-8.", "文件不是 UTF-8 文本，请另存为 UTF-8。"
)
_NOT_TEXT = Wording(
    "Only a text file can be changed here; in a JSON file write `inject` by hand.",
    "此处只能改文本文件；JSON 文件请手动写 inject。",
)
_BY_HAND = Wording(
    "The front matter has a fault or is written unusually; write `inject: {}` into it by hand.",
    "文件头有误或写法特殊，请手动写上 inject: {}。",
)


async def undo_change(session: Session, params: UndoChange) -> UndoneChange:
    """Take back a change of a file, byte for byte; CONFLICT if it has changed again since."""
    project = await session.projects.find(params.project_id)
    undone = await to_thread.run_sync(session.edits.undo_now, project.root, params.undo)
    log.info("file_change_undone", project_id=project.project_id)
    return UndoneChange(
        path=session.redactor.redact_name(undone.path),
        revision=revision_of(undone.data) if undone.exists else "",
        undo=undone.undo,
    )


async def ensure_creonow(session: Session, params: ProjectId) -> Ensured:
    """Make the missing parts of the tree; nothing that exists is changed."""
    project = await session.projects.find(params.project_id)
    await session.tree.ensure(project)
    return Ensured(root_path=_visible_path(session, project), ensured=True)


async def creonow_status(session: Session, params: ProjectId) -> CreonowStatus:
    """Return whether the tree exists and whether it is watched."""
    project = await session.projects.find(params.project_id)
    exists = await session.tree.exists(project)
    return CreonowStatus(
        exists=exists,
        watching=session.watcher.is_watched(project.project_id),
        root_path=_visible_path(session, project) if exists else UNSET,
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
    files = await session.tree.list(project, scope)
    return FileList(items=await call_in_thread(_with_clean_paths, session.redactor, files))


_WithPath = TypeVar("_WithPath", FileInfo, RuleFragment, RuleError)


def _with_clean_paths(redactor: Redactor, items: Iterable[_WithPath]) -> list[_WithPath]:
    """Hide the secrets in the paths of items; of thousands that takes a while."""
    clean = redactor.redact_name
    return [structs.replace(one, path=clean(one.path)) for one in until_stopped(items)]


def _visible_path(session: Session, project: Project) -> str:
    """Return the path of a project's folder, without secrets in its names."""
    return session.redactor.hide_secrets(str(project.root))


async def _read(session: Session, params: ReadFile, scope: CreonowFolder) -> FileContent:
    project = await session.projects.find(params.project_id)
    path = params.path
    if PLACEHOLDER in path:
        path = await to_thread.run_sync(unredacted_path, project.root, path, session.redactor)
    try:
        file = await session.tree.read(project, scope, path)
    except DaemonError as error:
        if error.code is ErrorCode.INVALID_ARGUMENT:
            reason = error.details.get("reason")
            log.warning("context_scope_violation", project_id=project.project_id, reason=reason)
        raise
    if (text := as_text(file.data)) is None:
        raise DaemonError(
            ErrorCode.UNSUPPORTED,
            _NOT_UTF8,
            path=file.path,
            reason="invalid_format",
        )
    pairs = [(file.path, text)]
    (content,), evidence = await call_in_thread(session.redactor.redact_texts, pairs)
    log_redaction(project.project_id, evidence)
    return FileContent(
        path=session.redactor.redact_name(file.path),
        content=content,
        size_bytes=file.size_bytes,
        updated_at_ms=file.updated_at_ms,
        redaction_evidence=evidence,
    )


async def get_rules(session: Session, params: ProjectId) -> Rules:
    """Read all files of `.creonow/rules`, redacted."""
    project = await session.projects.find(params.project_id)
    folder = await session.tree.read_all(project, CreonowFolder.RULES)
    chinese = session.connection.language is Language.CHINESE
    usable, errors = _usable_files(folder, chinese=chinese)
    texts = [(file.path, text) for file, text in usable]
    contents, evidence = await call_in_thread(session.redactor.redact_texts, texts)
    log_redaction(project.project_id, evidence)
    fragments = [_fragment(file, text) for (file, _), text in zip(usable, contents, strict=True)]
    return Rules(
        fragments=await call_in_thread(_with_clean_paths, session.redactor, fragments),
        errors=await call_in_thread(_with_clean_paths, session.redactor, errors),
        redaction_evidence=evidence,
    )


def _usable_files(
    folder: Folder, *, chinese: bool
) -> tuple[list[tuple[TreeFile, str]], list[RuleError]]:
    usable: list[tuple[TreeFile, str]] = []
    errors = [_read_error(problem, chinese=chinese) for problem in folder.problems]
    for file in sorted(
        folder.files, key=lambda file: (READING_ORDER.index(_kind(file.path)), file.path)
    ):
        text = as_text(file.data)
        if text is None or (file.path.lower().endswith(".json") and not is_json(text)):
            expected = "JSON" if text is not None else "UTF-8"
            errors.append(_format_error(file, expected, chinese=chinese))
        else:
            usable.append((file, text))
    return usable, sorted(errors, key=lambda error: error.path)


def _kind(path: str) -> str:
    return KINDS.get(path, OTHER)


def _fragment(file: TreeFile, content: str) -> RuleFragment:
    return RuleFragment(
        kind=_kind(file.path), path=file.path, content=content, updated_at_ms=file.updated_at_ms
    )


def _read_error(problem: Problem, *, chinese: bool) -> RuleError:
    reason = "too_large" if problem.error.details.get("reason") == "too_large" else "read_error"
    return RuleError(
        path=problem.path,
        code=problem.error.code,
        reason=reason,
        message=problem.error.wording.text(chinese=chinese),
    )


def _format_error(file: TreeFile, expected: str, *, chinese: bool) -> RuleError:
    return RuleError(
        path=file.path,
        code=ErrorCode.UNSUPPORTED,
        reason="invalid_format",
        message=_NOT_VALID.format(expected).text(chinese=chinese),
    )


_NOT_VALID = Wording("The file is not valid {}; fix it.", "文件不是合法的 {}，请修正。")


async def start_watching(session: Session, params: ProjectId) -> Watching:
    """Notify this connection of every change from now on; starting twice has no effect."""
    project = await session.projects.find(params.project_id)
    peer, watcher = session.peer, session.watcher
    if watcher.register(peer.id):
        peer.when_closed(lambda: watcher.drop(peer.id))
    if await watcher.subscribe(
        project, peer.id, partial(_notify, peer, session.redactor), client=True
    ):
        log.info("context_watch_started", project_id=project.project_id, peer=peer.id)
    if not peer.is_connected:
        watcher.drop(peer.id)
    return Watching(watching=True)


async def stop_watching(session: Session, params: ProjectId) -> Watching:
    """Stop the notifications; without a watch this has no effect."""
    project = await session.projects.find(params.project_id)
    if await session.watcher.unsubscribe(project.project_id, session.peer.id):
        log.info("context_watch_stopped", project_id=project.project_id, peer=session.peer.id)
    return Watching(watching=False)


def _notify(peer: Peer, redactor: Redactor, change: ProjectChange) -> None:
    event = CreonowChanged(
        project_id=change.project_id,
        paths=[redactor.redact_name(path) for path in change.paths],
        layers=[layer.value for layer in change.layers],
        at_ms=change.at_ms,
        watching=UNSET if change.watching else False,
    )
    peer.notify(CHANGED, event, key=change.project_id, merge=merge_changes)


def merge_changes(waiting: CreonowChanged, newer: CreonowChanged) -> CreonowChanged:
    """Merge two events for a client that lags behind."""
    paths = {*waiting.paths, *newer.paths}
    return CreonowChanged(
        project_id=newer.project_id,
        paths=sorted(paths),
        layers=[layer.value for layer in layers_of(paths)],
        at_ms=newer.at_ms,
        watching=newer.watching,
    )


CHANNELS = (
    Channel("context:creonow:ensure", ensure_creonow),
    Channel("context:creonow:status", creonow_status),
    Channel("context:creonow:rules:list", list_rules),
    Channel("context:creonow:rules:read", read_rule, errors=(ErrorCode.UNSUPPORTED,)),
    Channel("context:creonow:settings:list", list_settings),
    Channel("context:creonow:settings:read", read_setting, errors=(ErrorCode.UNSUPPORTED,)),
    Channel("context:creonow:characters:list", list_characters),
    Channel("context:creonow:characters:read", read_character, errors=(ErrorCode.UNSUPPORTED,)),
    Channel("context:creonow:rules:get", get_rules),
    Channel(
        "context:creonow:inject:set",
        set_inject,
        role=Role.OWNER,
        errors=(ErrorCode.CONFLICT, ErrorCode.UNSUPPORTED),
    ),
    Channel("context:undo", undo_change, role=Role.OWNER, errors=(ErrorCode.CONFLICT,)),
    Channel("context:creonow:watch:start", start_watching),
    Channel("context:creonow:watch:stop", stop_watching),
)
NOTIFICATIONS = (Notification(CHANGED, CreonowChanged),)
