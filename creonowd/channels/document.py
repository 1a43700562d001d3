"""`context:document:*` — the documents of a project, and those open in an editor."""

from collections.abc import Sequence
from typing import Annotated

import structlog
from anyio import to_thread
from msgspec import UNSET, Meta, UnsetType, field

from creonowd.context.fragment import Notice, show
from creonowd.engine.services import Session, may_inspect
from creonowd.errors import DaemonError, ErrorCode, Wording
from creonowd.model import Model, Params, Result
from creonowd.redaction import Redactor
from creonowd.redaction.rules import SecretSpan
from creonowd.retrieval.document_list import find_documents
from creonowd.rpc.channel import Channel, Role
from creonowd.storage.safe_folder import check_root
from creonowd.text import decode_text, well_formed
from creonowd.threads import call_in_thread, in_thread, until_stopped
from creonowd.workspace.documents import (
    MAX_EDITS,
    Buffer,
    DocumentId,
    Edit,
    EditedDocument,
    OpenDocument,
    text_revision,
    to_utf16,
    unredacted_path,
    utf16_length,
)
from creonowd.workspace.file_edits import WrittenFile

Version = Annotated[int, Meta(ge=0)]
MASK = "█"

log = structlog.get_logger(__name__)


class SyncDocument(Params):
    """A document's whole `text`, or `edits` to `baseVersion`.

    A document is kept until it is closed or the connection ends, and counts instead of the file of
    that path.
    """

    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""
    document_id: DocumentId
    """The document's path below the project's folder; a text that is no file yet may have any
    name."""
    version: Version
    """The editor's number of this state; with `edits` greater than `baseVersion`."""
    text: str | None = None
    """The whole text; alone, without `edits`."""
    base_version: Version | None = None
    """The `version` that `edits` change; CONFLICT if the daemon has another, then send the whole
    text."""
    base_revision: str | None = None
    """The `revision` of `context:document:read` that `edits` change, instead of `baseVersion`: a
    page that was shown masked secrets edits the real text with it."""
    edits: list[Edit] | None = None
    """Changes in order, each to what the one before has left."""


class SyncedDocument(Result):
    """The document as the daemon has it now; `length` is in the connection's encoding."""

    version: int
    """The version that the daemon has now."""
    length: int
    """Its length, counted in the connection's position encoding."""


class CloseDocument(Params):
    """The document that the editor has closed."""

    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""
    document_id: DocumentId
    """The document's id as it was synced."""


class ClosedDocument(Result):
    """Whether it was open on this connection."""

    closed: bool
    """Whether it was open on this connection. From now on the file counts."""


class ListDocuments(Params):
    """The project; with `documentId`, the length of that document is returned even if it is not open."""

    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""
    document_id: DocumentId | None = None
    """Return the `length` of this document too, even if it is not open."""


class ListedDocument(Model):
    """A document on disk or open in an editor; an open one has a `length`."""

    document_id: str
    """Its path below the project's folder; a secret in the name is hidden, and this name is the
    one to use."""
    open: bool
    """Whether some editor has it open; then its text is the editor's and not the file's."""
    size_bytes: int | UnsetType = UNSET
    """The size of the file in bytes; absent if there is none."""
    length: int | UnsetType = UNSET
    """Its length in the connection's position encoding; absent unless it is open or was asked
    for."""


class DocumentList(Result):
    """Every text document of a project, sorted by path.

    A secret in a name is hidden; the document is read by the name as it is listed. Of a folder that
    is too big only the documents nearest to its top are listed, and `complete` is false: then, and
    if an ignore file is too long, `notices` says what was left out, and `warnings` the same as
    strings.
    """

    items: list[ListedDocument]
    """The documents, sorted by path."""
    complete: bool
    """False if the folder is too big and only the documents nearest to its top are listed; a
    notice says so."""
    warnings: list[str]
    """What did not go as it should, each as `CODE` or `CODE: sentence`; `notices` has the same in
    parts."""
    notices: list[Notice]
    """The warnings in parts, in the same order: test `code`, show `message`."""


class ReadDocument(Params):
    """The document whose text is asked for."""

    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""
    document_id: DocumentId
    """The document's path below the project's folder, or the id of one that is open."""
    on_disk: bool = False
    """Return the text of the file, although the document may be open with another one."""


