"""The speed of the wire, beside two peers and the least that is possible, all in one run.

The same client sends the same echo to every server: pipelined for requests per second, one at a
time for latency. Servers run in processes of their own. Peers are installed here, never by us.
"""

import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import msgspec
import psutil

from scripts.environment import ensure_node

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / "scripts" / "benchmarks" / "peers"
BENCH = ROOT / ".bench"
SIZES = {"200 B": 200, "300 KB": 300_000}
SECONDS = 1.5
ROUNDS = 3
DEPTH = 32
PATIENCE = 30
MIB = 1024 * 1024


@dataclass
class Peer:
    """A server under measure: how it frames, and how it is reached."""

    name: str
    headers: bool
    command: Callable[[str], list[str]]
    address: str = ""
    environment: dict[str, str] = field(default_factory=dict[str, str])


class Line(asyncio.Protocol):
    """The lightest client: counts the replies, and does not look into them."""

    def __init__(self, headers: bool) -> None:  # noqa: FBT001
        self._headers = headers
        self._buffer = bytearray()
        self._wanted = -1
        self.answered = 0
        self.on_reply: Callable[[], None] = lambda: None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        if not self._headers:
            for _ in range(data.count(b"\n")):
                self._reply()
            return
        self._buffer += data
        while self._take():
            self._reply()

    def _take(self) -> bool:
        if self._wanted < 0:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return False
            text = bytes(self._buffer[:end]).lower()
            self._wanted = int(text.split(b"content-length:")[1].split(b"\r\n")[0])
            del self._buffer[: end + 4]
        if len(self._buffer) < self._wanted:
            return False
        del self._buffer[: self._wanted]
        self._wanted = -1
        return True

    def _reply(self) -> None:
        self.answered += 1
        self.on_reply()


def request(number: int, value: str, headers: bool) -> bytes:  # noqa: FBT001
    body = msgspec.json.encode(
        {"jsonrpc": "2.0", "id": number, "method": "e2e:echo", "params": {"value": value}}
    )
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body) if headers else body + b"\n"


async def throughput(lines: list[Line], value: str, headers: bool) -> float:  # noqa: FBT001
    """Requests per second with a few always in flight on every line."""
    number = 1
    until = time.perf_counter() + SECONDS
    done = asyncio.Event()
    open_lines = len(lines)
    before = sum(line.answered for line in lines)

    def send(line: Line) -> None:
        nonlocal number
        number += 1
        line.transport.write(request(number, value, headers))

    def feeder(line: Line) -> Callable[[], None]:
        pending = DEPTH

        def on_reply() -> None:
            nonlocal pending, open_lines
            if time.perf_counter() < until:
                send(line)
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
            send(line)
    await done.wait()
    return (sum(line.answered for line in lines) - before) / (time.perf_counter() - started)


async def latencies(line: Line, value: str, headers: bool) -> tuple[float, float]:  # noqa: FBT001
    """p50 and p99 in milliseconds of one request at a time."""
    taken: list[float] = []
    arrived = asyncio.Event()
    line.on_reply = arrived.set
    count = 1000 if len(value) < 1000 else 100
    for number in range(10_000_000, 10_000_000 + count):
        arrived.clear()
        started = time.perf_counter()
        line.transport.write(request(number, value, headers))
        await arrived.wait()
        taken.append((time.perf_counter() - started) * 1000)
    taken.sort()
    return taken[len(taken) // 2], taken[int(len(taken) * 0.99)]


class PipeLine(Line):
    """The same over the pipes of a child process."""

    @classmethod
    async def spawn(cls, peer: Peer, data: str) -> "tuple[PipeLine, asyncio.subprocess.Process]":
        process = await asyncio.create_subprocess_exec(
            *peer.command(data),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd=ROOT,
            env=os.environ | peer.environment,
        )
        line = cls(peer.headers)
        stdin = cast("asyncio.StreamWriter", process.stdin)
        line.connection_made(stdin.transport)

        async def read_on() -> None:
            stdout = cast("asyncio.StreamReader", process.stdout)
            while data := await stdout.read(1 << 18):
                line.data_received(data)

        line.reading = asyncio.create_task(read_on())
        return line, process

    reading: "asyncio.Task[None]"


async def connect(peer: Peer) -> Line:
    loop = asyncio.get_running_loop()
    deadline = time.monotonic() + 20
    while True:
        try:
            if ":" in peer.address:
                host, port = peer.address.split(":")
                _, line = await loop.create_connection(lambda: Line(peer.headers), host, int(port))
            else:
                _, line = await loop.create_unix_connection(
                    lambda: Line(peer.headers), peer.address
                )
        except OSError:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.05)
        else:
            return line


async def measure_socket(peer: Peer, data: str) -> list[list[str]]:
    process = _start(peer.command(data), peer.environment)
    rows: list[list[str]] = []
    try:
        for clients in (1, 8):
            lines = [await connect(peer) for _ in range(clients)]
            for label, size in SIZES.items():
                rows.append(await _row(peer, f"socket, {clients}", label, lines, size))
            for line in lines:
                line.transport.close()
    finally:
        process.kill()
        process.wait(10)
    return rows


