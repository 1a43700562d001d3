"""Time and random ids. No other module asks the system for them; both are handed in.

Neither may end up in a prompt.
"""

import secrets
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

ID_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
"""What ids are written with, after their prefix."""

_ID_LENGTH = 20


class Clock(Protocol):
    """The time, and new ids and tokens."""

    def now_ms(self) -> int:
        """Return the wall clock in milliseconds since the epoch."""
        ...

    def file_time_ms(self) -> int:
        """Return the time with which the disk would mark a file now."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never run backwards."""
        ...

    def new_id(self, prefix: str) -> str:
        """Return a new id such as `prj_` followed by 20 of `[a-z0-9]`."""
        ...

    def token(self) -> str:
        """Return a new secret that cannot be guessed."""
        ...


class SystemClock:
    """The clock and the random numbers of the operating system."""

    def now_ms(self) -> int:
        """Return the wall clock in milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def file_time_ms(self) -> int:
        """Return the time with which the disk would mark a file now."""
        return self.now_ms()

    def monotonic(self) -> float:
        """Return seconds that never run backwards."""
        return time.monotonic()

    def new_id(self, prefix: str) -> str:
        """Return a new id that cannot be guessed."""
        number = secrets.randbelow(len(ID_ALPHABET) ** _ID_LENGTH)
        return f"{prefix}_{_in_alphabet(number)}"

    def token(self) -> str:
        """Return a new secret that cannot be guessed."""
        return secrets.token_urlsafe(32)


def _in_alphabet(number: int) -> str:
    """Write a number with `ID_ALPHABET`; one random number is cheaper than one for each letter."""
    letters: list[str] = []
    for _ in range(_ID_LENGTH):
        number, index = divmod(number, len(ID_ALPHABET))
        letters.append(ID_ALPHABET[index])
    return "".join(letters)


class SteppingClock:
    """A clock for scripts and tests: it moves one step with each reading, and ids are counted."""

    def __init__(self, start_ms: int = 1_700_000_000_000, step_ms: int = 1) -> None:
        self._now_ms = start_ms
        self._step_ms = step_ms
        self._ids = 0

    def now_ms(self) -> int:
        """Return the time, one step after the last."""
        self._now_ms += self._step_ms
        return self._now_ms

    def file_time_ms(self) -> int:
        """Return the real time, as the disk has no other; looks at files move no step."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Return real seconds: deadlines and latencies stay real."""
        return time.monotonic()

    def new_id(self, prefix: str) -> str:
        """Return the next id in counting order."""
        self._ids += 1
        return f"{prefix}_{self._ids:0{_ID_LENGTH}d}"

    def token(self) -> str:
        """Return a real secret: determinism must not weaken access."""
        return secrets.token_urlsafe(32)


def make_clock(*, deterministic: bool) -> Clock:
    """Return the clock that the settings ask for."""
    return SteppingClock() if deterministic else SystemClock()


def utc_time(ms: int) -> datetime:
    """Return milliseconds since the epoch as a time in UTC.

    Windows' own conversion, which `fromtimestamp` uses, ends with the year 3000.
    """
    return EPOCH + timedelta(milliseconds=ms)


def iso(ms: int) -> str:
    """Format milliseconds since the epoch as ISO 8601 in UTC: `2026-01-31T12:00:00.000Z`."""
    return utc_time(ms).isoformat(timespec="milliseconds").replace("+00:00", "Z")
