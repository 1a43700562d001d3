"""The RPC server of one daemon: its connections, what they share, and how it ends."""

import hashlib
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, Protocol

import anyio
from anyio.abc import TaskGroup

from creonowd import __version__
from creonowd.clock import Clock
from creonowd.model import Empty, Result
from creonowd.redaction import Redactor
from creonowd.rpc.access import Grant, Grants, PageMemory, TokenThrottle, UnreadReplies
from creonowd.rpc.channel import Channel
from creonowd.rpc.connection import Connection, Wire
from creonowd.rpc.requests import Metrics, StopReason
from creonowd.settings import Settings
from creonowd.threads import LoopTurns

POLL_SECONDS = 0.01
FLUSH_SECONDS = 1.0
MAX_UNAUTHENTICATED = 256
TOKEN_SECONDS = 0.25


class Host(Protocol):
    """The process around a server, as far as the server and the channels depend on it."""

    @property
    def pid(self) -> int:
        """The process id."""
        ...

    def session(self, connection: Connection) -> Any:
        """Make the first argument of handlers for the requests of a connection."""
        ...

    @property
    def document(self) -> bytes:
        """The OpenRPC document of all channels, in its canonical form."""
        ...

    @property
    def redactor(self) -> Redactor:
        """What hides secrets in errors: those of any user, and the keys that are configured."""
        ...

    @property
    def is_loading(self) -> bool:
        """Whether channels are still being loaded; requests for those that are missing wait."""
        ...

    def when_loaded(self, callback: Callable[[], None]) -> None:
        """Run `callback` once all channels have been added to the server."""
        ...

    def watch_parent(self, pid: int) -> None:
        """End the daemon when the process `pid` ends."""
        ...


class Server:
    """Accept connections, hold what they share, and drain them at the end."""

    def __init__(
        self,
        channels: Iterable[Channel],
        settings: Settings,
        clock: Clock,
        tasks: TaskGroup,
        host: Host,
    ) -> None:
        self.channels: dict[str, Channel] = {}
        self.settings = settings
        self.clock = clock
        self.tasks = tasks
        self.host = host
        self.metrics = Metrics()
        self.grants = Grants(clock)
        self.throttle = TokenThrottle(self.grants)
        self.turns = LoopTurns()
        self.page_memory = PageMemory(tasks)
        self.unread_replies = UnreadReplies(tasks)
        self.stopping = anyio.Event()
        self.exiting = anyio.Event()
        self.reason = ""
        self.connections: dict[Connection, None] = {}
        self._opened = 0
        self._started = clock.monotonic()
        self.add(channels)

    @property
    def uptime_ms(self) -> int:
        """How long the daemon has been up."""
        return int((self.clock.monotonic() - self._started) * 1000)

    @cached_property
    def contract_hash(self) -> str:
        """The hash of the OpenRPC document."""
        return hashlib.sha256(self.host.document).hexdigest()

    def add(self, channels: Iterable[Channel]) -> None:
        """Add channels to the table."""
        self.channels |= {channel.name: channel for channel in channels}

    def connect(self, wire: Wire, transport: str, grant: Grant | None) -> Connection:
        """Open a connection with the rights of its transport; None until it sends a token."""
        self._opened += 1
        connection = Connection(self, wire, f"{transport}-{self._opened}", grant)
        self.connections[connection] = None
        self._limit_unauthenticated()
        return connection

    async def wait_for_room(self) -> None:
        """Wait until another connection without rights may be accepted.

        If there are as many as allowed, one of them must end for it. That is one with a wrong token
        or one that has had `TOKEN_SECONDS` to send its token, so a client that knows the token
        always has that time, however many others connect.
        """
        suspects = self.throttle.suspects
        while (first := self._first_to_leave(MAX_UNAUTHENTICATED - 1)) is not None:
            if first.age >= TOKEN_SECONDS or first.id in suspects:
                return
            await anyio.sleep(POLL_SECONDS)

    def _limit_unauthenticated(self) -> None:
        """End a connection without rights if there are too many of them."""
        surplus = self._first_to_leave(MAX_UNAUTHENTICATED)
        if surplus is not None:
            surplus.abort()
            self.forget(surplus)

    def _first_to_leave(self, most: int) -> Connection | None:
        """Return the connection without rights that ends first; None if there are `most` or fewer.

        That is the newest with a wrong token, else the oldest. Not the oldest with a wrong token: it
        is the one that the throttle delays now, and if it ended, the next would be answered at once.
        """
        unauthenticated = [each for each in self.connections if each.grant is None]
        if len(unauthenticated) <= most:
            return None
        suspects = (each for each in reversed(unauthenticated) if each.id in self.throttle.suspects)
        return next(suspects, unauthenticated[0])

    def forget(self, connection: Connection) -> None:
        """Drop a connection that has ended."""
        self.connections.pop(connection, None)

    def revoke(self, token: str) -> bool:
        """Revoke a token and stop the requests of its holders; False if there is no such token."""
        grant = self.grants.revoke(token)
        if grant is None:
            return False
        for connection in list(self.connections):
            if connection.grant is not None and connection.grant.descends_from(grant):
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
        if await self._is_idle_within(seconds):
            return True
        for connection in list(self.connections):
            connection.requests.stop(StopReason.SHUTTING_DOWN)
        await self._is_idle_within(FLUSH_SECONDS)
        return False

    async def _is_idle_within(self, seconds: float) -> bool:
        with anyio.move_on_after(seconds):
            while not self.idle:  # noqa: ASYNC110 - transports do not signal when bytes have left
                await anyio.sleep(POLL_SECONDS)
            return True
        return False

    async def wait_for_last_request(self) -> None:
        """Wait until only the calling request is in flight, at most for the drain time."""
        with anyio.move_on_after(self.settings.drain_ms / 1000):
            while self.in_flight > 1:  # noqa: ASYNC110 - requests end in many ways
                await anyio.sleep(POLL_SECONDS)


class ServerSession(Protocol):
    """A session, as far as `app:ping` needs it."""

    @property
    def server(self) -> Server:
        """The server that the request came in on."""
        ...


class Pong(Result):
    """A sign of life."""

    pong: bool
    """Always true."""
    version: str
    """The daemon's version."""
    pid: int
    """The daemon's process id."""
    now_ms: int
    """The daemon's clock, in milliseconds since 1970 (UTC)."""


def ping(session: ServerSession, params: Empty) -> Pong:  # noqa: ARG001 - every handler takes a payload
    """Answer at once."""
    server = session.server
    return Pong(pong=True, version=__version__, pid=server.host.pid, now_ms=server.clock.now_ms())


PING = Channel("app:ping", ping)
