"""Find the lines of a file that match a pattern, with ripgrep or in process with RE2.

Both engines return the same lines. The scan in process takes linear time and constant memory. It
searches bytes that are no UTF-8 as the U+FFFD that a reader would see, and a line longer than
`query.max_line_bytes` in pieces: such a line counts once, but a match across two pieces is missed.
"""

import os
import shutil
import subprocess
import sysconfig
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from creonowd.context_files import patterns
from creonowd.context_files.records import BLOCK, FileStats
from creonowd.context_files.slices import decode
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
    timer = threading.Timer(query.time_limit.left, process.kill)
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


class _Chunk(NamedTuple):
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


def _chunks(file: OpenFile, query: LineQuery) -> Iterator[_Chunk]:
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
        yield _Chunk(data, end, offset, line)
        line = offset + end if data[end - 1] == _LINE_FEED else line
        pending, length = [data[end:]], len(data) - end
        offset += end
    if length:
        yield _Chunk(b"".join(pending), length, offset, line)


def _last_character_start(data: bytes) -> int:
    for back in range(1, 4):
        if data[-back] & 0xC0 != 0x80:
            return len(data) - back
    return len(data)


def _matching_lines(chunk: _Chunk, query: LineQuery) -> Iterator[int]:
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


def _valid_utf8(chunk: _Chunk, query: LineQuery) -> tuple[bytes, int]:
    if query.stats is None or not query.stats.utf8:
        data = chunk.data[: chunk.end]
        valid = decode(data).encode("utf-8")
        if valid != data:
            return valid, len(valid)
    return chunk.data, chunk.end


def _original_offset(chunk: _Chunk, searched: bytes, start: int) -> int:
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
