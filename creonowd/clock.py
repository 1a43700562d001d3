"""Time and chance. The only module that knows either; both are handed in.

Nothing here may end up in a prompt.
"""

import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
_ID_LENGTH = 20


class Clock(Protocol):
    """What the daemon may ask about the world's time and dice."""

    def now_ms(self) -> int:
        """Tell the wall clock in milliseconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Tell seconds that never run backwards."""
        ...

    def new_id(self, prefix: str) -> str:
        """Mint an id such as `prj_` followed by 20 of `[a-z0-9]`."""
        ...

    def token(self) -> str:
        """Mint a secret that cannot be guessed."""
        ...


class SystemClock:
    """The machine's clock and the operating system's dice."""

    def now_ms(self) -> int:
        """Tell the wall clock in milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Tell seconds that never run backwards."""
        return time.monotonic()

    def new_id(self, prefix: str) -> str:
        """Mint an id that nobody can guess."""
        number = secrets.randbelow(len(_ALPHABET) ** _ID_LENGTH)
        return f"{prefix}_{_spelled(number)}"

    def token(self) -> str:
        """Mint a secret that cannot be guessed."""
        return secrets.token_urlsafe(32)


def _spelled(number: int) -> str:
    """Write a number in the alphabet: one throw of the dice is cheaper than one for each letter."""
    letters: list[str] = []
    for _ in range(_ID_LENGTH):
        number, place = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[place])
    return "".join(letters)


class SteppingClock:
    """A clock for scripts and tests: starts where told, moves one step per look, counts its ids."""

    def __init__(self, start_ms: int = 1_700_000_000_000, step_ms: int = 1) -> None:
        self._now_ms = start_ms
        self._step_ms = step_ms
        self._minted = 0
        self._seconds: Callable[[], float] = time.monotonic

    def now_ms(self) -> int:
        """Tell the time and move on by one step."""
        self._now_ms += self._step_ms
        return self._now_ms

    def monotonic(self) -> float:
        """Tell real monotonic seconds: deadlines and latencies stay real."""
        return self._seconds()

    def new_id(self, prefix: str) -> str:
        """Mint the next id in counting order."""
        self._minted += 1
        return f"{prefix}_{self._minted:0{_ID_LENGTH}d}"

    def token(self) -> str:
        """Mint a real secret: determinism must not weaken access."""
        return secrets.token_urlsafe(32)


def make_clock(*, deterministic: bool) -> Clock:
    """Choose the clock that the settings ask for."""
    return SteppingClock() if deterministic else SystemClock()


def iso(ms: int) -> str:
    """Spell milliseconds since the epoch as ISO 8601 in UTC: `2026-01-31T12:00:00.000Z`."""
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
