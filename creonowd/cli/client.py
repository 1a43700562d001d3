"""The client of the commands: it uses the running daemon, else starts one.

At a terminal a line shows what the command waits for, and its progress. It appears after a second
and is removed at the end; in a pipe there is none.
"""

import contextlib
import json
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unicodedata
from collections.abc import Generator, Mapping
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, TextIO, cast
from unicodedata import east_asian_width

import msgspec
from msgspec import UNSET

from creonowd.daemon import endpoint
from creonowd.errors import DaemonError, ErrorCode, Language, Wording, same_wording
from creonowd.redaction import Redactor
from creonowd.settings import console_language, process_environment

PATIENCE_SECONDS = 1.0
REDRAW_SECONDS = 0.2
BAR = 20

# Fields of a `$/progress` value: how much is done, and how much there is in all.
_COUNTS = (("done", "of"), ("done", "documents"), ("bytes", "totalBytes"))
_CLEAR = "\x1b[2K\r"

_NOT_UTF8 = Wording("An argument is not UTF-8.", "有参数不是 UTF-8。")
_WORK = {
    "context:retrieve": Wording("Indexing the novel", "正在建立索引"),
    "context:assemble": Wording("Assembling the prompt", "正在组装提示词"),
    "context:inspect": Wording("Assembling the prompt", "正在组装提示词"),
    "story:summarise": Wording("Summarising chapters", "正在撰写章节摘要"),
    "context:files:export": Wording("Exporting the conversation", "正在导出对话"),
    "context:files:import": Wording("Importing the conversation", "正在导入对话"),
    "ai:skill:run": Wording("Waiting for the AI", "正在等待 AI"),
    "ai:config:probe": Wording("Waiting for the AI", "正在等待 AI"),
    "initialize": Wording("Starting the daemon", "正在启动守护进程"),
}
_OTHER = Wording("Waiting for {}", "正在等待 {}")


def work_of(channel: str) -> Wording:
    """Return what a channel does, in words for the user."""
    return _WORK.get(channel) or _OTHER.format(channel)


