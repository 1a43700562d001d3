"""Where one message ends and the next begins: lines, or `Content-Length` headers.

A splitter never holds more than one message and one chunk.
"""

import re
from collections.abc import Iterator
from enum import Enum

from creonowd.model import Model

HEADER_LIMIT = 8 * 1024
LARGE = 64 * 1024
LONGEST_SKIP = 10**12
HEAD_BYTES = 4 * 1024
TAIL_BYTES = 512
BLANK = b" \t\r\n\xef\xbb\xbf"
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


class OversizedMessage(Model):
    """A message that was skipped; its two ends are kept to find its id in them."""

    size: int
    head: bytes
    tail: bytes


class Unreadable(Model):
    """Bytes after which no message boundary can be trusted any more."""

    reason: str


Event = Frame | OversizedMessage | Unreadable


def add_framing(framing: Framing, body: bytearray, room: int = 0) -> bytearray:
    """Add the framing to an outgoing message, in place; its first `room` bytes are free for that."""
    head = b"Content-Length: %d\r\n\r\n" % (len(body) - room) if framing is Framing.HEADERS else b""
    if len(head) > room:
        body[:room] = head
    else:
        body[room - len(head) : room] = head
        del body[: room - len(head)]
    if framing is Framing.LINES:
        body += b"\n"
    return body


class PartialMessage:
    """A message of known length of which a part has arrived; every byte is copied once."""

    def __init__(self, begun: bytearray, start: int, length: int) -> None:
        self.body = bytearray(length)
        self.size = len(begun) - start
        with memoryview(begun) as view:
            self.body[: self.size] = view[start:]

    @property
    def is_complete(self) -> bool:
        """Whether all of it is there."""
        return self.size == len(self.body)

    def room(self) -> memoryview | None:
        """Return the memory of the missing bytes."""
        return None if self.is_complete else memoryview(self.body)[self.size :]

    def take(self, data: bytes | memoryview) -> int:
        """Copy the bytes that belong to the message, and return their number."""
        used = min(len(self.body) - self.size, len(data))
        with memoryview(data) as view:
            self.body[self.size : self.size + used] = view[:used]
        self.size += used
        return used


class SkippedMessage:
    """A message too large to keep: only its size and its two ends are."""

    def __init__(self, remaining: int | None = None) -> None:
        self._remaining = remaining
        self._size = 0
        self._head = b""
        self._tail = b""
        self.done = remaining == 0

    @classmethod
    def of(cls, start: bytes | bytearray) -> "SkippedMessage":
        """Begin with the first bytes of a message that has no stated length."""
        skip = cls()
        skip._keep(start)
        return skip

    def take(self, buffer: bytearray) -> int:
        """Count the bytes that belong to the message, and return their number."""
        if self._remaining is None:
            end = buffer.find(b"\n")
            self.done = end >= 0
            ours = end if self.done else len(buffer)
            used = ours + 1 if self.done else ours
        else:
            used = ours = min(self._remaining, len(buffer))
            self._remaining -= used
            self.done = self._remaining == 0
        self._keep(buffer if ours == len(buffer) else buffer[:ours])
        return used

    def event(self) -> OversizedMessage:
        """Return the event for the skipped message; its size is the one it stated, if any."""
        size = self._size + (self._remaining or 0)
        return OversizedMessage(size=size, head=self._head, tail=self._tail.strip(BLANK))

    def _keep(self, data: bytes | bytearray) -> None:
        self._size += len(data)
        self._head += bytes(data[: max(0, HEAD_BYTES - len(self._head))])
        self._tail = (self._tail + bytes(data[-TAIL_BYTES:]))[-TAIL_BYTES:]


