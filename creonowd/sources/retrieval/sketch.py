"""A short fingerprint by which passages that say nearly the same are recognised.

It holds the sixteen smallest hashes of the pairs of terms that stand together; how many of them
two passages share estimates how much of their wording they share. Knows no index.
"""

import math
import struct
import zlib
from collections.abc import Sequence

SIZE = 16
ALIKE = 0.5

_WHOLE = struct.Struct(f"<{SIZE}I")


def sketch(terms: Sequence[str]) -> bytes:
    """Make the fingerprint of a passage from its terms in order."""
    # Bigrams overlap, so the next but one is the first that says something new.
    pairs = {one + other for one, other in zip(terms, terms[2:], strict=False)} or set(terms)
    least = sorted(zlib.crc32(pair.encode("utf-8", "surrogatepass")) for pair in pairs)[:SIZE]
    return struct.pack(f"<{len(least)}I", *least)


class Alike:
    """Remembers fingerprints and recognises those that come again, exactly or nearly."""

    def __init__(self) -> None:
        self._seen: list[tuple[int, ...]] = []
        self._by_hash: dict[int, list[int]] = {}

    def find(self, fingerprint: bytes) -> int | None:
        """Tell the number of the first remembered fingerprint that is alike, else remember this.

        Numbers count the remembered ones from zero.
        """
        hashes = _hashes(fingerprint)
        # Two lists in one order that share so much share something among their first few.
        first = hashes[: len(hashes) - math.ceil(ALIKE * len(hashes)) + 1]
        known = self._by_hash
        met = [known[value] for value in first if value in known]
        if met and (number := self._alike(hashes, met)) is not None:
            return number
        for value in first:
            known.setdefault(value, []).append(len(self._seen))
        self._seen.append(hashes)
        return None

    def _alike(self, hashes: tuple[int, ...], met: list[list[int]]) -> int | None:
        whole = frozenset(hashes)
        for number in sorted({number for numbers in met for number in numbers}):
            other = self._seen[number]
            if len(whole.intersection(other)) >= ALIKE * max(len(whole), len(other)):
                return number
        return None


def _hashes(fingerprint: bytes) -> tuple[int, ...]:
    if len(fingerprint) == _WHOLE.size:
        return _WHOLE.unpack(fingerprint)
    return struct.unpack(f"<{len(fingerprint) // 4}I", fingerprint)
