"""The speed of the wire, beside two peers and the least that is possible, all in one run.

The same client sends the same echo to every server, in the same framing (and to us in lines as
well): pipelined for requests per second, one at a time for latency. Servers run in processes of
their own. Peers are installed here, never by us.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import psutil

from scripts.benchmarks.wire import servers
from scripts.benchmarks.wire.client import Line, Message, PipeLine, latencies, throughput
from scripts.benchmarks.wire.servers import Peer, connect, start
from scripts.environment import ensure_node

SIZES = {"200 B": 200, "300 KB": 300_000}
ROUNDS = 3
PATIENCE = 20
MIB = 1024 * 1024


async def measure_socket(peer: Peer, home: str, clients: int) -> list[list[str]]:
    """Measure a fresh server with so many clients."""
    process = start(peer.command(home), peer.environment, peer.address)
    try:
        lines = [await connect(peer) for _ in range(clients)]
        return [await _row(peer, f"socket, {clients}", label, lines) for label in SIZES]
    finally:
        process.kill()
        process.wait(10)


async def measure_stdio(peer: Peer, home: str) -> list[list[str]]:
    """Measure a fresh server over its standard streams."""
    process = await asyncio.create_subprocess_exec(
        *peer.command(home),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=servers.ROOT,
        env=os.environ | peer.environment,
    )
    line = PipeLine.over(process, peer.headers)
    try:
        return [await _row(peer, "stdio, 1", label, [line]) for label in SIZES]
    finally:
        line.reading.cancel()
        process.kill()
        await process.wait()


async def _row(peer: Peer, how: str, label: str, lines: list[Line]) -> list[str]:
    size = SIZES[label]
    message = Message(("春江潮水连海平。" * (size // 24 + 1))[: size // 3], peer.headers)
    try:
        async with asyncio.timeout(PATIENCE):
            await latencies(lines[0], message, 10)
            p50, p99 = await latencies(lines[0], message, 1000 if size < 1000 else 100)
            rates = [await throughput(lines, message) for _ in range(ROUNDS)]
    except TimeoutError:
        return [how, label, peer.name, "no answer", "–", "–"]
    print(f"{how}, {label}, {peer.name}: {max(rates):.0f}/s", file=sys.stderr)
    return [how, label, peer.name, f"{max(rates):.0f}", f"{p50:.3f}", f"{p99:.3f}"]


async def wire_table(data: Path) -> None:
    """Measure every server in every way."""
    ensure_node()
    pygls = servers.install_pygls()
    rows: list[list[str]] = []
    for number, peer in enumerate(servers.by_socket(data, pygls)):
        for clients in (1, 8):
            rows += await measure_socket(peer, str(data / f"socket-{number}-{clients}"), clients)
    for number, peer in enumerate(servers.by_stdio(pygls)):
        rows += await measure_stdio(peer, str(data / f"stdio-{number}"))
    ours = {(r[0], r[1]): float(r[3]) for r in rows if r[2] == "creonowd"}
    print("| transport, clients | reply | server | requests/s | creonowd ÷ it | p50 ms | p99 ms |")
    print("|---|---|---|---|---|---|---|")
    for how, label, name, rate, p50, p99 in sorted(rows, key=lambda r: (r[0], r[1] != "200 B")):
        ratio = f"{ours[how, label] / float(rate):.2f}" if rate.isdigit() else "–"
        print(f"| {how} | {label} | {name} | {rate} | {ratio} | {p50} | {p99} |", flush=True)


def start_table(data: Path) -> None:
    """Spawn to first reply, beside importing what any such daemon imports."""
    python = servers.install_ourselves()
    base = [python, "-c", "import anyio._backends._asyncio, msgspec, structlog"]
    serve = [python, *servers.COMMAND, "--user-data", str(data / "start")]
    ping = b'{"jsonrpc":"2.0","id":1,"method":"app:ping"}\n'
    imports: list[float] = []
    replies: list[float] = []
    for _ in range(15):
        imports.append(_timed(base, b""))
        replies.append(_timed(serve, ping))
    ratio = statistics.median(replies) / statistics.median(imports)
    print(
        f"\n| start | ms |\n|---|---|\n| imports alone | {statistics.median(imports) * 1000:.0f} |"
    )
    print(f"| spawn to first reply | {statistics.median(replies) * 1000:.0f} |")
    print(f"| ratio (goal ≤ 1.5) | {ratio:.2f} |")


def _timed(command: list[str], first: bytes) -> float:
    started = time.perf_counter()
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd=servers.BENCH) as process:
        stdin, stdout = cast("Any", process.stdin), cast("Any", process.stdout)
        if first:
            stdin.write(first)
            stdin.flush()
            stdout.readline()
            taken = time.perf_counter() - started
            stdin.close()
            process.wait()
            return taken
        process.wait()
        return time.perf_counter() - started


async def memory_table(data: Path) -> None:
    """Idle memory, and what garbage and a client that never reads add to it."""
    socket = str(data / "m.sock")
    python = servers.install_ourselves()
    command = [python, *servers.COMMAND, "--socket", socket, "--user-data", str(data / "m")]
    process = start(command, servers.US)
    await _watch_memory(socket, psutil.Process(process.pid))
    process.terminate()
    process.wait(10)


async def _watch_memory(socket: str, watched: psutil.Process) -> None:
    peer = Peer("creonowd", lambda _: [], headers=False, address=socket)
    await latencies(await connect(peer), Message("x" * 100, headers=False), 1000)
    idle = watched.memory_info().rss / MIB
    await _garbage(socket, 200)
    after_garbage = watched.memory_info().rss / MIB
    await _never_reads(socket)
    after_mute = watched.memory_info().rss / MIB
    print("\n| memory | MB |\n|---|---|")
    print(f"| idle, no tokenizer (goal ≤ 45) | {idle:.0f} |")
    print(f"| after 200 MB of unterminated garbage (goal ≤ +20) | +{after_garbage - idle:.0f} |")
    print(f"| with a client that never reads (goal ≤ +20) | +{after_mute - idle:.0f} |")


async def _garbage(socket: str, megabytes: int) -> None:
    _, writer = await asyncio.open_unix_connection(socket)
    for _ in range(megabytes):
        writer.write(b"x" * MIB)
        await writer.drain()
    writer.close()


async def _never_reads(socket: str) -> None:
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_unix_connection(asyncio.Protocol, socket)
    transport.pause_reading()
    message = Message("x" * 1000, headers=False)
    for _ in range(20_000):
        transport.write(message.bytes())
        if transport.get_write_buffer_size() > MIB:
            await asyncio.sleep(0.005)
        if transport.get_write_buffer_size() > 16 * MIB:
            break
    await asyncio.sleep(0.5)
    transport.abort()


def main(argv: list[str]) -> None:
    """Print the tables."""
    parts: dict[str, Callable[[Path], Awaitable[None] | None]] = {
        "wire": wire_table,
        "start": start_table,
        "memory": memory_table,
    }
    with tempfile.TemporaryDirectory() as folder:
        for name in argv or list(parts):
            result = parts[name](Path(folder))
            if result is not None:
                asyncio.run(cast("Any", result))
