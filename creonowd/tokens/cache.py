"""A bounded memory of counts, addressed by content. Keeps digests and numbers, never a text."""

from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b
from threading import Lock

ENTRY_BYTES = 200
SMALLEST_TEXT = 256


class CountCache:
    """Remember the counts of the texts last asked for, from any thread.

    Short texts are not kept: encoding them costs less than remembering them.
    """

    def __init__(self, max_bytes: int = 16 * 1024 * 1024) -> None:
        self._capacity = max(1, max_bytes // ENTRY_BYTES)
        self._counts: OrderedDict[bytes, int] = OrderedDict()
        self._lock = Lock()
        self.hits = 0
        self.misses = 0

    def count(self, scope: str, text: str, measure: Callable[[str], int]) -> int:
        """Tell the count of a text under one tokenizer, measuring it at most once while kept."""
        if len(text) < SMALLEST_TEXT:
            return measure(text)
        key = _digest(scope, text)
        known = self._recall(key)
        if known is not None:
            return known
        measured = measure(text)
        self._keep(key, measured)
        return measured

    def __len__(self) -> int:
        return len(self._counts)

    def _recall(self, key: bytes) -> int | None:
        with self._lock:
            known = self._counts.get(key)
            if known is None:
                self.misses += 1
            else:
                self.hits += 1
                self._counts.move_to_end(key)
            return known

    def _keep(self, key: bytes, measured: int) -> None:
        with self._lock:
            self._counts[key] = measured
            self._counts.move_to_end(key)
            while len(self._counts) > self._capacity:
                self._counts.popitem(last=False)


def _digest(scope: str, text: str) -> bytes:
    data = text.encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=20, person=scope.encode()[:16]).digest()
