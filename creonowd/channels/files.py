"""`context:files:*` — what the host does with context files: put, register, delete, clean, count."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from creonowd.artifacts import keeping
from creonowd.artifacts.files import About
from creonowd.artifacts.keeping import Cleaned, Share
from creonowd.artifacts.makers import MATERIALISE, Materialise, Materialised
from creonowd.artifacts.refs import LONGEST_KEY, ContextRef, Kind, Origin
from creonowd.artifacts.retention import CleaningReason
from creonowd.channels.context_files import InConversation, where_of
from creonowd.channels.redacting import log_redaction
from creonowd.channels.session import Session
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model, Params, Result
from creonowd.redaction import RedactionEvidence
from creonowd.rpc.channel import Channel, HostCall

MOST_NAMED = 1000


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


class OfProject(Params):
    """A project, or one of its conversations."""

    project_id: str
    conversation_id: str | None = None


class PruneContextFiles(OfProject):
    """A limit stricter than the settings', for lazy files."""

    max_bytes: Annotated[int, Meta(ge=0)] | None = None


class CleanedContextFile(Model):
    """A file that was taken away; a lazy one is made again when it is next looked at."""

    conversation_id: str
    id: str
    kind: Kind
    bytes: int
    reason: CleaningReason


class ContextFilesPruned(Result):
    """What was cleaned and what is kept; `inUse` files were being read and stay.

    `cleaned` names the first thousand, `cleanedFiles` counts all.
    """

    cleaned: list[CleanedContextFile]
    cleaned_files: int
    freed_bytes: int
    kept_files: int
    kept_bytes: int
    in_use: int


class ContextFileAmount(Model):
    """So many files of so many bytes."""

    files: int
    bytes: int


class ContextFileStats(Result):
    """What is kept: `lazy` files of which `lazyMade` are there, and the limits from the settings."""

    conversations: int
    files: int
    bytes: int
    kinds: dict[str, ContextFileAmount]
    eager: ContextFileAmount
    lazy: int
    lazy_made: ContextFileAmount
    max_bytes: int
    lazy_days: int
    eager_days: int


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


async def prune_files(session: Session, params: PruneContextFiles) -> ContextFilesPruned:
    """Clean context files by age and size; eager ones never before their age."""
    await session.projects.find(params.project_id)
    done = await keeping.prune(
        session.files, params.project_id, params.conversation_id, params.max_bytes
    )
    return ContextFilesPruned(
        cleaned=[_cleaned(one) for one in done.cleaned[:MOST_NAMED]],
        cleaned_files=len(done.cleaned),
        freed_bytes=sum(one.held.bytes for one in done.cleaned),
        kept_files=done.kept_files,
        kept_bytes=done.kept_bytes,
        in_use=done.in_use,
    )


async def file_stats(session: Session, params: OfProject) -> ContextFileStats:
    """Tell how much a project or conversation keeps."""
    await session.projects.find(params.project_id)
    found = await keeping.stats(session.files, params.project_id, params.conversation_id)
    settings = session.settings
    return ContextFileStats(
        conversations=found.conversations,
        files=found.eager.files + found.lazy,
        bytes=found.eager.bytes + found.made.bytes,
        kinds={kind: _amount(share) for kind, share in found.kinds.items()},
        eager=_amount(found.eager),
        lazy=found.lazy,
        lazy_made=_amount(found.made),
        max_bytes=settings.context_max_bytes,
        lazy_days=settings.context_lazy_days,
        eager_days=settings.context_eager_days,
    )


def _content(params: PutContextFile) -> str | bytes:
    if isinstance(params.content, str) and params.base64 is UNSET:
        return params.content
    if isinstance(params.base64, bytes) and params.content is UNSET:
        return params.base64
    raise DaemonError(ErrorCode.INVALID_ARGUMENT, "Send either content or base64.", field="content")


def _about(params: NewContextFile) -> About:
    return About(params.kind, params.hint, params.origin, params.mime_type, params.key)


def _cleaned(one: Cleaned) -> CleanedContextFile:
    record = one.held.record
    return CleanedContextFile(
        conversation_id=one.held.conversation.id,
        id=record.id,
        kind=record.kind,
        bytes=one.held.bytes,
        reason=one.reason,
    )


def _amount(share: Share) -> ContextFileAmount:
    return ContextFileAmount(files=share.files, bytes=share.bytes)


CHANNELS = (
    Channel("context:files:put", put_file),
    Channel("context:files:register", register_file),
    Channel("context:files:delete", delete_files),
    Channel("context:files:prune", prune_files),
    Channel("context:files:stats", file_stats),
)
HOST_CALLS = (HostCall(MATERIALISE, Materialise, Materialised),)
