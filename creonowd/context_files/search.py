"""Search context files: the engines that find lines, and what of a line may be shown.

Both engines, ripgrep and RE2 in process, return the same lines. The scan in process takes linear
time and constant memory. It searches bytes that are no UTF-8 as the U+FFFD that a reader would see,
and a line longer than `query.max_line_bytes` in pieces: such a line counts once, but a match across
two pieces is missed.

A line that holds a secret is returned only if the pattern matches its redacted form away from the
placeholder; so a search reveals neither where a secret is nor what it begins with. What is
returned is redacted, clipped and bounded; a cursor continues after it.
"""

import os
import re
import shutil
import subprocess
import sysconfig
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from creonowd.context_files import patterns
from creonowd.context_files.records import BLOCK, FileStats
from creonowd.context_files.slices import (
    Reader,
    SecretFinder,
    character_start,
    decode,
    find_secrets,
    line_start_before,
    window_around,
)
from creonowd.errors import DaemonError, ErrorCode
from creonowd.memo import Memo
from creonowd.redaction import PLACEHOLDER, RedactionEvidence, SecretSpan
from creonowd.storage.safe_folder import OpenFile
from creonowd.threads import StopSignal, TimeLimit

MAX_LINE_BYTES = 16 * 1024 * 1024

# RE2 takes at worst about five nanoseconds per byte and instruction of its program, and cannot be
# interrupted: a chunk of this many steps takes a quarter of a second.
_STEPS_PER_CHUNK = 50_000_000
_MIN_CHUNK_BYTES = 4 * 1024

_PIPE_BYTES = 256 * 1024
_MATCHED, _NO_MATCH = 0, 1
_LINE_FEED = 10
_OPTIONS = (
    "--no-config",
    "-uu",
    "--text",
    "--encoding=none",
    "--color=never",
    "--no-heading",
    "--no-filename",
    "--no-messages",
    "--line-number",
    "--byte-offset",
    # The line itself would be repeated, however long; this leaves a short note in its place.
    "--max-columns=1",
)


class LineStart(NamedTuple):
    """The start of a line: its number from 1, and its offset in bytes."""

    line: int
    offset: int


class Cursor(NamedTuple):
    """Where a search goes on: at a line, after so many matches."""

    place: LineStart
    matches_before: int


FILE_START = Cursor(LineStart(1, 0), 0)


class LineQuery(NamedTuple):
    """What to search for, where to start, how many places to keep, and when to give up.

    `stats` is None if the file has changed since they were counted, or they never were.
    `may_show` decides by its offset whether a matching line counts; without it, all do.
    """

    translated: str
    stats: FileStats | None
    start: Cursor
    max_lines: int
    time_limit: TimeLimit
    stop: StopSignal
    may_show: Callable[[int], bool] | None = None

    @property
    def regex(self) -> Any:
        """The pattern, ready for bytes."""
        return patterns.compile_translated(self.translated)

    @property
    def chunk_bytes(self) -> int:
        """How many bytes to search between two looks at the clock."""
        fair = _STEPS_PER_CHUNK // self.regex.programsize
        return max(_MIN_CHUNK_BYTES, min(fair, BLOCK))

    @property
    def max_line_bytes(self) -> int:
        """How much of a line to search at once; a longer line is searched in pieces."""
        fair = 10 * _STEPS_PER_CHUNK // self.regex.programsize
        return max(_MIN_CHUNK_BYTES, min(fair, MAX_LINE_BYTES))


class FoundLines(NamedTuple):
    """The first places that match, how many lines match at all, and whether time sufficed."""

    places: list[LineStart]
    total: int
    complete: bool