class ProgressLine:
    """Draws the line from a thread of its own while the block runs, if there is a terminal."""

    def __init__(self, work: Wording) -> None:
        self._work = work.text(chinese=console_language() is Language.CHINESE)
        self._share: float | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self.wanted = sys.stderr.isatty()

    def __enter__(self) -> Self:
        if self.wanted:
            self._thread = threading.Thread(target=self._draw, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def report(self, value: Any) -> None:
        """Set how far the work is, from the value that a channel reports."""
        fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        for done, of in _COUNTS:
            part, whole = fields.get(done), fields.get(of)
            if isinstance(part, int) and isinstance(whole, int) and whole > 0:
                self._share = min(1.0, part / whole)
                return

    def text(self, seconds: int) -> str:
        """Return the line after so many seconds."""
        if self._share is None:
            return f"{self._work} … {seconds} s"
        full = round(BAR * self._share)
        bar = "█" * full + "░" * (BAR - full)
        return f"{self._work} {bar} {self._share:4.0%} {seconds} s"

    def _draw(self) -> None:
        began = time.monotonic()
        if self._ended.wait(PATIENCE_SECONDS):
            return
        while not self._ended.is_set():
            seconds = int(time.monotonic() - began)
            sys.stderr.buffer.write(f"{_CLEAR}{self.text(seconds)}".encode("utf-8", "replace"))
            sys.stderr.flush()
            self._ended.wait(REDRAW_SECONDS)
        sys.stderr.buffer.write(_CLEAR.encode())
        sys.stderr.flush()


ANSWER_SECONDS = 60
START_SECONDS = 10.0
POLL_SECONDS = 0.02
PROGRESS = "$/progress"

# Categories of marks on the character before them, and of what is not shown at all.
_ZERO_WIDTH = ("Mn", "Me", "Cf")

# Controls and changes of the writing direction: a terminal obeys them, or shows a text misleadingly.
_DIRECTION_CHANGES = "\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069"
_CONTROL = re.compile(rf"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f{_DIRECTION_CHANGES}]|\r(?!\n)")
_CONTROL_OR_BREAK = re.compile(rf"[\x00-\x1f\x7f-\x9f{_DIRECTION_CHANGES}]")


class Client:
    """One connection, one request at a time."""

    def __init__(self, reader: BinaryIO, writer: BinaryIO) -> None:
        self._reader = reader
        self._writer = writer
        self._count = 0

    def request(self, method: str, params: Any = None) -> Any:
        """Call a channel and return its result; DaemonError if it fails.

        At a terminal a line shows what is waited for when that takes more than a second.
        """
        self._count += 1
        payload: Any = {} if params is None else params
        try:
            with ProgressLine(work_of(method)) as progress:
                if progress.wanted:
                    payload = _with_progress(payload, self._count)
                message = {"jsonrpc": "2.0", "id": self._count, "method": method}
                encoded = _encode(message | {"params": payload})
                return _result(self._exchange(encoded, progress))
        except TimeoutError:
            wording = Wording("The daemon does not answer {}.", "守护进程没有回应 {}。").format(
                method
            )
            raise DaemonError(ErrorCode.TIMEOUT, wording) from None
        except OSError:
            raise disconnect_error() from None

    def _exchange(self, message: bytes, progress: ProgressLine) -> dict[str, Any]:
        self._writer.write(message + b"\n")
        self._writer.flush()
        while line := self._reader.readline():
            reply: dict[str, Any] = msgspec.json.decode(line)
            if reply.get("id") == self._count and "method" not in reply:
                return reply
            if reply.get("method") == PROGRESS:
                progress.report(reply["params"]["value"])
        raise disconnect_error()


def _encode(message: dict[str, Any]) -> bytes:
    """Encode a request; an argument of the command line may hold bytes that are no text."""
    try:
        return msgspec.json.encode(message)
    except UnicodeEncodeError:
        raise DaemonError(ErrorCode.INVALID_ARGUMENT, _NOT_UTF8) from None


def _with_progress(payload: Any, token: int) -> Any:
    """Ask for progress in a payload that is an object, unless it asks for it itself."""
    if not isinstance(payload, dict):
        return payload
    fields = cast("dict[str, Any]", payload)
    meta = fields.get("_meta", {})
    if not isinstance(meta, dict):
        return fields
    return fields | {"_meta": {"progressToken": token} | cast("dict[str, Any]", meta)}


def disconnect_error() -> DaemonError:
    """Return the error for a daemon that closed the connection."""
    wording = Wording("The daemon closed the connection.", "守护进程关闭了连接。")
    return DaemonError(ErrorCode.DISCONNECTED, wording)


def _result(reply: dict[str, Any]) -> Any:
    error = cast("dict[str, Any] | None", reply.get("error"))
    if error is None:
        return reply["result"]
    raise error_of(error)


def error_of(error: dict[str, Any]) -> DaemonError:
    """Return the error of a reply; its message is in the language of the connection already."""
    data: dict[str, Any] = error.get("data") or {}
    code = next((known for known in ErrorCode if known == data.get("code")), ErrorCode.INTERNAL)
    return DaemonError(code, same_wording(error["message"]), **(data.get("details") or {}))


@contextlib.contextmanager
def connect(user_data: Path, seconds: float | None = ANSWER_SECONDS) -> Generator[Client]:
    """Connect to the running daemon, or start one for the block.

    The running one may take `seconds` for an answer; with None, as long as it needs.
    """
    running = find_running(user_data)
    if running is None:
        with _spawned_client(user_data) as client:
            yield client
        return
    with _socket_client(running, seconds) as client:
        yield client


@contextlib.contextmanager
def start_daemon(user_data: Path, stdout: int) -> "Generator[subprocess.Popen[bytes]]":
    """Start a daemon for the block; its stderr is shown only if it fails."""
    command = [*program(), "serve", "--stdio", "--user-data", str(user_data)]
    with (
        tempfile.TemporaryFile() as stderr,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=stdout,
            stderr=stderr,
            env=process_environment(),
        ) as process,
    ):
        assert process.stdin is not None
        try:
            yield process
        finally:
            with contextlib.suppress(OSError):
                process.stdin.close()
            if process.wait():
                stderr.seek(0)
                write(stderr.read().decode("utf-8", "replace"), sys.stderr)


def program() -> list[str]:
    """Return the command of this program; it imports nothing from the current folder."""
    if getattr(sys, "frozen", False):
        return [sys.executable]
    return [sys.executable, "-P", "-m", "creonowd"]


def find_running(user_data: Path) -> endpoint.EndpointFile | None:
    """Return the endpoints of the running daemon; wait for one that is just starting."""
    deadline = time.monotonic() + START_SECONDS
    if user_data.is_dir():
        endpoint.close_to_others(user_data)
    found = endpoint.read(user_data)
    while found is None and endpoint.is_running(user_data) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
        found = endpoint.read(user_data)
    return found


def socket_endpoint(running: endpoint.EndpointFile) -> endpoint.Endpoint | None:
    """Return the endpoint of the Unix socket or of TCP; None if there is neither."""
    return next((one for one in running.endpoints if one.transport in {"unix", "tcp"}), None)


