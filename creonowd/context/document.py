"""The document at hand: its text as the editor holds it, and the place the author is at.

Positions are code points of that text. Knows no file and no editor.
"""

from creonowd.context.fragment import Span
from creonowd.errors import WarningCode
from creonowd.model import Model
from creonowd.tokens.boundaries import grapheme_ceiling, grapheme_floor


class Document(Model):
    """A document and where its author is; `selection` is None where nothing is selected."""

    source_ref: str
    text: str
    cursor: int
    selection: Span | None = None

    @property
    def here(self) -> Span:
        """What is selected, else the cursor as an empty stretch."""
        return self.selection or Span(self.cursor, self.cursor)


class Placed(Model):
    """A document whose positions lie inside its text, and what had to be moved for that."""

    document: Document
    warnings: tuple[str, ...] = ()


def place(source_ref: str, text: str, cursor: int, selection: Span | None = None) -> Placed:
    """Put cursor and selection into a document, clamped to its end with a warning.

    Neither may lie inside a grapheme: the cursor moves before it, the selection takes it in.
    """
    end = len(text)
    beyond = cursor > end or (selection is not None and selection.end > end)
    return Placed(
        document=Document(
            source_ref=source_ref,
            text=text,
            cursor=grapheme_floor(text, min(cursor, end)),
            selection=_clamped(selection, text),
        ),
        warnings=(WarningCode.CONTEXT_CURSOR_CLAMPED,) if beyond else (),
    )


def _clamped(selection: Span | None, text: str) -> Span | None:
    end = len(text)
    if selection is None or selection.start >= min(selection.end, end):
        return None
    start, end = selection.start, min(selection.end, end)
    return Span(grapheme_floor(text, start), grapheme_ceiling(text, end))
