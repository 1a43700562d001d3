"""What a context file is: the ref that a model holds, and the record that the disk keeps.

Knows names and shapes; opens no file.
"""

import re
from enum import StrEnum
from typing import Any

from msgspec import UNSET, UnsetType

from creonowd.model import Model

VERSION = 1
BLOCK = 1024 * 1024
LONGEST_HINT = 500
LONGEST_KEY = 256

_ID = re.compile(r"ctx_[a-z0-9]{16,26}")


class Kind(StrEnum):
    """What a context file holds: a tool's or terminal's output, a piece of history, a catalogue."""

    ARTIFACT = "artifact"
    HISTORY = "history"
    CATALOG = "catalog"


class Origin(StrEnum):
    """Where a context file came from; it decides the folder and the form of its name."""

    TOOL = "tool"
    TERMINAL = "terminal"
    ARCHIVE = "archive"
    SUMMARY = "summary"
    CATALOG = "catalog"


class Retention(StrEnum):
    """How a file expires: an eager one by age, a lazy one by its last use, to be made again."""

    EAGER = "eager"
    LAZY = "lazy"


class ContextRef(Model):
    """All that a model needs to remember of a context file; `createdAt` is in milliseconds.

    `byteSize` is absent while a lazy file has not been made. The id says nothing of a path.
    """

    id: str
    kind: Kind
    mime_type: str | UnsetType = UNSET
    byte_size: int | UnsetType = UNSET
    created_at: int
    hint: str


class Survey(Model):
    """What one pass over a file's bytes tells; `newlines` counts them in every `BLOCK` of bytes.

    No line is longer than `longest_line`, which may be too large by a `BLOCK`.
    """

    byte_size: int
    sha256: str
    utf8: bool
    longest_line: int
    newlines: tuple[int, ...]


class Record(Model):
    """Everything known about one context file, as it is kept beside it.

    `stored_at` is when this disk got it, `created_at` when it came to be: an import keeps the
    latter. A record with a `recipe` is lazy: its file may be missing.
    `deleted` marks a file that could not go at once because someone was reading it.
    """

    version: int = VERSION
    id: str
    kind: Kind
    origin: Origin
    retention: Retention
    path: str
    hint: str
    mime_type: str
    created_at: int
    stored_at: int
    sequence: int
    project_id: str
    key: str | None = None
    recipe: dict[str, Any] | None = None
    survey: Survey | None = None
    deleted: bool = False

    @property
    def lazy(self) -> bool:
        """Whether the file can be made again."""
        return self.recipe is not None

    @property
    def order(self) -> tuple[int, int, str]:
        """Where the file stands among its siblings, oldest first."""
        return (self.created_at, self.sequence, self.id)

    @property
    def ref(self) -> ContextRef:
        """What the model gets to see."""
        return ContextRef(
            id=self.id,
            kind=self.kind,
            mime_type=self.mime_type,
            byte_size=UNSET if self.survey is None else self.survey.byte_size,
            created_at=self.created_at,
            hint=self.hint,
        )


class NewFile(Model):
    """What is said of a file when it is put or registered; only a lazy one has a `recipe`."""

    kind: Kind
    origin: Origin
    hint: str
    mime_type: str
    key: str | None = None
    recipe: dict[str, Any] | None = None


def is_id(text: str) -> bool:
    """Tell whether a text has the form of a ref's id."""
    return _ID.fullmatch(text) is not None
