"""The outgoing messages of one client: replies at once, events as fast as it reads.

A transport sends the short ones of one turn of the event loop as one write.
"""

from collections.abc import Callable
from typing import Any, ParamSpec, Protocol

import msgspec

from creonowd.rpc.framing import Framing, add_framing
from creonowd.rpc.messages import encode, notification
from creonowd.rpc.peer import Merge

MAX_WAITING_EVENTS = 256
HEAD_ROOM = 32
SHORT_BYTES = 16 * 1024
BATCH_BYTES = 64 * 1024
LAGGED = "$/lagged"

Bytes = bytes | bytearray
Later = Callable[[Callable[[], None]], object]
P = ParamSpec("P")


class Wire(Protocol):
    """The byte pipe of one connection, as a transport offers it."""

    def write(self, data: Bytes) -> None:
        """Send bytes; those that the client does not read yet are buffered."""
        ...

    def write_soon(self, data: Bytes) -> None:
        """Send bytes in order, at the end of this turn of the event loop at the latest."""
        ...

    def buffered(self) -> int:
        """Return how many bytes the client has not read yet."""
        ...

    def pause(self) -> None:
        """Stop reading from the client."""
        ...

    def resume(self) -> None:
        """Read from the client again."""
        ...

    def defer(self, callback: Callable[[], None]) -> None:
        """Run `callback` in the next turn of the event loop."""
        ...

    def close(self) -> None:
        """Flush and end the connection."""
        ...

    def abort(self) -> None:
        """End the connection at once, and drop what the client has not read."""
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
        self._wire.write(self._encode(message))

    def notify(self, name: str, fields: Any, key: str, merge: Merge | None) -> None:
        """Send an event; while the client lags, keep it and merge it with later ones."""
        if not self.congested and not self._waiting:
            self._send_event(name, fields)
            return
        earlier = self._waiting.get((name, key))
        if earlier is not None and merge is not None:
            self._waiting[name, key] = (merge(earlier[0], fields), True)
        elif earlier is None and (merge is not None or len(self._waiting) < MAX_WAITING_EVENTS):
            self._waiting[name, key] = (fields, merge is not None)
        else:
            self._lagged += 1
            if earlier is not None:
                self._waiting[name, key] = (fields, False)

    def congest(self) -> None:
        """Keep events back: the client has stopped reading."""
        self.congested = True

    def relieve(self) -> None:
        """Send the waiting events, and how many were dropped."""
        self.congested = False
        waiting, self._waiting = self._waiting, {}
        for (name, _), (fields, _) in waiting.items():
            self._send_event(name, fields)
        if self._lagged:
            lagged, self._lagged = self._lagged, 0
            self._send_event(LAGGED, {"count": lagged})

    def _send_event(self, name: str, fields: Any) -> None:
        self._sequence += 1
        stamp = {"seq": self._sequence, "ts": self._now_ms()}
        message = notification(name, msgspec.to_builtins(fields) | stamp)
        self._wire.write_soon(self._encode(message))

    def _encode(self, message: Any) -> bytearray:
        return add_framing(self.framing, encode(message, HEAD_ROOM), HEAD_ROOM)


class WriteBatch:
    """Collect short messages during `turn` and send them as one; a long one is sent at once.

    `later` schedules a flush for messages that are added outside of `turn`.
    """

    def __init__(self, send: Callable[[Bytes], None], later: Later) -> None:
        self._send = send
        self._later = later
        self._messages: list[Bytes] = []
        self._size = 0
        self._in_turn = False

    def add(self, data: Bytes) -> None:
        """Send bytes: at once, or with the others of this turn if they are few."""
        if len(data) > BATCH_BYTES:
            self.flush()
        self._append(data)
        if not self._in_turn or len(data) > SHORT_BYTES:
            self.flush()

    def add_soon(self, data: Bytes) -> None:
        """Send bytes at the end of the turn at the latest."""
        if not self._in_turn and not self._messages:
            self._later(self.flush)
        self._append(data)
        if self._size > BATCH_BYTES:
            self.flush()

    def turn(self, work: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        """Run `work`, then send the short messages that it added."""
        self._in_turn = True
        try:
            work(*args, **kwargs)
        finally:
            self._in_turn = False
            self.flush()

    def flush(self) -> None:
        """Send the collected messages."""
        messages = self._messages
        if messages:
            self._messages = []
            self._size = 0
            self._send(messages[0] if len(messages) == 1 else b"".join(messages))

    def _append(self, data: Bytes) -> None:
        self._messages.append(data)
        self._size += len(data)
