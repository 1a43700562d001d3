"""A message that has begun and not ended: kept where it will stay, or skipped and counted.

Knows bytes and their number; where a message begins is the business of `framing`.
"""

from creonowd.model import Model

HEAD_KEPT = 4 * 1024
TAIL_KEPT = 512
BLANK = b" \t\r\n\xef\xbb\xbf"


class Oversized(Model):
    """A message that was skipped; its two ends are kept so that an id may be found in them."""

    size: int
    head: bytes
    tail: bytes


class Filling:
    """A message of known length that has begun: what arrives is copied once, to where it stays."""

    def __init__(self, begun: bytearray, start: int, length: int) -> None:
        self.body = bytearray(length)
        self.size = len(begun) - start
        with memoryview(begun) as view:
            self.body[: self.size] = view[start:]

    @property
    def done(self) -> bool:
        """Whether all of it is there."""
        return self.size == len(self.body)

    def room(self) -> memoryview | None:
        """Offer the place of what is missing."""
        return None if self.done else memoryview(self.body)[self.size :]

    def take(self, data: bytes | memoryview) -> int:
        """Copy what belongs to the message; tell how many bytes that was."""
        used = min(len(self.body) - self.size, len(data))
        with memoryview(data) as view:
            self.body[self.size : self.size + used] = view[:used]
        self.size += used
        return used


class Skipped:
    """A message too large to keep: counts it, and keeps its two ends."""

    def __init__(self, remaining: int | None = None) -> None:
        self._remaining = remaining
        self._size = 0
        self._head = b""
        self._tail = b""
        self.done = remaining == 0

    @classmethod
    def of(cls, start: bytes | bytearray) -> "Skipped":
        """Begin with what has arrived of a message that has no stated length."""
        skipped = cls()
        skipped._keep(start)
        return skipped

    def take(self, buffer: bytearray) -> int:
        """Swallow what belongs to the message; tell how many bytes that was."""
        if self._remaining is None:
            end = buffer.find(b"\n")
            self.done = end >= 0
            ours = end if self.done else len(buffer)
            used = ours + self.done
        else:
            used = ours = min(self._remaining, len(buffer))
            self._remaining -= used
            self.done = self._remaining == 0
        self._keep(buffer if ours == len(buffer) else buffer[:ours])
        return used

    def event(self) -> Oversized:
        """Tell what was skipped."""
        return Oversized(size=self._size, head=self._head, tail=self._tail.strip(BLANK))

    def _keep(self, data: bytes | bytearray) -> None:
        self._size += len(data)
        self._head += bytes(data[: max(0, HEAD_KEPT - len(self._head))])
        self._tail = (self._tail + bytes(data[-TAIL_KEPT:]))[-TAIL_KEPT:]
