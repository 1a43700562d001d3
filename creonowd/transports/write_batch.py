"""The short messages of one turn of the event loop, sent as one. Knows no transport."""

from collections.abc import Callable
from typing import ParamSpec

Bytes = bytes | bytearray
SHORT = 16 * 1024
HELD = 64 * 1024
Later = Callable[[Callable[[], None]], object]
P = ParamSpec("P")


class WriteBatch:
    """Holds short messages back while a turn lasts; a long one goes at once, after them.

    `later` runs what it is given at the end of a turn that is not one of ours.
    """

    def __init__(self, send: Callable[[Bytes], None], later: Later) -> None:
        self._send = send
        self._later = later
        self._held: list[Bytes] = []
        self._size = 0
        self._holding = False

    def add(self, data: Bytes) -> None:
        """Send bytes: at once, or with the others of this turn if they are few."""
        if len(data) > HELD:
            self.flush()
        self._hold(data)
        if not self._holding or len(data) > SHORT:
            self.flush()

    def add_soon(self, data: Bytes) -> None:
        """Send bytes when the turn ends, or with what is sent before that."""
        if not self._holding and not self._held:
            self._later(self.flush)
        self._hold(data)
        if self._size > HELD:
            self.flush()

    def turn(self, work: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        """Do the work of one turn, then send the short messages that it brought about."""
        self._holding = True
        try:
            work(*args, **kwargs)
        finally:
            self._holding = False
            self.flush()

    def flush(self) -> None:
        """Send what is held back."""
        held = self._held
        if held:
            self._held = []
            self._size = 0
            self._send(held[0] if len(held) == 1 else b"".join(held))

    def _hold(self, data: Bytes) -> None:
        self._held.append(data)
        self._size += len(data)
