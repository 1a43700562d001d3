"""Five hundred assemblies at once through the socket of a real daemon."""

import contextlib
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import msgspec

CONNECTIONS = 4
DOCUMENTS = 125
EACH = 4


async def crowd(socket: Path, payloads: list[dict[str, Any]]) -> tuple[list[float], list[Any]]:
    """Send all requests at once over a few connections; give their latencies in ms and replies."""
    latencies: list[float] = []
    replies: list[Any] = []
    groups = [payloads[n::CONNECTIONS] for n in range(CONNECTIONS)]

    async def talk(group: list[dict[str, Any]]) -> None:
        async with await anyio.connect_unix(socket) as stream:
            started = time.perf_counter()
            await stream.send(b"".join(_framed(n, each) for n, each in enumerate(group)))
            buffer = b""
            waiting = len(group)
            while waiting:
                buffer += await stream.receive(1 << 20)
                *lines, buffer = buffer.split(b"\n")
                for line in lines:
                    latencies.append(1000 * (time.perf_counter() - started))
                    replies.append(msgspec.json.decode(line))
                    waiting -= 1

    async with anyio.create_task_group() as group:
        for each in groups:
            group.start_soon(talk, each)
    return latencies, replies


@contextlib.asynccontextmanager
async def daemon(python: str, user_data: Path) -> AsyncGenerator[Path]:
    """Run a daemon and give its socket."""
    command = [
        python,
        "-m",
        "creonowd",
        "serve",
        "--stdio",
        "--user-data",
        str(user_data),
        "--debug",
    ]
    async with await anyio.open_process(command, stderr=None) as process:
        assert process.stdin is not None
        socket = user_data / "run" / "creonowd.sock"
        with anyio.fail_after(30):
            while not socket.exists():  # noqa: ASYNC110 - nobody tells when a file appears
                await anyio.sleep(0.01)
        yield socket
        await process.stdin.aclose()
        await process.wait()


async def ask(socket: Path, method: str, params: dict[str, Any]) -> Any:
    """Ask one thing over a connection of its own."""
    async with await anyio.connect_unix(socket) as stream:
        await stream.send(_framed(1, params, method))
        buffer = b""
        while b"\n" not in buffer:
            buffer += await stream.receive(1 << 20)
    reply = msgspec.json.decode(buffer.partition(b"\n")[0])
    return reply["result"]


def percentile(values: list[float], share: float) -> float:
    """Give a percentile of some values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _framed(number: int, params: dict[str, Any], method: str = "context:assemble") -> bytes:
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return msgspec.json.encode(message) + b"\n"
