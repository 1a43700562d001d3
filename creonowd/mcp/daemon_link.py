"""The connection of an MCP server to the daemon: to the one that runs, else to one it starts.

A daemon that ends is found or started again with the next call. Calls that change nothing are
then made once more; the others fail and say so.
"""

import contextlib
import subprocess
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import msgspec
from anyio import to_thread
from anyio.abc import ByteReceiveStream, TaskGroup
from msgspec import UNSET

from creonowd.cli.client import (
    ANSWER_SECONDS,
    disconnect_error,
    error_of,
    find_running,
    program,
    socket_endpoint,
)
from creonowd.daemon import endpoint
from creonowd.errors import DaemonError, ErrorCode, Wording
from creonowd.rpc.messages import Frame, Framing, Splitter, add_framing
from creonowd.settings import console_language, process_environment

GRANT_MS = 30 * 24 * 3600 * 1000
LARGEST_REPLY = 1 << 30
PATIENCE_MS = 10 * 60 * 1000
END_SECONDS = 6
TRIES = 3
# Fewer than a daemon takes from one connection.
MOST_IN_FLIGHT = 64

OnProgress = Callable[[dict[str, Any]], Awaitable[None]]

_GONE = Wording(
    "The daemon ended during the call. Another is started with the next one; look whether the"
    " change was made before you repeat it.",
    "守护进程在调用期间退出；下次调用会重新启动。重试之前请先查看更改是否已生效。",
)

_SILENT = Wording(
    "The daemon runs but does not answer. If it stays so, end it; another is started then.",
    "守护进程在运行但没有应答。若一直如此，请结束它；之后会启动新的。",
)


class _PendingReply:
    """A request without its reply."""

    def __init__(self, on_progress: OnProgress | None) -> None:
        self.done = anyio.Event()
        self.reply: dict[str, Any] | None = None
        self.on_progress = on_progress


