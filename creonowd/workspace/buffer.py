"""A text in pieces, so that an edit in a novel costs as little as one in a note.

A buffer is an immutable value: edits return a new one that shares the pieces which they did not
touch, so a reader in another thread keeps its own. Positions are in code points or in UTF-16 units.
"""

import sys
from collections.abc import Iterable, Sequence
from functools import cached_property

from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model

PIECE = 4096
SMALL = PIECE // 4


class Edit(Model, rename={"start": "from", "end": "to"}):
    """Replace the text between two positions, as the edits before this one have left it."""

    start: int
    """Where the replaced text begins, in the connection's position encoding."""
    end: int
    """Where it ends; equal to `start` to insert."""
    text: str
    """What stands there from now on; empty to delete."""


class _Piece:
    __slots__ = ("memory", "text", "units")

    def __init__(self, text: str) -> None:
        self.text = text
        self.units = utf16_length(text)
        self.memory = memory_of(text)


class Buffer:
    """A text that is cheap to edit; the whole is joined when it is first needed."""

    def __init__(
        self, pieces: Sequence[_Piece], length: int, utf16_length: int, memory: int
    ) -> None:
        self._pieces = pieces
        self.length = length
        self.utf16_length = utf16_length
        self.memory = memory

    @classmethod
    def of(cls, text: str) -> "Buffer":
        """Make a buffer of a whole text."""
        pieces = _cut(text)
        units = sum(piece.units for piece in pieces)
        return cls(pieces, len(text), units, sum(piece.memory for piece in pieces))

    @cached_property
    def text(self) -> str:
        """The whole text."""
        return "".join(piece.text for piece in self._pieces)

    @property
    def pieces(self) -> int:
        """How many pieces the text has."""
        return len(self._pieces)

    def size(self, *, utf16: bool) -> int:
        """Return the length in the units in which a client counts."""
        return self.utf16_length if utf16 else self.length

    def from_utf16(self, position: int) -> int:
        """Convert a position from UTF-16 units to code points."""
        return _Editor(self, self._pieces, utf16=True).code_point(position)

    def apply(self, edits: Iterable[Edit], *, utf16: bool = False) -> "Buffer":
        """Return the text after all edits, in order; INVALID_ARGUMENT if one of them does not fit."""
        editor = _Editor(self, self._pieces, utf16=utf16)
        for edit in edits:
            editor.replace(edit)
        return Buffer(editor.pieces, editor.length, editor.utf16_length, editor.memory)


def memory_of(text: str) -> int:
    """Return how many bytes a text takes in memory."""
    return sys.getsizeof(text)


class _Editor:
    """The pieces while they are edited.

    It remembers the piece of the last edit and where it starts: edits are often near each other.
    """

    def __init__(self, buffer: Buffer, pieces: Sequence[_Piece], *, utf16: bool) -> None:
        self.pieces = list(pieces)
        self.length = buffer.length
        self.utf16_length = buffer.utf16_length
        self.memory = buffer.memory
        self._utf16 = utf16
        self._index = 0
        self._start = 0

    def replace(self, edit: Edit) -> None:
        """Apply an edit."""
        if edit.end < edit.start:
            raise _inverted_edit(edit)
        first, head = self._find(edit.start)
        start = self._start
        last, tail = self._find(edit.end)
        joined = self.pieces[first].text[:head] + edit.text + self.pieces[last].text[tail:]
        self._index, self._start = first, start
        self._put(first, last, joined)

    def code_point(self, position: int) -> int:
        """Count the code points before a position."""
        index, offset = self._find(position)
        return sum(len(piece.text) for piece in self.pieces[:index]) + offset

    def _put(self, first: int, last: int, text: str) -> None:
        """Replace some pieces by a text; a small one is joined with the piece after it."""
        if len(text) < SMALL and last + 1 < len(self.pieces):
            last += 1
            text += self.pieces[last].text
        old, new = self.pieces[first : last + 1], _cut(text)
        self.pieces[first : last + 1] = new
        self.length += sum(len(p.text) for p in new) - sum(len(p.text) for p in old)
        self.utf16_length += sum(p.units for p in new) - sum(p.units for p in old)
        self.memory += sum(p.memory for p in new) - sum(p.memory for p in old)

    def _find(self, position: int) -> tuple[int, int]:
        """Return the index of the piece at a position, and the code points before it in there."""
        check_position(position, self.utf16_length if self._utf16 else self.length)
        while position < self._start:
            self._index -= 1
            self._start -= self._size(self.pieces[self._index])
        while position > self._start + self._size(self.pieces[self._index]):
            self._start += self._size(self.pieces[self._index])
            self._index += 1
        offset = position - self._start
        if self._utf16:
            found = code_points(self.pieces[self._index].text, offset)
            if found is None:
                raise inside_a_pair(position)
            return self._index, found
        return self._index, offset

    def _size(self, piece: _Piece) -> int:
        return piece.units if self._utf16 else len(piece.text)


def _inverted_edit(edit: Edit) -> DaemonError:
    return DaemonError(
        ErrorCode.INVALID_ARGUMENT,
        f"An edit goes from {edit.start} back to {edit.end}; `from` must not be greater than `to`.",
        field="edits",
    )


def _cut(text: str) -> list[_Piece]:
    if len(text) <= 2 * PIECE:
        return [_Piece(text)]
    return [_Piece(text[start : start + PIECE]) for start in range(0, len(text), PIECE)]


def utf16_length(text: str) -> int:
    """Count the UTF-16 units of a text."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def to_utf16(text: str, positions: Iterable[int]) -> dict[int, int]:
    """Convert positions from code points to UTF-16 units, in one pass over the text."""
    units: dict[int, int] = {}
    before = count = 0
    for position in sorted(set(positions)):
        count += utf16_length(text[before:position])
        units[position] = count
        before = position
    return units


def from_utf16(text: str, position: int) -> int:
    """Convert a position from UTF-16 units to code points.

    INVALID_ARGUMENT if it lies outside the text or inside a surrogate pair.
    """
    check_position(position, utf16_length(text))
    found = code_points(text, position)
    if found is None:
        raise inside_a_pair(position)
    return found


def code_points(text: str, units: int) -> int | None:
    """Count the code points in the first UTF-16 units of a text; None if they end inside a pair."""
    if text.isascii():
        return units
    encoded = text.encode("utf-16-le", "surrogatepass")
    if _is_high(encoded, units - 1) and _is_low(encoded, units):
        return None
    return len(encoded[: 2 * units].decode("utf-16-le", "surrogatepass"))


def check_position(position: int, length: int) -> None:
    """Refuse a position outside a text of this length with INVALID_ARGUMENT."""
    if not 0 <= position <= length:
        raise DaemonError(
            ErrorCode.INVALID_ARGUMENT,
            f"Position {position} lies outside the text, which ends at {length}.",
            position=position,
            length=length,
        )


def inside_a_pair(position: int) -> DaemonError:
    """Report that a position lies in the middle of a character."""
    return DaemonError(
        ErrorCode.INVALID_ARGUMENT,
        f"Position {position} lies inside a surrogate pair.",
        position=position,
    )


def _is_high(encoded: bytes, unit: int) -> bool:
    return 0 <= 2 * unit < len(encoded) and 0xD8 <= encoded[2 * unit + 1] <= 0xDB


def _is_low(encoded: bytes, unit: int) -> bool:
    return 0 <= 2 * unit < len(encoded) and 0xDC <= encoded[2 * unit + 1] <= 0xDF
