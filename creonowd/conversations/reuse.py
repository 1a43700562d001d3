"""How much of a prompt is the beginning of the one before. Remembers the last of each conversation."""

from collections import OrderedDict
from collections.abc import Sequence
from hashlib import sha256
from threading import Lock
from typing import NamedTuple

from creonowd.conversations.build_result import PrefixReuse
from creonowd.conversations.messages import Message, spelled

REMEMBERED = 64

Key = tuple[str, ...]


class Sent(NamedTuple):
    """A prompt as it was sent, message by message, and the hash of its static part."""

    messages: list[bytes]
    stable: str


class LastTurns:
    """The last prompt of each conversation; not kept over a restart. Safe in any thread."""

    def __init__(self) -> None:
        self._sent: OrderedDict[Key, Sent] = OrderedDict()
        self._lock = Lock()

    def compare(
        self, key: Key, messages: Sequence[Message], static: int, static_tokens: int
    ) -> PrefixReuse:
        """Compare a prompt, whose first `static` messages never change, and become the last one."""
        now = [spelled(message).encode() for message in messages]
        stable = sha256(b"".join(now[:static])).hexdigest()
        before = self._replaced(key, Sent(now, stable))
        size = sum(map(len, now))
        common = 0 if before is None else _common(before.messages, now)
        return PrefixReuse(
            stable_prefix_hash=stable,
            stable_prefix_tokens=static_tokens,
            stable_prefix_unchanged=before is not None and before.stable == stable,
            prompt_bytes=size,
            common_bytes=common,
            share=round(common / size, 4) if size else 0.0,
        )

    def forget(self, key: Key) -> None:
        """Forget a conversation that was cleared."""
        with self._lock:
            self._sent.pop(key, None)

    def _replaced(self, key: Key, sent: Sent) -> Sent | None:
        with self._lock:
            before = self._sent.pop(key, None)
            self._sent[key] = sent
            if len(self._sent) > REMEMBERED:
                self._sent.popitem(last=False)
        return before


def _common(before: Sequence[bytes], now: Sequence[bytes]) -> int:
    common = 0
    for old, new in zip(before, now, strict=False):
        if old != new:
            return common + _shared(old, new)
        common += len(new)
    return common


def _shared(old: bytes, new: bytes) -> int:
    """Find how many bytes two messages begin with in common, halving what is left."""
    same, different = 0, min(len(old), len(new)) + 1
    while different - same > 1:
        middle = (same + different) // 2
        if old[same:middle] == new[same:middle]:
            same = middle
        else:
            different = middle
    return same
