"""`context:document:*` — the documents of a project, and those open in an editor."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from creonowd.context.notice import Notice, show
from creonowd.engine.services import Session
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model, Params, Result
from creonowd.retrieval.catalogue import find_documents
from creonowd.rpc.channel import Channel
from creonowd.threads import in_thread
from creonowd.workspace.buffer import Edit
from creonowd.workspace.documents import DocumentId, OpenDocument

Version = Annotated[int, Meta(ge=0)]


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


async def list_documents(session: Session, params: ListDocuments) -> DocumentList:
    """List the project's text files and the documents open in an editor."""
    project = await session.projects.find(params.project_id)
    found = await in_thread(lambda stop: find_documents(project.root, lambda: stop.is_set))
    on_disk = found.documents
    opened = session.documents.open_documents(project.project_id)
    buffers = {name: document.buffer for name, document in opened.items()}
    if (document_id := params.document_id) is not None and document_id in on_disk:
        buffers[document_id] = await session.documents.read(project, document_id, session.peer)
    cautions = (one.cleaned(session.redactor.redact_name) for one in found.cautions())
    warnings, notices = show(cautions, session.connection.language)
    return DocumentList(
        items=[
            ListedDocument(
                document_id=session.redactor.redact_name(name),
                open=name in opened,
                size_bytes=on_disk[name].st_size if name in on_disk else UNSET,
                length=buffers[name].size(utf16=session.peer.utf16) if name in buffers else UNSET,
            )
            for name in sorted(on_disk.keys() | opened.keys())
        ],
        complete=found.is_complete,
        warnings=warnings,
        notices=notices,
    )


async def sync_document(session: Session, params: SyncDocument) -> SyncedDocument:
    """Store the text of an open document; after CONFLICT send the whole text."""
    key = await _key(session, params.project_id, params.document_id)
    document = await _sync(session, key, params)
    return SyncedDocument(
        version=document.version, length=document.buffer.size(utf16=session.peer.utf16)
    )


async def close_document(session: Session, params: CloseDocument) -> ClosedDocument:
    """Forget the text of a document; its file is used again."""
    key = await _key(session, params.project_id, params.document_id)
    return ClosedDocument(closed=await session.documents.close(session.peer, key))


async def _sync(session: Session, key: tuple[str, str], params: SyncDocument) -> OpenDocument:
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


async def _key(session: Session, project_id: str, document_id: str) -> tuple[str, str]:
    project = await session.projects.find(project_id)
    if not document_id.strip():
        raise DaemonError(
            ErrorCode.INVALID_ARGUMENT, "documentId must not be blank.", field="documentId"
        )
    return (project.project_id, document_id)


CHANNELS = (
    Channel("context:document:list", list_documents, errors=(ErrorCode.UNSUPPORTED,)),
    Channel("context:document:sync", sync_document, errors=(ErrorCode.CONFLICT,)),
    Channel("context:document:close", close_document),
)
