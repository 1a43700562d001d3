"""A small blocking client: talks to the daemon that runs, else to one it starts."""

import contextlib
import socket
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec
from msgspec import UNSET

from creonowd.daemon import endpoint
from creonowd.errors import DaemonError, ErrorCode

SECONDS = 60


class Client:
    """One connection, one request at a time."""

    def __init__(self, reader: BinaryIO, writer: BinaryIO) -> None:
        self._reader = reader
        self._writer = writer
        self._made = 0

    def request(self, method: str, params: Any = None) -> Any:
        """Call a channel; DaemonError if the daemon answers with one."""
        self._made += 1
        payload: Any = params or {}
        message = {"jsonrpc": "2.0", "id": self._made, "method": method, "params": payload}
        self._writer.write(msgspec.json.encode(message) + b"\n")
        self._writer.flush()
        while line := self._reader.readline():
            reply: dict[str, Any] = msgspec.json.decode(line)
            if reply.get("id") == self._made and "method" not in reply:
                return _result(reply)
        raise DaemonError(ErrorCode.DISCONNECTED, "The daemon closed the connection.")


def _result(reply: dict[str, Any]) -> Any:
    error = cast("dict[str, Any] | None", reply.get("error"))
    if error is None:
        return reply["result"]
    data: dict[str, Any] = error.get("data") or {}
    code = data.get("code", ErrorCode.INTERNAL)
    raise DaemonError(ErrorCode(code), error["message"], **(data.get("details") or {}))


@contextlib.contextmanager
def connect(user_data: Path) -> Generator[Client]:
    """Connect to the running daemon, or start one for the length of the block."""
    found = endpoint.read(user_data)
    if found is None:
        with _spawned(user_data) as client:
            yield client
        return
    with _visiting(found) as client:
        yield client


@contextlib.contextmanager
def _visiting(found: endpoint.EndpointFile) -> Generator[Client]:
    way = next((e for e in found.endpoints if e.transport in {"unix", "tcp"}), None)
    if way is None:
        raise DaemonError(ErrorCode.NOT_FOUND, "The running daemon offers no way in; restart it.")
    with _dial(way) as line, line.makefile("rwb") as stream:
        client = Client(cast("BinaryIO", stream), cast("BinaryIO", stream))
        if way.token is not UNSET:
            client.request("initialize", {"token": way.token})
        yield client


def _dial(way: endpoint.Endpoint) -> socket.socket:
    try:
        if way.transport == "tcp":
            host, _, port = way.address.rpartition(":")
            return socket.create_connection((host, int(port)), timeout=SECONDS)
        line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        line.settimeout(SECONDS)
        line.connect(way.address)
    except OSError as error:
        raise DaemonError(
            ErrorCode.DISCONNECTED, f"The running daemon cannot be reached: {error.strerror}."
        ) from None
    return line


@contextlib.contextmanager
def _spawned(user_data: Path) -> Generator[Client]:
    command = [sys.executable, "-m", "creonowd", "serve", "--stdio", "--user-data", str(user_data)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield Client(cast("BinaryIO", process.stdout), cast("BinaryIO", process.stdin))
        process.stdin.close()
