"""The lightest client: the same bytes to every server, and nothing read but where replies end."""

import asyncio
import time
from collections.abc import Callable
from typing import cast

import msgspec

SECONDS = 1.0
DEPTH = 32
_MARK = 9_999_999


class Message:
    """One echo request in one framing; only its number changes, so that sending costs little."""

    def __init__(self, value: str, headers: bool) -> None:  # noqa: FBT001
        body = msgspec.json.encode(
            {"jsonrpc": "2.0", "id": _MARK, "method": "e2e:echo", "params": {"value": value}}
        )
        head = b"Content-Length: %d\r\n\r\n" % len(body) if headers else b""
        self._start, self._end = (head + body).split(b"%d" % _MARK, 1)
        self._end += b"" if headers else b"\n"
        self._number = 1_000_000

    def bytes(self) -> bytes:
        """Make the next request."""
        self._number += 1
        return b"%s%d%s" % (self._start, self._number, self._end)


class Line(asyncio.Protocol):
    """Counts the replies; skips their bodies without copying them."""

    def __init__(self, headers: bool) -> None:  # noqa: FBT001
        self._headers = headers
        self._head = b""
        self._left = 0
        self.answered = 0
        self.on_reply: Callable[[], None] = lambda: None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way back."""
        self.transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        """Count the replies that end in these bytes."""
        if self._headers:
            self._skip(data)
        else:
            for _ in range(data.count(b"\n")):
                self._reply()

    def _skip(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            if self._left:
                step = min(self._left, len(data) - at)
                self._left -= step
                at += step
                if not self._left:
                    self._reply()
                continue
            end = data.find(b"\r\n\r\n", at) if not self._head else -1
            if end < 0:
                at = self._piecewise(data, at)
                continue
            self._left = _length(data[at:end])
            at = end + 4

    def _piecewise(self, data: bytes, at: int) -> int:
        before = len(self._head)
        self._head += data[at : at + 200]
        end = self._head.find(b"\r\n\r\n")
        if end < 0:
            return at + len(self._head) - before
        self._left = _length(self._head[:end])
        self._head = b""
        return at + end + 4 - before

    def _reply(self) -> None:
        self.answered += 1
        self.on_reply()


def _length(headers: bytes) -> int:
    return int(headers.lower().split(b"content-length:")[1].split(b"\r\n")[0])


class PipeLine(Line):
    """The same over the pipes of a child process."""

    reading: "asyncio.Task[None]"

    @classmethod
    def over(cls, process: asyncio.subprocess.Process, headers: bool) -> "PipeLine":  # noqa: FBT001
        """Speak to a child that was started with pipes."""
        line = cls(headers)
        line.connection_made(cast("asyncio.StreamWriter", process.stdin).transport)

        async def read_on() -> None:
            stdout = cast("asyncio.StreamReader", process.stdout)
            while data := await stdout.read(1 << 18):
                line.data_received(data)

        line.reading = asyncio.create_task(read_on())
        return line


async def throughput(lines: list[Line], message: Message) -> float:
    """Requests per second with a few always in flight on every line."""
    until = time.perf_counter() + SECONDS
    done = asyncio.Event()
    open_lines = len(lines)
    before = sum(line.answered for line in lines)

    def feeder(line: Line) -> Callable[[], None]:
        pending = DEPTH

        def on_reply() -> None:
            nonlocal pending, open_lines
            if time.perf_counter() < until:
                line.transport.write(message.bytes())
                return
            pending -= 1
            if not pending:
                open_lines -= 1
                if not open_lines:
                    done.set()

        return on_reply

    started = time.perf_counter()
    for line in lines:
        line.on_reply = feeder(line)
        for _ in range(DEPTH):
            line.transport.write(message.bytes())
    await done.wait()
    return (sum(line.answered for line in lines) - before) / (time.perf_counter() - started)


async def latencies(line: Line, message: Message, count: int) -> tuple[float, float]:
    """p50 and p99 in milliseconds of one request at a time."""
    taken: list[float] = []
    arrived = asyncio.Event()
    line.on_reply = arrived.set
    for _ in range(count):
        arrived.clear()
        started = time.perf_counter()
        line.transport.write(message.bytes())
        await arrived.wait()
        taken.append((time.perf_counter() - started) * 1000)
    taken.sort()
    return taken[len(taken) // 2], taken[int(len(taken) * 0.99)]
