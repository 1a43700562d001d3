"""Search in process, with RE2 over a stretch of lines at a time: linear time, constant memory.

Knows chunks of lines; knows nothing of ripgrep. Bytes that are no UTF-8 are searched as the
U+FFFD that a reader would see. A line longer than `query.longest_line` is searched in pieces: it
counts once, but a match that lies across two pieces is not found.
"""

import os
import shutil
import subprocess
import sysconfig
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from creonowd.context_files import patterns
from creonowd.context_files.patterns import for_ripgrep
from creonowd.context_files.records import BLOCK, FileStats
from creonowd.context_files.slices import text
from creonowd.storage.safe_folder import OpenFile
from creonowd.threads import StopSignal, TimeLimit

LONGEST_LINE = 16 * 1024 * 1024

# RE2 takes at worst about five nanoseconds per byte and instruction of its program, and cannot be
# interrupted: a stretch of this size is a quarter of a second.
_STEPS_AT_ONCE = 50_000_000
_SHORTEST_STRETCH = 4 * 1024


class LineStart(NamedTuple):
    """The start of a line: its number from 1, and its offset in bytes."""

    line: int
    offset: int


class Cursor(NamedTuple):
    """Where a search goes on: at a line, after so many that matched."""

    place: LineStart
    seen: int


TOP = Cursor(LineStart(1, 0), 0)


class LineFilter(Protocol):
    """Says which of the lines that match may be told."""

    def hides(self, start: int) -> bool:
        """Tell whether something of the line that begins at `start` may not be seen."""
        ...

    def passes(self, start: int) -> bool:
        """Tell whether a line that matches may be told."""
        ...


class LineQuery(NamedTuple):
    """What to look for, from where on, how many places to keep, and when to give up.

    `survey` tells what is known of the file; None if it has changed since or was never surveyed.
    Without a `sieve` all that matches may be told.
    """

    translated: str
    survey: FileStats | None
    start: Cursor
    most: int
    limit: TimeLimit
    stop: StopSignal
    sieve: LineFilter | None = None

    @property
    def regex(self) -> Any:
        """The pattern, ready for bytes."""
        return patterns.compiled(self.translated)

    @property
    def stretch(self) -> int:
        """How many bytes to search between two looks at the clock."""
        fair = _STEPS_AT_ONCE // self.regex.programsize
        return max(_SHORTEST_STRETCH, min(fair, BLOCK))

    @property
    def longest_line(self) -> int:
        """How much of a line to search at once; beyond that it is searched in pieces."""
        fair = 10 * _STEPS_AT_ONCE // self.regex.programsize
        return max(_SHORTEST_STRETCH, min(fair, LONGEST_LINE))


class FoundLines(NamedTuple):
    """The first places that match, how many lines match at all, and whether time sufficed."""

    places: list[LineStart]
    total: int
    complete: bool


_BLOCK = 256 * 1024
_MATCHED, _NO_MATCH = 0, 1
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


def find_ripgrep(setting: str = "auto") -> Path | None:
    """Find the program: beside our own interpreter, on the PATH, or where the setting says."""
    if setting == "off":
        return None
    if setting != "auto":
        return Path(setting) if Path(setting).is_file() else None
    found = shutil.which("rg", path=sysconfig.get_path("scripts")) or shutil.which(
        "rg", path=_absolute_path()
    )
    return Path(found) if found else None


