"""Is a stable prefix worth caching? A provider asks more for writing a cache than for a prompt.

Knows hashes and how often they came; knows no text and no clock.
"""

from collections import OrderedDict

KEPT = 256


class PrefixReuse:
    """Which prefixes were sent, and whether prefixes have lately been sent again."""

    def __init__(self, capacity: int = KEPT) -> None:
        self._capacity = capacity
        self._uses: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._newest: dict[str, str] = {}

    def is_likely(self, whose: str, prefix_hash: str) -> bool:
        """Tell whether a prefix will probably come again: it did, or the one before it did.

        The first prefix of anyone counts as likely, so that the second call can already hit.
        """
        before = self._newest.get(whose)
        again = (whose, prefix_hash) in self._uses
        return again or before is None or self._uses.get((whose, before), 1) > 1

    def note(self, whose: str, prefix_hash: str) -> None:
        """Remember that a prefix was sent."""
        key = (whose, prefix_hash)
        if key not in self._uses:
            self._newest[whose] = prefix_hash
        self._uses[key] = self._uses.get(key, 0) + 1
        self._uses.move_to_end(key)
        while len(self._uses) > self._capacity:
            (owner, gone), _ = self._uses.popitem(last=False)
            if self._newest.get(owner) == gone:
                del self._newest[owner]