class MaskedSpan(Model):
    """Where a secret was masked."""

    start: int = field(name="from")
    """Where it begins."""
    end: int = field(name="to")
    """Where it ends."""


class DocumentContent(Result):
    """A document's text for the author's eyes; positions in it are those in the document."""

    document_id: str
    """The document."""
    text: str
    """The whole text with its front matter, as this connection sees it; each secret is masked by as
    many blocks as it has characters."""
    revision: str
    """Names exactly this text; edits are made for it."""
    length: int
    """Its length, counted in the connection's position encoding."""
    secrets: list[MaskedSpan]
    """What was masked."""
    open: bool
    """Whether it comes from an editor and not from the disk."""
    writable: bool
    """Whether `context:document:write` may change its file."""


class WriteDocument(Params):
    """Edits to a document on disk."""

    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""
    document_id: DocumentId
    """The document's path below the project's folder."""
    revision: str
    """The `revision` that the edits are made for; CONFLICT if the file has another text. Blank
    for a document that has no file yet: one is made, CONFLICT if there is one."""
    edits: Annotated[list[Edit], Meta(max_length=MAX_EDITS)]
    """Changes in order, each to what the one before has left."""


class WrittenDocument(Result):
    """The file after the edits."""

    revision: str
    """Names the new text."""
    length: int
    """Its length, counted in the connection's position encoding."""
    undo: str
    """What `context:undo` takes it back with; blank if nothing changed."""


async def read_document(session: Session, params: ReadDocument) -> DocumentContent:
    """Return the text of a document with its secrets masked; only for owners that may inspect."""
    if not may_inspect(session):
        raise DaemonError(ErrorCode.CONTEXT_INSPECT_FORBIDDEN)
    project = await session.projects.find(params.project_id)
    key = (project.project_id, params.document_id)
    opened = await session.documents.find_synced(session.peer, key)
    buffer = await session.documents.read(
        project, params.document_id, session.peer, on_disk=params.on_disk
    )
    text, utf16 = buffer.text, session.peer.utf16
    secrets = await call_in_thread(session.redactor.find, text)
    places = {at for one in secrets for at in (one.start, one.end)}
    at = to_utf16(text, places) if utf16 else {place: place for place in places}
    return DocumentContent(
        document_id=session.redactor.redact_name(params.document_id),
        text=mask(text, secrets, utf16=utf16),
        revision=text_revision(text),
        length=buffer.size(utf16=utf16),
        secrets=[MaskedSpan(start=at[one.start], end=at[one.end]) for one in secrets],
        open=opened is not None,
        writable=session.settings.document_writes and opened is None,
    )


def mask(text: str, secrets: Sequence[SecretSpan], *, utf16: bool) -> str:
    """Replace each unit of a secret by a block, so that positions and lines stay the same."""
    parts: list[str] = []
    done = 0
    for start, end, _ in secrets:
        hidden = (
            character if character in "\r\n" else MASK * (utf16_length(character) if utf16 else 1)
            for character in text[start:end]
        )
        parts += [text[done:start], *hidden]
        done = end
    return "".join([*parts, text[done:]])


async def write_document(session: Session, params: WriteDocument) -> WrittenDocument:
    """Change a document on disk or make one, if the author allows that; the rest stays as it is."""
    if not session.settings.document_writes:
        raise DaemonError(ErrorCode.FORBIDDEN, _NO_WRITES)
    project = await session.projects.find(params.project_id)
    files, path = session.documents.files, params.document_id
    utf16 = session.peer.utf16

    def write() -> WrittenFile:
        name = unredacted_path(project.root, path, session.redactor)
        files.check(project.root, name)
        if not params.revision:
            made = Buffer.of("").apply(params.edits, utf16=utf16).text
            return session.edits.create_now(project.root, name, well_formed(made).encode())
        return session.edits.change_now(
            project.root,
            name,
            lambda data: files.apply_edits(data, params.revision, params.edits, utf16=utf16),
        )

    written = await to_thread.run_sync(write)
    buffer = Buffer.of(decode_text(written.data).text)
    log.info("document_written", project_id=project.project_id, edits=len(params.edits))
    return WrittenDocument(
        revision=text_revision(buffer.text), length=buffer.size(utf16=utf16), undo=written.undo
    )


