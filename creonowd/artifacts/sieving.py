"""Which of the lines that match may be told: a search must not confirm what it would not show.

A line without a secret is told if it matches. One with a secret is told if it matches beside the
secret, whatever that is: all that decides is the line as it would be shown. Nobody who asks for
`password=a`, then `password=b`, learns from how many lines match which of them is right.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from creonowd.artifacts.excerpts import line_end
from creonowd.artifacts.pages import boundary
from creonowd.artifacts.redacting import Reader
from creonowd.artifacts.tree import OpenFile
from creonowd.artifacts.veils import Veil
from creonowd.redaction import PLACEHOLDER

_HIDDEN = PLACEHOLDER.encode()


class OpenLines(NamedTuple):
    """The lines of a file as someone may see them, for one pattern.

    Of a line that is longer than `longest`, what lies beyond is not looked at.
    """

    file: OpenFile
    reader: Reader
    veil: Veil
    regex: Any
    longest: int

    def hides(self, start: int) -> bool:
        """Tell whether something of the line that begins at `start` may not be seen."""
        return self.veil.hides(self.file, start)

    def passes(self, start: int) -> bool:
        """Tell whether a line that matches may be told."""
        if not self.hides(start):
            return True
        end = boundary(self.file, min(line_end(self.file, start), start + self.longest))
        (shown,) = self.reader.read(self.file, [(start, end)]).texts
        return matches_beside(self.regex, shown.encode())


def matches_beside(regex: Any, line: bytes) -> bool:
    r"""Tell whether a line matches with at least one byte between the match and any secret.

    What stands next to a secret would tell with `\b` what kind of character it begins with.
    """
    return any(regex.search(line, start, end) for start, end in _open(line))


def _open(line: bytes) -> Iterator[tuple[int, int]]:
    start = 0
    while (hidden := line.find(_HIDDEN, start)) >= 0:
        if start < hidden:
            yield start, hidden - 1
        start = hidden + len(_HIDDEN) + 1
    if start <= len(line):
        yield start, len(line)
