"""What of a text may stand in a conversation: all of it, or its head and tail and what is missing.

Knows limits and characters; knows nothing of refs but an id to point to.
"""

from typing import NamedTuple

from creonowd.artifacts.pages import boundary, text
from creonowd.artifacts.redacting import Reader
from creonowd.artifacts.tree import OpenFile
from creonowd.redaction import RedactionEvidence

_SHARES = (1.0, 0.8, 0.6, 0.4, 0.2)
_ROOM_FOR_NOTE = 240
_ESCAPE = "surrogateescape"


class Amount(NamedTuple):
    """So much text, counted both ways."""

    characters: int
    bytes: int


def fits(content: str, limits: Amount) -> bool:
    """Tell whether a text may stand in a conversation whole."""
    return len(content) <= limits.characters and len(content.encode()) <= limits.bytes


class Preview(NamedTuple):
    """Head and tail of a text without secrets, and how much of the original is not shown."""

    text: str
    missing_characters: int
    missing_bytes: int
    evidence: tuple[RedactionEvidence, ...]


def preview(
    file: OpenFile, ref_id: str, limits: Amount, reader: Reader, characters: int
) -> Preview:
    """Show the head and the tail of a text of so many `characters`, within the limits.

    Placeholders may be longer than the secrets they stand for, hence the shrinking shares.
    """
    size = file.size
    for share in _SHARES:
        head, tail = _ends(file, limits, share)
        clean = reader.read(file, [(0, head), (tail, size)])
        ends = file.read_at(0, head), file.read_at(tail, size - tail)
        missing = Amount(characters - sum(len(text(end)) for end in ends), tail - head)
        shown = f"{clean.texts[0]}\n{_note(ref_id, missing)}\n{clean.texts[1]}"
        if fits(shown, limits):
            return Preview(shown, missing.characters, missing.bytes, clean.evidence)
    return Preview(_note(ref_id, Amount(characters, size)), characters, size, ())


def binary_preview(ref_id: str, size: int) -> Preview:
    """Say of bytes that are no text that they are there."""
    return Preview(_note(ref_id, Amount(0, size)), 0, size, ())


def _ends(file: OpenFile, limits: Amount, share: float) -> tuple[int, int]:
    """Find where the head ends and the tail begins, between characters."""
    characters = int((limits.characters - _ROOM_FOR_NOTE) * share / 2)
    most = int((limits.bytes - _ROOM_FOR_NOTE) * share / 2)
    head = _escaped(file.read_at(0, most))[:characters]
    tail = _escaped(file.read_at(max(0, file.size - most), most))[-characters:]
    return (
        boundary(file, len(head.encode("utf-8", _ESCAPE))),
        boundary(file, file.size - len(tail.encode("utf-8", _ESCAPE))),
    )


def _escaped(data: bytes) -> str:
    """Read bytes so that each character can be turned back into those that it was."""
    return data.decode("utf-8", _ESCAPE)


def _note(ref_id: str, missing: Amount) -> str:
    what = f"{missing.characters} characters, " if missing.characters else ""
    return (
        f"[… {what}{missing.bytes} bytes left out; the whole is context file {ref_id}: "
        "context.read, context.tail or context.grep …]"
    )
