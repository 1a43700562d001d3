"""The headings of the current document, the one that the author is under marked.

`settings/outline.*` is a settings text and belongs to `project_files`.
"""

import re
from bisect import bisect
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from anyio import to_thread

from creonowd.context.fragment import Fragment, Layer, Place
from creonowd.context.plan import Ask, Document, Fetched, Need
from creonowd.errors import WarningCode, warning_text
from creonowd.memo import Memo
from creonowd.retrieval.passages import heading_of

SCORE = 1.0
NEAR = 30
HERE = "→"
KEPT_DOCUMENTS = 16

# Only these lines can be headings. A pattern that begins with a newline is thirty times as fast
# as one that looks at the beginning of every line.
_CANDIDATE = re.compile(
    r"\n[ \t\u3000]*(?:#{1,6}[ \t]|第|(?:book|volume|part|chapter|act|scene)\s)[^\n]{0,80}(?=\n|\Z)",
    re.IGNORECASE,
)
_FENCE = re.compile(r"\n {0,3}(?:```|~~~)")


class OutlineHeading(NamedTuple):
    """A heading, how deep it stands, and where it begins."""

    level: int
    title: str
    at: int


class HeadingsSource:
    """The outline of the current document."""

    layer = Layer.RETRIEVED
    name = "outline"
    need = Need.OUTLINE
    unavailable = warning_text(WarningCode.OUTLINE_UNAVAILABLE)
    timeout_ms = None

    async def fetch(self, ask: Ask) -> Fetched:
        """Return the headings around the cursor, if the document has any."""
        document = ask.document
        if document is None:
            return Fetched()
        if not _kept.knows(document.text):
            await to_thread.run_sync(headings, document.text)
        text = outline(document)
        return Fetched(fragments=(_fragment(document, text),) if text else ())


def outline(document: Document) -> str:
    """Return the headings as a list with the current one marked; empty if there are none."""
    found = headings(document.text)
    if not found:
        return ""
    here = sum(heading.at <= document.here.start for heading in found) - 1
    first, last = max(0, here - NEAR), here + NEAR + 1
    return "\n".join(_lines(found[first:last], here - first))


_kept: Memo[str, tuple[OutlineHeading, ...]] = Memo(KEPT_DOCUMENTS)


def headings(text: str) -> tuple[OutlineHeading, ...]:
    """Return the headings of a text, except those inside code fences."""
    return _kept.get(text, lambda: _headings(text))


def _headings(text: str) -> tuple[OutlineHeading, ...]:
    lines = f"\n{text}"
    fences = [match.start() for match in _FENCE.finditer(lines)]
    return tuple(
        OutlineHeading(heading.level, heading.title, match.start())
        for match in _CANDIDATE.finditer(lines)
        if bisect(fences, match.start()) % 2 == 0
        and (heading := heading_of(match[0][1:].rstrip("\r"))) is not None
    )


def _lines(found: Sequence[OutlineHeading], here: int) -> Iterator[str]:
    top = min(heading.level for heading in found)
    for index, heading in enumerate(found):
        mark = HERE if index == here else "-"
        yield f"{'  ' * (heading.level - top)}{mark} {heading.title}"


def _fragment(document: Document, text: str) -> Fragment:
    return Fragment(
        layer=Layer.RETRIEVED,
        source=HeadingsSource.name,
        source_ref=f"{document.source_ref}#outline",
        text=text,
        place=Place(),
        score=SCORE,
    )
