"""Tokens are looked at one after the other once wrong ones came: guesses are slow all together.

Whoever has the right one waits its turn with them, and is never turned away for what others do.
Knows tokens and time; knows no connection.
"""

import anyio
import structlog

from creonowd.clock import Clock
from creonowd.rpc.grants import Grant, Grants

WRONG_SECONDS = 1.0
STEP_SECONDS = 0.02
BORNE = 5
REMEMBERED = 30

log = structlog.stdlib.get_logger(__name__)


class Doorman:
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
