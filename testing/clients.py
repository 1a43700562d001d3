"""JSON-RPC clients for tests: over memory, stdio, sockets and WebSocket, in every framing.

And the daemons that they talk to: one in this process, or one in a process of its own.
"""

import contextlib
import math
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import anyio
import msgspec
from anyio.abc import ByteStream, Process
from anyio.streams.memory import MemoryObjectReceiveStream

from creonowd.cli.client import program
from creonowd.daemon import endpoint
from creonowd.daemon.build import build
from creonowd.errors import DaemonError, ErrorCode
from creonowd.rpc.channel import Role
from creonowd.rpc.framing import Frame, Framing, Splitter, add_framing
from creonowd.rpc.peer import Merge
from creonowd.rpc.server import Server
from creonowd.settings import Settings
from creonowd.transports.memory import MemoryWire

T = TypeVar("T")
Send = Callable[[bytes], Awaitable[None]]
Handler = Callable[[Any], Any]
PATIENCE = 60
ALL_FRAMINGS = (Framing.LINES, Framing.HEADERS)


class RpcError(Exception):
    """An error reply."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.number: int = error["code"]
        self.data: dict[str, Any] = error["data"]
        self.code: str = self.data["code"]
        self.details: dict[str, Any] = self.data.get("details", {})


class Client:
    """One connection. Replies are matched by id; the rest is kept in the order of arrival."""

    def __init__(self, send: Send, framing: Framing) -> None:
        self.framing = framing
        self.events: list[dict[str, Any]] = []
        self.strays: list[Any] = []
        self.handlers: dict[str, Handler] = {}
        self.closed = anyio.Event()
        self.wire: MemoryWire | None = None
        self.process: Process | None = None
        self.careless = False
        self._send = send
        self._made = 0
        self._replies: dict[Any, Any] = {}
        self._arrived = anyio.Event()

    async def call(self, method: str, params: Any = None, seconds: float = PATIENCE) -> Any:
        """Call and return the result, or raise `RpcError`."""
        self._made += 1
        number = self._made
        payload: Any = {} if params is None else params
        await self.post({"jsonrpc": "2.0", "id": number, "method": method, "params": payload})
        reply = await self.reply(number, seconds)
        if "error" in reply:
            raise RpcError(reply["error"])
        return reply["result"]

    async def failure(self, method: str, params: Any = None) -> RpcError:
        """Call, and return the error that must come."""
        try:
            result = await self.call(method, params)
        except RpcError as error:
            return error
        raise AssertionError(f"{method} succeeded with {result!r}")

    async def post(self, message: Any) -> None:
        """Send any JSON value as one message."""
        await self.frame(msgspec.json.encode(message))

    async def frame(self, body: bytes) -> None:
        """Send any bytes as one message."""
        await self._send(bytes(add_framing(self.framing, bytearray(body))))

    async def raw(self, data: bytes) -> None:
        """Send any bytes."""
        await self._send(data)

    async def reply(self, number: Any, seconds: float = PATIENCE) -> Any:
        """Wait for the reply to an id."""
        await self.until(lambda: number in self._replies, seconds)
        return self._replies.pop(number)

    async def stray(self) -> Any:
        """Wait for the next message without an id of ours: a batch, or an error with id null."""
        await self.until(lambda: bool(self.strays))
        return self.strays.pop(0)

    async def event(
        self, name: str, where: Callable[[Any], bool] = bool, seconds: float = PATIENCE
    ) -> dict[str, Any]:
        """Wait for the next event of this name that fits, and return its params."""

        def fits(event: dict[str, Any]) -> bool:
            return event["method"] == name and where(event["params"])

        await self.until(lambda: any(map(fits, self.events)), seconds)
        found = next(filter(fits, self.events))
        self.events.remove(found)
        return found["params"]

    async def until(self, condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
        """Wait for something to be true after a message."""
        with anyio.fail_after(seconds):
            while not condition():
                if self.closed.is_set():
                    raise ConnectionError("the daemon has closed the connection")
                await self._arrived.wait()

    async def receive(self, body: bytes) -> None:
        """Take in one message from the daemon."""
        decoded = msgspec.json.decode(body)
        message = cast("dict[str, Any]", decoded) if isinstance(decoded, dict) else {}
        if "method" in message:
            await self._asked(message)
        elif message.get("id") is None:
            self.strays.append(decoded)
        else:
            twice = message["id"] in self._replies and not self.careless
            assert not twice, "a request was answered twice"
            self._replies[message["id"]] = message
        self._wake()

    def ended(self) -> None:
        """Note that the daemon closed the connection."""
        self.closed.set()
        self._wake()

    def _wake(self) -> None:
        """Let everyone who waits look again; those who come later wait for the next message."""
        arrived, self._arrived = self._arrived, anyio.Event()
        arrived.set()

    async def _asked(self, message: dict[str, Any]) -> None:
        if "id" not in message:
            self.events.append(message)
            return
        handler = self.handlers.get(message["method"])
        if handler is not None:
            result = handler(message.get("params"))
            if result is not NotImplemented:
                await self.post({"jsonrpc": "2.0", "id": message["id"], "result": result})


@contextlib.asynccontextmanager
async def in_memory(
    server: Server, framing: Framing = Framing.LINES, role: Role | None = Role.OWNER
) -> AsyncGenerator[Client]:
    """Connect inside this process."""
    push, pull = anyio.create_memory_object_stream[bytes](math.inf)
    wire = MemoryWire(server, push.send_nowait, role)

    async def send(data: bytes) -> None:
        wire.connection.feed(data)
        await anyio.lowlevel.checkpoint()

    client = Client(send, framing)
    client.wire = wire
    wire.connection.when_closed(push.close)
    async with push, pull, anyio.create_task_group() as tasks:
        tasks.start_soon(_read_on, pull, client)
        yield client
        wire.connection.disconnect()
        tasks.cancel_scope.cancel()


@contextlib.asynccontextmanager
async def daemon(user_data: Path, settings: Settings | None = None) -> AsyncGenerator[Client]:
    """Start a daemon in this process, connect as an owner, and end it with the block."""
    async with (
        anyio.create_task_group() as tasks,
        build(user_data, settings or Settings(), tasks) as server,
        in_memory(server) as client,
    ):
        yield client
        tasks.cancel_scope.cancel()


@contextlib.asynccontextmanager
async def over_stdio(
    user_data: Path, framing: Framing = Framing.LINES, **environ: str
) -> AsyncGenerator[Client]:
    """Spawn a daemon and talk to it as Electron does; it must end by itself with status 0."""
    async with over_pipes(daemon_command(user_data), environment(**environ), framing) as client:
        yield client


@contextlib.asynccontextmanager
async def over_pipes(
    command: Sequence[str], environ: Mapping[str, str], framing: Framing = Framing.LINES
) -> AsyncGenerator[Client]:
    """Spawn whatever runs a daemon on its standard streams, in exactly this environment."""
    process = await anyio.open_process(command, env=environ, stderr=None)
    assert process.stdin is not None
    assert process.stdout is not None
    client = Client(process.stdin.send, framing)
    client.process = process
    async with process, anyio.create_task_group() as tasks:
        tasks.start_soon(_read_on, process.stdout, client)
        try:
            yield client
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(PATIENCE):
                await process.stdin.aclose()
                await process.wait()
            tasks.cancel_scope.cancel()


@contextlib.asynccontextmanager
async def over_socket(path: Path, framing: Framing = Framing.LINES) -> AsyncGenerator[Client]:
    """Connect to a Unix socket."""
    async with await anyio.connect_unix(path) as stream, _streaming(stream, framing) as client:
        yield client


@contextlib.asynccontextmanager
async def over_tcp(
    address: str, token: str | None, framing: Framing = Framing.LINES
) -> AsyncGenerator[Client]:
    """Connect to loopback TCP and show the token."""
    host, _, port = address.rpartition(":")
    stream = await anyio.connect_tcp(host, int(port))
    async with stream, _streaming(stream, framing) as client:
        if token is not None:
            await client.call("initialize", {"token": token})
        yield client


@contextlib.asynccontextmanager
async def over_websocket(address: str, token: str | None) -> AsyncGenerator[Client]:
    """Connect to a loopback WebSocket and show the token."""
    from websockets.asyncio.client import connect

    async with connect(address, max_size=None) as socket, anyio.create_task_group() as tasks:

        async def send(data: bytes) -> None:
            await socket.send(data, text=_is_text(data))

        async def read_on() -> None:
            async for message in socket:
                await client.receive(message.encode() if isinstance(message, str) else message)
            client.ended()

        client = Client(send, Framing.WHOLE)
        tasks.start_soon(read_on)
        if token is not None:
            await client.call("initialize", {"token": token})
        yield client
        tasks.cancel_scope.cancel()


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


@contextlib.asynccontextmanager
async def _streaming(stream: ByteStream, framing: Framing) -> AsyncGenerator[Client]:
    client = Client(stream.send, framing)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_read_on, stream, client)
        yield client
        tasks.cancel_scope.cancel()


async def _read_on(
    stream: "anyio.abc.ByteReceiveStream | MemoryObjectReceiveStream[bytes]", client: Client
) -> None:
    splitter = Splitter(1 << 40)
    with contextlib.suppress(
        anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError
    ):
        while True:
            splitter.feed(await stream.receive())
            for event in splitter.events():
                assert isinstance(event, Frame)
                await client.receive(bytes(event.body))
    client.ended()


def daemon_command(user_data: Path, *arguments: str) -> list[str]:
    """Spell the command that runs this checkout's daemon."""
    chosen = arguments or ("--stdio",)
    return [*program(), "serve", *chosen, "--user-data", str(user_data)]


