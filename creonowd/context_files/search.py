"""Search one file: with ripgrep where it is and the file is plain text, in process otherwise.

Knows which engine fits and how far a reply may go; knows nothing of refs.
"""

import re
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from creonowd.context_files import search_engines
from creonowd.context_files.records import FileStats
from creonowd.context_files.search_engines import (
    LONGEST_LINE,
    Cursor,
    FoundLines,
    LineQuery,
    LineStart,
)
from creonowd.context_files.slices import (
    Reader,
    SecretFinder,
    boundary,
    line_start_before,
    surroundings,
    text,
)
from creonowd.errors import DaemonError, ErrorCode
from creonowd.redaction import PLACEHOLDER, RedactionEvidence, SecretSpan
from creonowd.storage.safe_folder import OpenFile

LONGEST_SHOWN = 1024
FURTHEST = 64 * 1024

_BLOCK = 4 * 1024


class Shown(NamedTuple):
    """The bytes of a line that are shown, and whether the line goes on at either side."""

    start: int
    end: int
    cut_before: bool
    cut_after: bool

    def marked(self, text: str) -> str:
        """Mark what was cut off."""
        return f"{'…' if self.cut_before else ''}{text}{'…' if self.cut_after else ''}"


class Excerpt(NamedTuple):
    """A line that matches, and lines around it."""

    place: LineStart
    line: Shown
    before: list[Shown]
    after: list[Shown]

    @property
    def lines(self) -> list[Shown]:
        """All lines, in order."""
        return [*self.before, self.line, *self.after]


def excerpt(file: OpenFile, place: LineStart, query: LineQuery, context_lines: int) -> Excerpt:
    """Choose what to show of a line that matches."""
    end = line_end(file, place.offset)
    return Excerpt(
        place,
        _around_match(file, place.offset, end, query),
        _lines_before(file, place.offset, context_lines),
        _lines_after(file, end, context_lines),
    )


def line_end(file: OpenFile, start: int) -> int:
    """Find the newline that ends the line at `start`, or the end of the file."""
    size, length = file.size, _BLOCK
    place = start
    while place < size and place - start < LONGEST_LINE:
        newline = file.read_at(place, length).find(b"\n")
        if newline >= 0:
            return place + newline
        place += length
        length = min(2 * length, FURTHEST)
    return min(place, size)


