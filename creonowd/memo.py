"""A bounded memory of what was computed from what, addressed by content.

Knows nothing of what it keeps. Holds two generations: what is used moves to the young one,
what is not used for a whole generation is forgotten. That needs no lock and no bookkeeping.
"""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Memo(Generic[K, V]):
    """Remember values by key, from any thread, within a bound on the sum of their weights."""

    def __init__(self, capacity: int, weigh: Callable[[K, V], int]) -> None:
        self._half = max(1, capacity // 2)
        self._weigh = weigh
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}
        self._weight = 0
        self.misses = 0

    def get(self, key: K, make: Callable[[], V]) -> V:
        """Give the value of a key, making it if it is not remembered.

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

    def knows(self, key: K) -> bool:
        """Tell whether a value is remembered."""
        return key in self._young or key in self._old

    def recall(self, key: K) -> V | None:
        """Give the value of a key if it is remembered."""
        value = self._young.get(key)
        if value is None and (value := self._old.get(key)) is not None:
            self._keep(key, value)
        return value

    def put(self, key: K, value: V) -> None:
        """Remember a value that was made elsewhere."""
        self._keep(key, value)

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def _keep(self, key: K, value: V) -> None:
        weight = self._weigh(key, value)
        if weight > self._half:
            return
        if self._weight + weight > self._half:
            self._old, self._young, self._weight = self._young, {}, 0
        self._young[key] = value
        self._weight += weight
