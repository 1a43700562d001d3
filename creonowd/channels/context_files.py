"""`context.list`, `.read`, `.tail` — what a model may ask about big things kept as files."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from creonowd.channels.redacted import log_redaction
from creonowd.context_files import archives, retention
from creonowd.context_files.files import (
    READ_LIMIT,
    TAIL_LINES,
    ConversationKey,
    FileRequest,
    FileView,
    GrepRequest,
    NewFileInfo,
)
from creonowd.context_files.lazy_files import MATERIALISE, Materialise, Materialised
from creonowd.context_files.patterns import LONGEST
from creonowd.context_files.records import LONGEST_KEY, ContextRef, Kind, Origin
from creonowd.context_files.retention import Cleaned, CleaningReason, Share
from creonowd.context_files.search import VisibleMatch, spell_cursor
from creonowd.engine.services import InConversation, Session
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model, Params, Result
from creonowd.redaction import RedactionEvidence
from creonowd.rpc.channel import Channel, Deadline, HostCall, Role


class LookAtContextFile(InConversation):
    """A file by its ref's id.

    Secrets are taken out of what is shown; `sensitive` takes out more than usual, and `raw`
    nothing, for owners only.
    """

    id: str
    sensitive: bool = False
    raw: bool = False


async def where_of(session: Session, params: InConversation) -> ConversationKey:
    """Tell which conversation is meant, once its project is known to exist."""
    await session.projects.find(params.project_id)
    return ConversationKey(params.project_id, params.conversation_id)


async def which_of(session: Session, params: LookAtContextFile) -> FileRequest:
    """Tell which file is meant and how it may be seen; FORBIDDEN for raw, unless to an owner."""
    if params.raw and session.peer.role is not Role.OWNER:
        raise DaemonError(
            ErrorCode.FORBIDDEN, "Only an owner may read raw; leave `raw` out.", field="raw"
        )
    view = FileView.SENSITIVE if params.sensitive else FileView.REDACTED
    where = await where_of(session, params)
    return FileRequest(where, params.id, FileView.RAW if params.raw else view, session.peer)


Offset = Annotated[int, Meta(ge=0, le=1 << 53)]


class ListContextFiles(InConversation):
    """Which refs to list."""

    kind: Kind | None = None
    limit: Annotated[int, Meta(ge=1, le=500)] = 50


class ContextFileList(Result):
    """The newest refs, oldest first."""

    items: list[ContextRef]


class ReadContextFile(LookAtContextFile):
    """A page from `offset` on, in bytes; `base64` gives bytes that are no text, raw only."""

    offset: Offset = 0
    limit: Annotated[int, Meta(ge=1)] = READ_LIMIT
    encoding: Literal["utf-8", "base64"] = "utf-8"


class ContextFilePage(Result):
    """A page. Go on at `nextOffset` until `done`.

    Offsets count the bytes of the file and stand between characters. Raw pages joined are the
    file; redacted pages joined are the redacted file: a secret shows as one placeholder, on the
    page where it begins.
    """

    id: str
    offset: int
    limit: int
    next_offset: int
    done: bool
    content: str
    base64: bytes | UnsetType = UNSET
    redaction_evidence: tuple[RedactionEvidence, ...]


class TailContextFile(LookAtContextFile):
    """How many of the last lines to read."""

    lines: Annotated[int, Meta(ge=1)] = TAIL_LINES


class ContextFileTail(Result):
    """The last `lines` lines, from byte `offset` on; `truncated` if they were too long to show."""

    id: str
    lines: int
    content: str
    offset: int
    truncated: bool
    redaction_evidence: tuple[RedactionEvidence, ...]


async def list_files(session: Session, params: ListContextFiles) -> ContextFileList:
    """List the newest context files of a conversation."""
    where = await where_of(session, params)
    return ContextFileList(items=await session.files.newest(where, params.kind, params.limit))


async def read_file(session: Session, params: ReadContextFile) -> ContextFilePage:
    """Read a page of a context file."""
    which = await which_of(session, params)
    _check_most("limit", params.limit, session.settings.context_read_max_bytes)
    data: bytes | UnsetType = UNSET
    if params.encoding == "base64":
        _check_raw(which)
        page, data = await session.files.read_bytes(which, params.offset, params.limit)
    else:
        page = await session.files.read(which, params.offset, params.limit)
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
    which = await which_of(session, params)
    _check_most("lines", params.lines, session.settings.context_tail_max_lines)
    tail = await session.files.tail(which, params.lines)
    log_redaction(params.project_id, tail.evidence)
    return ContextFileTail(
        id=params.id,
        lines=tail.lines,
        content=tail.content,
        offset=tail.offset,
        truncated=tail.truncated,
        redaction_evidence=tail.evidence,
    )


def _check_raw(which: FileRequest) -> None:
    if which.view is not FileView.RAW:
        raise DaemonError(
            ErrorCode.INVALID_ARGUMENT,
            "base64 cannot be redacted; ask for it with `raw`.",
            field="encoding",
        )


def _check_most(field: str, asked: int, most: int) -> None:
    if asked > most:
        raise DaemonError(
            ErrorCode.INVALID_ARGUMENT, f"{field} is {most} at most.", field=field, maximum=most
        )


class GrepContextFile(LookAtContextFile):
    r"""A pattern in RE2's language, matched line by line.

    `\d`, `\w` and `\b` are ASCII, `\s` is any space, `\p{Han}` is a Han character. `cursor` goes
    on where an earlier search stopped.
    """

    pattern: Annotated[str, Meta(min_length=1, max_length=LONGEST)]
    max_results: Annotated[int, Meta(ge=1, le=200)] = 50
    context_lines: Annotated[int, Meta(ge=0, le=50)] = 0
    case_sensitive: bool = False
    cursor: Annotated[str, Meta(max_length=64)] | None = None


class GrepMatch(Result):
    """A line that matches, by its number from 1; `offset` is where `context.read` finds it."""

    line: int
    offset: int
    content: str
    before: list[str] | UnsetType = UNSET
    after: list[str] | UnsetType = UNSET


class GrepResult(Result):
    """The lines that match.

    `totalMatches` is how many there are in the whole file, or were found before time ran out
    (`timedOut`). If `truncated`, more match than are shown; `cursor` shows the next ones. A line
    that holds a secret counts if it matches beside the secret, unless the search is `raw`.
    """

    id: str
    total_matches: int
    matches: list[GrepMatch]
    truncated: bool
    timed_out: bool
    cursor: str | UnsetType = UNSET
    redaction_evidence: tuple[RedactionEvidence, ...]


async def grep_file(session: Session, params: GrepContextFile) -> GrepResult:
    """Find the lines of a context file that match a pattern."""
    which = await which_of(session, params)
    found = await session.files.grep(
        which,
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


MOST_NAMED = 1000


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


async def prune_files(session: Session, params: PruneContextFiles) -> ContextFilesPruned:
    """Clean context files by age and size; eager ones never before their age."""
    await session.projects.find(params.project_id)
    done = await retention.prune(
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
    found = await retention.stats(session.files, params.project_id, params.conversation_id)
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


class ExportContextFiles(InConversation):
    """The absolute path of the archive to write."""

    path: str


class ContextFilesExported(Result):
    """The archive, how many files it holds and how big it is."""

    path: str
    files: int
    bytes: int


class ImportContextFiles(OfProject):
    """The absolute path of an archive; without `conversationId` it goes where it came from."""

    path: str


class ContextFilesImported(Result):
    """Where the files went, and their refs."""

    conversation_id: str
    items: list[ContextRef]


async def export_files(session: Session, params: ExportContextFiles) -> ContextFilesExported:
    """Pack a conversation's context files into an archive."""
    where = await where_of(session, params)
    done = await archives.export_conversation(session.files, where, params.path)
    return ContextFilesExported(path=params.path, files=done.files, bytes=done.bytes)


async def import_files(session: Session, params: ImportContextFiles) -> ContextFilesImported:
    """Take an archive in, all of it or nothing; ids and times are kept."""
    await session.projects.find(params.project_id)
    done = await archives.import_conversation(
        session.files, params.project_id, params.conversation_id, params.path
    )
    return ContextFilesImported(
        conversation_id=done.conversation.id, items=[record.ref for record in done.records]
    )


CHANNELS = (
    Channel("context.list", list_files),
    Channel("context.read", read_file),
    Channel("context.tail", tail_file),
    Channel("context.grep", grep_file),
    Channel("context:files:put", put_file),
    Channel("context:files:register", register_file),
    Channel("context:files:delete", delete_files),
    Channel("context:files:prune", prune_files),
    Channel("context:files:stats", file_stats),
    Channel("context:files:export", export_files, role=Role.OWNER, deadline=Deadline.NONE),
    Channel("context:files:import", import_files, role=Role.OWNER, deadline=Deadline.NONE),
)
HOST_CALLS = (HostCall(MATERIALISE, Materialise, Materialised),)
