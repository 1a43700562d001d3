"""The document that a request is about: its text, its outline, and what recent runs wrote in it.

The text is as the editor has it, else as it is on disk. A document that cannot be read costs its
text and a warning, not the assembly.
"""

import re
from bisect import bisect
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

import anyio
from anyio import to_thread
from msgspec.structs import replace

from creonowd.context.fragment import (
    Caution,
    Fragment,
    Layer,
    Omission,
    Place,
    Reason,
    Span,
    caution,
)
from creonowd.context.language import CHINESE, FRAMES, PromptFrame, printable_ref
from creonowd.context.plan import Document, Need, place
from creonowd.context.source import NOTHING, PendingResult, Source, SourceQuery, SourceResult
from creonowd.errors import DaemonError, ErrorCode, WarningCode, Wording
from creonowd.memo import Memo
from creonowd.model import Model
from creonowd.retrieval.passages import heading_of
from creonowd.rpc.connection import Peer
from creonowd.storage import front_matter
from creonowd.text import join_lines
from creonowd.workspace.documents import Buffer, Documents
from creonowd.workspace.projects import Project
from creonowd.workspace.runs import RunRecord, Runs

OUTLINE_SCORE = 1.0
RUN_SCORE = 1.0
HEADINGS_SHOWN = 30
FEWEST_HEADINGS = 2
CURRENT_MARK = "→"
KEPT_CHARACTERS = 4_000_000

# In this many characters headings are found on the event loop within milliseconds.
INLINE_CHARACTERS = 30_000

# Only these lines can be headings. A pattern that begins with a newline is thirty times as fast
# as one that looks at the beginning of every line.
_CANDIDATE = re.compile(
    r"\n[ \t\u3000]*(?:#{1,6}[ \t]|第|(?:book|volume|part|chapter|act|scene)\s)[^\n]{0,80}(?=\n|\Z)",
    re.IGNORECASE,
)
_FENCE = re.compile(r"\n {0,3}(?:```|~~~)")
# After every document: each run adds a summary, which must not shift the passages before it.
LAST_PATH = "\U0010ffff"
LAST_NUMBER = 2**31
_PROBLEMS = {
    Reason.TOO_LARGE: Wording("the file is too large", "文件过大"),
    Reason.INVALID_FORMAT: Wording("it is no text file", "不是文本文件"),
    Reason.READ_ERROR: Wording("the disk refused to read it", "磁盘读取失败"),
}
_ABSENT = Wording("the document is neither open nor on disk", "文档未打开且不在磁盘上")
_TOO_SLOW = Wording("reading it took too long", "读取超时")


class Position(Model):
    """Where the author is, in the units that the connection counts in."""

    document_id: str
    cursor: int
    selection: Span | None = None


class LocatedDocument(Model):
    """The document with the author's place in it, or none; and warnings about it."""

    document: Document | None = None
    warnings: tuple[Caution, ...] = ()
    left_out: tuple[Omission, ...] = ()


async def open_document(
    documents: Documents, project: Project, position: Position, peer: Peer, timeout_ms: int
) -> LocatedDocument:
    """Read the document and put the cursor into it; without text if it cannot be read in time."""
    try:
        with anyio.fail_after(timeout_ms / 1000):
            buffer = await documents.read(project, position.document_id, peer)
    except TimeoutError:
        buffer = DaemonError(ErrorCode.TIMEOUT)
    except DaemonError as error:
        buffer = error
    return document_at(buffer, position, utf16=peer.utf16)


def document_at(
    buffer: Buffer | DaemonError, position: Position, *, utf16: bool
) -> LocatedDocument:
    """Put the cursor into a document, or say why there is none."""
    if isinstance(buffer, Buffer):
        return place_in(buffer, position, utf16=utf16)
    if buffer.code is ErrorCode.NOT_FOUND:
        return LocatedDocument(warnings=(_unavailable(position, _ABSENT),))
    return _unreadable(position, buffer)


def _unreadable(position: Position, error: DaemonError) -> LocatedDocument:
    reason = _reason(error)
    left_out = Omission(
        layer=Layer.IMMEDIATE,
        source="document",
        source_ref=position.document_id,
        reason=reason,
    )
    problem = _TOO_SLOW if error.code is ErrorCode.TIMEOUT else _PROBLEMS[reason]
    warning = _unavailable(position, problem, error.code)
    return LocatedDocument(warnings=(warning,), left_out=(left_out,))


def _unavailable(position: Position, problem: Wording, error: str = "") -> Caution:
    document = printable_ref(position.document_id)
    return Caution(
        code=WarningCode.IMMEDIATE_UNAVAILABLE,
        wording=Wording(f"{document}: {problem.english}.", f"{document}：{problem.chinese}。"),
        source_ref=document,
        details=(("error", error),) if error else (),
    )


def _reason(error: DaemonError) -> Reason:
    if error.code is ErrorCode.UNSUPPORTED:
        return Reason.INVALID_FORMAT
    too_large = error.details.get("reason") == Reason.TOO_LARGE
    return Reason.TOO_LARGE if too_large else Reason.READ_ERROR


def place_in(buffer: Buffer, position: Position, *, utf16: bool) -> LocatedDocument:
    """Put cursor and selection into a document, clamped to its end with a warning.

    What lies in the front matter moves to the beginning of the text.
    """
    parts = front_matter.split(buffer.text)
    above = len(parts.front_matter)

    def in_text(at: int) -> int:
        return max(0, _code_points(buffer, at, utf16=utf16) - above)

    selection = position.selection
    placed = place(
        position.document_id,
        parts.body,
        in_text(position.cursor),
        selection and Span(*map(in_text, selection)),
    )
    document = replace(placed.document, front_matter=parts.front_matter)
    return LocatedDocument(document=document, warnings=placed.warnings)


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


