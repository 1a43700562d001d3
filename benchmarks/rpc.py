"""The speed of the wire beside two peers and the least server possible, and start and memory.

The same client sends the same echo to every server, in the same framing (and to creonowd in lines
as well): pipelined for requests per second, one at a time for latency. Servers run in processes of
their own; pygls is installed in an environment of its own. `wire`, `start` or `memory` as arguments
choose the tables.
"""

import contextlib
import os
import selectors
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
import psutil

from scripts.environment import ROOT, ensure_node

SIZES = {"200 B": 200, "300 KB": 300_000}
ROUNDS = 5
SECONDS = 0.5
PATIENCE = 20
MIB = 1024 * 1024
DEPTH = 32
SENT_TOGETHER = 64 * 1024
READ_AT_ONCE = 1 << 20
PYGLS_PORT = 45671
FIRST_ID = 1_000_000

PROGRAMS = Path(__file__).resolve().parent / "programs"
INSTALLED = ROOT / ".bench"
COMMAND = ["-P", "-m", "creonowd", "serve"]
SERVE = [sys.executable, *COMMAND]
ENVIRONMENT = {"CREONOW_E2E": "1", "CREONOW_WARM_UP": "false"}


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


class Result(msgspec.Struct):
    """The measurements of one server with one size of message."""

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


def _measure(running: "list[Server]", label: str) -> dict[str, Result | None]:
    """Measure every server in turn, several times; None for one that leaves a client waiting."""
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


def _round(one: "Server", size: int, result: Result) -> bool:
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
    pygls = _install_pygls()
    on_sockets, on_stdio = _by_socket(data, pygls), _by_stdio(pygls)
    print(
        "| transport, clients | reply | server | requests/s | creonowd ÷ it "
        "| processor µs/request | it ÷ creonowd | p50 ms | p99 ms |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for how, peers, clients in (
        ("socket, 1", on_sockets, 1),
        ("socket, 8", on_sockets, 8),
        ("stdio, 1", on_stdio, 1),
    ):
        running = [Server(peer, tempfile.mkdtemp(dir=data), clients) for peer in peers]
        try:
            for label in SIZES:
                _table(how, label, _measure(running, label))
        finally:
            for one in running:
                one.stop()


def start_table(data: Path) -> None:
    """Spawn to first reply, beside importing what any such daemon imports."""
    python = _install_creonowd()
    base = [python, "-c", "import anyio._backends._asyncio, msgspec, structlog"]
    serve = [python, *COMMAND, "--user-data", str(data / "start")]
    ping = b'{"jsonrpc":"2.0","id":1,"method":"app:ping"}\n'
    imports: list[float] = []
    replies: list[float] = []
    for _ in range(15):
        imports.append(_seconds_to_reply(base, b""))
        replies.append(_seconds_to_reply(serve, ping))
    ratio = statistics.median(replies) / statistics.median(imports)
    print(
        f"\n| start | ms |\n|---|---|\n| imports alone | {statistics.median(imports) * 1000:.0f} |"
    )
    print(f"| spawn to first reply | {statistics.median(replies) * 1000:.0f} |")
    print(f"| ratio (goal ≤ 1.5) | {ratio:.2f} |")


def _seconds_to_reply(command: list[str], first: bytes) -> float:
    started = time.perf_counter()
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd=INSTALLED) as process:
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
    python = _install_creonowd()
    command = [python, *COMMAND, "--socket", socket, "--user-data", str(data / "m")]
    process = start(command, ENVIRONMENT)
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
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(address)
        for _ in range(megabytes):
            client.sendall(b"x" * MIB)