class Splitter:
    """Cut a stream of bytes into messages, in the framing of its first bytes."""

    def __init__(self, limit: int) -> None:
        self.framing: Framing | None = None
        self.limit = limit
        self._buffer = bytearray()
        self._scanned = 0
        self._skipped: SkippedMessage | None = None
        self._partial: PartialMessage | None = None
        self._stopped = False

    def feed(self, data: bytes | memoryview) -> None:
        """Add bytes that have arrived; `events` then yields the messages."""
        if self._stopped:
            return
        used = 0 if self._partial is None else self._partial.take(data)
        if used < len(data):
            self._buffer += data[used:] if used else data

    @property
    def begun_bytes(self) -> int:
        """How much memory the message takes that has begun, as far as one knows."""
        return len(self._buffer) if self._partial is None else len(self._partial.body)

    def get_buffer(self) -> memoryview | None:
        """Return the memory for the rest of a large message, or None to use `feed`."""
        return None if self._partial is None else self._partial.room()

    def buffer_updated(self, size: int) -> None:
        """Count `size` bytes that were put into that memory."""
        if self._partial is not None:
            self._partial.size += size

    def events(self) -> Iterator[Event]:
        """Yield every complete message; the caller may stop early and call it again."""
        while not self._stopped:
            event = self._next()
            if event is None:
                return
            yield event

    def finish(self) -> Iterator[Event]:
        """Yield what the end of the stream completes: a last line, or that a message was cut."""
        yield from self.events()
        rest = bytes(self._buffer).strip(BLANK)
        cut = self._partial is not None or self.framing is Framing.HEADERS
        if self._skipped is not None:
            skip, self._skipped = self._skipped, None
            yield skip.event()
        elif (rest or self._partial is not None) and not self._stopped:
            self._buffer.clear()
            self._partial = None
            yield (
                Unreadable(reason="the stream ended inside a message") if cut else Frame(body=rest)
            )

    def _next(self) -> Event | None:
        if self._skipped is not None:
            return self._skip(self._skipped)
        if self._partial is not None:
            return self._next_partial(self._partial)
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
        start = start[: len(_HEADER_START)].lower()
        if start == _HEADER_START:
            self.framing = Framing.HEADERS
        elif not _HEADER_START.startswith(start):
            self.framing = Framing.LINES

    def _next_line(self) -> Event | None:
        while (end := self._buffer.find(b"\n", self._scanned)) >= 0:
            line = self._take(0, end, end + 1)
            self._scanned = 0
            if end > self.limit:
                return SkippedMessage.of(line).event()
            if body := _strip(line):
                return Frame(body=body)
        self._scanned = len(self._buffer)
        if self._scanned > self.limit:
            self._skipped = SkippedMessage.of(self._buffer)
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
            return self._fail("the headers are too long") if too_long else None
        length = content_length(bytes(self._buffer[: found.start()]))
        return (
            self._fail(length) if isinstance(length, str) else self._next_body(found.end(), length)
        )

    def _next_body(self, start: int, length: int) -> Event | None:
        if length > LONGEST_SKIP:
            return self._fail(NOT_A_LENGTH)
        if length > self.limit:
            del self._buffer[:start]
            self._skipped = SkippedMessage(remaining=length)
            return self._skip(self._skipped)
        if len(self._buffer) < start + length:
            self._partial = PartialMessage(self._buffer, start, length)
            self._buffer = bytearray()
            return None
        return Frame(body=self._take(start, start + length, start + length))

    def _next_partial(self, partial: PartialMessage) -> Event | None:
        if not partial.is_complete:
            return None
        self._partial = None
        return Frame(body=partial.body)

    def _take(self, start: int, end: int, after: int) -> bytes | bytearray:
        """Cut a message out of the buffer; a large one keeps the buffer, and the rest is copied."""
        if end - start < LARGE:
            with memoryview(self._buffer) as view:
                body = bytes(view[start:end])
            del self._buffer[:after]
            return body
        whole, self._buffer = self._buffer, self._buffer[after:]
        del whole[end:]
        del whole[:start]
        return whole

    def _skip(self, skip: SkippedMessage) -> Event | None:
        used = skip.take(self._buffer)
        del self._buffer[:used]
        if not skip.done:
            return None
        self._skipped = None
        return skip.event()

    def stop(self) -> None:
        """Ignore all further bytes, and drop those that were not read yet."""
        self._stopped = True
        self._buffer.clear()

    def _fail(self, reason: str) -> Unreadable:
        self.stop()
        return Unreadable(reason=reason)


def _strip(line: bytes | bytearray) -> bytes | bytearray:
    clean = line and line[0] not in BLANK and line[-1] not in BLANK
    return line if clean else line.strip(BLANK)


def content_length(headers: bytes) -> int | str:
    """Return the one `Content-Length`, or the reason why the headers are not valid."""
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
