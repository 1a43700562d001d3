"""`context:files:put`, `register` and `delete` — what the host keeps as context files."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from creonowd.channels.conversation_files import InConversation, where_of
from creonowd.channels.redacting import log_redaction
from creonowd.channels.session import Session
from creonowd.context_files.files import NewFileInfo
from creonowd.context_files.lazy_files import MATERIALISE, Materialise, Materialised
from creonowd.context_files.records import LONGEST_KEY, ContextRef, Kind, Origin
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Result
from creonowd.redaction import RedactionEvidence
from creonowd.rpc.channel import Channel, HostCall


class NewContextFile(InConversation):
    """A file for a model to look into later.

    `key`, such as a tool call's id, makes the call repeatable: the same key gives the same ref.
    `origin` decides the file's folder and name; it must go with the kind.
    """

    kind: Kind
    hint: Annotated[str, Meta(min_length=1, max_length=10_000)]
    mime_type: (
        Annotated[str, Meta(pattern=r"^[\w.+-]+/[\w.+*-]+( *;.*)?$", max_length=200)] | None
    ) = None
    key: Annotated[str, Meta(min_length=1, max_length=LONGEST_KEY)] | None = None
    origin: Origin | None = None


class PutContextFile(NewContextFile):
    """The content, either as text or as base64."""

    content: str | UnsetType = UNSET
    base64: bytes | UnsetType = UNSET


class ContextFilePut(Result):
    """The ref, and if the content is too long for a conversation, what to write there instead.

    `preview` is the redacted head and tail around a note of what is left out.
    """

    ref: ContextRef
    preview: str | UnsetType = UNSET
    missing_chars: int | UnsetType = UNSET
    missing_bytes: int | UnsetType = UNSET
    redaction_evidence: tuple[RedactionEvidence, ...] | UnsetType = UNSET


class RegisterContextFile(NewContextFile):
    """A recipe for a file that is made when it is first looked at, and again after cleaning.

    `type` is `host` (the daemon calls `context:files:materialise` back and hands the recipe over),
    `json` (`value` is the content) or `file` (`path` is a project-relative file).
    """

    recipe: dict[str, Any]


class ContextFileRegistered(Result):
    """The ref of a file that has yet to be made."""

    ref: ContextRef


class DeleteContextFiles(InConversation):
    """The file to forget; without `id`, the whole conversation."""

    id: str | None = None


class ContextFilesDeleted(Result):
    """How much is gone."""

    deleted: int
    freed_bytes: int


async def put_file(session: Session, params: PutContextFile) -> ContextFilePut:
    """Keep a text or bytes as a context file."""
    where = await where_of(session, params)
    put = await session.files.put(where, _content(params), _about(params))
    if put.preview is None:
        return ContextFilePut(ref=put.ref)
    log_redaction(params.project_id, put.preview.evidence)
    return ContextFilePut(
        ref=put.ref,
        preview=put.preview.text,
        missing_chars=put.preview.missing_characters,
        missing_bytes=put.preview.missing_bytes,
        redaction_evidence=put.preview.evidence,
    )


async def register_file(session: Session, params: RegisterContextFile) -> ContextFileRegistered:
    """Keep a recipe for a context file."""
    where = await where_of(session, params)
    ref = await session.files.register(where, params.recipe, _about(params), session.peer)
    return ContextFileRegistered(ref=ref)


async def delete_files(session: Session, params: DeleteContextFiles) -> ContextFilesDeleted:
    """Forget a context file, or all of a conversation's."""
    where = await where_of(session, params)
    gone = await session.files.delete(where, params.id)
    freed = sum(record.survey.byte_size for record in gone if record.survey is not None)
    return ContextFilesDeleted(deleted=len(gone), freed_bytes=freed)


def _content(params: PutContextFile) -> str | bytes:
    if isinstance(params.content, str) and params.base64 is UNSET:
        return params.content
    if isinstance(params.base64, bytes) and params.content is UNSET:
        return params.base64
    raise DaemonError(ErrorCode.INVALID_ARGUMENT, "Send either content or base64.", field="content")


def _about(params: NewContextFile) -> NewFileInfo:
    return NewFileInfo(params.kind, params.hint, params.origin, params.mime_type, params.key)


CHANNELS = (
    Channel("context:files:put", put_file),
    Channel("context:files:register", register_file),
    Channel("context:files:delete", delete_files),
)
HOST_CALLS = (HostCall(MATERIALISE, Materialise, Materialised),)
