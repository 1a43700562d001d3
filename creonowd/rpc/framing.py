"""Where one message ends and the next begins: lines, or `Content-Length` headers.

Knows bytes; knows no JSON. Never holds more than one message and one chunk.
"""

import re
from collections.abc import Iterator
from enum import Enum

from creonowd.model import Model

HEAD_KEPT = 4 * 1024
TAIL_KEPT = 512
BLANK = b" \t\r\n\xef\xbb\xbf"


class Oversized(Model):
    """A message that was skipped; its two ends are kept so that an id may be found in them."""

    size: int
    head: bytes
    tail: bytes


class Filling:
    """A message of known length that has begun: what arrives is copied once, to where it stays."""

    def __init__(self, begun: bytearray, start: int, length: int) -> None:
        self.body = bytearray(length)
        self.size = len(begun) - start
        with memoryview(begun) as view:
            self.body[: self.size] = view[start:]

    @property
    def done(self) -> bool:
        """Whether all of it is there."""
        return self.size == len(self.body)

    def room(self) -> memoryview | None:
        """Offer the place of what is missing."""
        return None if self.done else memoryview(self.body)[self.size :]

    def take(self, data: bytes | memoryview) -> int:
        """Copy what belongs to the message; tell how many bytes that was."""
        used = min(len(self.body) - self.size, len(data))
        with memoryview(data) as view:
            self.body[self.size : self.size + used] = view[:used]
        self.size += used
        return used


class Skipped:
    """A message too large to keep: counts it, and keeps its two ends."""

    def __init__(self, remaining: int | None = None) -> None:
        self._remaining = remaining
        self._size = 0
        self._head = b""
        self._tail = b""
        self.done = remaining == 0

    @classmethod
    def of(cls, start: bytes | bytearray) -> "Skipped":
        """Begin with what has arrived of a message that has no stated length."""
        skipped = cls()
        skipped._keep(start)
        return skipped

    def take(self, buffer: bytearray) -> int:
        """Swallow what belongs to the message; tell how many bytes that was."""
        if self._remaining is None:
            end = buffer.find(b"\n")
            self.done = end >= 0
            ours = end if self.done else len(buffer)
            used = ours + self.done
        else:
            used = ours = min(self._remaining, len(buffer))
            self._remaining -= used
            self.done = self._remaining == 0
        self._keep(buffer if ours == len(buffer) else buffer[:ours])
        return used

    def event(self) -> Oversized:
        """Tell what was skipped."""
        return Oversized(size=self._size, head=self._head, tail=self._tail.strip(BLANK))

    def _keep(self, data: bytes | bytearray) -> None:
        self._size += len(data)
        self._head += bytes(data[: max(0, HEAD_KEPT - len(self._head))])
        self._tail = (self._tail + bytes(data[-TAIL_KEPT:]))[-TAIL_KEPT:]


HEADER_LIMIT = 8 * 1024
LARGE = 64 * 1024
LONGEST_SKIP = 10**12
NOT_A_LENGTH = "Content-Length must be a number of bytes"
_HEADER_START = b"content-"
_END_OF_HEADERS = re.compile(rb"\r?\n\r?\n")
_USUAL_HEADER = re.compile(rb"Content-Length: ([0-9]{1,13})\r\n\r\n")


class Framing(Enum):
    """How a connection marks the ends of its messages."""

    LINES = "lines"
    HEADERS = "headers"
    WHOLE = "whole"


class Frame(Model):
    """The bytes of one message."""

    body: bytes | bytearray


class Broken(Model):
    """Bytes after which no message boundary can be trusted any more."""

    reason: str


Event = Frame | Oversized | Broken


def enclose(framing: Framing, body: bytearray, room: int = 0) -> bytearray:
    """Mark the ends of an outgoing message, in place; its first `room` bytes are there for that."""
    head = b"Content-Length: %d\r\n\r\n" % (len(body) - room) if framing is Framing.HEADERS else b""
    if len(head) > room:
        body[:room] = head
    else:
        body[room - len(head) : room] = head
        del body[: room - len(head)]
    if framing is Framing.LINES:
        body += b"\n"
    return body