class _DaemonConnection:
    """One connection: replies are matched by id, progress by token."""

    def __init__(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        self._send = send
        self._sending = anyio.Lock()
        self._count = 0
        self._pending: dict[int, _PendingReply] = {}
        self.is_open = True

    async def call(
        self, channel: str, payload: dict[str, Any], on_progress: OnProgress | None = None
    ) -> Any:
        """Call a channel; a call that is cancelled here is cancelled in the daemon too."""
        self._count += 1
        number, pending = self._count, _PendingReply(on_progress)
        meta = {"timeoutMs": PATIENCE_MS, "progressToken": number}
        params = payload | {"_meta": meta}
        self._pending[number] = pending
        try:
            await self._post({"id": number, "method": channel, "params": params})
            await pending.done.wait()
        except anyio.get_cancelled_exc_class():
            with (
                anyio.CancelScope(shield=True),
                anyio.move_on_after(1),
                contextlib.suppress(DaemonError),
            ):
                await self._post({"method": "$/cancelRequest", "params": {"id": number}})
            raise
        finally:
            del self._pending[number]
        if pending.reply is None:
            raise disconnect_error()
        if "error" in pending.reply:
            raise error_of(pending.reply["error"])
        return pending.reply["result"]

    async def read(self, stream: ByteReceiveStream) -> None:
        """Read the messages of a stream until it ends, and pass each to its call."""
        splitter = Splitter(LARGEST_REPLY)
        with contextlib.suppress(
            anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError
        ):
            while True:
                splitter.feed(await stream.receive())
                for event in splitter.events():
                    if isinstance(event, Frame):
                        await self._receive(msgspec.json.decode(bytes(event.body)))
        self.is_open = False
        for pending in self._pending.values():
            pending.done.set()

    async def _receive(self, message: dict[str, Any]) -> None:
        if message.get("method") == "$/progress":
            params = message["params"]
            waiting = self._pending.get(params.get("token"))
            if waiting is not None and waiting.on_progress is not None:
                await waiting.on_progress(params)
        elif "method" not in message and message.get("id") in self._pending:
            pending = self._pending[message["id"]]
            pending.reply = message
            pending.done.set()

    async def _post(self, message: dict[str, Any]) -> None:
        body = msgspec.json.encode({"jsonrpc": "2.0"} | message)
        try:
            async with self._sending:
                await self._send(bytes(add_framing(Framing.LINES, bytearray(body))))
        except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise disconnect_error() from None


class DaemonLink:
    """The daemon as one project's agent may use it."""

    def __init__(
        self, user_data: Path, root: Path, channels: Sequence[str], tasks: TaskGroup
    ) -> None:
        self._user_data, self._root = user_data, root
        self._channels = list(channels)
        self._tasks = tasks
        self._connection: _DaemonConnection | None = None
        self._opening = anyio.Lock()
        self._in_flight = anyio.CapacityLimiter(MOST_IN_FLIGHT)
        self._stack = contextlib.AsyncExitStack()
        self.project_id = ""

    async def call(
        self,
        channel: str,
        payload: dict[str, Any] | None = None,
        *,
        repeatable: bool = True,
        on_progress: OnProgress | None = None,
    ) -> Any:
        """Call a channel for the project; `repeatable` calls survive the end of a daemon."""
        async with self._in_flight:
            return await self._call(channel, payload, on_progress, repeatable=repeatable)

    async def _call(
        self,
        channel: str,
        payload: dict[str, Any] | None,
        on_progress: OnProgress | None,
        *,
        repeatable: bool,
    ) -> Any:
        connection = await self.open()
        params = {"projectId": self.project_id} | (payload or {})
        try:
            return await connection.call(channel, params, on_progress)
        except DaemonError as error:
            if error.code is not ErrorCode.DISCONNECTED or connection.is_open:
                raise
        if not repeatable:
            raise DaemonError(ErrorCode.DISCONNECTED, _GONE, mayBeDone=True)
        connection = await self.open()
        params["projectId"] = self.project_id
        return await connection.call(channel, params, on_progress)

    async def open(self) -> _DaemonConnection:
        """Return the connection, after making it if there is none."""
        async with self._opening:
            if self._connection is None or not self._connection.is_open:
                self._connection = await self._connect_again()
            return self._connection

    async def aclose(self) -> None:
        """Close the connection; a daemon that was started here ends."""
        with anyio.CancelScope(shield=True), anyio.move_on_after(END_SECONDS):
            await self._stack.aclose()

    async def _connect_again(self) -> _DaemonConnection:
        """Connect again; if another MCP server has started a daemon meanwhile, use that one."""
        for left in reversed(range(TRIES)):
            await self._stack.aclose()
            try:
                return await self._connect()
            except DaemonError as error:
                if error.code is not ErrorCode.DISCONNECTED or not left:
                    raise
        raise AssertionError

    async def _connect(self) -> _DaemonConnection:
        running = await to_thread.run_sync(find_running, self._user_data)
        address = None if running is None else socket_endpoint(running)
        opened = _spawn(self._user_data) if address is None else _over_socket(address)
        send, stream = await self._stack.enter_async_context(opened)
        connection = _DaemonConnection(send)
        self._tasks.start_soon(connection.read, stream)
        try:
            with anyio.fail_after(ANSWER_SECONDS):
                token = None if address is None or address.token is UNSET else address.token
                await self._introduce(connection, token)
        except TimeoutError:
            raise DaemonError(ErrorCode.TIMEOUT, _SILENT) from None
        return connection

    async def _introduce(self, connection: _DaemonConnection, token: str | None) -> None:
        """Become an owner, find the project, and give up all but the channels that are needed."""
        about = {"locale": console_language(), "clientInfo": {"name": "creonowd mcp"}}
        known = await connection.call("initialize", {"token": token, **about})
        project = await connection.call("project:create", {"rootPath": str(self._root)})
        # A daemon of another version may lack some; a call of those is refused.
        channels = [channel for channel in self._channels if channel in known["channels"]]
        grant = {"role": "owner", "channels": channels, "inspects": True}
        granted = await connection.call("session:grant", grant | {"ttlMs": GRANT_MS})
        await connection.call("initialize", {"token": granted["token"], **about})
        self.project_id = str(project["projectId"])


@contextlib.asynccontextmanager
async def _over_socket(
    address: endpoint.Endpoint,
) -> AsyncGenerator[tuple[Callable[[bytes], Awaitable[None]], ByteReceiveStream]]:
    try:
        if address.transport == "tcp":
            host, _, port = address.address.rpartition(":")
            stream = await anyio.connect_tcp(host, int(port))
        else:
            stream = await anyio.connect_unix(address.address)
    except OSError:
        raise disconnect_error() from None
    async with stream:
        yield stream.send, stream


@contextlib.asynccontextmanager
async def _spawn(
    user_data: Path,
) -> AsyncGenerator[tuple[Callable[[bytes], Awaitable[None]], ByteReceiveStream]]:
    """Start a daemon that lives as long as the block; its stderr is ours."""
    command = [*program(), "serve", "--stdio", "--user-data", str(user_data)]
    process = await anyio.open_process(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=None,
        env=process_environment(),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process.stdin.send, process.stdout
    finally:
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(END_SECONDS):
                await process.stdin.aclose()
                await process.wait()
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.aclose()
