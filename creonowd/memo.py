"""The bounded cache: values by key, within a limit on the sum of their weights.

It keeps two generations. What is used moves to the young one; what is not used for a whole
generation is dropped. So a lookup needs no lock and no bookkeeping. What was dropped is collected
when nobody asks for anything, and given back to the system, which the C library would not do by
itself.
"""

import ctypes
import gc
import sys
from collections.abc import Callable, Hashable
from typing import Any, Generic, Protocol, TypeVar

import anyio
import anyio.to_thread

IDLE_SECONDS = 2.0
# After this many checks without a pause between requests, garbage is collected all the same.
BUSY_ROUNDS = 30
# After this many checks the next collection includes what was frozen.
ROUNDS_FROZEN = 500

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def _one(_key: object, _value: object) -> int:
    return 1


class Memo(Generic[K, V]):
    """Keep values by key, from any thread; without `weigh`, `capacity` is a number of values.

    At least the last half of the capacity that was used is kept, and never more than all of it.
    """

    def __init__(self, capacity: int, weigh: Callable[[K, V], int] = _one) -> None:
        self._half = max(1, capacity // 2)
        self._weigh = weigh
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}
        self._weight = 0
        self.misses = 0

    def get(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of a key, making it if it is not kept.

        Two threads may make the same value at once; either of them is right.
        """
        value = self._young.get(key)
        if value is not None:
            return value
        value = self._old.get(key)
        if value is None:
            self.misses += 1
            value = make()
        self._keep(key, value)
        return value

    def __contains__(self, key: K) -> bool:
        """Return whether a value is kept."""
        return key in self._young or key in self._old

    def peek(self, key: K) -> V | None:
        """Return the value of a key if it is kept."""
        value = self._young.get(key)
        if value is None and (value := self._old.get(key)) is not None:
            self._keep(key, value)
        return value

    def put(self, key: K, value: V) -> None:
        """Keep a value that was made elsewhere."""
        self._keep(key, value)

    def forget(self, key: K) -> None:
        """Drop the value of a key, if it is kept."""
        self._old.pop(key, None)
        value = self._young.pop(key, None)
        if value is not None:
            self._weight -= self._weigh(key, value)

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def _keep(self, key: K, value: V) -> None:
        weight = self._weigh(key, value)
        if weight > self._half:
            return
        replaced = self._young.get(key)
        if replaced is not None:
            self._weight -= self._weigh(key, replaced)
        if self._weight + weight > self._half:
            self._old, self._young, self._weight = self._young, {}, 0
        self._young[key] = value
        self._weight += weight


class ReplyCount(Protocol):
    """How many requests were answered."""

    @property
    def replies(self) -> int:
        """The number of them."""
        ...

    async def wait_for_reply(self, after: int) -> None:
        """Return once more than `after` requests have been answered."""
        ...


async def collect_garbage(requests: ReplyCount) -> None:
    """Collect garbage when no request came for a while, or after a minute without such a pause.

    A collection that goes through all that assemblies keep, 300 MB after 500 of them, stops every
    client for 200 ms. So what survives a collection is frozen, and most collections skip it. What
    is free then goes back to the system.
    """
    seen = collected = requests.replies
    busy = frozen = 0
    while True:
        await requests.wait_for_reply(after=collected)
        await anyio.sleep(IDLE_SECONDS)
        before, seen = seen, requests.replies
        frozen += 1
        busy = busy + 1 if seen != before else 0
        if 0 < busy < BUSY_ROUNDS:
            continue
        if frozen >= ROUNDS_FROZEN:
            gc.unfreeze()
            frozen = 0
        gc.collect()
        gc.freeze()
        await anyio.to_thread.run_sync(return_freed_memory)
        collected, busy = seen, 0


def return_freed_memory() -> None:
    """Give the system back what was freed, where the C library would keep it.

    It kept 75 MB after 25 MB of text were indexed, and 16 MB of the automata of an ignore file.
    Blocks its thread for some milliseconds.
    """
    if sys.platform == "linux":
        trim: Any = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
    elif sys.platform == "darwin":
        relieve: Any = getattr(ctypes.CDLL(None), "malloc_zone_pressure_relief", None)
        if relieve is not None:
            relieve(None, ctypes.c_size_t(0))