def find_ripgrep(setting: str = "auto") -> Path | None:
    """Find the program: beside our own interpreter, on the PATH, or where the setting says."""
    if setting == "off":
        return None
    if setting != "auto":
        return Path(setting) if Path(setting).is_file() else None
    # Relative entries, and on Windows the current folder, could be anyone's.
    entries = os.environ.get("PATH", "").split(os.pathsep)
    search_path = os.pathsep.join(entry for entry in entries if Path(entry).is_absolute())
    found = shutil.which("rg", path=sysconfig.get_path("scripts")) or shutil.which(
        "rg", path=search_path
    )
    return Path(found) if found else None


def run_ripgrep(program: Path, file: OpenFile, query: LineQuery) -> FoundLines | None:
    """Find every line that matches, until the time is up; None if ripgrep failed.

    `query.may_show` is not asked.
    """
    file.file.seek(query.start.place.offset)
    regexp = patterns.for_ripgrep(query.translated)
    try:
        process = subprocess.Popen(
            [program, *_OPTIONS, f"--regexp={regexp}", "-"],
            stdin=file.file,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except OSError:
        return None
    timer = threading.Timer(query.time_limit.seconds_left, process.kill)
    timer.start()
    try:
        with process, query.stop.on_stop(process.kill):
            places, total = _read_ripgrep(process, query)
    finally:
        timer.cancel()
    query.stop.check()
    if process.returncode in {_MATCHED, _NO_MATCH}:
        return FoundLines(places, total, complete=True)
    return FoundLines(places, total, complete=False) if query.time_limit.over else None


def _read_ripgrep(
    process: "subprocess.Popen[bytes]", query: LineQuery
) -> tuple[list[LineStart], int]:
    assert process.stdout is not None
    places: list[LineStart] = []
    total = 0
    pending = b""
    start = query.start.place
    while block := os.read(process.stdout.fileno(), _PIPE_BYTES):
        total += block.count(b"\n")
        if len(places) >= query.max_lines:
            continue
        *lines, pending = (pending + block).split(b"\n", query.max_lines + 1)
        for line in lines[: query.max_lines - len(places)]:
            number, offset, _ = line.split(b":", 2)
            places.append(LineStart(start.line + int(number) - 1, start.offset + int(offset)))
    return places, total


class _LineChunk(NamedTuple):
    """The bytes `data[:end]` at `offset`: whole lines, or a piece of the long one at `line`."""

    data: bytes
    end: int
    offset: int
    line: int


def scan(file: OpenFile, query: LineQuery) -> FoundLines:
    """Find every line that matches and may be shown, until the time is up."""
    offsets: list[int] = []
    total = 0
    last = -1
    for chunk in _chunks(file, query):
        query.stop.check()
        if query.time_limit.over:
            return FoundLines(_number_lines(file, query, offsets), total, complete=False)
        for start in _matching_lines(chunk, query):
            if start == last:
                continue
            last = start
            if query.may_show is not None and not query.may_show(start):
                continue
            total += 1
            if len(offsets) < query.max_lines:
                offsets.append(start)
    return FoundLines(_number_lines(file, query, offsets), total, complete=True)


def _chunks(file: OpenFile, query: LineQuery) -> Iterator[_LineChunk]:
    pending: list[bytes] = []
    length = 0
    offset = line = query.start.place.offset
    for block in file.chunks(query.chunk_bytes, offset):
        pending.append(block)
        length += len(block)
        if b"\n" not in block and length < query.max_line_bytes:
            continue
        data = b"".join(pending)
        end = data.rfind(b"\n") + 1 or _last_character_start(data)
        yield _LineChunk(data, end, offset, line)
        line = offset + end if data[end - 1] == _LINE_FEED else line
        pending, length = [data[end:]], len(data) - end
        offset += end
    if length:
        yield _LineChunk(b"".join(pending), length, offset, line)


def _last_character_start(data: bytes) -> int:
    for back in range(1, 4):
        if data[-back] & 0xC0 != 0x80:
            return len(data) - back
    return len(data)


def _matching_lines(chunk: _LineChunk, query: LineQuery) -> Iterator[int]:
    """Yield the offset in the file of every line that matches; of a piece, that of its line."""
    searched, end = _valid_utf8(chunk, query)
    if searched[end - 1] == _LINE_FEED:
        end -= 1
    regex = query.regex
    place = 0
    while place <= end and (match := regex.search(searched, place, end)) is not None:
        found: int = match.start()
        start = max(place, searched.rfind(b"\n", place, found) + 1)
        yield chunk.offset + _original_offset(chunk, searched, start) if start else chunk.line
        newline = searched.find(b"\n", found, end)
        if newline < 0:
            return
        place = newline + 1


def _valid_utf8(chunk: _LineChunk, query: LineQuery) -> tuple[bytes, int]:
    if query.stats is None or not query.stats.utf8:
        data = chunk.data[: chunk.end]
        valid = decode(data).encode("utf-8")
        if valid != data:
            return valid, len(valid)
    return chunk.data, chunk.end


def _original_offset(chunk: _LineChunk, searched: bytes, start: int) -> int:
    """Find where a line of the searched bytes begins in the original ones."""
    if searched is chunk.data:
        return start
    place = 0
    for _ in range(searched.count(b"\n", 0, start)):
        place = chunk.data.find(b"\n", place) + 1
    return place


def _number_lines(file: OpenFile, query: LineQuery, offsets: Sequence[int]) -> list[LineStart]:
    places: list[LineStart] = []
    last = query.start.place
    for offset in offsets:
        last = LineStart(_line_number(file, query.stats, last, offset), offset)
        places.append(last)
    return places


def _line_number(file: OpenFile, stats: FileStats | None, before: LineStart, offset: int) -> int:
    """Count lines from the nearest place whose line number is known."""
    block = offset // BLOCK
    if stats is not None and before.offset < block * BLOCK:
        before = LineStart(1 + sum(stats.newlines[:block]), block * BLOCK)
    line = before.line
    for start in range(before.offset, offset, BLOCK):
        line += file.read_at(start, min(BLOCK, offset - start)).count(b"\n")
    return line


MAX_REPLY_BYTES = 1024 * 1024
MAX_FILTERED_LINES = 50_000
MAX_LINE_SHOWN = 1024
MAX_CONTEXT_BYTES = 64 * 1024
BLOCK_BYTES = 32 * 1024
MAX_BLOCKS = 65_536
MAX_FILES = 128

_CURSOR = re.compile(r"([0-9]{1,15})-([0-9]{1,15})-([0-9]{1,15})", re.ASCII)
_FIRST_READ = 4 * 1024
_PLACEHOLDER_BYTES = PLACEHOLDER.encode()


class GrepRequest(NamedTuple):
    """What to search for, and how much of it to show."""

    pattern: str
    case_sensitive: bool = False
    max_results: int = 50
    context_lines: int = 0
    cursor: str | None = None


class SearchTools(NamedTuple):
    """What a search uses: ripgrep if there is one, known secret lines, and when to give up."""

    ripgrep: Path | None
    secret_lines: "SecretLinesCache"
    time_limit: TimeLimit
    stop: StopSignal


class VisibleMatch(NamedTuple):
    """A line that matches, without secrets and clipped, and the lines around it."""

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


def find_matches(
    file: OpenFile,
    stats: FileStats | None,
    request: GrepRequest,
    reader: Reader,
    tools: SearchTools,
) -> VisibleMatches:
    """Return the lines that match and may be shown, as the reader may see them."""
    query = LineQuery(
        patterns.translate(request.pattern, case_sensitive=request.case_sensitive),
        stats if stats is not None and stats.byte_size == file.size else None,
        FILE_START if request.cursor is None else parse_cursor(request.cursor, file),
        request.max_results + 1,
        tools.time_limit,
        tools.stop,
    )
    visible = None
    if reader.finder is not None:
        secret_lines = tools.secret_lines.lines_of(query.stats, reader.finder)
        visible = VisibleLines(file, reader, secret_lines, query.regex, query.max_line_bytes)
        query = query._replace(may_show=visible.may_show)
    found = _find_lines(file, query, tools.ripgrep)
    excerpts = _excerpts(file, query, visible, found, request.context_lines)
    matches, evidence = _read_excerpts(file, excerpts, reader)
    rest = found.places[len(excerpts) :]
    before = query.start.matches_before
    return VisibleMatches(
        matches,
        before + found.total,
        found.complete,
        Cursor(rest[0], before + len(excerpts)) if rest else None,
        evidence,
    )


def _find_lines(file: OpenFile, query: LineQuery, ripgrep: Path | None) -> FoundLines:
    """Search with ripgrep if it is there and the file is plain text; otherwise in process."""
    stats = query.stats
    plain = stats is not None and stats.utf8 and stats.longest_line <= MAX_LINE_BYTES
    found = None
    if plain and ripgrep is not None and query.may_show is None:
        found = run_ripgrep(ripgrep, file, query)
    elif plain and ripgrep is not None:
        found = _run_ripgrep_and_filter(ripgrep, file, query)
    return scan(file, query) if found is None else found


def _run_ripgrep_and_filter(ripgrep: Path, file: OpenFile, query: LineQuery) -> FoundLines | None:
    """Drop what may not be shown; None if there are too many lines to hold, so that a scan must."""
    found = run_ripgrep(ripgrep, file, query._replace(max_lines=MAX_FILTERED_LINES))
    if found is None or found.total > len(found.places):
        return None
    places: list[LineStart] = []
    for count, place in enumerate(found.places):
        query.stop.check()
        if query.time_limit.over and count >= query.max_lines:
            return FoundLines(places[: query.max_lines], len(places), complete=False)
        if query.may_show is None or query.may_show(place.offset):
            places.append(place)
    return FoundLines(places[: query.max_lines], len(places), complete=found.complete)


def spell_cursor(cursor: Cursor) -> str:
    """Write a cursor for the client to keep."""
    return f"{cursor.place.line}-{cursor.place.offset}-{cursor.matches_before}"


def parse_cursor(text: str, file: OpenFile) -> Cursor:
    """Read a cursor that an earlier search of this file returned."""
    match = _CURSOR.fullmatch(text)
    if match is not None:
        line, offset, matches_before = map(int, match.groups())
        begins_line = offset == 0 or file.read_at(offset - 1, 1) == b"\n"
        if line >= 1 and begins_line and offset <= file.size:
            return Cursor(LineStart(line, offset), matches_before)
    raise DaemonError(
        ErrorCode.INVALID_ARGUMENT,
        "The cursor does not belong to this file; start the search again.",
        field="cursor",
    )


class SecretLines:
    """The lines of one file that hold a secret, by the bytes where they begin."""

    def __init__(self, finder: SecretFinder, block_bytes: int = BLOCK_BYTES) -> None:
        self._finder = finder
        self._block_bytes = block_bytes
        self._blocks: Memo[int, frozenset[int]] = Memo(MAX_BLOCKS)

    def has_secret(self, file: OpenFile, start: int) -> bool:
        """Return whether the line that begins at `start` holds a secret, or a part of one."""
        block = start // self._block_bytes
        first = block * self._block_bytes
        return start in self._blocks.get(block, lambda: frozenset(self._find_lines(file, first)))

    def _find_lines(self, file: OpenFile, block_start: int) -> Iterator[int]:
        """Yield the starts of lines with a secret, of those that begin in the block."""
        block_end = min(block_start + self._block_bytes, file.size)
        start = block_start if block_start == 0 else line_end(file, block_start - 1) + 1
        if start >= block_end:
            return
        low, high = window_around(file, start, line_end(file, block_end - 1))
        window = file.read_at(low, high - low)
        text = decode(window)
        numbers = _line_numbers(text, find_secrets(self._finder, file, low, text))
        for offset in _line_starts(window, numbers):
            if start <= low + offset < block_end:
                yield low + offset


def _line_numbers(text: str, secrets: Sequence[SecretSpan]) -> list[int]:
    """List the numbers, from 0, of the lines that hold a part of any secret."""
    numbers: dict[int, None] = {}
    line = place = 0
    for start, end, _ in secrets:
        line += text.count("\n", place, start)
        place = start
        numbers.update(dict.fromkeys(range(line, line + text.count("\n", start, end) + 1)))
    return list(numbers)


def _line_starts(window: bytes, numbers: Sequence[int]) -> Iterator[int]:
    """Yield where lines begin; a newline is one whether or not the bytes around it are UTF-8."""
    line = place = 0
    for number in numbers:
        while line < number:
            place = window.find(b"\n", place) + 1
            line += 1
        yield place


class SecretLinesCache:
    """The secret lines of the files that were last searched, by the hash of their content."""

    def __init__(self, capacity: int = MAX_FILES) -> None:
        self._memo: Memo[tuple[SecretFinder, str], SecretLines] = Memo(capacity)

    def lines_of(self, stats: FileStats | None, finder: SecretFinder) -> SecretLines:
        """Return the secret lines of a file by this finder; without `stats` they are not cached."""
        if stats is None:
            return SecretLines(finder)
        return self._memo.get((finder, stats.sha256), lambda: SecretLines(finder))


class VisibleLines(NamedTuple):
    """Which lines of a file a search for one pattern may show.

    Of a line longer than `max_bytes`, what lies beyond is not searched.
    """

    file: OpenFile
    reader: Reader
    secret_lines: SecretLines
    regex: Any
    max_bytes: int

    def has_secret(self, start: int) -> bool:
        """Return whether the line that begins at `start` holds a secret."""
        return self.secret_lines.has_secret(self.file, start)

    def may_show(self, start: int) -> bool:
        """Return whether a line that matches may be shown."""
        if not self.has_secret(start):
            return True
        end = min(line_end(self.file, start), start + self.max_bytes)
        line = (start, character_start(self.file, end))
        (redacted,) = self.reader.read(self.file, [line]).texts
        return matches_outside_secrets(self.regex, redacted.encode())


def matches_outside_secrets(regex: Any, line: bytes) -> bool:
    r"""Return whether a redacted line matches at least one byte away from any placeholder.

    What stands next to a secret would reveal with `\b` what kind of character it begins with.
    """
    start = 0
    while (secret := line.find(_PLACEHOLDER_BYTES, start)) >= 0:
        if start < secret and regex.search(line, start, secret - 1):
            return True
        start = secret + len(_PLACEHOLDER_BYTES) + 1
    return start <= len(line) and bool(regex.search(line, start, len(line)))


class LinePart(NamedTuple):
    """The bytes of a line that are shown, and whether the line goes on at either side."""

    start: int
    end: int
    cut_before: bool
    cut_after: bool

    def mark_cuts(self, text: str) -> str:
        """Put an ellipsis where the line was cut."""
        return f"{'…' if self.cut_before else ''}{text}{'…' if self.cut_after else ''}"


class Excerpt(NamedTuple):
    """A line that matches, and lines around it."""

    place: LineStart
    line: LinePart
    before: list[LinePart]
    after: list[LinePart]

    @property
    def lines(self) -> list[LinePart]:
        """All lines, in order."""
        return [*self.before, self.line, *self.after]


def _excerpts(
    file: OpenFile,
    query: LineQuery,
    visible: VisibleLines | None,
    found: FoundLines,
    context_lines: int,
) -> list[Excerpt]:
    """Choose what to show of the lines that were found, as much as fits into a reply."""
    excerpts: list[Excerpt] = []
    size = 0
    for place in found.places[: query.max_lines - 1]:
        query.stop.check()
        end = line_end(file, place.offset)
        excerpt = Excerpt(
            place,
            _part_around_match(file, place.offset, end, query, visible),
            _lines_before(file, place.offset, context_lines),
            _lines_after(file, end, context_lines),
        )
        excerpts.append(excerpt)
        size += sum(line.end - line.start for line in excerpt.lines)
        if size >= MAX_REPLY_BYTES:
            break
    return excerpts


def _part_around_match(
    file: OpenFile, start: int, end: int, query: LineQuery, visible: VisibleLines | None
) -> LinePart:
    """Choose what to show of a matching line; a long one with a secret is shown from its start."""
    first, last = start, end
    if end - start > MAX_LINE_SHOWN:
        match_start = start
        if visible is None or not visible.has_secret(start):
            match_start += _match_offset(file, start, end, query)
        first = max(start, min(match_start - MAX_LINE_SHOWN // 4, end - MAX_LINE_SHOWN))
        first = character_start(file, first)
        last = character_start(file, min(end, first + MAX_LINE_SHOWN))
    if last == end > first and file.read_at(end - 1, 1) == b"\r":
        end = last = end - 1
    return LinePart(first, last, cut_before=first > start, cut_after=last < end)


def _match_offset(file: OpenFile, start: int, end: int, query: LineQuery) -> int:
    """Find the match in its line again; 0 if the time is up."""
    line = file.read_at(start, min(end - start, query.max_line_bytes))
    match = None if query.time_limit.over else query.regex.search(line)
    return 0 if match is None else match.start()


def _lines_before(file: OpenFile, end: int, count: int) -> list[LinePart]:
    if count == 0 or end == 0:
        return []
    lowest = max(0, end - MAX_CONTEXT_BYTES)
    start = line_start_before(file, end, count, lowest)
    start = character_start(file, lowest) if start is None else start
    return _clip_lines(file, start, file.read_at(start, end - start - 1).split(b"\n"))


def _lines_after(file: OpenFile, end: int, count: int) -> list[LinePart]:
    start = end + 1
    if count == 0 or start >= file.size:
        return []
    data = file.read_at(start, _FIRST_READ)
    if data.count(b"\n") < count and start + len(data) < file.size:
        last = character_start(file, min(file.size, start + MAX_CONTEXT_BYTES))
        data = file.read_at(start, last - start)
    return _clip_lines(file, start, data.removesuffix(b"\n").split(b"\n", count)[:count])


def _clip_lines(file: OpenFile, start: int, lines: list[bytes]) -> list[LinePart]:
    parts: list[LinePart] = []
    for line in lines:
        length = len(line.removesuffix(b"\r"))
        end = start + length
        last = end if length <= MAX_LINE_SHOWN else character_start(file, start + MAX_LINE_SHOWN)
        parts.append(LinePart(start, last, cut_before=False, cut_after=last < end))
        start += len(line) + 1
    return parts


def line_end(file: OpenFile, start: int) -> int:
    """Find the newline that ends the line at `start`, or the end of the file."""
    size, length = file.size, _FIRST_READ
    place = start
    while place < size and place - start < MAX_LINE_BYTES:
        newline = file.read_at(place, length).find(b"\n")
        if newline >= 0:
            return place + newline
        place += length
        length = min(2 * length, MAX_CONTEXT_BYTES)
    return min(place, size)


def _read_excerpts(
    file: OpenFile, excerpts: list[Excerpt], reader: Reader
) -> tuple[list[VisibleMatch], tuple[RedactionEvidence, ...]]:
    lines = sorted({line for excerpt in excerpts for line in excerpt.lines})
    redacted = reader.read(file, [(line.start, line.end) for line in lines])
    texts = {line: line.mark_cuts(text) for line, text in zip(lines, redacted.texts, strict=True)}
    matches = [
        VisibleMatch(
            excerpt.place,
            texts[excerpt.line],
            [texts[line] for line in excerpt.before],
            [texts[line] for line in excerpt.after],
        )
        for excerpt in excerpts
    ]
    return matches, redacted.evidence
