"""A real daemon of any checkout, with user data of its own, called over the wire and blocking."""

import json
import os
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, cast

LAUNCH = Path(__file__).with_name("launch.py")
PATIENCE_SECONDS = 600
START_SECONDS = 60

Message = dict[str, Any]


class RequestError(Exception):
    """An error reply where a result was needed."""


def environment(checkout: Path, settings: Mapping[str, str] | None = None) -> dict[str, str]:
    """Make an environment in which only this checkout is found, with these settings and no others.

    Compiled files go elsewhere: a checkout that is only looked at stays as it is.
    """
    kept = {name: text for name, text in os.environ.items() if not name.startswith("CREONOW_")}
    own = {"PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1"}
    return kept | own | {f"CREONOW_{name}": text for name, text in (settings or {}).items()}


class Daemon:
    """One process and one connection: over stdio, or over the socket if one is named.

    `host` answers what the daemon asks of its client.
    """

    def __init__(
        self,
        checkout: Path,
        user_data: Path,
        *,
        over: Path | None = None,
        trace: str | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.host: Callable[[str, Message], Any] = _nothing
        self._over = over
        self._command = [
            sys.executable,
            str(LAUNCH),
            str(checkout),
            *(() if trace is None else ("--trace", trace)),
            *("serve", "--stdio", "--user-data", str(user_data)),
            *(() if over is None else ("--socket", str(over))),
        ]
        self._environment = environment(checkout, settings)
        self._messages: queue.Queue[Any] = queue.Queue()
        self._made = 0

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._socket = None if self._over is None else self._connect(self._over)
        if self._socket is None:
            self._input = cast("IO[bytes]", self._process.stdin)
            output = cast("IO[bytes]", self._process.stdout)
        else:
            self._input = self._socket.makefile("wb")
            output = self._socket.makefile("rb")
        threading.Thread(target=self._read, args=(output,), daemon=True).start()
        self.call("initialize", {"clientInfo": {"name": "checkouts", "version": "1"}})
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._socket is not None:
            self._socket.close()
        cast("IO[bytes]", self._process.stdin).close()
        try:
            self._process.wait(START_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        cast("IO[bytes]", self._process.stdout).close()

    def request(self, method: str, params: Any = None) -> Message:
        """Call a method; return the reply, which holds `result` or `error`."""
        self._made += 1
        number = self._made
        payload: Any = {} if params is None else params
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": payload})
        while True:
            message = self._next()
            if isinstance(message, dict) and cast("Message", message).get("id") == number:
                reply = cast("Message", message)
                return {key: reply[key] for key in ("result", "error") if key in reply}

    def call(self, method: str, params: Any = None) -> Any:
        """Call a method and return its result, which must come."""
        reply = self.request(method, params)
        if "error" in reply:
            raise RequestError(f"{method}: {json.dumps(reply['error'], ensure_ascii=False)}")
        return reply["result"]

    def line(self, line: bytes) -> Any:
        """Send any line; return what is answered to it."""
        self._input.write(line + b"\n")
        self._input.flush()
        return self._next()

    def _send(self, message: Message) -> None:
        self._input.write(json.dumps(message).encode() + b"\n")
        self._input.flush()

    def _next(self) -> Any:
        """Return the next message that is no event and no question to the client."""
        while True:
            message: Any = self._messages.get(timeout=PATIENCE_SECONDS)
            if message is None:
                code = self._process.wait(START_SECONDS)
                raise ConnectionError(f"The daemon has gone, with exit code {code}.")
            asked = cast("Message", message) if isinstance(message, dict) else {}
            if "method" not in asked:
                return cast("Any", message)
            if "id" in asked:
                answer = self.host(asked["method"], asked.get("params") or {})
                self._send({"jsonrpc": "2.0", "id": asked["id"], "result": answer})

    def _read(self, output: IO[bytes]) -> None:
        try:
            for line in output:
                self._messages.put(json.loads(line))
        except (OSError, ValueError):
            pass
        self._messages.put(None)

    def _connect(self, path: Path) -> socket.socket:
        end = time.monotonic() + START_SECONDS
        while True:
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.connect(str(path))
            except OSError:
                connection.close()
                if time.monotonic() > end or self._process.poll() is not None:
                    raise ConnectionError("The daemon did not open its socket.") from None
                time.sleep(0.02)
            else:
                return connection


def _nothing(_method: str, _params: Message) -> Any:
    return {"chunks": []}
