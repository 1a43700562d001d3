"""`context.*` — list, read, tail and grep context files; `context:files:*` — keep them.

The first four are what a model may ask; the others are for the host.
"""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from creonowd.context_files import retention
from creonowd.context_files.files import (
    READ_LIMIT,
    TAIL_LINES,
    ConversationKey,
    FileRequest,
    FileView,
    NewFileInfo,
)
from creonowd.context_files.lazy_files import MATERIALISE, Materialise, Materialised
from creonowd.context_files.patterns import MAX_LENGTH
from creonowd.context_files.records import MAX_KEY_LENGTH, ContextRef, Kind, Origin
from creonowd.context_files.retention import CleanedFile, CleaningReason, FileTotal
from creonowd.context_files.search import GrepRequest, VisibleMatch, spell_cursor
from creonowd.engine.services import InConversation, Session
from creonowd.errors import DaemonError, ErrorCode
from creonowd.history import round_archive
from creonowd.logs import log_redaction
from creonowd.model import Model, Params, Result
from creonowd.redaction import RedactionEvidence
from creonowd.rpc.channel import Channel, Deadline, HostCall, Role

MAX_CLEANED_ITEMS = 1000

# The errors of any call about a conversation, and of one for which a host makes a file.
FILE_ERRORS = (ErrorCode.NOT_FOUND, ErrorCode.CONFLICT, ErrorCode.CONTEXT_SCOPE_VIOLATION)
HOST_ERRORS = (ErrorCode.HOST_ERROR, ErrorCode.DISCONNECTED)

Offset = Annotated[int, Meta(ge=0, le=1 << 53)]


class LookAtContextFile(InConversation):
    """A file by its ref's id. Secrets are redacted, unless an owner asks for `raw`."""

    id: str
    """The `id` of the file's ref."""
    sensitive: bool = False
    """Redact by the wider rules, for text that leaves the machine."""
    raw: bool = False
    """Redact nothing; for owners only, else FORBIDDEN."""


async def conversation_key(session: Session, params: InConversation) -> ConversationKey:
    """Return the key of the conversation; NOT_FOUND if its project does not exist."""
    await session.projects.find(params.project_id)
    return ConversationKey(params.project_id, params.conversation_id)


async def file_request(session: Session, params: LookAtContextFile) -> FileRequest:
    """Return the file and how to show it; FORBIDDEN if a client that is no owner asks for `raw`."""
    if params.raw and session.peer.role is not Role.OWNER:
        raise DaemonError(
            ErrorCode.FORBIDDEN, "Only an owner may read raw; leave `raw` out.", field="raw"
        )
    view = FileView.SENSITIVE if params.sensitive else FileView.REDACTED
    key = await conversation_key(session, params)
    return FileRequest(key, params.id, FileView.RAW if params.raw else view, session.peer)


class ListContextFiles(InConversation):
    """Which refs to list: the newest `limit`, of one `kind` or of all."""

    kind: Kind | None = None
    """Only files of this kind; without it, all."""
    limit: Annotated[int, Meta(ge=1, le=500)] = 50
    """How many at most, counted from the newest."""


class ContextFileList(Result):
    """The newest refs, oldest first."""

    items: list[ContextRef]
    """The newest refs, the oldest of them first."""


class ReadContextFile(LookAtContextFile):
    """Which bytes of a file to read."""

    offset: Offset = 0
    """The first byte; 0, or a `nextOffset` or `offset` that a reply gave."""
    limit: Annotated[int, Meta(ge=1)] = READ_LIMIT
    """How many bytes at most; the setting `contextReadMaxBytes` limits it further."""
    encoding: Literal["utf-8", "base64"] = "utf-8"
    """`utf-8` for text; `base64`, only with `raw`, for what is none."""


class ContextFilePage(Result):
    """A page. Go on at `nextOffset` until `done`.

    Raw pages joined are the file; redacted pages joined are the redacted file: a secret shows as
    one placeholder, on the page where it begins.
    """

    id: str
    """The file that was read."""
    offset: int
    """The byte of the file at which the page begins; never inside a character."""
    limit: int
    """The limit that was asked for."""
    next_offset: int
    """Where the next page begins."""
    done: bool
    """Whether this was the last page."""
    content: str
    """The text; empty with `base64`."""
    base64: bytes | UnsetType = UNSET
    """The bytes in base64, if that was asked for."""
    redaction_evidence: tuple[RedactionEvidence, ...]
    """Which kinds of secrets were taken out of this reply, and how often; never the secrets."""


