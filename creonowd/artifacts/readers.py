"""Who is reading what, so that nothing is cleaned under a reader. Knows ids; touches no file."""

import contextlib
import threading
from collections import Counter
from collections.abc import Generator, Iterable


class Readers:
    """Counts the readers of each file."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    @contextlib.contextmanager
    def reading(self, ref_ids: Iterable[str]) -> Generator[None]:
        """Count as a reader of some files while the block runs."""
        held = tuple(ref_ids)
        with self._lock:
            self._counts.update(held)
        try:
            yield
        finally:
            with self._lock:
                self._counts.subtract(held)
                for ref_id in held:
                    if not self._counts[ref_id]:
                        del self._counts[ref_id]

    @contextlib.contextmanager
    def kept_out(self, ref_id: str) -> Generator[bool]:
        """Tell whether nobody reads a file, and let nobody begin while the block runs."""
        with self._lock:
            yield ref_id not in self._counts