class OutlineHeading(NamedTuple):
    """A heading, how deep it stands, and where it begins."""

    level: int
    title: str
    at: int


class HeadingsSource(Source):
    """The outline of the current document."""

    layer = Layer.RETRIEVED
    name = "outline"
    need = Need.OUTLINE
    unavailable = caution(WarningCode.OUTLINE_UNAVAILABLE)

    def fetch(self, ask: SourceQuery) -> SourceResult | PendingResult:
        """Return the headings around the cursor, if they say more than the text that is shown.

        Headings behind the cursor show what is to come; only skills that may see it get those.
        """
        document = _seen_part(ask)
        if document is None or len(document.text) <= ask.shown:
            return NOTHING
        if len(document.text) <= INLINE_CHARACTERS or document.text in _kept:
            return _outline_result(document)
        return self._find(document)

    async def _find(self, document: Document) -> SourceResult:
        await to_thread.run_sync(headings, document.text)
        return _outline_result(document)

    def revision(self) -> Hashable | None:
        """Return a constant: the answer depends on the document alone, and the query has it."""
        return ()


def _seen_part(ask: SourceQuery) -> Document | None:
    """Return the document, up to the author's place if the skill may not see what follows."""
    document = ask.document
    if document is None or ask.here is None or ask.sees_future:
        return document
    return replace(document, text=document.text[: document.here.end])


def _outline_result(document: Document) -> SourceResult:
    text = outline(document)
    return SourceResult(fragments=(_outline_fragment(document, text),)) if text else NOTHING


def outline(document: Document) -> str:
    """Return the headings as a list with the current one marked.

    Empty if there are fewer than two: the title of a chapter alone is no outline.
    """
    found = headings(document.text)
    if len(found) < FEWEST_HEADINGS:
        return ""
    here = sum(heading.at <= document.here.start for heading in found) - 1
    first, last = max(0, here - HEADINGS_SHOWN), here + HEADINGS_SHOWN + 1
    return "\n".join(_lines(found[first:last], here - first))


_kept: Memo[str, tuple[OutlineHeading, ...]] = Memo(
    KEPT_CHARACTERS, lambda text, _headings: 500 + len(text)
)


def headings(text: str) -> tuple[OutlineHeading, ...]:
    """Return the headings of a text, found once for as long as it is kept."""
    return _kept.get(text, lambda: find_headings(text))


def find_headings(text: str) -> tuple[OutlineHeading, ...]:
    """Find the headings of a text, except those inside code fences."""
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
        mark = CURRENT_MARK if index == here else "-"
        yield f"{'  ' * (heading.level - top)}{mark} {join_lines(heading.title)}"


def _outline_fragment(document: Document, text: str) -> Fragment:
    return Fragment(
        layer=Layer.RETRIEVED,
        source=HeadingsSource.name,
        source_ref=f"{document.source_ref}#outline",
        text=text,
        place=Place(),
        score=OUTLINE_SCORE,
    )


class RecentRunsSource(Source):
    """The summaries of the last runs that the author accepted, oldest first."""

    layer = Layer.RETRIEVED
    name = "recent_summary"
    need = Need.RECENT_SUMMARY
    unavailable = caution(WarningCode.RUNS_UNAVAILABLE)

    def __init__(self, runs: Runs) -> None:
        self._runs = runs

    def fetch(self, ask: SourceQuery) -> SourceResult | PendingResult:
        """Return as many summaries as the skill asks for."""
        if ask.document_id is None or not ask.recent_summary:
            return NOTHING
        records = self._runs.cached_accepted_runs(ask.project_id, ask.document_id)
        return self._read(ask, ask.document_id) if records is None else _runs_result(records, ask)

    async def _read(self, ask: SourceQuery, document_id: str) -> SourceResult:
        return _runs_result(await self._runs.accepted_runs(ask.project_id, document_id), ask)

    def revision(self) -> Hashable | None:
        """Return how often any runs have changed."""
        return self._runs.revision


def _runs_result(records: Sequence[RunRecord], ask: SourceQuery) -> SourceResult:
    if not records:
        return NOTHING
    frame, chosen = FRAMES[ask.language], records[-ask.recent_summary :]
    return SourceResult(fragments=tuple(_run_fragment(record, frame) for record in chosen))


def _run_fragment(run: RunRecord, frame: PromptFrame) -> Fragment:
    return Fragment(
        layer=Layer.RETRIEVED,
        source=RecentRunsSource.name,
        source_ref=f"runs/{run.number}",
        text=accepted_summary(run, frame),
        place=Place(path=LAST_PATH, offset=run.number),
        story_number=LAST_NUMBER,
        score=RUN_SCORE,
    )


def accepted_summary(run: RunRecord, frame: PromptFrame = CHINESE) -> str:
    """Say what a run was asked for, and what of it the author accepted."""
    summary = run.summary
    if isinstance(summary, str):
        return f"{summary}\n{frame.accepted_mark}"
    lines = [frame.skill.format(summary.skill_name)] if summary.skill_name else []
    if summary.instruction:
        lines.append(frame.instruction.format(summary.instruction))
    text = summary.excerpt
    accepted = frame.accepted.format(summary.characters, text) if text else frame.accepted_nothing
    return "\n".join([*lines, accepted])


class DocumentSources:
    """The sources about the current document: its headings and its last runs."""

    def __init__(self, runs: Runs) -> None:
        self._sources = (HeadingsSource(), RecentRunsSource(runs))

    def of(self, project: Project) -> Sequence[Source]:
        """Return the sources for one assembly; they are the same for every project."""
        del project
        return self._sources