class TailContextFile(LookAtContextFile):
    """How many of the last lines to read."""

    lines: Annotated[int, Meta(ge=1)] = TAIL_LINES
    """How many of the last lines; the setting `contextTailMaxLines` limits it further."""


class ContextFileTail(Result):
    """The last `lines` lines, from byte `offset` on; `truncated` if they were too long to show."""

    id: str
    """The file that was read."""
    lines: int
    """How many lines these are."""
    content: str
    """The lines, with their line ends."""
    offset: int
    """The byte of the file at which they begin."""
    truncated: bool
    """Whether their beginning is left out because they were too long to show."""
    redaction_evidence: tuple[RedactionEvidence, ...]
    """Which kinds of secrets were taken out of this reply, and how often; never the secrets."""


async def list_files(session: Session, params: ListContextFiles) -> ContextFileList:
    """List the newest context files of a conversation."""
    key = await conversation_key(session, params)
    return ContextFileList(items=await session.files.newest(key, params.kind, params.limit))


async def read_file(session: Session, params: ReadContextFile) -> ContextFilePage:
    """Read a page of a context file."""
    request = await file_request(session, params)
    _check_maximum("limit", params.limit, session.settings.context_read_max_bytes)
    data: bytes | UnsetType = UNSET
    if params.encoding == "base64":
        if request.view is not FileView.RAW:
            raise DaemonError(
                ErrorCode.INVALID_ARGUMENT,
                "base64 cannot be redacted; ask for it with `raw`.",
                field="encoding",
            )
        page, data = await session.files.read_bytes(request, params.offset, params.limit)
    else:
        page = await session.files.read(request, params.offset, params.limit)
    log_redaction(params.project_id, page.evidence)
    return ContextFilePage(
        id=params.id,
        offset=page.offset,
        limit=params.limit,
        next_offset=page.next_offset,
        done=page.done,
        content=page.content,
        base64=data,
        redaction_evidence=page.evidence,
    )


async def tail_file(session: Session, params: TailContextFile) -> ContextFileTail:
    """Read the last lines of a context file."""
    request = await file_request(session, params)
    _check_maximum("lines", params.lines, session.settings.context_tail_max_lines)
    tail = await session.files.tail(request, params.lines)
    log_redaction(params.project_id, tail.evidence)
    return ContextFileTail(
        id=params.id,
        lines=tail.lines,
        content=tail.content,
        offset=tail.offset,
        truncated=tail.truncated,
        redaction_evidence=tail.evidence,
    )


def _check_maximum(field: str, value: int, maximum: int) -> None:
    if value > maximum:
        raise DaemonError(
            ErrorCode.INVALID_ARGUMENT,
            f"{field} is {maximum} at most.",
            field=field,
            maximum=maximum,
        )


class GrepContextFile(LookAtContextFile):
    """What to search for, line by line."""

    pattern: Annotated[str, Meta(min_length=1, max_length=MAX_LENGTH)]
    r"""A pattern in RE2's language. `\d`, `\w` and `\b` are ASCII, `\s` is any space, `\p{Han}` a
    Han character."""
    max_results: Annotated[int, Meta(ge=1, le=200)] = 50
    """How many lines to return at most."""
    context_lines: Annotated[int, Meta(ge=0, le=50)] = 0
    """How many lines before and after each match to return."""
    case_sensitive: bool = False
    """Whether capital and small letters differ."""
    cursor: Annotated[str, Meta(max_length=64)] | None = None
    """The `cursor` of an earlier search with the same pattern, to go on where it stopped."""


class GrepMatch(Result):
    """A line that matches."""

    line: int
    """Its number, from 1."""
    offset: int
    """The byte at which it begins, for `context.read`."""
    content: str
    """The line, redacted."""
    before: list[str] | UnsetType = UNSET
    """The lines before it, as many as `contextLines` asked for; absent if none were asked for."""
    after: list[str] | UnsetType = UNSET
    """The lines after it, likewise."""


