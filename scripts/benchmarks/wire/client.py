"""The lightest client: the same bytes to every server, and nothing read but where replies end.

Requests are made beforehand and go out as they lie; replies are counted where they arrive. No
event loop, so that on few cores the servers are measured and not this.
"""

import os
import selectors
import time
from collections.abc import Sequence

import msgspec

DEPTH = 32
SENT_TOGETHER = 64 * 1024
READ_AT_ONCE = 1 << 20
_FIRST = 1_000_000


def requests(value: str, headers: bool) -> list[bytes]:  # noqa: FBT001
    """Make echo requests in one framing: enough that no number is used twice at a time."""
    return [_request(value, headers, _FIRST + number) for number in range(DEPTH * 2)]


def _request(value: str, headers: bool, number: int) -> bytes:  # noqa: FBT001
    body = msgspec.json.encode(
        {"jsonrpc": "2.0", "id": number, "method": "e2e:echo", "params": {"value": value}}
    )
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body) if headers else body + b"\n"


class Line:
    """Two descriptors that do not block: requests go into one, replies are counted from the other."""

    def __init__(self, into: int, out_of: int, headers: bool) -> None:  # noqa: FBT001
        os.set_blocking(into, False)
        os.set_blocking(out_of, False)
        self.into = into
        self.out_of = out_of
        self.answered = 0
        self.unsent = 0
        self._headers = headers
        self._requests: Sequence[bytes] = ()
        self._next = 0
        self._offset = 0
        self._buffer = bytearray(READ_AT_ONCE)
        self._head = b""
        self._left = 0

    def load(self, made: Sequence[bytes]) -> None:
        """Send these from now on, one after the other and round again."""
        self._requests = made
        self._next = 0

    def send(self) -> bool:
        """Send what is to be sent; False if the server does not take all of it now."""
        while self.unsent:
            try:
                self._sent(os.writev(self.into, self._batch()))
            except BlockingIOError:
                return False
        return True

    def _batch(self) -> list[bytes | memoryview]:
        ring, at = self._requests, self._next
        batch: list[bytes | memoryview] = [memoryview(ring[at])[self._offset :]]
        together = min(self.unsent, max(1, SENT_TOGETHER // len(ring[at])))
        batch += [ring[(at + step) % len(ring)] for step in range(1, together)]
        return batch

    def _sent(self, size: int) -> None:
        size += self._offset
        while size >= (length := len(self._requests[self._next])):
            size -= length
            self._next = (self._next + 1) % len(self._requests)
            self.unsent -= 1
            if not self.unsent:
                break
        self._offset = size

    def receive(self) -> int:
        """Read once; how many replies ended in it."""
        try:
            size = os.readv(self.out_of, [self._buffer])
        except BlockingIOError:
            return 0
        if not size:
            raise EOFError
        found = self._skip(size) if self._headers else self._buffer.count(b"\n", 0, size)
        self.answered += found
        return found

    def _skip(self, size: int) -> int:
        at = found = 0
        while at < size:
            if self._left:
                step = min(self._left, size - at)
                self._left -= step
                at += step
                found += not self._left
                continue
            end = self._buffer.find(b"\r\n\r\n", at, size) if not self._head else -1
            if end < 0:
                at = self._piecewise(at, size)
            else:
                self._left = _length(self._buffer[at:end])
                at = end + 4
        return found

    def _piecewise(self, at: int, size: int) -> int:
        before = len(self._head)
        self._head += bytes(self._buffer[at : min(at + 200, size)])
        end = self._head.find(b"\r\n\r\n")
        if end < 0:
            return at + len(self._head) - before
        self._left = _length(self._head[:end])
        self._head = b""
        return at + end + 4 - before

    def close(self) -> None:
        """Let go of both."""
        os.close(self.into)
        os.close(self.out_of)


def _length(headers: bytes | bytearray) -> int:
    return int(headers.lower().split(b"content-length:")[1].split(b"\r\n")[0])


class Exchange:
    """Requests and replies on some lines, until as many came back as went out."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = lines
        self._selector = selectors.DefaultSelector()
        self._blocked: set[int] = set()

    def run(self, depth: int, seconds: float, patience: float) -> tuple[int, float]:
        """Keep `depth` in flight on each line for so long; replies, and the time until the last."""
        before = sum(line.answered for line in self._lines)
        started = time.perf_counter()
        for line in self._lines:
            self._selector.register(line.out_of, selectors.EVENT_READ, line)
            line.unsent += depth
            self._send(line)
        open_requests = depth * len(self._lines)
        while open_requests:
            open_requests -= self._turn(started + seconds, patience)
        taken = time.perf_counter() - started
        for line in self._lines:
            self._selector.unregister(line.out_of)
        return sum(line.answered for line in self._lines) - before, taken

    def _turn(self, until: float, patience: float) -> int:
        """Serve every line that is ready; how many requests are fewer in flight then."""
        ready = self._selector.select(patience)
        if not ready:
            raise TimeoutError
        fewer = 0
        feeding = time.perf_counter() < until
        for key, _ in ready:
            found = key.data.receive() if key.fd == key.data.out_of else 0
            key.data.unsent += found if feeding else 0
            fewer += 0 if feeding else found
            self._send(key.data)
        return fewer

    def _send(self, line: Line) -> None:
        blocked = not line.send()
        if blocked and line.into not in self._blocked:
            self._selector.register(line.into, selectors.EVENT_WRITE, line)
            self._blocked.add(line.into)
        elif not blocked and line.into in self._blocked:
            self._selector.unregister(line.into)
            self._blocked.remove(line.into)


def latencies(line: Line, count: int, patience: float) -> list[float]:
    """Milliseconds of one request at a time."""
    exchange = Exchange([line])
    return [exchange.run(1, 0.0, patience)[1] * 1000 for _ in range(count)]
