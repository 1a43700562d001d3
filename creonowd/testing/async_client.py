"""An asynchronous JSON-RPC client, and the ways to a daemon: its standard streams and its sockets."""

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, cast

import anyio
import msgspec
from anyio.abc import ByteReceiveStream, ByteStream, Process
from anyio.streams.memory import MemoryObjectReceiveStream

from creonowd.cli.client import program
from creonowd.daemon import endpoint
from creonowd.rpc.messages import Frame, Framing, Splitter, add_framing
from creonowd.settings import process_environment
from creonowd.transports.memory import MemoryWire

SendBytes = Callable[[bytes], Awaitable[None]]
HostHandler = Callable[[Any], Any]
PATIENCE = 60


class RpcError(Exception):
    """An error reply."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.number: int = error["code"]
        self.data: dict[str, Any] = error["data"]
        self.code: str = self.data["code"]
        self.details: dict[str, Any] = self.data.get("details", {})


def _ignore(_channel: str, _error: RpcError) -> None:
    """Ignore an error."""


class AsyncClient:
    """One connection. Replies are matched by id; the rest is kept in the order of arrival."""

    # Sees the channel and the error of every call that fails; the package's own tests replace it
    # to check that the contract declares the error.
    on_error: ClassVar[Callable[[str, RpcError], None]] = _ignore

    def __init__(self, send: SendBytes, framing: Framing) -> None:
        self.framing = framing
        self.events: list[dict[str, Any]] = []
        self.strays: list[Any] = []
        self.handlers: dict[str, HostHandler] = {}
        self.closed = anyio.Event()
        self.wire: MemoryWire | None = None
        self.process: Process | None = None
        self.accepts_repeated_replies = False
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
            error = RpcError(reply["error"])
            type(self).on_error(method, error)
            raise error
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
        """Receive one message from the daemon."""
        decoded = msgspec.json.decode(body)
        message = cast("dict[str, Any]", decoded) if isinstance(decoded, dict) else {}
        if "method" in message:
            await self._receive_request(message)
        elif message.get("id") is None:
            self.strays.append(decoded)
        else:
            twice = message["id"] in self._replies and not self.accepts_repeated_replies
            assert not twice, "a request was answered twice"
            self._replies[message["id"]] = message
        self._wake()

    def mark_ended(self) -> None:
        """Note that the daemon closed the connection."""
        self.closed.set()
        self._wake()

    def _wake(self) -> None:
        """Let everyone who waits look again; those who come later wait for the next message."""
        arrived, self._arrived = self._arrived, anyio.Event()
        arrived.set()

    async def _receive_request(self, message: dict[str, Any]) -> None:
        if "id" not in message:
            self.events.append(message)
            return
        handler = self.handlers.get(message["method"])
        if handler is not None:
            result = handler(message.get("params"))
            if result is not NotImplemented:
                await self.post({"jsonrpc": "2.0", "id": message["id"], "result": result})


@contextlib.asynccontextmanager
async def over_stdio(
    user_data: Path, framing: Framing = Framing.LINES, **environ: str
) -> AsyncGenerator[AsyncClient]:
    """Spawn a daemon and talk to it as Electron does; it must end by itself with status 0."""
    whole = daemon_environment(process_environment(), **environ)
    async with over_pipes(daemon_command(user_data), whole, framing) as client:
        yield client


@contextlib.asynccontextmanager
async def over_pipes(
    command: Sequence[str], environ: Mapping[str, str], framing: Framing = Framing.LINES
) -> AsyncGenerator[AsyncClient]:
    """Spawn whatever runs a daemon on its standard streams, in exactly this environment."""
    process = await anyio.open_process(command, env=environ, stderr=None)
    assert process.stdin is not None
    assert process.stdout is not None
    client = AsyncClient(process.stdin.send, framing)
    client.process = process
    async with process, anyio.create_task_group() as tasks:
        tasks.start_soon(receive_messages, process.stdout, client)
        try:
            yield client
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(PATIENCE):
                await process.stdin.aclose()
                await process.wait()
            tasks.cancel_scope.cancel()


@contextlib.asynccontextmanager
async def over_socket(path: Path, framing: Framing = Framing.LINES) -> AsyncGenerator[AsyncClient]:
    """Connect to a Unix socket."""
    async with await anyio.connect_unix(path) as stream, _client_over(stream, framing) as client:
        yield client


@contextlib.asynccontextmanager
async def over_tcp(
    address: str, token: str | None, framing: Framing = Framing.LINES
) -> AsyncGenerator[AsyncClient]:
    """Connect to loopback TCP and show the token."""
    host, _, port = address.rpartition(":")
    stream = await anyio.connect_tcp(host, int(port))
    async with stream, _client_over(stream, framing) as client:
        if token is not None:
            await client.call("initialize", {"token": token})
        yield client


async def endpoints_of(user_data: Path) -> dict[str, endpoint.Endpoint]:
    """Wait until the daemon has written where it listens."""
    with anyio.fail_after(PATIENCE):
        while (found := endpoint.read(user_data)) is None:  # noqa: ASYNC110 - another process writes it
            await anyio.sleep(0.02)
    return {way.transport: way for way in found.endpoints}


@contextlib.asynccontextmanager
async def _client_over(stream: ByteStream, framing: Framing) -> AsyncGenerator[AsyncClient]:
    client = AsyncClient(stream.send, framing)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(receive_messages, stream, client)
        yield client
        tasks.cancel_scope.cancel()


async def receive_messages(
    stream: ByteReceiveStream | MemoryObjectReceiveStream[bytes], client: AsyncClient
) -> None:
    """Pass every message of a stream to a client until the stream ends."""
    splitter = Splitter(1 << 40)
    with contextlib.suppress(
        anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError
    ):
        while True:
            splitter.feed(await stream.receive())
            for event in splitter.events():
                assert isinstance(event, Frame)
                await client.receive(bytes(event.body))
    client.mark_ended()


def daemon_command(user_data: Path, *arguments: str) -> list[str]:
    """Return the command that runs the daemon of this installation."""
    chosen = arguments or ("--stdio",)
    return [*program(), "serve", *chosen, "--user-data", str(user_data)]


def daemon_environment(given: Mapping[str, str], **more: str) -> dict[str, str]:
    """Return the environment of a daemon under test, made from this one."""
    # With it the regex package would print a warning about itself among our output.
    kept = {name: value for name, value in given.items() if name != "PYTHONWARNDEFAULTENCODING"}
    return kept | {"CREONOW_E2E": "1", "CREONOW_WARM_UP": "false"} | more