def run(program: Path, file: OpenFile, query: LineQuery) -> FoundLines | None:
    """Find every line that matches, until the time is up; None if ripgrep could not tell."""
    file.file.seek(query.start.place.offset)
    try:
        process = subprocess.Popen(
            [program, *_OPTIONS, f"--regexp={for_ripgrep(query.translated)}", "-"],
            stdin=file.file,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except OSError:
        return None
    timer = threading.Timer(query.limit.left, process.kill)
    timer.start()
    try:
        with process, query.stop.calling(process.kill):
            places, total = _read(process, query)
    finally:
        timer.cancel()
    query.stop.check()
    if process.returncode in {_MATCHED, _NO_MATCH}:
        return FoundLines(places, total, complete=True)
    return FoundLines(places, total, complete=False) if query.limit.over else None


def _read(process: "subprocess.Popen[bytes]", query: LineQuery) -> tuple[list[LineStart], int]:
    places: list[LineStart] = []
    total = 0
    pending = b""
    for block in _blocks(process):
        total += block.count(b"\n")
        if len(places) >= query.most:
            continue
        *lines, pending = (pending + block).split(b"\n", query.most + 1)
        places += [_place(line, query.start.place) for line in lines[: query.most - len(places)]]
    return places, total


def _blocks(process: "subprocess.Popen[bytes]") -> Iterator[bytes]:
    assert process.stdout is not None
    while block := os.read(process.stdout.fileno(), _BLOCK):
        yield block


def _place(line: bytes, start: LineStart) -> LineStart:
    number, offset, _ = line.split(b":", 2)
    return LineStart(start.line + int(number) - 1, start.offset + int(offset))


def _absolute_path() -> str:
    """Leave out relative entries, and on Windows the current folder: they could be anyone's."""
    entries = os.environ.get("PATH", "").split(os.pathsep)
    return os.pathsep.join(entry for entry in entries if Path(entry).is_absolute())


class _Chunk(NamedTuple):
    """The bytes `data[:end]` at `offset`: whole lines, or a piece of the endless one at `line`."""

    data: bytes
    end: int
    offset: int
    line: int


def scan(file: OpenFile, query: LineQuery) -> FoundLines:
    """Find every line that matches, until the time is up."""
    offsets: list[int] = []
    total = 0
    last = -1
    for chunk in _chunks(file, query):
        query.stop.check()
        if query.limit.over:
            return FoundLines(_numbered(file, query, offsets), total, complete=False)
        for start in _matching_lines(chunk, query):
            if start == last:
                continue
            last = start
            if query.sieve is not None and not query.sieve.passes(start):
                continue
            total += 1
            if len(offsets) < query.most:
                offsets.append(start)
    return FoundLines(_numbered(file, query, offsets), total, complete=True)


def _chunks(file: OpenFile, query: LineQuery) -> Iterator[_Chunk]:
    pending: list[bytes] = []
    length = 0
    offset = line = query.start.place.offset
    for block in file.chunks(query.stretch, offset):
        pending.append(block)
        length += len(block)
        if b"\n" not in block and length < query.longest_line:
            continue
        data = b"".join(pending)
        end = data.rfind(b"\n") + 1 or _between_characters(data)
        yield _Chunk(data, end, offset, line)
        line = offset + end if data[end - 1] == 10 else line
        pending, length = [data[end:]], len(data) - end
        offset += end
    if length:
        yield _Chunk(b"".join(pending), length, offset, line)


def _matching_lines(chunk: _Chunk, query: LineQuery) -> Iterator[int]:
    """Tell the offset in the file of every line that matches; of a piece, that of its line."""
    searched, end = _readable(chunk, query)
    end -= searched[end - 1] == 10
    regex = query.regex
    place = 0
    while place <= end and (match := regex.search(searched, place, end)) is not None:
        found: int = match.start()
        start = max(place, searched.rfind(b"\n", place, found) + 1)
        yield chunk.offset + _origin(chunk, searched, start) if start else chunk.line
        newline = searched.find(b"\n", found, end)
        if newline < 0:
            return
        place = newline + 1


def _readable(chunk: _Chunk, query: LineQuery) -> tuple[bytes, int]:
    if query.survey is None or not query.survey.utf8:
        data = chunk.data[: chunk.end]
        readable = text(data).encode("utf-8")
        if readable != data:
            return readable, len(readable)
    return chunk.data, chunk.end


def _origin(chunk: _Chunk, searched: bytes, start: int) -> int:
    """Find where a line of the searched bytes begins in the original ones."""
    if searched is chunk.data:
        return start
    place = 0
    for _ in range(searched.count(b"\n", 0, start)):
        place = chunk.data.find(b"\n", place) + 1
    return place


def _between_characters(data: bytes) -> int:
    for back in range(1, 4):
        if data[-back] & 0xC0 != 0x80:
            return len(data) - back
    return len(data)


def _numbered(file: OpenFile, query: LineQuery, offsets: Sequence[int]) -> list[LineStart]:
    places: list[LineStart] = []
    here = query.start.place
    for offset in offsets:
        here = LineStart(_line_number(file, query, here, offset), offset)
        places.append(here)
    return places


def _line_number(file: OpenFile, query: LineQuery, known: LineStart, offset: int) -> int:
    block = offset // BLOCK
    if query.survey is not None and known.offset < block * BLOCK:
        known = LineStart(1 + sum(query.survey.newlines[:block]), block * BLOCK)
    line = known.line
    for start in range(known.offset, offset, BLOCK):
        line += file.read_at(start, min(BLOCK, offset - start)).count(b"\n")
    return line
