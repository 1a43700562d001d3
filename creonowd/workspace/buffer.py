"""A text in pieces, so that an edit in a novel costs as little as one in a note.

A buffer is an immutable value: edits give a new one that shares the pieces they did not touch,
so a reader in another thread keeps what it has. Knows no file, no version and no client.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property

from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model
from creonowd.workspace.positions import (
    check_position,
    code_points,
    inside_a_pair,
    utf16_length,
)

PIECE = 4096
SMALL = PIECE // 4


class Edit(Model, rename={"start": "from", "end": "to"}):
    """Replace what stands between two positions of the text as the edits before have left it."""

    start: int
    end: int
    text: str


class _Piece:
    __slots__ = ("text", "units")

    def __init__(self, text: str) -> None:
        self.text = text
        self.units = utf16_length(text)


class Buffer:
    """A text that is cheap to edit; the whole is put together when first asked for."""

    def __init__(self, pieces: Sequence[_Piece], length: int, utf16_length: int) -> None:
        self._pieces = pieces
        self.length = length
        self.utf16_length = utf16_length

    @classmethod
    def of(cls, text: str) -> "Buffer":
        """Take a whole text apart."""
        pieces = _cut(text)
        return cls(pieces, len(text), sum(piece.units for piece in pieces))

    @cached_property
    def text(self) -> str:
        """The whole text."""
        return "".join(piece.text for piece in self._pieces)

    @property
    def pieces(self) -> int:
        """In how many pieces the text lies."""
        return len(self._pieces)

    def size(self, *, utf16: bool) -> int:
        """Tell the length in the units that a client counts in."""
        return self.utf16_length if utf16 else self.length

    def from_utf16(self, position: int) -> int:
        """Turn a position of UTF-16 units into one of code points."""
        return _Editor(self._pieces, self.length, self.utf16_length, utf16=True).code_point(
            position
        )

    def edited(self, edits: Iterable[Edit], *, utf16: bool = False) -> "Buffer":
        """Apply edits in order; INVALID_ARGUMENT, and no edit applied, if one does not fit."""
        editor = _Editor(self._pieces, self.length, self.utf16_length, utf16=utf16)
        for edit in edits:
            editor.replace(edit)
        return Buffer(editor.pieces, editor.length, editor.utf16_length)


class _Editor:
    """Pieces under edit, and a finger on the one last touched, for edits come in neighbourhoods."""

    def __init__(
        self, pieces: Sequence[_Piece], length: int, utf16_length: int, *, utf16: bool
    ) -> None:
        self.pieces = list(pieces)
        self.length = length
        self.utf16_length = utf16_length
        self._utf16 = utf16
        self._index = 0
        self._start = 0

    def replace(self, edit: Edit) -> None:
        """Put the edit's text in the place of what it names."""
        if edit.end < edit.start:
            raise _inverted(edit)
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
        if len(text) < SMALL and last + 1 < len(self.pieces):
            last += 1
            text += self.pieces[last].text
        old, new = self.pieces[first : last + 1], _cut(text)
        self.pieces[first : last + 1] = new
        self.length += sum(len(p.text) for p in new) - sum(len(p.text) for p in old)
        self.utf16_length += sum(p.units for p in new) - sum(p.units for p in old)

    def _find(self, position: int) -> tuple[int, int]:
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


def _inverted(edit: Edit) -> DaemonError:
    return DaemonError(
        ErrorCode.INVALID_ARGUMENT,
        f"An edit goes from {edit.start} back to {edit.end}; `from` must not be greater than `to`.",
        field="edits",
    )


def _cut(text: str) -> list[_Piece]:
    if len(text) <= 2 * PIECE:
        return [_Piece(text)]
    return [_Piece(text[start : start + PIECE]) for start in range(0, len(text), PIECE)]
