"""The servers under measure, and how each is started and reached."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import psutil

from scripts.benchmarks.wire.client import Line

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).resolve().parent
BENCH = ROOT / ".bench"
COMMAND = ["-m", "creonowd", "serve"]
SERVE = [sys.executable, *COMMAND]
US = {"CREONOW_E2E": "1", "CREONOW_WARM_UP": "false"}


class Peer(msgspec.Struct, frozen=True):
    """A server: how it frames, how it is started, and its address when it has one."""

    name: str
    command: Callable[[str], list[str]]
    headers: bool = True
    address: str = ""
    environment: dict[str, str] = {}


def by_socket(data: Path, pygls: Path | None) -> list[Peer]:
    """List the servers that listen: on a Unix socket, and pygls, which has none, on a port."""
    bare, node = (str(data / f"{name}.sock") for name in ("bare", "node"))
    found = [
        _ourselves(data, "creonowd", headers=True),
        _ourselves(data, "creonowd, lines", headers=False),
        Peer(
            "bare asyncio + msgspec",
            lambda _: [sys.executable, str(HERE / "echo_bare.py"), bare],
            address=bare,
        ),
    ]
    if shutil.which("node"):
        script = ["node", str(HERE / "echo_vscode.mjs"), node]
        found.append(Peer("vscode-jsonrpc", lambda _: script, address=node))
    if pygls is not None:
        found.append(_pygls_on_a_port(pygls, 45671))
    return found


def by_stdio(pygls: Path | None) -> list[Peer]:
    """List the servers that speak over their standard streams."""
    serve = [*SERVE, "--stdio", "--user-data"]
    found = [
        Peer("creonowd", lambda home: [*serve, home], environment=US),
        Peer("creonowd, lines", lambda home: [*serve, home], headers=False, environment=US),
    ]
    if shutil.which("node"):
        found.append(Peer("vscode-jsonrpc", lambda _: ["node", str(HERE / "echo_vscode.mjs")]))
    if pygls is not None:
        found.append(Peer("pygls", lambda _: [str(pygls), str(HERE / "echo_pygls.py")]))
    return found


def _ourselves(data: Path, name: str, *, headers: bool) -> Peer:
    address = str(data / ("headers.sock" if headers else "lines.sock"))
    serve = [*SERVE, "--socket", address, "--user-data"]
    return Peer(name, lambda home: [*serve, home], headers, address, US)


def _pygls_on_a_port(python: Path, port: int) -> Peer:
    command = [str(python), str(HERE / "echo_pygls.py"), str(port)]
    return Peer("pygls", lambda _: command, address=f"127.0.0.1:{port}")


def install_pygls() -> Path | None:
    """Make an environment for pygls, or say that there is none."""
    python = _install("pygls", "pygls>=2")
    if python is None:
        print("pygls could not be installed; its rows are left out.")
    return python


def install_ourselves() -> str:
    """Install the daemon as its users do, without what only we need to work on it."""
    python = _install("creonowd", "--no-cache-dir", str(ROOT))
    if python is None:
        raise SystemExit("creonowd could not be installed in .bench/creonowd.")
    return str(python)


def _install(name: str, *what: str) -> Path | None:
    python = BENCH / name / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(BENCH / name)], check=True)
    install = [str(python), "-m", "pip", "install", "-q", *what]
    made = subprocess.run(install, check=False, stderr=subprocess.DEVNULL)
    return None if made.returncode else python


class Running:
    """A server that was started, the lines to it, and the processor time that it has used."""

    def __init__(self, peer: Peer, home: str, clients: int) -> None:
        self.peer = peer
        self.process = start(peer.command(home), peer.environment, peer.address)
        self.lines = [connect(peer) for _ in range(clients)] if peer.address else [self._own_line()]
        self._watched = psutil.Process(self.process.pid)

    def _own_line(self) -> Line:
        into, out_of = self.process.stdin, self.process.stdout
        assert into is not None
        assert out_of is not None
        return Line(os.dup(into.fileno()), os.dup(out_of.fileno()), self.peer.headers)

    def processor_seconds(self) -> float:
        """Tell what the server has used so far, in all of its threads."""
        used = self._watched.cpu_times()
        return used.user + used.system

    def stop(self) -> None:
        """End it."""
        for line in self.lines:
            line.close()
        self.process.kill()
        self.process.communicate()


def start(
    command: list[str], environment: dict[str, str], address: str = ""
) -> "subprocess.Popen[bytes]":
    """Start a server; the socket of a killed one is taken away first."""
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


def connect(peer: Peer) -> Line:
    """Reach a server, waiting until it listens."""
    deadline = time.monotonic() + 20
    while True:
        try:
            return _connect(peer)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _connect(peer: Peer) -> Line:
    host, _, port = peer.address.rpartition(":")
    family = socket.AF_INET if host else socket.AF_UNIX
    with socket.socket(family, socket.SOCK_STREAM) as reached:
        reached.connect((host, int(port)) if host else peer.address)
        if host:
            reached.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return Line(os.dup(reached.fileno()), os.dup(reached.fileno()), peer.headers)