class GrepResult(Result):
    """The lines that match.

    A line that holds a secret counts if it matches beside the secret, unless the search is `raw`.
    """

    id: str
    """The file that was searched."""
    total_matches: int
    """How many lines match in the whole file, or were found before time ran out."""
    matches: list[GrepMatch]
    """The lines, in the order of the file."""
    truncated: bool
    """Whether more lines match than are shown."""
    timed_out: bool
    """Whether the search was stopped by its deadline; then `totalMatches` is too small."""
    cursor: str | UnsetType = UNSET
    """Send it to see the next matches; absent if there are no more."""
    redaction_evidence: tuple[RedactionEvidence, ...]
    """Which kinds of secrets were taken out of this reply, and how often; never the secrets."""


async def grep_file(session: Session, params: GrepContextFile) -> GrepResult:
    """Find the lines of a context file that match a pattern."""
    request = await file_request(session, params)
    found = await session.files.grep(
        request,
        GrepRequest(
            params.pattern,
            params.case_sensitive,
            params.max_results,
            params.context_lines,
            params.cursor,
        ),
    )
    log_redaction(params.project_id, found.evidence)
    return GrepResult(
        id=params.id,
        total_matches=found.total,
        matches=[_match(match, params.context_lines) for match in found.matches],
        truncated=found.cursor is not None or not found.complete,
        timed_out=not found.complete,
        cursor=UNSET if found.cursor is None else spell_cursor(found.cursor),
        redaction_evidence=found.evidence,
    )


def _match(match: VisibleMatch, context_lines: int) -> GrepMatch:
    return GrepMatch(
        line=match.place.line,
        offset=match.place.offset,
        content=match.content,
        before=match.before if context_lines else UNSET,
        after=match.after if context_lines else UNSET,
    )


class NewContextFile(InConversation):
    """A file for a model to read later."""

    kind: Kind
    """What it holds."""
    hint: Annotated[str, Meta(min_length=1, max_length=10_000)]
    """A line for people and models that says what it is, such as the command that wrote it."""
    mime_type: (
        Annotated[str, Meta(pattern=r"^[\w.+-]+/[\w.+*-]+( *;.*)?$", max_length=200)] | None
    ) = None
    """Its media type, such as `text/plain`; without it, that of plain text or of bytes."""
    key: Annotated[str, Meta(min_length=1, max_length=MAX_KEY_LENGTH)] | None = None
    """Makes the call repeatable, such as a tool call's id: the same key gives the same ref."""
    origin: Origin | None = None
    """Where it came from; decides the file's folder and name, and must go with `kind`."""


class PutContextFile(NewContextFile):
    """The content, either as text or as base64."""

    content: str | UnsetType = UNSET
    """The content as text; either this or `base64`."""
    base64: bytes | UnsetType = UNSET
    """The content as base64; either this or `content`."""


class ContextFilePut(Result):
    """The ref, and what to write into the conversation if the content is too long for it."""

    ref: ContextRef
    """What to remember of the file."""
    preview: str | UnsetType = UNSET
    """Its redacted head and tail with a note between them of what is left out; absent if the
    content is short enough to stand in a conversation whole."""
    missing_chars: int | UnsetType = UNSET
    """How many code points the preview leaves out."""
    missing_bytes: int | UnsetType = UNSET
    """How many bytes the preview leaves out."""
    redaction_evidence: tuple[RedactionEvidence, ...] | UnsetType = UNSET
    """Which kinds of secrets were taken out of the preview; absent without a preview."""


class RegisterContextFile(NewContextFile):
    """A file that is made when it is first read, and again after cleaning."""

    recipe: dict[str, Any]
    """How it is made, by `type`: `host` (the daemon calls `context:files:materialise` back and
    hands the recipe over), `json` (`value` is the content) or `file` (`path` is a text of the
    project that is neither hidden nor ignored; a page gets documents alone)."""


class ContextFileRegistered(Result):
    """The ref of a file that has yet to be made."""

    ref: ContextRef
    """What to remember of the file; without `byteSize` until it is made."""


class DeleteContextFiles(InConversation):
    """The file to delete; without `id`, the whole conversation."""

    id: str | None = None
    """The file to delete; without it, the whole conversation."""


class ContextFilesDeleted(Result):
    """How many files were deleted, and how many bytes that freed."""

    deleted: int
    """How many files were deleted."""
    freed_bytes: int
    """How many bytes that freed."""


