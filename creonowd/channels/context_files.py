"""`context.list`, `.read`, `.tail`, `.grep` — what a model may ask about big things kept as files."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from creonowd.artifacts.files import READ_LIMIT, TAIL_LINES, Where, Which
from creonowd.artifacts.grep import Match, spell_cursor
from creonowd.artifacts.looking import Wanted
from creonowd.artifacts.patterns import LONGEST
from creonowd.artifacts.refs import ContextRef, Kind
from creonowd.artifacts.views import View
from creonowd.channels.redacting import log_redaction
from creonowd.channels.session import Session
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Params, Result
from creonowd.redaction import RedactionEvidence
from creonowd.rpc.channel import Channel, Role

Offset = Annotated[int, Meta(ge=0, le=1 << 53)]


class InConversation(Params):
    """A conversation of a project; it belongs to the project that used it first."""

    project_id: str
    conversation_id: str


class ListContextFiles(InConversation):
    """Which refs to list."""

    kind: Kind | None = None
    limit: Annotated[int, Meta(ge=1, le=500)] = 50


class ContextFileList(Result):
    """The newest refs, oldest first."""

    items: list[ContextRef]


class LookAtContextFile(InConversation):
    """A file by its ref's id.

    Secrets are taken out of what is shown; `sensitive` takes out more than usual, and `raw`
    nothing, for owners only.
    """

    id: str
    sensitive: bool = False
    raw: bool = False


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
    (`timedOut`). If `truncated`, more match than are shown; `cursor` shows the next ones.
    """

    id: str
    total_matches: int
    matches: list[GrepMatch]
    truncated: bool
    timed_out: bool
    cursor: str | UnsetType = UNSET
    redaction_evidence: tuple[RedactionEvidence, ...]


async def list_files(session: Session, params: ListContextFiles) -> ContextFileList:
    """List the newest context files of a conversation."""
    where = await where_of(session, params)
    return ContextFileList(items=await session.files.newest(where, params.kind, params.limit))


async def read_file(session: Session, params: ReadContextFile) -> ContextFilePage:
    """Read a page of a context file."""
    which = await _which(session, params)
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
    which = await _which(session, params)
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


async def grep_file(session: Session, params: GrepContextFile) -> GrepResult:
    """Find the lines of a context file that match a pattern."""
    which = await _which(session, params)
    found = await session.files.grep(
        which,
        Wanted(
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


async def where_of(session: Session, params: InConversation) -> Where:
    """Tell which conversation is meant, once its project is known to exist."""
    await session.projects.find(params.project_id)
    return Where(params.project_id, params.conversation_id)


async def _which(session: Session, params: LookAtContextFile) -> Which:
    if params.raw and session.peer.role is not Role.OWNER:
        raise DaemonError(
            ErrorCode.FORBIDDEN, "Only an owner may read raw; leave `raw` out.", field="raw"
        )
    view = View.SENSITIVE if params.sensitive else View.REDACTED
    where = await where_of(session, params)
    return Which(where, params.id, View.RAW if params.raw else view, session.peer)


def _check_raw(which: Which) -> None:
    if which.view is not View.RAW:
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


def _match(match: Match, context_lines: int) -> GrepMatch:
    return GrepMatch(
        line=match.place.line,
        offset=match.place.offset,
        content=match.content,
        before=match.before if context_lines else UNSET,
        after=match.after if context_lines else UNSET,
    )


CHANNELS = (
    Channel("context.list", list_files),
    Channel("context.read", read_file),
    Channel("context.tail", tail_file),
    Channel("context.grep", grep_file),
)