def _around_match(file: OpenFile, start: int, end: int, query: LineQuery) -> Shown:
    if end - start <= LONGEST_SHOWN:
        return _shown(file, start, end, start, end)
    found = start
    if query.sieve is None or not query.sieve.hides(start):
        line = file.read_at(start, min(end - start, query.longest_line))
        found += _match_start(line, query)
    first = boundary(file, max(start, min(found - LONGEST_SHOWN // 4, end - LONGEST_SHOWN)))
    return _shown(file, start, end, first, boundary(file, min(end, first + LONGEST_SHOWN)))


def _match_start(line: bytes, query: LineQuery) -> int:
    """Find the match again; a line that is shown when the time is up is shown from its start."""
    match = None if query.limit.over else query.regex.search(line)
    return 0 if match is None else match.start()


def _lines_before(file: OpenFile, end: int, count: int) -> list[Shown]:
    if count == 0 or end == 0:
        return []
    lowest = max(0, end - FURTHEST)
    start = line_start_before(file, end, count, lowest)
    start = boundary(file, lowest) if start is None else start
    return _split(file, start, file.read_at(start, end - start - 1).split(b"\n"))


def _lines_after(file: OpenFile, end: int, count: int) -> list[Shown]:
    start = end + 1
    if count == 0 or start >= file.size:
        return []
    data = _lines_at(file, start, count)
    return _split(file, start, data.removesuffix(b"\n").split(b"\n", count)[:count])


def _lines_at(file: OpenFile, start: int, count: int) -> bytes:
    """Read about `count` lines, of which the last may be cut between characters."""
    near = file.read_at(start, _BLOCK)
    if near.count(b"\n") >= count or start + len(near) >= file.size:
        return near
    return file.read_at(start, boundary(file, min(file.size, start + FURTHEST)) - start)


def _split(file: OpenFile, start: int, pieces: list[bytes]) -> list[Shown]:
    lines: list[Shown] = []
    for line in pieces:
        length = len(line) - line.endswith(b"\r")
        end = start + length
        last = end if length <= LONGEST_SHOWN else boundary(file, start + LONGEST_SHOWN)
        lines.append(Shown(start, last, cut_before=False, cut_after=last < end))
        start += len(line) + 1
    return lines


def _shown(file: OpenFile, line_start: int, end_of_line: int, start: int, end: int) -> Shown:
    """Show a part of a line; the carriage return of its end is no part of it."""
    if end == end_of_line > start and file.read_at(end - 1, 1) == b"\r":
        end, end_of_line = end - 1, end_of_line - 1
    return Shown(start, end, start > line_start, end < end_of_line)


MOST_SHOWN_BYTES = 1024 * 1024
MOST_SIEVED = 50_000

_CURSOR = re.compile(r"([0-9]{1,15})-([0-9]{1,15})-([0-9]{1,15})", re.ASCII)


class VisibleMatch(NamedTuple):
    """A line that matches as it is told: without secrets, and clipped."""

    place: LineStart
    content: str
    before: list[str]
    after: list[str]


class VisibleMatches(NamedTuple):
    """What a search found; `total` is the true number unless the time was too short."""

    matches: list[VisibleMatch]
    total: int
    complete: bool
    cursor: Cursor | None
    evidence: tuple[RedactionEvidence, ...]


def search(file: OpenFile, query: LineQuery, program: Path | None) -> FoundLines:
    """Find the lines that match with the engine that fits."""
    survey = query.survey
    plain = survey is not None and survey.utf8 and survey.longest_line <= LONGEST_LINE
    found = None
    if plain and program is not None:
        run = search_engines.run if query.sieve is None else _run_and_sieve
        found = run(program, file, query)
    return search_engines.scan(file, query) if found is None else found


def _run_and_sieve(program: Path, file: OpenFile, query: LineQuery) -> FoundLines | None:
    """Sieve what ripgrep finds; too much to be held is left to the scan, which need not."""
    found = search_engines.run(program, file, query._replace(most=MOST_SIEVED))
    if found is None or found.total > len(found.places):
        return None
    passed: list[LineStart] = []
    for count, place in enumerate(found.places):
        query.stop.check()
        if query.limit.over and count >= query.most:
            return FoundLines(passed[: query.most], len(passed), complete=False)
        if query.sieve is None or query.sieve.passes(place.offset):
            passed.append(place)
    return FoundLines(passed[: query.most], len(passed), complete=found.complete)


def tell(
    file: OpenFile, query: LineQuery, found: FoundLines, context_lines: int, reader: Reader
) -> VisibleMatches:
    """Show what was found, as much as fits into a reply, and where to go on."""
    excerpts: list[Excerpt] = []
    shown = 0
    for place in found.places[: query.most - 1]:
        query.stop.check()
        excerpts.append(excerpt(file, place, query, context_lines))
        shown += sum(line.end - line.start for line in excerpts[-1].lines)
        if shown >= MOST_SHOWN_BYTES:
            break
    rest = found.places[len(excerpts) :]
    seen = query.start.seen
    matches, evidence = _texts(file, excerpts, reader)
    return VisibleMatches(
        matches,
        seen + found.total,
        found.complete,
        Cursor(rest[0], seen + len(excerpts)) if rest else None,
        evidence,
    )


def spell_cursor(cursor: Cursor) -> str:
    """Write a cursor for the client to keep."""
    return f"{cursor.place.line}-{cursor.place.offset}-{cursor.seen}"


def parse_cursor(text: str, file: OpenFile) -> Cursor:
    """Understand a cursor that an earlier search gave out for this file."""
    match = _CURSOR.fullmatch(text)
    if match is not None:
        line, offset, seen = map(int, match.groups())
        begins_line = offset == 0 or file.read_at(offset - 1, 1) == b"\n"
        if line >= 1 and begins_line and offset <= file.size:
            return Cursor(LineStart(line, offset), seen)
    raise DaemonError(
        ErrorCode.INVALID_ARGUMENT,
        "The cursor does not belong to this file; start the search again.",
        field="cursor",
    )


def _texts(
    file: OpenFile, excerpts: list[Excerpt], reader: Reader
) -> tuple[list[VisibleMatch], tuple[RedactionEvidence, ...]]:
    lines = sorted({line for one in excerpts for line in one.lines})
    clean = reader.read(file, [(line.start, line.end) for line in lines])
    marked = {line: line.marked(text) for line, text in zip(lines, clean.texts, strict=True)}
    matches = [
        VisibleMatch(
            one.place,
            marked[one.line],
            [marked[line] for line in one.before],
            [marked[line] for line in one.after],
        )
        for one in excerpts
    ]
    return matches, clean.evidence


BLOCK = 32 * 1024
MOST_FILES = 64
MOST_BLOCKS = 65_536


class SecretLines:
    """The lines of one file that hold a secret, by the bytes where they begin."""

    def __init__(self, finder: SecretFinder, block: int = BLOCK) -> None:
        self._finder = finder
        self._block = block
        self._blocks: dict[int, frozenset[int]] = {}

    def hides(self, file: OpenFile, start: int) -> bool:
        """Tell whether the line that begins at `start` holds a secret, or a part of one."""
        block = start // self._block
        known = self._blocks.get(block)
        if known is None:
            if len(self._blocks) >= MOST_BLOCKS:
                self._blocks.clear()
            known = self._blocks[block] = frozenset(self._secret_lines(file, block * self._block))
        return start in known

    def _secret_lines(self, file: OpenFile, place: int) -> Iterator[int]:
        """Tell where the secret ones begin, of the lines that begin in the block at `place`."""
        last = min(place + self._block, file.size)
        start = place if place == 0 else line_end(file, place - 1) + 1
        if start >= last:
            return
        end = line_end(file, last - 1)
        low, high = surroundings(file, start, end)
        window = file.read_at(low, high - low)
        decoded = text(window)
        touched = _touched(decoded, self._finder.find(decoded))
        if touched:
            lines = (low + offset for offset in _starts(window, touched))
            yield from (line for line in lines if start <= line < last)


class SecretLinesCache:
    """The veils of the files that were last searched, by the hash of what they hold."""

    def __init__(self, most: int = MOST_FILES) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[SecretFinder, str], SecretLines] = OrderedDict()

    def of(self, survey: FileStats | None, finder: SecretFinder) -> SecretLines:
        """Give the veil of a file as this finder sees it; what is not surveyed is not remembered."""
        if survey is None:
            return SecretLines(finder)
        key = (finder, survey.sha256)
        with self._lock:
            veil = self._kept.setdefault(key, SecretLines(finder))
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return veil


def _touched(decoded: str, stretches: Sequence[SecretSpan]) -> list[int]:
    """Number the lines of a text, from 0, that any stretch touches."""
    lines: dict[int, None] = {}
    line = place = 0
    for start, end, _ in stretches:
        line += decoded.count("\n", place, start)
        place = start
        lines.update(dict.fromkeys(range(line, line + decoded.count("\n", start, end) + 1)))
    return list(lines)


def _starts(window: bytes, lines: Sequence[int]) -> Iterator[int]:
    """Tell where lines begin; a newline is one whether or not the bytes around it are UTF-8."""
    line = place = 0
    for wanted in lines:
        while line < wanted:
            place = window.find(b"\n", place) + 1
            line += 1
        yield place


_HIDDEN = PLACEHOLDER.encode()


class VisibleLines(NamedTuple):
    """The lines of a file as someone may see them, for one pattern.

    Of a line that is longer than `longest`, what lies beyond is not looked at.
    """

    file: OpenFile
    reader: Reader
    veil: SecretLines
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
