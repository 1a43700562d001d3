"""How much of a prompt is the beginning of the one before. Remembers the last of each conversation."""

from collections import OrderedDict
from collections.abc import Sequence
from hashlib import sha256
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
    """The last prompt of each conversation; not kept over a restart."""

    def __init__(self) -> None:
        self._sent: OrderedDict[Key, Sent] = OrderedDict()

    def compare(
        self, key: Key, messages: Sequence[Message], static: int, static_tokens: int
    ) -> PrefixReuse:
        """Compare a prompt, whose first `static` messages never change, and become the last one."""
        now = [spelled(message).encode() for message in messages]
        stable = sha256(b"".join(now[:static])).hexdigest()
        before = self._sent.pop(key, None)
        self._sent[key] = Sent(now, stable)
        if len(self._sent) > REMEMBERED:
            self._sent.popitem(last=False)
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
        self._sent.pop(key, None)


def _common(before: Sequence[bytes], now: Sequence[bytes]) -> int:
    common = 0
    for old, new in zip(before, now, strict=False):
        if old != new:
            same = (n for n, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1])
            return common + next(same, min(len(old), len(new)))
        common += len(new)
    return common