class Splitter:
    """Cut a stream of bytes into messages, in the framing of its first bytes."""

    def __init__(self, limit: int) -> None:
        self.framing: Framing | None = None
        self.limit = limit
        self._buffer = bytearray()
        self._scanned = 0
        self._skipping: Skipped | None = None
        self._filling: Filling | None = None
        self._broken = False

    def feed(self, data: bytes | memoryview) -> None:
        """Take in what has arrived; ask `events` what came of it."""
        if self._broken:
            return
        used = 0 if self._filling is None else self._filling.take(data)
        if used < len(data):
            self._buffer += data[used:] if used else data

    def room(self) -> memoryview | None:
        """Offer the place where the rest of a large message belongs; say `filled` what came."""
        return None if self._filling is None else self._filling.room()

    def filled(self, size: int) -> None:
        """Note that so many bytes were put into the room."""
        if self._filling is not None:
            self._filling.size += size

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
        rest = bytes(self._buffer).strip(BLANK)
        cut = self._filling is not None or self.framing is Framing.HEADERS
        if self._skipping is not None:
            skipped, self._skipping = self._skipping, None
            yield skipped.event()
        elif (rest or self._filling is not None) and not self._broken:
            self._buffer.clear()
            self._filling = None
            yield Broken(reason="the stream ended inside a message") if cut else Frame(body=rest)

    def _next(self) -> Event | None:
        if self._skipping is not None:
            return self._skip(self._skipping)
        if self._filling is not None:
            return self._filled(self._filling)
        if self.framing is None:
            self._detect()
        if self.framing is Framing.HEADERS:
            return self._next_with_headers()
        return self._next_line() if self.framing is Framing.LINES else None

    def _detect(self) -> None:
        start = bytes(self._buffer[: HEADER_LIMIT * 2]).lstrip(BLANK)
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
            line = self._take(0, end, end + 1)
            self._scanned = 0
            if end > self.limit:
                return Skipped.of(line).event()
            if body := _stripped(line):
                return Frame(body=body)
        self._scanned = len(self._buffer)
        if self._scanned > self.limit:
            self._skipping = Skipped.of(self._buffer)
            self._buffer = bytearray()
            self._scanned = 0
        return None

    def _next_with_headers(self) -> Event | None:
        usual = _USUAL_HEADER.match(self._buffer)
        if usual is not None:
            return self._next_body(usual.end(), int(usual[1]))
        self._buffer = self._buffer.lstrip(BLANK)
        found = _END_OF_HEADERS.search(self._buffer, 0, HEADER_LIMIT + 4)
        if found is None:
            too_long = len(self._buffer) > HEADER_LIMIT
            return self._break("the headers are too long") if too_long else None
        length = content_length(bytes(self._buffer[: found.start()]))
        return (
            self._break(length) if isinstance(length, str) else self._next_body(found.end(), length)
        )

    def _next_body(self, start: int, length: int) -> Event | None:
        if length > LONGEST_SKIP:
            return self._break(NOT_A_LENGTH)
        if length > self.limit:
            del self._buffer[:start]
            self._skipping = Skipped(remaining=length)
            return self._skip(self._skipping)
        if len(self._buffer) < start + length:
            self._filling = Filling(self._buffer, start, length)
            self._buffer = bytearray()
            return None
        return Frame(body=self._take(start, start + length, start + length))

    def _filled(self, filling: Filling) -> Event | None:
        if not filling.done:
            return None
        self._filling = None
        return Frame(body=filling.body)

    def _take(self, start: int, end: int, after: int) -> bytes | bytearray:
        """Cut a message out of the buffer; a large one keeps it, and what follows is copied."""
        if end - start < LARGE:
            with memoryview(self._buffer) as view:
                body = bytes(view[start:end])
            del self._buffer[:after]
            return body
        whole, self._buffer = self._buffer, self._buffer[after:]
        del whole[end:]
        del whole[:start]
        return whole

    def _skip(self, skipped: Skipped) -> Event | None:
        used = skipped.take(self._buffer)
        del self._buffer[:used]
        if not skipped.done:
            return None
        self._skipping = None
        return skipped.event()

    def stop(self) -> None:
        """Take in nothing more, and forget what was not read yet."""
        self._broken = True
        self._buffer.clear()

    def _break(self, reason: str) -> Broken:
        self.stop()
        return Broken(reason=reason)


def _stripped(line: bytes | bytearray) -> bytes | bytearray:
    framed = line and line[0] not in BLANK and line[-1] not in BLANK
    return line if framed else line.strip(BLANK)


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
    return int(text) if re.fullmatch(rb"[0-9]{1,13}", text) else NOT_A_LENGTH
