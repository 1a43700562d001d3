"""The speed of the wire, beside two peers and the least that is possible, all in one run.

The same client sends the same echo to every server, in the same framing (and to us in lines as
well): pipelined for requests per second, one at a time for latency. Servers run in processes of
their own. Peers are installed here, never by us.
"""

import contextlib
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import msgspec
import psutil

from scripts.benchmarks.wire import servers
from scripts.benchmarks.wire.client import DEPTH, Exchange, latencies, requests
from scripts.benchmarks.wire.servers import Peer, Running, connect, start
from scripts.environment import ensure_node

SIZES = {"200 B": 200, "300 KB": 300_000}
ROUNDS = 5
SECONDS = 0.5
PATIENCE = 20
MIB = 1024 * 1024


class Result(msgspec.Struct):
    """What one server did with one size of message."""

    rates: list[float] = []
    processor_us: list[float] = []
    waits: list[float] = []

    @property
    def rate(self) -> float:
        """Requests per second."""
        return statistics.median(self.rates)

    @property
    def cost(self) -> float:
        """Microseconds of the server's processor time per request."""
        return statistics.median(self.processor_us)


def measure(running: list[Running], label: str) -> dict[str, Result | None]:
    """Ask every server in turn, several times over; None for one that leaves a client waiting."""
    size = SIZES[label]
    value = ("春江潮水连海平。" * (size // 24 + 1))[: size // 3]
    results: dict[str, Result | None] = {one.peer.name: Result() for one in running}
    for one in running:
        for line in one.lines:
            line.load(requests(value, one.peer.headers))
    for number in range(ROUNDS + 1):
        for one in running:
            result = results[one.peer.name]
            if result is not None and not _round(one, size, result if number else Result()):
                results[one.peer.name] = None
    return results


def _round(one: Running, size: int, result: Result) -> bool:
    try:
        result.waits += latencies(one.lines[0], 300 if size < 1000 else 30, PATIENCE)
        before = one.processor_seconds()
        answered, seconds = Exchange(one.lines).run(DEPTH, SECONDS, PATIENCE)
    except TimeoutError:
        return False
    result.rates.append(answered / seconds)
    result.processor_us.append((one.processor_seconds() - before) / answered * 1e6)
    return True


def _table(how: str, label: str, results: dict[str, Result | None]) -> None:
    ours = results["creonowd"]
    assert ours is not None
    for name, result in results.items():
        if result is None:
            print(f"| {how} | {label} | {name} | no answer | – | – | – | – | – |")
            continue
        result.waits.sort()
        p50, p99 = (result.waits[int(len(result.waits) * share)] for share in (0.5, 0.99))
        print(
            f"| {how} | {label} | {name} | {result.rate:.0f} | {ours.rate / result.rate:.2f} "
            f"| {result.cost:.1f} | {result.cost / ours.cost:.2f} | {p50:.3f} | {p99:.3f} |",
            flush=True,
        )


def wire_table(data: Path) -> None:
    """Measure every server in every way."""
    ensure_node()
    pygls = servers.install_pygls()
    listening, spoken_to = servers.by_socket(data, pygls), servers.by_stdio(pygls)
    print(
        "| transport, clients | reply | server | requests/s | creonowd ÷ it "
        "| processor µs/request | it ÷ creonowd | p50 ms | p99 ms |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for how, peers, clients in (
        ("socket, 1", listening, 1),
        ("socket, 8", listening, 8),
        ("stdio, 1", spoken_to, 1),
    ):
        running = [Running(peer, tempfile.mkdtemp(dir=data), clients) for peer in peers]
        try:
            for label in SIZES:
                _table(how, label, measure(running, label))
        finally:
            for one in running:
                one.stop()


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


def memory_table(data: Path) -> None:
    """Idle memory, and what garbage and a client that never reads add to it."""
    socket = str(data / "m.sock")
    python = servers.install_ourselves()
    command = [python, *servers.COMMAND, "--socket", socket, "--user-data", str(data / "m")]
    process = start(command, servers.US)
    _watch_memory(socket, psutil.Process(process.pid))
    process.terminate()
    process.wait(10)


def _watch_memory(address: str, watched: psutil.Process) -> None:
    line = connect(Peer("creonowd", lambda _: [], headers=False, address=address))
    line.load(requests("x" * 100, headers=False))
    latencies(line, 1000, PATIENCE)
    idle = watched.memory_info().rss / MIB
    _garbage(address, 200)
    after_garbage = watched.memory_info().rss / MIB
    _never_reads(address)
    after_mute = watched.memory_info().rss / MIB
    print("\n| memory | MB |\n|---|---|")
    print(f"| idle, no tokenizer (goal ≤ 45) | {idle:.0f} |")
    print(f"| after 200 MB of unterminated garbage (goal ≤ +20) | +{after_garbage - idle:.0f} |")
    print(f"| with a client that never reads (goal ≤ +20) | +{after_mute - idle:.0f} |")


def _garbage(address: str, megabytes: int) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as visitor:
        visitor.connect(address)
        for _ in range(megabytes):
            visitor.sendall(b"x" * MIB)


def _never_reads(address: str) -> None:
    """Ask until the server takes no more for a while, or 20 000 times."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as visitor:
        visitor.connect(address)
        visitor.settimeout(1.0)
        asked = requests("x" * 1000, headers=False)
        with contextlib.suppress(TimeoutError):
            for number in range(20_000):
                visitor.sendall(asked[number % len(asked)])


def main(argv: list[str]) -> None:
    """Print the tables."""
    parts: dict[str, Callable[[Path], None]] = {
        "wire": wire_table,
        "start": start_table,
        "memory": memory_table,
    }
    with tempfile.TemporaryDirectory() as folder:
        for name in argv or list(parts):
            parts[name](Path(folder))
