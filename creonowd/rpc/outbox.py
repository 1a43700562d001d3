"""What goes out to one client: replies at once, events as fast as it reads.

Knows order and bounds; knows no channel.
"""

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from creonowd.rpc.framing import Framing, enclose
from creonowd.rpc.messages import encode, notification
from creonowd.rpc.peer import Merge

WAITING_EVENTS = 256
HEAD_ROOM = 32
LAGGED = "$/lagged"


class Wire(Protocol):
    """The byte pipe of one connection, as a transport offers it."""

    def write(self, data: bytes | bytearray) -> None:
        """Send bytes; buffers what the client does not take yet."""
        ...

    def write_soon(self, data: bytes | bytearray) -> None:
        """Send bytes in their order, at the end of this turn of the loop at the latest."""
        ...

    def buffered(self) -> int:
        """Tell how many bytes the client has not taken yet."""
        ...

    def pause(self) -> None:
        """Stop reading from the client."""
        ...

    def resume(self) -> None:
        """Read from the client again."""
        ...

    def defer(self, callback: Callable[[], None]) -> None:
        """Run `callback` after everyone else had a turn."""
        ...

    def close(self) -> None:
        """Flush and end the connection."""
        ...


class Outbox:
    """The outgoing half of one connection."""

    def __init__(self, wire: Wire, now_ms: Callable[[], int]) -> None:
        self.framing = Framing.LINES
        self.congested = False
        self._wire = wire
        self._now_ms = now_ms
        self._sequence = 0
        self._waiting: dict[tuple[str, str], tuple[Any, bool]] = {}
        self._lagged = 0

    def send(self, message: Any) -> None:
        """Send a reply, a call or a batch of replies; these are never dropped."""
        self._wire.write(self._enclosed(message))

    def notify(self, name: str, fields: Any, key: str, merge: Merge | None) -> None:
        """Send an event, or let it wait and join up while the client lags."""
        if not self.congested and not self._waiting:
            self._post(name, fields)
            return
        held = self._waiting.get((name, key))
        if held is not None and merge is not None:
            self._waiting[name, key] = (merge(held[0], fields), True)
        elif held is None and (merge is not None or len(self._waiting) < WAITING_EVENTS):
            self._waiting[name, key] = (fields, merge is not None)
        else:
            self._lagged += 1
            if held is not None:
                self._waiting[name, key] = (fields, False)

    def congest(self) -> None:
        """Note that the client has stopped reading."""
        self.congested = True

    def relieve(self) -> None:
        """Send what waited, and how many events were lost to waiting."""
        self.congested = False
        waiting, self._waiting = self._waiting, {}
        for (name, _), (fields, _) in waiting.items():
            self._post(name, fields)
        if self._lagged:
            lagged, self._lagged = self._lagged, 0
            self._post(LAGGED, {"count": lagged})

    def _post(self, name: str, fields: Any) -> None:
        self._sequence += 1
        stamp = {"seq": self._sequence, "ts": self._now_ms()}
        message = notification(name, msgspec.to_builtins(fields) | stamp)
        self._wire.write_soon(self._enclosed(message))

    def _enclosed(self, message: Any) -> bytearray:
        return enclose(self.framing, encode(message, HEAD_ROOM), HEAD_ROOM)
