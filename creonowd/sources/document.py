"""The document that a request is about: as the editor has it, else as it is on disk.

A document that cannot be read costs its text and a warning, not the assembly.
"""

import anyio

from creonowd.context.fragment import Layer, LeftOut, Reason, Span
from creonowd.context.plan import Document, place
from creonowd.errors import DaemonError, ErrorCode, WarningCode, warning_text
from creonowd.model import Model
from creonowd.rpc.peer import Peer
from creonowd.workspace.buffer import Buffer
from creonowd.workspace.documents import Documents
from creonowd.workspace.projects import Project


class Position(Model):
    """Where the author is, in the units that the connection counts in."""

    document_id: str
    cursor: int
    selection: Span | None = None


class LocatedDocument(Model):
    """The document with the author's place in it, or none; and warnings about it."""

    document: Document | None = None
    warnings: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


async def open_document(
    documents: Documents, project: Project, position: Position, peer: Peer, timeout_ms: int
) -> LocatedDocument:
    """Read the document and put the cursor into it; without text if it cannot be read in time."""
    try:
        with anyio.fail_after(timeout_ms / 1000):
            buffer = await documents.read(project, position.document_id, peer)
    except TimeoutError:
        return _unreadable(position, DaemonError(ErrorCode.TIMEOUT))
    except DaemonError as error:
        if error.code is ErrorCode.NOT_FOUND:
            return LocatedDocument(warnings=(warning_text(WarningCode.IMMEDIATE_UNAVAILABLE),))
        return _unreadable(position, error)
    return place_in(buffer, position, utf16=peer.utf16)


def _unreadable(position: Position, error: DaemonError) -> LocatedDocument:
    left_out = LeftOut(
        layer=Layer.IMMEDIATE,
        source="document",
        source_ref=position.document_id,
        reason=_reason(error),
    )
    warning = f"{WarningCode.IMMEDIATE_UNAVAILABLE}: 文档无法读取（{error.code}）。"
    return LocatedDocument(warnings=(warning,), left_out=(left_out,))


def _reason(error: DaemonError) -> Reason:
    if error.code is ErrorCode.UNSUPPORTED:
        return Reason.INVALID_FORMAT
    too_large = error.details.get("reason") == Reason.TOO_LARGE
    return Reason.TOO_LARGE if too_large else Reason.READ_ERROR


def place_in(buffer: Buffer, position: Position, *, utf16: bool) -> LocatedDocument:
    """Put cursor and selection into a document, clamped to its end with a warning."""
    selection = position.selection
    placed = place(
        position.document_id,
        buffer.text,
        _code_points(buffer, position.cursor, utf16=utf16),
        selection and Span(*(_code_points(buffer, at, utf16=utf16) for at in selection)),
    )
    return LocatedDocument(document=placed.document, warnings=placed.warnings)


def _code_points(buffer: Buffer, position: int, *, utf16: bool) -> int:
    """Convert a position to code points; one inside a surrogate pair moves before it."""
    if not utf16:
        return position
    if position > buffer.utf16_length:
        return buffer.length + position - buffer.utf16_length
    try:
        return buffer.from_utf16(position)
    except DaemonError:
        return buffer.from_utf16(position - 1)
