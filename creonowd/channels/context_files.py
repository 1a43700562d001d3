"""`context.list`, `.read`, `.tail` — what a model may ask about big things kept as files."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from creonowd.channels.conversation_files import (
    InConversation,
    LookAtContextFile,
    where_of,
    which_of,
)
from creonowd.channels.redacting import log_redaction
from creonowd.channels.session import Session
from creonowd.context_files.files import READ_LIMIT, TAIL_LINES, FileRequest, FileView
from creonowd.context_files.records import ContextRef, Kind
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Result
from creonowd.redaction import RedactionEvidence
from creonowd.rpc.channel import Channel

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


CHANNELS = (
    Channel("context.list", list_files),
    Channel("context.read", read_file),
    Channel("context.tail", tail_file),
)
