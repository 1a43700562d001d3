"""Search in process, with RE2 over a stretch of lines at a time: linear time, constant memory.

Knows chunks of lines; knows nothing of ripgrep. Bytes that are no UTF-8 are searched as the
U+FFFD that a reader would see. A line longer than `query.longest_line` is searched in pieces: it
counts once, but a match that lies across two pieces is not found.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from creonowd.artifacts.pages import text
from creonowd.artifacts.refs import BLOCK
from creonowd.artifacts.searching import Found, Place, Query
from creonowd.artifacts.tree import OpenFile


class _Chunk(NamedTuple):
    """The bytes `data[:end]` at `offset`: whole lines, or a piece of the endless one at `line`."""

    data: bytes
    end: int
    offset: int
    line: int


def scan(file: OpenFile, query: Query) -> Found:
    """Find every line that matches, until the time is up."""
    offsets: list[int] = []
    total = 0
    last = -1
    for chunk in _chunks(file, query):
        query.stop.check()
        if query.limit.over:
            return Found(_numbered(file, query, offsets), total, complete=False)
        for start in _matching_lines(chunk, query):
            if start == last:
                continue
            last = start
            if query.sieve is not None and not query.sieve.passes(start):
                continue
            total += 1
            if len(offsets) < query.most:
                offsets.append(start)
    return Found(_numbered(file, query, offsets), total, complete=True)


def _chunks(file: OpenFile, query: Query) -> Iterator[_Chunk]:
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


def _matching_lines(chunk: _Chunk, query: Query) -> Iterator[int]:
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


def _readable(chunk: _Chunk, query: Query) -> tuple[bytes, int]:
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


def _numbered(file: OpenFile, query: Query, offsets: Sequence[int]) -> list[Place]:
    places: list[Place] = []
    here = query.start.place
    for offset in offsets:
        here = Place(_line_number(file, query, here, offset), offset)
        places.append(here)
    return places


def _line_number(file: OpenFile, query: Query, known: Place, offset: int) -> int:
    block = offset // BLOCK
    if query.survey is not None and known.offset < block * BLOCK:
        known = Place(1 + sum(query.survey.newlines[:block]), block * BLOCK)
    line = known.line
    for start in range(known.offset, offset, BLOCK):
        line += file.read_at(start, min(BLOCK, offset - start)).count(b"\n")
    return line
