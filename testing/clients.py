"""JSON-RPC clients for our own tests: those of `creonowd.testing`, over memory and WebSocket too.

And the daemons that they talk to: one in this process, or one in a process of its own.
"""

import contextlib
import math
import os
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any, TypeVar

import anyio
from anyio.abc import Process

from creonowd.channels import ALL_CHANNELS
from creonowd.daemon.build import build
from creonowd.errors import DaemonError, ErrorCode
from creonowd.rpc.channel import ANY_CHANNEL, Role
from creonowd.rpc.connection import Merge
from creonowd.rpc.messages import Framing
from creonowd.rpc.server import Server
from creonowd.settings import Settings
from creonowd.testing.async_client import (
    PATIENCE,
    AsyncClient,
    RpcError,
    daemon_command,
    daemon_environment,
    endpoints_of,
    over_pipes,
    over_socket,
    over_stdio,
    over_tcp,
    receive_messages,
)
from creonowd.transports.memory import MemoryWire

# The clients that ship with the package, beside those that only its own tests need.
__all__ = [
    "ALL_FRAMINGS",
    "PATIENCE",
    "Client",
    "RecordingPeer",
    "RpcError",
    "daemon",
    "daemon_command",
    "endpoints_of",
    "environment",
    "in_memory",
    "over_pipes",
    "over_socket",
    "over_stdio",
    "over_tcp",
    "over_websocket",
    "refuse_undeclared_errors",
    "run_daemon",
]

T = TypeVar("T")
Client = AsyncClient
ALL_FRAMINGS = (Framing.LINES, Framing.HEADERS)


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
        tasks.start_soon(receive_messages, pull, client)
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
async def over_websocket(address: str, token: str | None) -> AsyncGenerator[Client]:
    """Connect to a loopback WebSocket and show the token."""
    from websockets.asyncio.client import connect

    async with connect(address, max_size=None) as socket, anyio.create_task_group() as tasks:

        async def send(data: bytes) -> None:
            await socket.send(data, text=_is_text(data))

        async def receive_messages() -> None:
            async for message in socket:
                await client.receive(message.encode() if isinstance(message, str) else message)
            client.mark_ended()

        client = Client(send, Framing.WHOLE)
        tasks.start_soon(receive_messages)
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
async def run_daemon(user_data: Path, *arguments: str) -> AsyncGenerator[Process]:
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


def environment(**more: str) -> dict[str, str]:
    """Return the environment of these tests, for a daemon or a command under test."""
    return daemon_environment(os.environ, **more)


def refuse_undeclared_errors() -> None:
    """Make every call of a test fail whose error the contract does not declare for its channel."""

    def check(name: str, error: RpcError) -> None:
        channel = channels.get(name)
        declared = ANY_CHANNEL | channel.errors if channel else {error.code}
        assert error.code in declared, f"{name} gave {error.code}; declare it in its CHANNELS"

    channels = {channel.name: channel for channel in ALL_CHANNELS}
    Client.on_error = check


class RecordingPeer:
    """The test double of `Peer`: keeps every notification, answers no call, and can hang up."""

    def __init__(self, name: str = "test", role: Role = Role.OWNER, *, utf16: bool = False) -> None:
        self.id = name
        self.role = role
        self.utf16 = utf16
        self.is_connected = True
        self.events: list[tuple[str, Any]] = []
        self._closers: list[Callable[[], None]] = []

    def notify(self, name: str, fields: Any, *, key: str = "", merge: Merge | None = None) -> None:
        self.events.append((name, fields))

    async def call(self, name: str, params: Any, result: type[T], timeout_ms: int) -> T:
        raise DaemonError(ErrorCode.DISCONNECTED)

    def when_closed(self, callback: Callable[[], None]) -> None:
        if self.is_connected:
            self._closers.append(callback)
        else:
            callback()

    def hang_up(self) -> None:
        self.is_connected = False
        for callback in self._closers:
            callback()
