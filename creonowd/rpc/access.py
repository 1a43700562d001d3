"""Access: what a token allows and for how long. A wrong token is answered slowly."""

import hashlib
import hmac
import math
from collections.abc import Iterator

import anyio
import structlog

from creonowd.clock import Clock
from creonowd.rpc.channel import Channel, Role

REFUSAL_SECONDS = 1.0
MOST_DIGESTS = 64

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
