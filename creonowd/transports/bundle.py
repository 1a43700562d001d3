"""The short messages of one turn of the event loop, sent as one. Knows no transport."""

from collections.abc import Callable
from typing import ParamSpec

Bytes = bytes | bytearray
SHORT = 16 * 1024
P = ParamSpec("P")


class Bundle:
    """Holds short messages back while a turn lasts; a long one goes at once, after them."""

    def __init__(self, send: Callable[[Bytes], None]) -> None:
        self._send = send
        self._held: list[Bytes] = []
        self._holding = False

    def add(self, data: Bytes) -> None:
        """Send bytes: at once, or with the others of this turn if they are few."""
        if self._holding and len(data) <= SHORT:
            self._held.append(data)
            return
        self.flush()
        self._send(data)

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
            self._send(held[0] if len(held) == 1 else b"".join(held))
