"""One connection that asks one thing at a time and keeps the time of every answer."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import msgspec

from scripts.benchmarks.traffic.ledger import Ledger

LONGEST_LINE = 1 << 24
PATIENCE_SECONDS = 120


class RefusedError(Exception):
    """The daemon answered with an error; the ledger has it."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.code: str = error["data"]["code"]
        self.retryable: bool = error["data"]["retryable"]


class Line:
    """A client's side of one connection."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, ledger: Ledger
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._ledger = ledger
        self._number = 0

    async def ask(self, channel: str, **payload: Any) -> Any:
        """Call a channel; RefusedError if the answer is an error."""
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": channel, "params": payload}
        self._ledger.sent += 1
        began = time.perf_counter()
        self._writer.write(msgspec.json.encode(message) + b"\n")
        reply = await asyncio.wait_for(self._reply(), PATIENCE_SECONDS)
        if "error" in reply:
            refused = RefusedError(reply["error"])
            self._ledger.turned_away(channel, refused.code)
            raise refused
        self._ledger.answered(channel, 1000 * (time.perf_counter() - began))
        return reply["result"]

    async def _reply(self) -> dict[str, Any]:
        while True:
            message: dict[str, Any] = msgspec.json.decode(await self._reader.readuntil(b"\n"))
            if "method" in message:
                continue
            if message.get("id") == self._number:
                return message
            self._ledger.stray += 1


@contextlib.asynccontextmanager
async def dial(socket: Path, ledger: Ledger) -> AsyncGenerator[Line]:
    """Connect for the length of the block; a full queue of connections is tried again."""
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
