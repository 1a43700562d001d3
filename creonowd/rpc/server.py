"""The RPC server of one daemon: its connections, what they share, and how it ends.

Pages share a limit. A page that has begun a large message is read on only when it has its turn, one
page at a time and each for one message; what has been read counts until it is answered. Owners are
read as before, and so are the short messages of pages, such as cancellations and replies; a page
that has many short requests in flight meanwhile gets IPC_BACKPRESSURE. What all pages together
leave unread is bounded.
"""

import hashlib
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, Protocol

import anyio
from anyio.abc import TaskGroup

from creonowd import __version__
from creonowd.clock import Clock
from creonowd.errors import DaemonError, ErrorCode, Wording
from creonowd.model import Empty, Result
from creonowd.redaction import Redactor
from creonowd.rpc.access import Grant, Grants, TokenThrottle
from creonowd.rpc.channel import Channel, Role
from creonowd.rpc.connection import Connection, Wire
from creonowd.rpc.requests import Metrics, StopReason
from creonowd.settings import Settings
from creonowd.threads import LoopTurns

POLL_SECONDS = 0.01
FLUSH_SECONDS = 1.0
MAX_UNAUTHENTICATED = 256
# A page could take all descriptors that the process may have, and no owner could connect any more.
MOST_PAGES = 256
TOKEN_SECONDS = 0.25
PAGES_BYTES = 2 * 1024 * 1024
# A page that has its turn and does not send the rest of its message keeps others out.
READ_SECONDS = 5.0
# What all pages together may leave unread, and how much of that a page may have uncounted.
UNREAD_PAGES_BYTES = 8 * 1024 * 1024
UNCOUNTED_UNREAD_BYTES = 16 * 1024
UNREAD_CHECK_SECONDS = 0.05


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

    def admit(self, connection: Connection, grant: Grant) -> None:
        """Give a connection the rights of its token; IPC_BACKPRESSURE if too many are pages' already."""
        admitted = (each for each in self.connections if each.grant is not None)
        pages = sum(each.role is Role.RENDERER for each in admitted)
        is_new_page = grant.role is Role.RENDERER and connection.grant is None
        if is_new_page and pages >= MOST_PAGES:
            raise DaemonError(
                ErrorCode.IPC_BACKPRESSURE, _TOO_MANY_PAGES, limit=MOST_PAGES, retryAfterMs=1000
            )
        connection.admit(grant)

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


_TOO_MANY_PAGES = Wording(
    "Too many pages are connected; close some of them.", "连接的页面过多；请关闭一些。"
)


class Page(Protocol):
    """What `PageMemory` needs of a page's connection."""

    def resume_or_pause(self) -> None:
        """Read on, if there is room for it now."""
        ...

    def abort_unfinished(self) -> None:
        """End the connection at once, unless its message has come by now."""
        ...


class SlowPage(Protocol):
    """The connection of a page that may leave replies unread."""

    def unread_bytes(self) -> int:
        """Return how many bytes the page has not read yet."""
        ...

    def congest(self) -> None:
        """Hold events and new requests back."""
        ...

    def relieve(self) -> None:
        """Send events and start requests that waited."""
        ...


class PageMemory:
    """Count what pages have asked, and give them turns to send more."""

    def __init__(self, tasks: TaskGroup, read_seconds: float = READ_SECONDS) -> None:
        self.bytes_in_flight = 0
        self.reader: Page | None = None
        self._tasks = tasks
        self._read_seconds = read_seconds
        self._waiting: dict[Page, None] = {}
        self._reads_begun = 0
        self._is_watched = False

    @property
    def is_full(self) -> bool:
        """Whether no further large message may come in."""
        return self.bytes_in_flight >= PAGES_BYTES

    def may_read_on(self, page: Page) -> bool:
        """Return whether a page that has begun a large message has its turn; else let it wait."""
        if self.reader is page:
            return True
        self._waiting.setdefault(page)
        if self.is_full or self.reader is not None or next(iter(self._waiting)) is not page:
            return False
        del self._waiting[page]
        self.reader = page
        self._reads_begun += 1
        if not self._is_watched:
            self._is_watched = True
            self._tasks.start_soon(self._watch)
        return True

    def stop_waiting(self, page: Page) -> None:
        """Go on without a page that has begun no large message, or none any more."""
        if self._waiting:
            self._waiting.pop(page, None)
        self.finish_reading(page)

    def finish_reading(self, page: Page) -> None:
        """Let others read once the large message has come."""
        if self.reader is page:
            self.reader = None
            self._wake()

    def add(self, size: int) -> None:
        """Count a request that was accepted."""
        self.bytes_in_flight += size

    def remove(self, size: int) -> None:
        """Count a request no longer, since it was answered."""
        self.bytes_in_flight -= size
        if self._waiting:
            self._wake()

    def forget(self, page: Page) -> None:
        """Drop a page whose connection has ended."""
        self._waiting.pop(page, None)
        self.finish_reading(page)

    def _wake(self) -> None:
        """Let waiting pages check for room again, in the order in which they came."""
        if self.is_full:
            return
        for page in list(self._waiting):
            if page in self._waiting:
                page.resume_or_pause()

    async def _watch(self) -> None:
        """Disconnect a page that has its turn and sends nothing while others wait."""
        try:
            while (page := self.reader) is not None:
                begun = self._reads_begun
                await anyio.sleep(self._read_seconds)
                if self.reader is page and begun == self._reads_begun and self._waiting:
                    page.abort_unfinished()
        finally:
            self._is_watched = False


class UnreadReplies:
    """Bound what all pages together leave unread.

    Over the bound, a page with much unread gets nothing new until it has read. Pages that read get
    their replies as always.
    """

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        self._slow: dict[SlowPage, None] = {}
        self._is_watched = False

    def note(self, page: "SlowPage") -> None:
        """Check how much a page has left unread; called after each message to it."""
        if page.unread_bytes() <= UNCOUNTED_UNREAD_BYTES:
            return
        self._slow[page] = None
        if sum(one.unread_bytes() for one in self._slow) < UNREAD_PAGES_BYTES:
            return
        for one in self._slow:
            one.congest()
        if not self._is_watched:
            self._is_watched = True
            self._tasks.start_soon(self._watch)

    def forget(self, page: "SlowPage") -> None:
        """Drop a page whose connection has ended."""
        self._slow.pop(page, None)

    async def _watch(self) -> None:
        """Go on with each page that has read; transports report only what is far more unread."""
        try:
            while self._slow:
                await anyio.sleep(UNREAD_CHECK_SECONDS)
                for page in list(self._slow):
                    if page in self._slow and page.unread_bytes() <= UNCOUNTED_UNREAD_BYTES:
                        del self._slow[page]
                        page.relieve()
        finally:
            self._is_watched = False


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