@contextlib.contextmanager
def _socket_client(running: endpoint.EndpointFile, seconds: float | None) -> Generator[Client]:
    address = socket_endpoint(running)
    if address is None:
        wording = Wording(
            "The running daemon cannot be connected to; restart it.",
            "运行中的守护进程没有可用的入口，请重新启动它。",
        )
        raise DaemonError(ErrorCode.NOT_FOUND, wording)
    with _open_socket(address) as line, line.makefile("rwb") as stream:
        client = Client(cast("BinaryIO", stream), cast("BinaryIO", stream))
        line.settimeout(ANSWER_SECONDS if seconds is None else seconds)
        _introduce(client, None if address.token is UNSET else address.token)
        line.settimeout(seconds)
        yield client


def _introduce(client: Client, token: str | None = None) -> None:
    """Show the token, and ask for messages in the language of the terminal."""
    client.request("initialize", {"token": token, "locale": console_language()})


def _open_socket(address: endpoint.Endpoint) -> socket.socket:
    try:
        if address.transport == "tcp":
            host, _, port = address.address.rpartition(":")
            return socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS)
        line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        line.settimeout(ANSWER_SECONDS)
        line.connect(address.address)
    except OSError as error:
        wording = Wording(
            "The running daemon cannot be reached: {}.", "无法连接运行中的守护进程：{}。"
        )
        raise DaemonError(ErrorCode.DISCONNECTED, wording.format(error.strerror)) from None
    return line


@contextlib.contextmanager
def _spawned_client(user_data: Path) -> Generator[Client]:
    with start_daemon(user_data, subprocess.PIPE) as process:
        try:
            client = Client(cast("BinaryIO", process.stdout), cast("BinaryIO", process.stdin))
            _introduce(client)
            yield client
        except DaemonError as error:
            if error.code is ErrorCode.DISCONNECTED and process.wait(START_SECONDS):
                raise start_error() from None
            raise


def start_error() -> DaemonError:
    """Return the error for a daemon that ended before it answered."""
    wording = Wording(
        "The daemon did not start; the reason is printed above.", "守护进程未能启动，原因见上。"
    )
    return DaemonError(ErrorCode.DISCONNECTED, wording)


def show(value: Any, stream: TextIO | None = None) -> None:
    """Print a value as JSON: indented for a person, on one line for a program."""
    target = sys.stdout if stream is None else stream
    text = json.dumps(value, ensure_ascii=False, indent=2 if target.isatty() else None)
    # What JSON leaves unescaped stands inside a string, where its escape means the same.
    write(_CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n", target)


def write(text: str, stream: TextIO | None = None, *, painted: bool = False) -> None:
    """Print text as UTF-8, whatever the terminal's own encoding is.

    Control characters are escaped, unless it is `painted`: then it has our colours, and what came
    from elsewhere has gone through `terminal_safe`.
    """
    target = sys.stdout if stream is None else stream
    shown = text if painted else _CONTROL.sub(_escape, text)
    target.flush()
    target.buffer.write(shown.encode("utf-8", "replace"))
    target.flush()


def write_wording(wording: Wording, stream: TextIO | None = None) -> None:
    """Print a line in the language of the terminal."""
    chinese = console_language() is Language.CHINESE
    write(f"{sentence(wording.text(chinese=chinese))}\n", stream)


def sentence(text: str) -> str:
    """Return a line that may repeat a name or an argument, without secrets and control characters."""
    return terminal_safe(without_secrets(text))


def without_secrets(value: Any) -> Any:
    """Return a JSON value whose texts name no secret; a name may be one."""
    if isinstance(value, str):
        return _redactor().hide_secrets(value)
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        return {key: without_secrets(inner) for key, inner in fields.items()}
    if isinstance(value, list):
        return [without_secrets(inner) for inner in cast("list[Any]", value)]
    return value


@cache
def _redactor() -> Redactor:
    return Redactor()


def terminal_safe(value: Any) -> Any:
    """Return a JSON value whose texts have their control characters and line breaks escaped."""
    if isinstance(value, str):
        return _CONTROL_OR_BREAK.sub(_escape, value)
    if isinstance(value, list):
        return [terminal_safe(inner) for inner in cast("list[Any]", value)]
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value).items()
        return {terminal_safe(key): terminal_safe(inner) for key, inner in fields}
    return value


def width(text: str) -> int:
    """Return how many columns of a terminal a line takes: two for each Chinese character."""
    return sum(map(_character_width, text))


def _character_width(character: str) -> int:
    if unicodedata.category(character) in _ZERO_WIDTH:
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def pad(text: str, columns: int, *, right: bool = False) -> str:
    """Fill a text with blanks up to so many columns; `right` aligns it to the right."""
    blanks = " " * max(0, columns - width(text))
    return blanks + text if right else text + blanks


def _escape(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
