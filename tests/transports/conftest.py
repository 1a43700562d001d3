"""One daemon that serves every endpoint, for the tests that only need to talk to one."""

import contextlib
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from creonowd.daemon import endpoint
from creonowd.rpc.messages import Framing
from creonowd.rpc.server import Server
from testing import clients
from testing.clients import PATIENCE, Client, daemon_command, environment

# Over stdio each test starts a process; there headers have a test of their own, and vscode-jsonrpc.
WAYS = [
    "memory-lines",
    "memory-headers",
    "stdio-lines",
    *(["unix-lines", "unix-headers"] if sys.platform != "win32" else []),
    "tcp-lines",
    "tcp-headers",
    "websocket-whole",
]


# Windows knows no signal that a process could answer: whoever ends it says how it ended.
ENDED = 1 if sys.platform == "win32" else 0


@pytest.fixture(scope="module")
def endpoints(tmp_path_factory: pytest.TempPathFactory) -> Generator[dict[str, endpoint.Endpoint]]:
    """A real process that listens on everything."""
    user_data = tmp_path_factory.mktemp("daemon")
    command = daemon_command(user_data, "--socket", "--tcp", "0", "--websocket", "0")
    with subprocess.Popen(command, env=environment()) as process:
        yield _wait(user_data)
        process.terminate()
        assert process.wait(PATIENCE) == ENDED


def _wait(user_data: Path) -> dict[str, endpoint.Endpoint]:
    deadline = time.monotonic() + PATIENCE
    while (found := endpoint.read(user_data)) is None:
        assert time.monotonic() < deadline, "the daemon did not start"
        time.sleep(0.02)
    return {way.transport: way for way in found.endpoints}


@contextlib.asynccontextmanager
async def connected(
    way: str, request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncGenerator[Client]:
    """Connect in the named way."""
    transport, _, name = way.partition("-")
    framing = Framing(name)
    if transport == "memory":
        server: Server = request.getfixturevalue("server")
        opened = clients.in_memory(server, framing)
    elif transport == "stdio":
        opened = clients.over_stdio(tmp_path / "data", framing)
    else:
        found: endpoint.Endpoint = request.getfixturevalue("endpoints")[transport]
        token = found.token if isinstance(found.token, str) else None
        if transport == "unix":
            opened = clients.over_socket(Path(found.address), framing)
        elif transport == "tcp":
            opened = clients.over_tcp(found.address, token, framing)
        else:
            opened = clients.over_websocket(found.address, token)
    async with opened as client:
        yield client


@pytest.fixture(params=WAYS)
async def line(
    request: pytest.FixtureRequest, tmp_path: Path, server: Server
) -> AsyncGenerator[Client]:
    """A connection, over every transport and in every framing."""
    async with connected(request.param, request, tmp_path) as client:
        yield client
