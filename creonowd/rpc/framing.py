"""Where one message ends and the next begins: lines, or `Content-Length` headers.

Knows bytes; knows no JSON. Never holds more than one message and one chunk.
"""

import re
from collections.abc import Iterator
from enum import Enum

from creonowd.model import Model

HEADER_LIMIT = 8 * 1024
HEAD_KEPT = 4 * 1024
TAIL_KEPT = 512
LONGEST_SKIP = 10**12
_HEADER_START = b"content-"
_BLANK = b" \t\r\n\xef\xbb\xbf"
_END_OF_HEADERS = re.compile(rb"\r?\n\r?\n")


class Framing(Enum):
    """How a connection marks the ends of its messages."""

    LINES = "lines"
    HEADERS = "headers"
    WHOLE = "whole"


class Frame(Model):
    """The bytes of one message."""

    body: bytes


class Oversized(Model):
    """A message that was skipped; its two ends are kept so that an id may be found in them."""

    size: int
    head: bytes
    tail: bytes


class Broken(Model):
    """Bytes after which no message boundary can be trusted any more."""

    reason: str


Event = Frame | Oversized | Broken


def enclose(framing: Framing, body: bytearray) -> bytearray:
    """Mark the ends of an outgoing message, in place."""
    if framing is Framing.LINES:
        body += b"\n"
    elif framing is Framing.HEADERS:
        body[:0] = b"Content-Length: %d\r\n\r\n" % len(body)
    return body


class Splitter:
    """Cut a stream of bytes into messages, in the framing of its first bytes."""

    def __init__(self, limit: int) -> None:
        self.framing: Framing | None = None
        self._limit = limit
        self._buffer = bytearray()
        self._scanned = 0
        self._skipping: _Skipped | None = None
        self._broken = False

    def feed(self, data: bytes) -> None:
        """Take in what has arrived; ask `events` what came of it."""
        if not self._broken:
            self._buffer += data

    def events(self) -> Iterator[Event]:
        """Yield every message that is complete; may be left half-way and taken up again."""
        while not self._broken:
            event = self._next()
            if event is None:
                return
            yield event

    def finish(self) -> Iterator[Event]:
        """Yield what the end of the stream completes: a last line, or the news that one was cut."""
        yield from self.events()
        rest = bytes(self._buffer).strip(_BLANK)
        if self._skipping is not None:
            skipped, self._skipping = self._skipping, None
            yield skipped.event()
        elif rest and not self._broken:
            self._buffer.clear()
            whole = self.framing is not Framing.HEADERS
            yield Frame(body=rest) if whole else Broken(reason="the stream ended inside a message")

    def _next(self) -> Event | None:
        if self._skipping is not None:
            return self._skip(self._skipping)
        if self.framing is None:
            self._detect()
        if self.framing is Framing.HEADERS:
            return self._next_with_headers()
        return self._next_line() if self.framing is Framing.LINES else None

    def _detect(self) -> None:
        start = bytes(self._buffer[: HEADER_LIMIT * 2]).lstrip(_BLANK)
        if not start:
            self._buffer.clear()
            return
        known = start[: len(_HEADER_START)].lower()
        if known == _HEADER_START:
            self.framing = Framing.HEADERS
        elif not _HEADER_START.startswith(known):
            self.framing = Framing.LINES

    def _next_line(self) -> Event | None:
        while (end := self._buffer.find(b"\n", self._scanned)) >= 0:
            line = self._copy(0, end).strip(_BLANK)
            del self._buffer[: end + 1]
            self._scanned = 0
            if len(line) > self._limit:
                return _Skipped.of(line).event()
            if line:
                return Frame(body=line)
        self._scanned = len(self._buffer)
        if self._scanned > self._limit:
            self._skipping = _Skipped.of(self._buffer)
            self._buffer = bytearray()
            self._scanned = 0
        return None

    def _next_with_headers(self) -> Event | None:
        found = _END_OF_HEADERS.search(self._buffer, 0, HEADER_LIMIT + 4)
        if found is None:
            too_long = len(self._buffer) > HEADER_LIMIT
            return self._break("the headers are too long") if too_long else None
        length = content_length(bytes(self._buffer[: found.start()]).lstrip(_BLANK))
        if isinstance(length, str):
            return self._break(length)
        if length > self._limit:
            del self._buffer[: found.end()]
            self._skipping = _Skipped(remaining=length)
            return self._skip(self._skipping)
        if len(self._buffer) < found.end() + length:
            return None
        body = self._copy(found.end(), found.end() + length)
        del self._buffer[: found.end() + length]
        return Frame(body=body)

    def _copy(self, start: int, end: int) -> bytes:
        with memoryview(self._buffer) as view:
            return bytes(view[start:end])

    def _skip(self, skipped: "_Skipped") -> Event | None:
        used = skipped.take(self._buffer)
        del self._buffer[:used]
        if not skipped.done:
            return None
        self._skipping = None
        return skipped.event()

    def _break(self, reason: str) -> Broken:
        self._broken = True
        self._buffer.clear()
        return Broken(reason=reason)


def content_length(headers: bytes) -> int | str:
    """Read the one `Content-Length`, or say what is wrong with the headers."""
    lengths: set[bytes] = set()
    for line in headers.splitlines():
        name, colon, value = line.partition(b":")
        if not colon or not re.fullmatch(rb"[A-Za-z0-9-]+", name):
            return "a header line is not `Name: value`"
        if name.lower() == b"content-length":
            lengths.add(value.strip())
    if len(lengths) != 1:
        return "there must be exactly one Content-Length"
    (text,) = lengths
    if not re.fullmatch(rb"[0-9]{1,13}", text) or int(text) > LONGEST_SKIP:
        return "Content-Length must be a number of bytes"
    return int(text)


class _Skipped:
    """A message too large to keep: counts it, and keeps its two ends."""

    def __init__(self, remaining: int | None = None) -> None:
        self._remaining = remaining
        self._size = 0
        self._head = b""
        self._tail = b""
        self.done = remaining == 0

    @classmethod
    def of(cls, start: bytes | bytearray) -> "_Skipped":
        skipped = cls()
        skipped._keep(start)
        return skipped

    def take(self, buffer: bytearray) -> int:
        """Swallow what belongs to the message; tell how many bytes that was."""
        if self._remaining is None:
            end = buffer.find(b"\n")
            self.done = end >= 0
            used = end + 1 if self.done else len(buffer)
        else:
            used = min(self._remaining, len(buffer))
            self._remaining -= used
            self.done = self._remaining == 0
        self._keep(buffer if used == len(buffer) else buffer[:used])
        return used

    def event(self) -> Oversized:
        return Oversized(size=self._size, head=self._head, tail=self._tail.strip(_BLANK))

    def _keep(self, data: bytes | bytearray) -> None:
        self._size += len(data)
        self._head += bytes(data[: max(0, HEAD_KEPT - len(self._head))])
        self._tail = (self._tail + bytes(data[-TAIL_KEPT:]))[-TAIL_KEPT:]