def _start(command: list[str], environment: dict[str, str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
        env=os.environ | environment,
    )


async def measure_stdio(peer: Peer, data: str) -> list[list[str]]:
    line, process = await PipeLine.spawn(peer, data)
    try:
        return [await _row(peer, "stdio, 1", label, [line], size) for label, size in SIZES.items()]
    finally:
        line.reading.cancel()
        process.kill()
        await process.wait()


async def _row(peer: Peer, how: str, label: str, lines: list[Line], size: int) -> list[str]:
    value = ("春江潮水连海平。" * (size // 24 + 1))[: size // 3]
    try:
        async with asyncio.timeout(PATIENCE):
            p50, p99 = await latencies(lines[0], value, peer.headers)
            rates = [await throughput(lines, value, peer.headers) for _ in range(ROUNDS)]
    except TimeoutError:
        return [how, label, peer.name, "no answer", "–", "–"]
    return [how, label, peer.name, f"{max(rates):.0f}", f"{p50:.3f}", f"{p99:.3f}"]


def install_pygls() -> Path | None:
    """Make an environment for pygls, or say that there is none."""
    python = BENCH / "pygls" / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(BENCH / "pygls")], check=True)
    made = subprocess.run(
        [str(python), "-m", "pip", "install", "-q", "pygls>=2"],
        check=False,
        stderr=subprocess.DEVNULL,
    )
    return python if made.returncode == 0 else None


def peers(data: Path, pygls: Path | None) -> tuple[list[Peer], list[Peer]]:
    """List the servers by socket and by stdio."""
    us = {"CREONOW_E2E": "1", "CREONOW_WARM_UP": "false"}
    socket = str(data / "s.sock")
    serve = [sys.executable, "-m", "creonowd", "serve"]
    bare = str(data / "b.sock")
    node = str(data / "n.sock")
    vscode = ["node", str(PEERS / "echo_vscode.mjs")]
    by_socket = [
        Peer(
            "creonowd",
            headers=False,
            command=lambda d: [*serve, "--socket", socket, "--user-data", d],
            address=socket,
            environment=us,
        ),
        Peer(
            "bare asyncio + msgspec",
            headers=False,
            command=lambda _: [sys.executable, str(PEERS / "echo_bare.py"), bare],
            address=bare,
        ),
    ]
    by_stdio = [
        Peer(
            "creonowd",
            headers=False,
            command=lambda d: [*serve, "--stdio", "--user-data", d],
            environment=us,
        )
    ]
    if shutil.which("node"):
        by_socket.append(
            Peer("vscode-jsonrpc", headers=True, command=lambda _: [*vscode, node], address=node)
        )
        by_stdio.append(Peer("vscode-jsonrpc", headers=True, command=lambda _: vscode))
    if pygls is not None:
        script = [str(pygls), str(PEERS / "echo_pygls.py")]
        by_socket.append(
            Peer(
                "pygls",
                headers=True,
                command=lambda _: [*script, "45671"],
                address="127.0.0.1:45671",
            )
        )
        by_stdio.append(Peer("pygls", headers=True, command=lambda _: script))
    return by_socket, by_stdio


async def wire_table(data: Path) -> None:
    ensure_node()
    by_socket, by_stdio = peers(data, install_pygls())
    rows: list[list[str]] = []
    for peer in by_socket:
        rows += await measure_socket(peer, str(data / f"socket-{peer.name[:4]}"))
    for peer in by_stdio:
        rows += await measure_stdio(peer, str(data / f"stdio-{peer.name[:4]}"))
    ours = {(r[0], r[1]): float(r[3]) for r in rows if r[2] == "creonowd"}
    print("| transport, clients | reply | server | requests/s | creonowd ÷ it | p50 ms | p99 ms |")
    print("|---|---|---|---|---|---|---|")
    for how, label, name, rate, p50, p99 in sorted(rows, key=lambda r: (r[0], r[1] != "200 B")):
        ratio = f"{ours[how, label] / float(rate):.2f}" if rate.isdigit() else "–"
        print(f"| {how} | {label} | {name} | {rate} | {ratio} | {p50} | {p99} |", flush=True)


def start_table(data: Path) -> None:
    """Spawn to first reply, beside importing what any such daemon imports."""
    base = [sys.executable, "-c", "import anyio._backends._asyncio, msgspec, structlog"]
    serve = [sys.executable, "-m", "creonowd", "serve", "--user-data", str(data / "start")]
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
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
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
    command = [sys.executable, "-m", "creonowd", "serve", "--socket", socket]
    environment = {"CREONOW_E2E": "1", "CREONOW_WARM_UP": "false"}
    process = _start([*command, "--user-data", str(data / "m")], environment)
    await _watch_memory(socket, psutil.Process(process.pid))
    process.terminate()
    process.wait(10)


async def _watch_memory(socket: str, watched: psutil.Process) -> None:
    peer = Peer("creonowd", headers=False, command=lambda _: [], address=socket)
    idle_line = await connect(peer)
    await latencies(idle_line, "x" * 100, headers=False)
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
    message = request(1, "x" * 1000, headers=False)
    for number in range(20_000):
        transport.write(message.replace(b'"id":1', b'"id":%d' % number))
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
