"""What someone may see of an open file: a page, the last lines, the lines that match.

Knows files and eyes to read them with; knows nothing of refs, hosts or threads.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from creonowd.artifacts import grep, patterns
from creonowd.artifacts.grep import Matches
from creonowd.artifacts.pages import page
from creonowd.artifacts.redacting import Reader
from creonowd.artifacts.refs import Record
from creonowd.artifacts.searching import TOP, Query
from creonowd.artifacts.sieving import OpenLines
from creonowd.artifacts.tails import count_lines, tail
from creonowd.artifacts.tree import OpenFile
from creonowd.artifacts.veils import Veils
from creonowd.redaction import RedactionEvidence
from creonowd.threads import StopSignal, TimeLimit

MOST_TAIL_BYTES = 1024 * 1024


class Seen(NamedTuple):
    """An open file, what is known of it, and whether to go on looking."""

    record: Record
    file: OpenFile
    stop: StopSignal


class Engine(NamedTuple):
    """What a search may use: ripgrep, if there is one, so many seconds of a clock, and what is known."""

    ripgrep: Path | None
    seconds: float
    now: Callable[[], float]
    veils: Veils


class Page(NamedTuple):
    """A page: `[offset, next_offset)` are bytes of the file, `content` is what may be seen of them."""

    offset: int
    next_offset: int
    done: bool
    content: str
    evidence: tuple[RedactionEvidence, ...]


class Tail(NamedTuple):
    """The last lines; `truncated` if not even the last ones could be told whole."""

    lines: int
    offset: int
    truncated: bool
    content: str
    evidence: tuple[RedactionEvidence, ...]


class Wanted(NamedTuple):
    """What a search is for, and how much of it to show."""

    pattern: str
    case_sensitive: bool = False
    most: int = 50
    context_lines: int = 0
    cursor: str | None = None


def see_page(seen: Seen, offset: int, limit: int, reader: Reader) -> Page:
    """See a page; pages that follow each other join up."""
    cut = page(seen.file, offset, limit)
    clean = reader.read(seen.file, [(cut.start, cut.end)], joined=True)
    return Page(cut.start, cut.end, cut.done, clean.texts[0], clean.evidence)


def see_bytes(seen: Seen, offset: int, limit: int) -> tuple[Page, bytes]:
    """See a page byte for byte."""
    start = min(offset, seen.file.size)
    data = seen.file.read_at(start, limit)
    end = start + len(data)
    return Page(start, end, end >= seen.file.size, "", ()), data


def see_tail(seen: Seen, lines: int, reader: Reader) -> Tail:
    """See the last lines."""
    cut = tail(seen.file, lines, MOST_TAIL_BYTES)
    clean = reader.read(seen.file, [(cut.start, cut.end)])
    counted = count_lines(seen.file.read_at(cut.start, cut.end - cut.start))
    return Tail(counted, cut.start, not cut.done, clean.texts[0], clean.evidence)


def see_matches(seen: Seen, wanted: Wanted, reader: Reader, engine: Engine) -> Matches:
    """See the lines that match."""
    record, file, stop = seen
    known = record.survey
    query = Query(
        patterns.translate(wanted.pattern, case_sensitive=wanted.case_sensitive),
        known if known is not None and known.byte_size == file.size else None,
        TOP if wanted.cursor is None else grep.parse_cursor(wanted.cursor, file),
        wanted.most + 1,
        TimeLimit(engine.seconds, engine.now),
        stop,
    )
    if reader.finder is not None:
        veil = engine.veils.of(query.survey, reader.finder)
        query = query._replace(sieve=OpenLines(file, reader, veil, query.regex, query.longest_line))
    found = grep.search(file, query, engine.ripgrep)
    return grep.tell(file, query, found, wanted.context_lines, reader)
