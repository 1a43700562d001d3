"""Every connection of one daemon, and their common end. Knows no socket and no feature."""

import os
from collections.abc import Awaitable, Callable, Iterable
from functools import cached_property
from typing import Annotated, Any, Protocol

import anyio
from anyio.abc import TaskGroup
from msgspec import Meta

from creonowd import __version__
from creonowd.clock import Clock
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Empty, Result
from creonowd.rpc.access import Grant, Grants, TokenThrottle
from creonowd.rpc.channel import Channel
from creonowd.rpc.connection import Connection
from creonowd.rpc.metrics import Metrics
from creonowd.rpc.outbox import Wire
from creonowd.rpc.requests import StopReason
from creonowd.settings import Settings

DRAIN_STEP = 0.01
FLUSH_SECONDS = 1.0
MOST_STRANGERS = 256


class Server:
    """Accepts connections, shares what they share, and drains them at the end."""

    def __init__(
        self, channels: Iterable[Channel], settings: Settings, clock: Clock, tasks: TaskGroup
    ) -> None:
        self.channels = {channel.name: channel for channel in channels}
        self.settings = settings
        self.clock = clock
        self.tasks = tasks
        self.metrics = Metrics()
        self.grants = Grants(clock)
        self.doorman = TokenThrottle(self.grants, clock)
        self.stopping = anyio.Event()
        self.exiting = anyio.Event()
        self.reason = ""
        self.open_session: Callable[[Connection], Any] = lambda _: self
        self.complete = True
        self.connections: dict[Connection, None] = {}
        self.describe: Callable[[], dict[str, Any]] = dict
        self.watch_parent: Callable[[int], None] = _ignore
        self.open_page: Callable[[], Awaitable[str]] = _no_page
        self.keep_pages: Callable[[], Awaitable[None]] = _keep_nothing
        self._opened = 0
        self._parked: list[Callable[[], None]] = []
        self._started = clock.monotonic()

    @property
    def uptime_ms(self) -> int:
        """How long the daemon has been up."""
        return int((self.clock.monotonic() - self._started) * 1000)

    @cached_property
    def document(self) -> dict[str, Any]:
        """The OpenRPC document of what can be asked here; made when first wanted."""
        return self.describe()

    @cached_property
    def contract_hash(self) -> str:
        """The hash of that document."""
        from creonowd.rpc.openrpc import contract_hash

        return contract_hash(self.document)

    def expect_more(self) -> None:
        """Note that channels are still being loaded: what asks for them waits."""
        self.complete = False

    def park(self, callback: Callable[[], None]) -> None:
        """Run `callback` when all channels are there."""
        self._parked.append(callback)

    def add(self, channels: Iterable[Channel]) -> None:
        """Complete the table, and answer what waited for it."""
        self.channels |= {channel.name: channel for channel in channels}
        self.complete = True
        parked, self._parked = self._parked, []
        for callback in parked:
            callback()

    def connect(self, wire: Wire, transport: str, grant: Grant | None) -> Connection:
        """Open a connection with the rights that its transport implies; None until a token is shown."""
        self._opened += 1
        connection = Connection(self, wire, f"{transport}-{self._opened}", grant)
        self.connections[connection] = None
        self._make_room()
        return connection

    def _make_room(self) -> None:
        """Close the stranger that is here longest; those whose token is yet to be seen stay."""
        strangers = [one for one in self.connections if one.grant is None]
        if len(strangers) <= MOST_STRANGERS:
            return
        seen = (one for one in strangers[:-1] if one.id not in self.doorman.waiting)
        leaving = next(seen, strangers[-1])
        leaving.close()
        self.forget(leaving)

    def forget(self, connection: Connection) -> None:
        """Drop a connection that has ended."""
        self.connections.pop(connection, None)

    def revoke(self, token: str) -> bool:
        """Take a token back and end what its holders are doing; False if there is no such token."""
        grant = self.grants.revoke(token)
        if grant is None:
            return False
        for connection in list(self.connections):
            if connection.grant is not None and connection.grant.stems_from(grant):
                connection.requests.stop(StopReason.REVOKED)
        return True

    def stop(self, reason: str) -> None:
        """Take no new work; the first reason is the one that is logged."""
        self.reason = self.reason or reason
        self.stopping.set()

    def exit(self, reason: str) -> None:
        """End the daemon: drain, then leave."""
        self.stop(reason)
        self.exiting.set()

    @property
    def in_flight(self) -> int:
        """How many requests are accepted and not answered, on all connections."""
        return sum(connection.requests.in_flight for connection in self.connections)

    @property
    def idle(self) -> bool:
        """Whether nothing is in flight and nothing is left to send."""
        return all(connection.idle for connection in self.connections)

    async def drain(self, seconds: float) -> bool:
        """Wait until all is answered and sent; past the time, stop the rest and send the answers.

        True if nothing had to be stopped.
        """
        if await self._quiet_within(seconds):
            return True
        for connection in list(self.connections):
            connection.requests.stop(StopReason.SHUTTING_DOWN)
        await self._quiet_within(FLUSH_SECONDS)
        return False

    async def _quiet_within(self, seconds: float) -> bool:
        with anyio.move_on_after(seconds):
            while not self.idle:  # noqa: ASYNC110 - bytes leave through transports that tell nobody
                await anyio.sleep(DRAIN_STEP)
            return True
        return False

    async def settled(self) -> None:
        """Wait until no request is in flight but the one that asks, at most for the drain time."""
        with anyio.move_on_after(self.settings.drain_ms / 1000):
            while self.in_flight > 1:  # noqa: ASYNC110 - requests end in many ways
                await anyio.sleep(DRAIN_STEP)


async def _no_page() -> str:
    raise DaemonError(ErrorCode.UNSUPPORTED, "This daemon serves no pages.")


async def _keep_nothing() -> None:
    """Write nothing down: a server without a process of its own cannot be killed."""


def _ignore(_pid: int) -> None:
    """Watch nobody: a server without a process of its own has no parent."""


class HasClock(Protocol):
    """All that a sign of life needs to know."""

    @property
    def clock(self) -> Clock:
        """The daemon's clock."""
        ...


class Pong(Result):
    """A sign of life."""

    pong: bool
    version: str
    pid: int
    now_ms: Annotated[int, Meta(description="milliseconds since the epoch")]


def ping(session: HasClock, params: Empty) -> Pong:  # noqa: ARG001 - every handler takes a payload
    """Answer at once."""
    return Pong(pong=True, version=__version__, pid=os.getpid(), now_ms=session.clock.now_ms())


PING = Channel("app:ping", ping)
