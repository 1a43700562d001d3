"""The document that a request is about: as the editor holds it, else as it is on disk.

A document that is neither degrades to no text and a warning. Knows positions in both encodings.
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
    """The document with its author in it, or none; and what there is to say about that."""

    document: Document | None = None
    warnings: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


async def open_document(
    documents: Documents, project: Project, position: Position, peer: Peer, timeout_ms: int
) -> LocatedDocument:
    """Find the document; one that cannot be had in time costs its layer, not the assembly."""
    try:
        with anyio.fail_after(timeout_ms / 1000):
            buffer = await documents.read(project, position.document_id, peer)
    except TimeoutError:
        return _unreadable(position, DaemonError(ErrorCode.TIMEOUT))
    except DaemonError as error:
        if error.code is ErrorCode.NOT_FOUND:
            return LocatedDocument(warnings=(warning_text(WarningCode.IMMEDIATE_UNAVAILABLE),))
        return _unreadable(position, error)
    return put(buffer, position, utf16=peer.utf16)


def _unreadable(position: Position, error: DaemonError) -> LocatedDocument:
    """Account for a document that is there and cannot be had."""
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


def put(buffer: Buffer, position: Position, *, utf16: bool) -> LocatedDocument:
    """Put the author into a document; a place past its end is clamped with a warning."""
    selection = position.selection
    placed = place(
        position.document_id,
        buffer.text,
        _code_points(buffer, position.cursor, utf16=utf16),
        selection and Span(*(_code_points(buffer, at, utf16=utf16) for at in selection)),
    )
    return LocatedDocument(document=placed.document, warnings=placed.warnings)


def _code_points(buffer: Buffer, position: int, *, utf16: bool) -> int:
    """Turn a position into code points; inside a surrogate pair it is the place before that."""
    if not utf16:
        return position
    if position > buffer.utf16_length:
        return buffer.length + position - buffer.utf16_length
    try:
        return buffer.from_utf16(position)
    except DaemonError:
        return buffer.from_utf16(position - 1)