def environment(**more: str) -> dict[str, str]:
    """Give a daemon under test the environment of a harness."""
    base = {"CREONOW_E2E": "1", "CREONOW_WARM_UP": "false"}
    # The regex package warns about itself in UTF-8 mode; that must not mix with what we say.
    ours = {
        name: value for name, value in os.environ.items() if name != "PYTHONWARNDEFAULTENCODING"
    }
    return ours | base | more


@contextlib.asynccontextmanager
async def running(user_data: Path, *arguments: str) -> AsyncGenerator[Process]:
    """Run a daemon that serves its endpoints, until the block ends."""
    command = daemon_command(user_data, *(arguments or ("--socket",)))
    async with await anyio.open_process(command, env=environment(), stderr=None) as process:
        try:
            await endpoints_of(user_data)
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            with anyio.fail_after(PATIENCE, shield=True):
                await process.wait()


async def endpoints_of(user_data: Path) -> dict[str, endpoint.Endpoint]:
    """Wait until the daemon has written where it listens."""
    with anyio.fail_after(PATIENCE):
        while (found := endpoint.read(user_data)) is None:  # noqa: ASYNC110 - another process writes it
            await anyio.sleep(0.02)
    return {way.transport: way for way in found.endpoints}


class RecordingPeer:
    """The test double of `Peer`: keeps every notification, answers no call, and can hang up."""

    def __init__(self, name: str = "test", role: Role = Role.OWNER, *, utf16: bool = False) -> None:
        self.id = name
        self.role = role
        self.utf16 = utf16
        self.connected = True
        self.events: list[tuple[str, Any]] = []
        self._closers: list[Callable[[], None]] = []

    def notify(self, name: str, fields: Any, *, key: str = "", merge: Merge | None = None) -> None:
        self.events.append((name, fields))

    async def call(self, name: str, params: Any, result: type[T], timeout_ms: int) -> T:
        raise DaemonError(ErrorCode.DISCONNECTED)

    def when_closed(self, callback: Callable[[], None]) -> None:
        if self.connected:
            self._closers.append(callback)
        else:
            callback()

    def hang_up(self) -> None:
        self.connected = False
        for callback in self._closers:
            callback()
