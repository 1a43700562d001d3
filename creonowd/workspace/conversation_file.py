"""One conversation as a value: what a client sends, what the file holds, how it is listed.

Pure. Keeps every field that it does not know.
"""

import re
from collections.abc import Callable
from typing import Annotated, Any, cast

import msgspec
import regex
from msgspec import UNSET, Meta, UnsetType

from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model
from creonowd.rpc.channel import misfit
from creonowd.workspace.conversation_texts import restored
from creonowd.workspace.paths import problem_with_name

VERSION = 1
INDEX = "index"
MAX_ID = 64
MAX_DEPTH = 64
SUMMARY_LENGTH = 120

Document = dict[str, Any]
Show = Callable[[str], str]

_ID = re.compile(r"[A-Za-z0-9_-]+")
_START = regex.compile(rf"\X{{0,{SUMMARY_LENGTH}}}")


class Message(Model):
    """One thing that was said; further fields are kept."""

    role: Annotated[str, Meta(min_length=1)]
    content: str
    created_at: str | int | float | None = None


class Conversation(Model):
    """What must be right in a conversation; further fields are kept."""

    messages: list[Message]
    id: str | None = None
    document_id: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    analysis: "Analysis | None" = None


class Analysis(Model):
    """What must be right in an analysis; further fields are kept."""

    summary: Annotated[str, Meta(pattern=r"\S")]


class ConversationEntry(Model):
    """How a conversation is listed; `summaryQuality` is `analysis` once one was supplied."""

    id: str
    created_at: str
    updated_at: str
    message_count: int
    summary: str
    summary_quality: Annotated[str, Meta(description="heuristic or analysis")]
    document_id: str | UnsetType = UNSET


def check_id(conversation_id: str, field: str = "conversationId") -> str:
    """Return an id that can be a file's name on every system, else fail with INVALID_ARGUMENT."""
    fits = _ID.fullmatch(conversation_id) and len(conversation_id) <= MAX_ID
    if fits and conversation_id.lower() != INDEX and not problem_with_name(conversation_id):
        return conversation_id
    raise DaemonError(
        ErrorCode.INVALID_ARGUMENT,
        f"{field} must be up to {MAX_ID} of A-Z, a-z, 0-9, _ and -, and no reserved name.",
        field=field,
    )


def check(document: Document, field: str) -> Conversation:
    """Make sure that a conversation is one; INVALID_ARGUMENT names the field that is not right."""
    try:
        _refuse_depth(document, MAX_DEPTH)
        return msgspec.convert(document, Conversation)
    except msgspec.ValidationError as error:
        raise misfit(error, field) from None


def check_analysis(analysis: Document) -> Document:
    """Return an analysis that has a summary."""
    try:
        _refuse_depth(analysis, MAX_DEPTH)
        msgspec.convert(analysis, Analysis)
    except msgspec.ValidationError as error:
        raise misfit(error, "analysis") from None
    return analysis


def saved(before: Document, sent: Document, now: str, show: Show) -> Document:
    """Make what is to be kept of a conversation: what was sent, and the beginning of what was there.

    A client sees texts only redacted, as `show` makes them; a text that comes back as it was
    shown is the text that was there.
    """
    kept = {key: before[key] for key in ("analysis",) if key in before}
    rest = {key: value for key, value in sent.items() if key not in {"version", "id"}}
    created = before.get("createdAt") or sent.get("createdAt") or now
    return kept | restored(rest, before, show) | {"createdAt": created, "updatedAt": now}


def entry_of(conversation_id: str, document: Document, otherwise: str) -> ConversationEntry:
    """Summarise a conversation for the list: by its analysis, else by how it began.

    `otherwise` is the time for a file that does not say when it was made or changed.
    """
    known = msgspec.convert(document, Conversation)
    analysed = known.analysis is not None
    summary = known.analysis.summary if known.analysis else _beginning(known.messages)
    return ConversationEntry(
        id=conversation_id,
        created_at=known.created_at or otherwise,
        updated_at=known.updated_at or otherwise,
        message_count=len(known.messages),
        summary=summary,
        summary_quality="analysis" if analysed else "heuristic",
        document_id=known.document_id or UNSET,
    )


def _beginning(messages: list[Message]) -> str:
    asked = (message.content for message in messages if message.role == "user")
    said = (message.content for message in messages)
    first = next((text for texts in (asked, said) for text in texts if text.strip()), "")
    line = " ".join(first.split())
    start = cast("str", _START.match(line)[0])  # pyright: ignore[reportOptionalSubscript]
    return line if start == line else f"{start}…"


def _refuse_depth(value: Any, left: int) -> None:
    if not isinstance(value, dict | list):
        return
    if not left:
        raise msgspec.ValidationError(f"Nested more than {MAX_DEPTH} deep")
    held = cast("Document | list[Any]", value)
    for inner in held.values() if isinstance(held, dict) else held:
        _refuse_depth(inner, left - 1)
