"""A small blocking client: talks to the daemon that runs, else to one it starts."""

import contextlib
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

import msgspec
from msgspec import UNSET

from creonowd.daemon import endpoint
from creonowd.errors import DaemonError, ErrorCode

SECONDS = 60
START_SECONDS = 10.0
STEP_SECONDS = 0.02


class Client:
    """One connection, one request at a time."""

    def __init__(self, reader: BinaryIO, writer: BinaryIO) -> None:
        self._reader = reader
        self._writer = writer
        self._made = 0

    def request(self, method: str, params: Any = None) -> Any:
        """Call a channel; DaemonError if the daemon answers with one."""
        self._made += 1
        payload: Any = {} if params is None else params
        message = {"jsonrpc": "2.0", "id": self._made, "method": method, "params": payload}
        try:
            return _result(self._exchange(msgspec.json.encode(message)))
        except TimeoutError:
            raise DaemonError(ErrorCode.TIMEOUT, f"The daemon does not answer {method}.") from None
        except OSError:
            raise _gone() from None

    def _exchange(self, message: bytes) -> dict[str, Any]:
        self._writer.write(message + b"\n")
        self._writer.flush()
        while line := self._reader.readline():
            reply: dict[str, Any] = msgspec.json.decode(line)
            if reply.get("id") == self._made and "method" not in reply:
                return reply
        raise _gone()


def _gone() -> DaemonError:
    return DaemonError(ErrorCode.DISCONNECTED, "The daemon closed the connection.")


def _result(reply: dict[str, Any]) -> Any:
    error = cast("dict[str, Any] | None", reply.get("error"))
    if error is None:
        return reply["result"]
    data: dict[str, Any] = error.get("data") or {}
    code = next((known for known in ErrorCode if known == data.get("code")), ErrorCode.INTERNAL)
    raise DaemonError(code, error["message"], **(data.get("details") or {}))


@contextlib.contextmanager
def connect(user_data: Path, seconds: float | None = SECONDS) -> Generator[Client]:
    """Connect to the running daemon, or start one for the length of the block.

    An answer of the running one may take `seconds`; without them, as long as the daemon allows.
    """
    found = _running(user_data)
    if found is None:
        with _spawned(user_data) as client:
            yield client
        return
    with _visiting(found, seconds) as client:
        yield client


@contextlib.contextmanager
def started(user_data: Path, stdout: int) -> "Generator[subprocess.Popen[bytes]]":
    """Start a daemon for the length of the block; what it says is shown only if it fails."""
    command = [sys.executable, "-m", "creonowd", "serve", "--stdio", "--user-data", str(user_data)]
    with (
        tempfile.TemporaryFile() as said,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=stdout, stderr=said) as process,
    ):
        assert process.stdin is not None
        try:
            yield process
        finally:
            with contextlib.suppress(OSError):
                process.stdin.close()
            if process.wait():
                said.seek(0)
                sys.stderr.buffer.write(said.read())
                sys.stderr.flush()


def _running(user_data: Path) -> endpoint.EndpointFile | None:
    """Find the running daemon; one that is just starting gets a moment to say where it is."""
    deadline = time.monotonic() + START_SECONDS
    found = endpoint.read(user_data)
    while found is None and endpoint.is_running(user_data) and time.monotonic() < deadline:
        time.sleep(STEP_SECONDS)
        found = endpoint.read(user_data)
    return found


@contextlib.contextmanager
def _visiting(found: endpoint.EndpointFile, seconds: float | None) -> Generator[Client]:
    way = next((e for e in found.endpoints if e.transport in {"unix", "tcp"}), None)
    if way is None:
        raise DaemonError(ErrorCode.NOT_FOUND, "The running daemon offers no way in; restart it.")
    with _dial(way) as line, line.makefile("rwb") as stream:
        client = Client(cast("BinaryIO", stream), cast("BinaryIO", stream))
        if way.token is not UNSET:
            client.request("initialize", {"token": way.token})
        line.settimeout(seconds)
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
    with started(user_data, subprocess.PIPE) as process:
        try:
            yield Client(cast("BinaryIO", process.stdout), cast("BinaryIO", process.stdin))
        except DaemonError as error:
            if error.code is ErrorCode.DISCONNECTED and process.wait(START_SECONDS):
                raise not_started() from None
            raise


def not_started() -> DaemonError:
    """Say that a daemon ended before it answered."""
    return DaemonError(ErrorCode.DISCONNECTED, "The daemon did not start; it says above why.")


def show(value: Any, stream: TextIO | None = None) -> None:
    """Print a value as JSON: indented for a person, on one line for a program."""
    target = sys.stdout if stream is None else stream
    text = json.dumps(value, ensure_ascii=False, indent=2 if target.isatty() else None)
    write(text + "\n", target)


def write(text: str, stream: TextIO | None = None) -> None:
    """Print text as UTF-8, whatever the terminal's own encoding is."""
    target = sys.stdout if stream is None else stream
    target.flush()
    target.buffer.write(text.encode("utf-8", "replace"))
    target.flush()
