"""Access: what a token allows and for how long, and how much pages may ask at once.

A wrong token is answered slowly. A page that has begun a large message is read on only when it has its turn, one page at a time and
each for one message; what has been read counts until it is answered. Owners are read as before, and
so are the short messages of pages, such as cancellations and replies; a page that has many short
requests in flight meanwhile gets IPC_BACKPRESSURE. What all pages together leave unread is bounded.
"""

import hashlib
import hmac
import math
from collections.abc import Iterator
from typing import Protocol

import anyio
import structlog
from anyio.abc import TaskGroup

from creonowd.clock import Clock
from creonowd.rpc.channel import Channel, Role

REFUSAL_SECONDS = 1.0
MOST_DIGESTS = 64
PAGES_BYTES = 2 * 1024 * 1024
SHORT_MESSAGE = 128 * 1024
# A page that has its turn and does not send the rest of its message keeps others out.
READ_SECONDS = 5.0
# What all pages together may leave unread, and how much of that a page may have uncounted.
UNREAD_PAGES_BYTES = 8 * 1024 * 1024
UNCOUNTED_UNREAD_BYTES = 16 * 1024
UNREAD_CHECK_SECONDS = 0.05


log = structlog.stdlib.get_logger(__name__)


class Grant:
    """What one connection may do; revoking and expiry also affect open connections.

    A grant that was requested through another one, its `parent`, never allows more and ends with
    it.
    """

    def __init__(
        self,
        role: Role,
        channels: frozenset[str] | None = None,
        expires_at_ms: int | None = None,
        *,
        single_use: bool = False,
        inspects: bool = False,
        transient: bool = False,
        parent: "Grant | None" = None,
    ) -> None:
        self.role = role
        self.channels = channels
        self.expires_at_ms = expires_at_ms
        self.single_use = single_use
        self.inspects = inspects
        self.transient = transient
        self.parent = parent
        self.revoked = False
        self.spent = False

    def allows(self, channel: Channel) -> bool:
        """Return whether it and all its ancestors allow a channel."""
        return all(grant._allows_alone(channel) for grant in self._lineage())

    def valid(self, now_ms: int) -> bool:
        """Return whether neither it nor an ancestor is revoked or expired."""
        return not any(grant._has_ended(now_ms) for grant in self._lineage())

    def descends_from(self, other: "Grant") -> bool:
        """Return whether it is that grant, or that one is an ancestor."""
        return any(grant is other for grant in self._lineage())

    @property
    def is_restricted(self) -> bool:
        """Whether it or an ancestor allows only a list of channels."""
        return any(grant.channels is not None for grant in self._lineage())

    def _lineage(self) -> "Iterator[Grant]":
        """Yield the grant, its parent, and so on."""
        grant: Grant | None = self
        while grant is not None:
            yield grant
            grant = grant.parent

    def _allows_alone(self, channel: Channel) -> bool:
        if channel.role is Role.OWNER and self.role is not Role.OWNER:
            return False
        return self.channels is None or channel.name in self.channels or channel.open

    def _has_ended(self, now_ms: int) -> bool:
        return self.revoked or (self.expires_at_ms is not None and now_ms >= self.expires_at_ms)


class Grants:
    """The tokens of this daemon; only their digests are kept."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._grants: dict[bytes, Grant] = {}

    def mint(self, grant: Grant) -> str:
        """Make a token for a grant."""
        self._forget_expired()
        token = self._clock.token()
        self._grants[_digest(token)] = grant
        return token

    def redeem(self, token: str) -> Grant | None:
        """Return the grant of a token, comparing in constant time; a one-time token is used up."""
        expected = _digest(token)
        found: Grant | None = None
        for digest, grant in self._grants.items():
            if hmac.compare_digest(digest, expected):
                found = grant
        if found is None or found.spent or not found.valid(self._clock.now_ms()):
            return None
        found.spent = found.single_use
        return found

    def revoke(self, token: str) -> Grant | None:
        """Revoke the grant of a token, also for connections that use it; None if there is none."""
        grant = self._grants.pop(_digest(token), None)
        if grant is not None:
            grant.revoked = True
        return grant

    def one_time(self) -> list[tuple[str, int]]:
        """List the digests and ends of unused one-time tokens that another daemon may restore."""
        self._forget_expired()
        return [
            (digest.hex(), grant.expires_at_ms)
            for digest, grant in self._grants.items()
            if grant.single_use
            and not grant.spent
            and grant.inspects
            and not grant.transient
            and not grant.is_restricted
            and grant.expires_at_ms is not None
        ]

    def digests(self) -> list[bytes]:
        """List the digests of the newest tokens that can be redeemed, one-time tokens first."""
        now = self._clock.now_ms()
        usable = [
            (digest, grant)
            for digest, grant in reversed(self._grants.items())
            if not grant.spent and grant.valid(now)
        ]
        once = [digest for digest, grant in usable if grant.single_use]
        others = [digest for digest, grant in usable if not grant.single_use]
        return once[:MOST_DIGESTS] + others[:MOST_DIGESTS]

    def restore(self, digest: str, grant: Grant) -> None:
        """Accept a token whose digest an earlier daemon has stored."""
        self._grants[bytes.fromhex(digest)] = grant

    def _forget_expired(self) -> None:
        now = self._clock.now_ms()
        self._grants = {key: grant for key, grant in self._grants.items() if grant.valid(now)}


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()


class TokenThrottle:
    """Answer wrong tokens slowly, one a second for all connections; a right one is never delayed.

    A token has 256 random bits, so nobody guesses one at any speed; the delay limits the work and
    the log lines that guesses cost.
    """

    def __init__(self, grants: Grants) -> None:
        self.suspects: set[str] = set()
        self._grants = grants
        self._refusal = anyio.Lock()
        self._unlogged = 0
        self._next_log_at = -math.inf

    async def redeem(self, token: str, peer: str) -> Grant | None:
        """Return the grant of a token at once; None, after a while, if it is wrong.

        Meanwhile the peer is among the `suspects`, the first to be disconnected when there are too
        many connections without rights.
        """
        grant = self._grants.redeem(token)
        if grant is None:
            self.suspects.add(peer)
            try:
                await self._refuse(peer)
            finally:
                self.suspects.discard(peer)
        return grant

    async def _refuse(self, peer: str) -> None:
        self._unlogged += 1
        async with self._refusal:
            self._log_refusals(peer)
            await anyio.sleep(REFUSAL_SECONDS)

    def _log_refusals(self, peer: str) -> None:
        """Log how many tokens were refused, once a second at most."""
        now = anyio.current_time()
        if self._unlogged and now >= self._next_log_at:
            log.warning("token_refused", peer=peer, times=self._unlogged)
            self._unlogged = 0
            self._next_log_at = now + REFUSAL_SECONDS


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