async def put_file(session: Session, params: PutContextFile) -> ContextFilePut:
    """Store a text or bytes as a context file."""
    key = await conversation_key(session, params)
    put = await session.files.put(key, _content(params), _new_file_info(params))
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
    """Store a recipe for a context file."""
    key = await conversation_key(session, params)
    info = _new_file_info(params)
    ref = await session.files.register(key, params.recipe, info, session.peer)
    return ContextFileRegistered(ref=ref)


async def delete_files(session: Session, params: DeleteContextFiles) -> ContextFilesDeleted:
    """Delete a context file, or all of a conversation's."""
    key = await conversation_key(session, params)
    deleted = await session.files.delete(key, params.id)
    freed = sum(record.stats.byte_size for record in deleted if record.stats is not None)
    return ContextFilesDeleted(deleted=len(deleted), freed_bytes=freed)


def _content(params: PutContextFile) -> str | bytes:
    if isinstance(params.content, str) and params.base64 is UNSET:
        return params.content
    if isinstance(params.base64, bytes) and params.content is UNSET:
        return params.base64
    raise DaemonError(ErrorCode.INVALID_ARGUMENT, "Send either content or base64.", field="content")


def _new_file_info(params: NewContextFile) -> NewFileInfo:
    return NewFileInfo(params.kind, params.hint, params.origin, params.mime_type, params.key)


class OfProject(Params):
    """A project, or one of its conversations."""

    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""
    conversation_id: str | None = None
    """Only this conversation; without it, all of the project."""


class PruneContextFiles(OfProject):
    """A limit stricter than the settings', for lazy files."""

    max_bytes: Annotated[int, Meta(ge=0)] | None = None
    """How many bytes may stay, if that is stricter than the settings; lazy files go, the least
    recently used first."""


class CleanedContextFile(Model):
    """A file that was removed; a lazy one is made again when it is next read."""

    conversation_id: str
    """The conversation that it belonged to."""
    id: str
    """Its ref's id; a lazy file is made again under the same id."""
    kind: Kind
    """What it held."""
    bytes: int
    """How many bytes it had."""
    reason: CleaningReason
    """Why it was cleaned."""


class ContextFilesPruned(Result):
    """What was removed and what is kept."""

    cleaned: list[CleanedContextFile]
    """The files that were removed, the first thousand of them."""
    cleaned_files: int
    """How many were removed, all counted."""
    freed_bytes: int
    """How many bytes that freed."""
    kept_files: int
    """How many files are left."""
    kept_bytes: int
    """How many bytes they have."""
    in_use: int
    """How many were being read and stay therefore."""


class ContextFileAmount(Model):
    """A number of files and the sum of their bytes."""

    files: int
    """How many files."""
    bytes: int
    """The sum of their bytes."""


class ContextFileStats(Result):
    """What is kept, and the limits from the settings."""

    conversations: int
    """How many conversations have files."""
    files: int
    """How many files there are, lazy ones that are not made included."""
    bytes: int
    """How many bytes they take on the disk."""
    kinds: dict[str, ContextFileAmount]
    """Files and bytes of each kind."""
    eager: ContextFileAmount
    """Those that were put and cannot be made again."""
    lazy: int
    """How many are registered to be made when read."""
    lazy_made: ContextFileAmount
    """Those of them that exist now."""
    max_bytes: int
    """The setting: above so many bytes per project lazy files are cleaned."""
    lazy_days: int
    """The setting: so many days after its last use a lazy file is cleaned."""
    eager_days: int
    """The setting: so many days after its arrival an eager file is cleaned."""


async def prune_files(session: Session, params: PruneContextFiles) -> ContextFilesPruned:
    """Clean context files by age and size; eager ones never before their age."""
    await session.projects.find(params.project_id)
    result = await retention.prune(
        session.files, params.project_id, params.conversation_id, params.max_bytes
    )
    return ContextFilesPruned(
        cleaned=[_cleaned_file(one) for one in result.cleaned[:MAX_CLEANED_ITEMS]],
        cleaned_files=len(result.cleaned),
        freed_bytes=sum(one.file.bytes for one in result.cleaned),
        kept_files=result.kept_files,
        kept_bytes=result.kept_bytes,
        in_use=result.in_use,
    )


