"""Tokens and what they allow. Knows roles; knows no transport and no channel."""

import hashlib
import hmac
from collections.abc import Iterable

import anyio
import structlog

from creonowd.clock import Clock
from creonowd.rpc.channel import Channel, Role


class Grant:
    """What one connection may do. Revoking or expiry reaches connections that hold it.

    A grant that was asked for with another, its `parent`, never allows more and ends with it.
    """

    def __init__(
        self,
        role: Role,
        channels: frozenset[str] | None = None,
        expires_at_ms: int | None = None,
        *,
        single_use: bool = False,
        inspects: bool = False,
        parent: "Grant | None" = None,
    ) -> None:
        self.role = role
        self.channels = channels
        self.expires_at_ms = expires_at_ms
        self.single_use = single_use
        self.inspects = inspects
        self.parent = parent
        self.revoked = False
        self.spent = False

    def allows(self, channel: Channel) -> bool:
        """Whether the role and the list of channels let this one through, all the way up."""
        one: Grant | None = self
        while one is not None and one._lets_through(channel):
            one = one.parent
        return one is None

    def valid(self, now_ms: int) -> bool:
        """Whether neither it nor what it stems from has been revoked or run out."""
        one: Grant | None = self
        while one is not None and not one._is_over(now_ms):
            one = one.parent
        return one is None

    def stems_from(self, other: "Grant") -> bool:
        """Whether it is that one, or was asked for with it."""
        one: Grant | None = self
        while one is not None and one is not other:
            one = one.parent
        return one is other

    @property
    def restricted(self) -> bool:
        """Whether some channels of its role are left out."""
        one: Grant | None = self
        while one is not None and one.channels is None:
            one = one.parent
        return one is not None

    def _lets_through(self, channel: Channel) -> bool:
        if channel.role is Role.OWNER and self.role is not Role.OWNER:
            return False
        return self.channels is None or channel.name in self.channels or channel.open

    def _is_over(self, now_ms: int) -> bool:
        return self.revoked or (self.expires_at_ms is not None and now_ms >= self.expires_at_ms)


class Grants:
    """Every token of this daemon; only their digests are kept."""

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
        """Find the grant of a token, comparing in constant time; a one-time token is used up."""
        shown = _digest(token)
        found: Grant | None = None
        for digest, grant in self._grants.items():
            if hmac.compare_digest(digest, shown):
                found = grant
        if found is None or found.spent or not found.valid(self._clock.now_ms()):
            return None
        found.spent = found.single_use
        return found

    def revoke(self, token: str) -> Grant | None:
        """Take a grant back, also from connections that use it now; None if there is none."""
        grant = self._grants.pop(_digest(token), None)
        if grant is not None:
            grant.revoked = True
        return grant

    def one_time(self) -> list[tuple[str, int]]:
        """List the digests of one-time tokens that may inspect and were not shown yet, with their ends."""
        self._forget_expired()
        held = self._grants.items()
        return [
            (digest.hex(), grant.expires_at_ms)
            for digest, grant in held
            if grant.single_use
            and not grant.spent
            and grant.inspects
            and not grant.restricted
            and grant.expires_at_ms is not None
        ]

    def restore(self, digest: str, grant: Grant) -> None:
        """Honour a token of which an earlier daemon wrote down the digest."""
        self._grants[bytes.fromhex(digest)] = grant

    def _forget_expired(self) -> None:
        now = self._clock.now_ms()
        self._grants = {key: grant for key, grant in self._grants.items() if grant.valid(now)}


def restricted(names: Iterable[str] | None) -> frozenset[str] | None:
    """Turn a list of channels into the form a grant holds; None means all of the role's."""
    return None if names is None else frozenset(names)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()


WRONG_SECONDS = 1.0
STEP_SECONDS = 0.02
BORNE = 5
REMEMBERED = 30

log = structlog.stdlib.get_logger(__name__)


class TokenThrottle:
    """Remembers how many wrong tokens were shown lately; one is forgotten each second."""

    def __init__(self, grants: Grants, clock: Clock) -> None:
        self.waiting: set[str] = set()
        self._grants = grants
        self._clock = clock
        self._wrong = 0.0
        self._seen = clock.monotonic()
        self._turn = anyio.Lock()
        self._refusal = anyio.Lock()

    async def redeem(self, token: str, peer: str) -> Grant | None:
        """Find the grant of a token; None if there is none, and then one answer a second for all.

        Who does not wait for its turn is told nothing, whether it gave up or ran out of time.
        """
        grant = await self._in_turn(token, peer)
        if grant is None:
            self._wrong = min(self._lately() + 1, REMEMBERED)
            log.warning("token_refused", peer=peer)
            async with self._refusal:
                await anyio.sleep(WRONG_SECONDS)
        return grant

    async def _in_turn(self, token: str, peer: str) -> Grant | None:
        self.waiting.add(peer)
        try:
            async with self._turn:
                if self._lately() >= BORNE:
                    await anyio.sleep(STEP_SECONDS)
                return self._grants.redeem(token)
        finally:
            self.waiting.discard(peer)

    def _lately(self) -> float:
        now = self._clock.monotonic()
        self._wrong = max(0.0, self._wrong - (now - self._seen))
        self._seen = now
        return self._wrong
