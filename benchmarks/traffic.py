"""Requests to a real daemon over its socket: one, or one client's sequence of them.

A `Ledger` keeps how each request ended, channel by channel.
"""

import asyncio
import contextlib
import sys
import time
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import msgspec

LONGEST_LINE = 1 << 24
PATIENCE_SECONDS = 120


def percentile(values: list[float], share: float) -> float:
    """Return a percentile of some values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def percentiles(values: list[float], digits: int = 0) -> str:
    """Write p50, p95 and p99 of some values."""
    return " / ".join(f"{percentile(values, share):.{digits}f}" for share in (0.5, 0.95, 0.99))


@contextlib.asynccontextmanager
async def daemon(user_data: Path) -> AsyncGenerator[Path]:
    """Run a daemon and yield the path of its socket."""
    command = [sys.executable, "-P", "-m", "creonowd", "serve", "--stdio"]
    options = ["--user-data", str(user_data), "--debug"]
    async with await anyio.open_process([*command, *options], stderr=None) as process:
        assert process.stdin is not None
        socket = user_data / "run" / "creonowd.sock"
        with anyio.fail_after(30):
            while not socket.exists():  # noqa: ASYNC110 - another process makes it
                await anyio.sleep(0.01)
        yield socket
        await process.stdin.aclose()
        await process.wait()


async def ask(socket: Path, method: str, params: dict[str, Any]) -> Any:
    """Send one request over a connection of its own and return its result."""
    async with await anyio.connect_unix(socket) as stream:
        await stream.send(_request(1, method, params))
        buffer = b""
        while b"\n" not in buffer:
            buffer += await stream.receive(1 << 20)
    reply = msgspec.json.decode(buffer.partition(b"\n")[0])
    return reply["result"]


def _request(number: int, method: str, params: dict[str, Any]) -> bytes:
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return msgspec.json.encode(message) + b"\n"


class Ledger:
    """Latencies and errors of many clients; every request ends in exactly one of them."""

    def __init__(self) -> None:
        self.sent = 0
        self.milliseconds: defaultdict[str, list[float]] = defaultdict(list)
        self.errors: Counter[str] = Counter()
        self.wrong: list[str] = []

    def expect(self, truth: object, what: str) -> None:
        """Note what is not as the daemon had acknowledged it."""
        if not truth:
            self.wrong.append(what)

    @property
    def results(self) -> int:
        """How many requests ended with a result."""
        return sum(map(len, self.milliseconds.values()))

    @property
    def unanswered(self) -> int:
        """How many requests never got any reply."""
        return self.sent - self.results - self.errors.total()


class RefusedError(Exception):
    """The daemon answered with an error; the ledger has it."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.code: str = error["data"]["code"]
        self.retryable: bool = error["data"]["retryable"]


class Line:
    """A client's side of one connection, with one request at a time."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, ledger: Ledger
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._ledger = ledger
        self._number = 0

    async def ask(self, channel: str, **payload: Any) -> Any:
        """Call a channel; RefusedError if the reply is an error."""
        self._number += 1
        self._ledger.sent += 1
        began = time.perf_counter()
        self._writer.write(_request(self._number, channel, payload))
        reply = await asyncio.wait_for(self._reply(), PATIENCE_SECONDS)
        if "error" in reply:
            refused = RefusedError(reply["error"])
            self._ledger.errors[f"{channel} {refused.code}"] += 1
            raise refused
        self._ledger.milliseconds[channel].append(1000 * (time.perf_counter() - began))
        return reply["result"]

    async def _reply(self) -> dict[str, Any]:
        """Return the reply to the last request; events and older replies are skipped."""
        while True:
            message: dict[str, Any] = msgspec.json.decode(await self._reader.readuntil(b"\n"))
            if "method" not in message and message.get("id") == self._number:
                return message


@contextlib.asynccontextmanager
async def connect(socket: Path, ledger: Ledger) -> AsyncGenerator[Line]:
    """Connect for the length of the block; try again while the queue of connections is full."""
    for wait in (0.05, 0.2, 1.0, 3.0, None):
        try:
            reader, writer = await asyncio.open_unix_connection(socket, limit=LONGEST_LINE)
            break
        except (BlockingIOError, ConnectionError):
            if wait is None:
                raise
            await asyncio.sleep(wait)
    else:
        raise AssertionError
    try:
        yield Line(reader, writer, ledger)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