async def file_stats(session: Session, params: OfProject) -> ContextFileStats:
    """Count what a project or conversation keeps."""
    await session.projects.find(params.project_id)
    found = await retention.usage(session.files, params.project_id, params.conversation_id)
    settings = session.settings
    return ContextFileStats(
        conversations=found.conversations,
        files=found.eager.files + found.lazy,
        bytes=found.eager.bytes + found.lazy_made.bytes,
        kinds={kind: _amount(total) for kind, total in found.kinds.items()},
        eager=_amount(found.eager),
        lazy=found.lazy,
        lazy_made=_amount(found.lazy_made),
        max_bytes=settings.context_max_bytes,
        lazy_days=settings.context_lazy_days,
        eager_days=settings.context_eager_days,
    )


def _cleaned_file(cleaned: CleanedFile) -> CleanedContextFile:
    file = cleaned.file
    return CleanedContextFile(
        conversation_id=file.conversation.id,
        id=file.record.id,
        kind=file.record.kind,
        bytes=file.bytes,
        reason=cleaned.reason,
    )


def _amount(total: FileTotal) -> ContextFileAmount:
    return ContextFileAmount(files=total.files, bytes=total.bytes)


class ExportContextFiles(InConversation):
    """The absolute path of the archive to write."""

    path: str
    """The absolute path of the zip to write; its folder must exist."""


class ContextFilesExported(Result):
    """The archive, how many files and rounds it holds and how big it is."""

    path: str
    """Where it was written."""
    files: int
    """How many files are in it."""
    bytes: int
    """How many bytes the archive has."""
    rounds: int
    """How many rounds of the conversation are in it."""


class ImportContextFiles(OfProject):
    """The absolute path of an archive; without `conversationId`, its own conversation is used."""

    path: str
    """The absolute path of the zip to read."""


class ContextFilesImported(Result):
    """The conversation that the files are in now, their refs, and how many rounds it has now."""

    conversation_id: str
    """The conversation that they are in now."""
    items: list[ContextRef]
    """The refs of all imported files."""
    total_rounds: int
    """How many rounds the conversation has now."""


async def export_files(session: Session, params: ExportContextFiles) -> ContextFilesExported:
    """Pack a conversation's context files and rounds into an archive."""
    key = await conversation_key(session, params)
    result = await round_archive.export_conversation(
        session.files, session.histories, session.redactor, key, params.path
    )
    return ContextFilesExported(
        path=params.path, files=result.files, bytes=result.bytes, rounds=result.rounds
    )


async def import_files(session: Session, params: ImportContextFiles) -> ContextFilesImported:
    """Import an archive, all of it or nothing; ids and times are kept.

    Rounds that the conversation has already stay as they are, those that follow them are added;
    a conversation with other rounds is a CONFLICT.
    """
    from creonowd.context_files import archives

    await session.projects.find(params.project_id)
    own = params.conversation_id
    chosen = await archives.conversation_in(session.files, params.path) if own is None else own
    key = ConversationKey(params.project_id, chosen)
    result = await round_archive.import_conversation(
        session.files, session.histories, session.redactor, key, params.path
    )
    return ContextFilesImported(
        conversation_id=chosen, items=result.refs, total_rounds=result.total_rounds
    )


CHANNELS = (
    Channel("context.list", list_files, errors=FILE_ERRORS),
    Channel("context.read", read_file, errors=(*FILE_ERRORS, *HOST_ERRORS)),
    Channel("context.tail", tail_file, errors=(*FILE_ERRORS, *HOST_ERRORS)),
    Channel("context.grep", grep_file, errors=(*FILE_ERRORS, *HOST_ERRORS)),
    Channel("context:files:put", put_file, errors=FILE_ERRORS),
    Channel("context:files:register", register_file, errors=FILE_ERRORS),
    Channel("context:files:delete", delete_files, errors=FILE_ERRORS),
    Channel("context:files:prune", prune_files, errors=FILE_ERRORS),
    Channel("context:files:stats", file_stats, errors=FILE_ERRORS),
    Channel(
        "context:files:export",
        export_files,
        role=Role.OWNER,
        deadline=Deadline.NONE,
        errors=(*FILE_ERRORS, *HOST_ERRORS),
    ),
    Channel(
        "context:files:import",
        import_files,
        role=Role.OWNER,
        deadline=Deadline.NONE,
        errors=FILE_ERRORS,
    ),
)
HOST_CALLS = (HostCall(MATERIALISE, Materialise, Materialised),)