def _never_reads(address: str) -> None:
    """Ask until the server takes no more for a while, or 20 000 times."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(address)
        client.settimeout(1.0)
        asked = requests("x" * 1000, headers=False)
        with contextlib.suppress(TimeoutError):
            for number in range(20_000):
                client.sendall(asked[number % len(asked)])


class Peer(msgspec.Struct, frozen=True):
    """A server: how it frames, how it is started, and its address when it has one."""

    name: str
    command: Callable[[str], list[str]]
    headers: bool = True
    address: str = ""
    environment: dict[str, str] = {}


def _by_socket(data: Path, pygls: Path | None) -> list[Peer]:
    """List the servers that listen: on a Unix socket, and pygls, which has none, on a port."""
    bare, node = (str(data / f"{name}.sock") for name in ("bare", "node"))
    found = [
        _creonowd(data, "creonowd", headers=True),
        _creonowd(data, "creonowd, lines", headers=False),
        Peer(
            "bare asyncio + msgspec",
            lambda _: [sys.executable, str(PROGRAMS / "echo_asyncio.py"), bare],
            address=bare,
        ),
    ]
    if shutil.which("node"):
        script = ["node", str(PROGRAMS / "echo_vscode.mjs"), node]
        found.append(Peer("vscode-jsonrpc", lambda _: script, address=node))
    if pygls is not None:
        found.append(_pygls_on_a_port(pygls, PYGLS_PORT))
    return found


def _by_stdio(pygls: Path | None) -> list[Peer]:
    """List the servers that speak over their standard streams."""
    serve = [*SERVE, "--stdio", "--user-data"]
    found = [
        Peer("creonowd", lambda home: [*serve, home], environment=ENVIRONMENT),
        Peer(
            "creonowd, lines", lambda home: [*serve, home], headers=False, environment=ENVIRONMENT
        ),
    ]
    if shutil.which("node"):
        found.append(Peer("vscode-jsonrpc", lambda _: ["node", str(PROGRAMS / "echo_vscode.mjs")]))
    if pygls is not None:
        found.append(Peer("pygls", lambda _: [str(pygls), str(PROGRAMS / "echo_pygls.py")]))
    return found


def _creonowd(data: Path, name: str, *, headers: bool) -> Peer:
    address = str(data / ("headers.sock" if headers else "lines.sock"))
    serve = [*SERVE, "--socket", address, "--user-data"]
    return Peer(name, lambda home: [*serve, home], headers, address, ENVIRONMENT)


def _pygls_on_a_port(python: Path, port: int) -> Peer:
    command = [str(python), str(PROGRAMS / "echo_pygls.py"), str(port)]
    return Peer("pygls", lambda _: command, address=f"127.0.0.1:{port}")


def _install_pygls() -> Path | None:
    """Install pygls in an environment of its own; None if that fails."""
    python = _install("pygls", "pygls>=2")
    if python is None:
        print("pygls could not be installed; its rows are left out.")
    return python


def _install_creonowd() -> str:
    """Install the daemon as its users do, without what only its development needs."""
    python = _install("creonowd", "--no-cache-dir", str(ROOT))
    if python is None:
        raise SystemExit("creonowd could not be installed in .bench/creonowd.")
    return str(python)


def _install(name: str, *what: str) -> Path | None:
    python = INSTALLED / name / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(INSTALLED / name)], check=True)
    install = [str(python), "-m", "pip", "install", "-q", *what]
    made = subprocess.run(install, check=False, stderr=subprocess.DEVNULL)
    return None if made.returncode else python


class Server:
    """A running server, the lines to it, and the processor time that it has used."""

    def __init__(self, peer: Peer, home: str, clients: int) -> None:
        self.peer = peer
        self.process = start(peer.command(home), peer.environment, peer.address)
        self.lines = [connect(peer) for _ in range(clients)] if peer.address else [self._own_line()]
        self._watched = psutil.Process(self.process.pid)

    def _own_line(self) -> "Line":
        into, out_of = self.process.stdin, self.process.stdout
        assert into is not None
        assert out_of is not None
        return Line(os.dup(into.fileno()), os.dup(out_of.fileno()), self.peer.headers)

    def processor_seconds(self) -> float:
        """Return what the server has used so far, in all of its threads."""
        used = self._watched.cpu_times()
        return used.user + used.system

    def stop(self) -> None:
        """Kill it."""
        for line in self.lines:
            line.close()
        self.process.kill()
        self.process.communicate()


def start(
    command: list[str], environment: dict[str, str], address: str = ""
) -> "subprocess.Popen[bytes]":
    """Start a server; remove the socket of a killed one first."""
    if address and ":" not in address:
        Path(address).unlink(missing_ok=True)
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL if address else subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
        env=os.environ | environment,
    )


def connect(peer: Peer) -> "Line":
    """Connect to a server, waiting until it listens."""
    deadline = time.monotonic() + 20
    while True:
        try:
            return _connect(peer)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _connect(peer: Peer) -> "Line":
    host, _, port = peer.address.rpartition(":")
    family = socket.AF_INET if host else socket.AF_UNIX
    with socket.socket(family, socket.SOCK_STREAM) as reached:
        reached.connect((host, int(port)) if host else peer.address)
        if host:
            reached.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return Line(os.dup(reached.fileno()), os.dup(reached.fileno()), peer.headers)


def requests(value: str, headers: bool) -> list[bytes]:  # noqa: FBT001
    """Make echo requests in one framing: enough that no id is used twice at a time."""
    return [_request(value, headers, FIRST_ID + number) for number in range(DEPTH * 2)]


def _request(value: str, headers: bool, number: int) -> bytes:  # noqa: FBT001
    body = msgspec.json.encode(
        {"jsonrpc": "2.0", "id": number, "method": "e2e:echo", "params": {"value": value}}
    )
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body) if headers else body + b"\n"


class Line:
    """The lightest client: prepared requests go into one descriptor, replies are counted from another.

    Nothing of a reply is read but where it ends, and there is no event loop: on few cores the
    servers are measured and not the client.
    """

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
        """Send these from now on, one after the other, again and again."""
        self._requests = made
        self._next = 0

    def send(self) -> bool:
        """Send what is left to send; False if the server does not take all of it now."""
        while self.unsent:
            try:
                self._note_sent(os.writev(self.into, self._batch()))
            except BlockingIOError:
                return False
        return True

    def _batch(self) -> list[bytes | memoryview]:
        ring, at = self._requests, self._next
        batch: list[bytes | memoryview] = [memoryview(ring[at])[self._offset :]]
        together = min(self.unsent, max(1, SENT_TOGETHER // len(ring[at])))
        batch += [ring[(at + step) % len(ring)] for step in range(1, together)]
        return batch

    def _note_sent(self, size: int) -> None:
        size += self._offset
        while size >= (length := len(self._requests[self._next])):
            size -= length
            self._next = (self._next + 1) % len(self._requests)
            self.unsent -= 1
            if not self.unsent:
                break
        self._offset = size

    def receive(self) -> int:
        """Read once and return how many replies ended in it."""
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
        """Close both descriptors."""
        os.close(self.into)
        os.close(self.out_of)


def _length(headers: bytes | bytearray) -> int:
    return int(headers.lower().split(b"content-length:")[1].split(b"\r\n")[0])


class Exchange:
    """Requests and replies on some lines, until every request has its reply."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = lines
        self._selector = selectors.DefaultSelector()
        self._blocked: set[int] = set()

    def run(self, depth: int, seconds: float, patience: float) -> tuple[int, float]:
        """Keep `depth` in flight on each line for so long; return the replies and the seconds to the last."""
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
        """Serve every line that is ready; return by how many fewer requests are in flight."""
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
    """Return the milliseconds of requests that are sent one at a time."""
    exchange = Exchange([line])
    return [exchange.run(1, 0.0, patience)[1] * 1000 for _ in range(count)]