_NO_WRITES = Wording(
    "Documents may not be changed from here; the setting `documentWrites` allows it.",
    "此处不允许改动文档；可用设置 documentWrites 允许。",
)


async def list_documents(session: Session, params: ListDocuments) -> DocumentList:
    """List the project's text files and the documents open in an editor."""
    project = await session.projects.find(params.project_id)
    await call_in_thread(check_root, project.root)
    found = await in_thread(lambda stop: find_documents(project.root, lambda: stop.is_set))
    on_disk = found.documents
    opened = session.documents.open_documents(project.project_id)
    buffers = {name: document.buffer for name, document in opened.items()}
    if (document_id := params.document_id) is not None and document_id in on_disk:
        buffers[document_id] = await session.documents.read(project, document_id, session.peer)
    cautions = (one.with_redacted_texts(session.redactor.redact_name) for one in found.cautions())
    warnings, notices = show(cautions, session.connection.language)
    names = sorted(on_disk.keys() | opened.keys())
    clean = await call_in_thread(_clean_names, session.redactor, names)
    return DocumentList(
        items=[
            ListedDocument(
                document_id=shown,
                open=name in opened,
                size_bytes=on_disk[name].size_bytes if name in on_disk else UNSET,
                length=buffers[name].size(utf16=session.peer.utf16) if name in buffers else UNSET,
            )
            for name, shown in zip(names, clean, strict=True)
        ],
        complete=found.is_complete,
        warnings=warnings,
        notices=notices,
    )


def _clean_names(redactor: Redactor, names: Sequence[str]) -> list[str]:
    """Hide the secrets in names; of 20 000 that takes a second."""
    return [redactor.redact_name(name) for name in until_stopped(names)]


async def sync_document(session: Session, params: SyncDocument) -> SyncedDocument:
    """Store the text of an open document; after CONFLICT send the whole text."""
    key = await _document_key(session, params.project_id, params.document_id)
    document = await _sync(session, key, params)
    return SyncedDocument(
        version=document.version, length=document.buffer.size(utf16=session.peer.utf16)
    )


async def close_document(session: Session, params: CloseDocument) -> ClosedDocument:
    """Forget the text of a document; its file is used again."""
    key = await _document_key(session, params.project_id, params.document_id)
    return ClosedDocument(closed=await session.documents.close(session.peer, key))


async def _sync(session: Session, key: tuple[str, str], params: SyncDocument) -> OpenDocument:
    if params.base_revision is not None and params.edits is not None and params.text is None:
        edited = EditedDocument(params.base_revision, params.version, params.edits)
        project = await session.projects.find(params.project_id)
        return await session.documents.edit_from(session.peer, project, params.document_id, edited)
    if params.text is not None and params.edits is None:
        return await session.documents.replace(session.peer, key, params.version, params.text)
    if params.text is not None or params.edits is None or params.base_version is None:
        raise DaemonError(
            ErrorCode.INVALID_ARGUMENT,
            "Send either `text`, or `baseVersion` and `edits`.",
            field="edits" if params.text is not None else "text",
        )
    return await session.documents.edit(
        session.peer, key, params.base_version, params.version, params.edits
    )


async def _document_key(session: Session, project_id: str, document_id: str) -> tuple[str, str]:
    project = await session.projects.find(project_id)
    if not document_id.strip():
        raise DaemonError(
            ErrorCode.INVALID_ARGUMENT, "documentId must not be blank.", field="documentId"
        )
    return (project.project_id, document_id)


CHANNELS = (
    Channel("context:document:list", list_documents, errors=(ErrorCode.UNSUPPORTED,)),
    Channel(
        "context:document:read",
        read_document,
        role=Role.OWNER,
        refusal=ErrorCode.CONTEXT_INSPECT_FORBIDDEN,
        errors=(ErrorCode.UNSUPPORTED,),
    ),
    Channel(
        "context:document:write",
        write_document,
        role=Role.OWNER,
        errors=(ErrorCode.CONFLICT, ErrorCode.FORBIDDEN, ErrorCode.UNSUPPORTED),
    ),
    Channel("context:document:sync", sync_document, errors=(ErrorCode.CONFLICT,)),
    Channel("context:document:close", close_document),
)
