"""A stretch of the document on one side of the cursor, in pieces whose tokens add up.

Reads no further than could ever be shown. Knows tokens; knows no window and no layer.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from creonowd.context.instruments import Instruments
from creonowd.context.manuscript import Leaf, Manuscript
from creonowd.tokens.additive import adds_up


class Strip(NamedTuple):
    """What was read, as it may be sent: its text, where its pieces and its leaves begin in that.

    `sums[i]` are the tokens of the pieces before the i-th; the last sum is that of all. Of a leaf
    that is read from its middle on, the place is where it would begin.
    """

    text: str
    starts: tuple[int, ...]
    sums: tuple[int, ...]
    leaves: tuple[Leaf, ...]
    places: tuple[int, ...]

    def piece_at(self, offset: int) -> int:
        """Find the piece that an offset lies in."""
        return bisect_right(self.starts, offset) - 1

    def end_of(self, piece: int) -> int:
        """Tell where a piece ends in the text."""
        return self.starts[piece + 1] if piece + 1 < len(self.starts) else len(self.text)

    def leaf_holding(self, position: int) -> tuple[Leaf, int]:
        """Find the leaf that holds a raw position, and where it begins in the text."""
        index = bisect_right(self.leaves, position, key=lambda leaf: leaf.start) - 1
        return self.leaves[index], self.places[index]

    def raw_at(self, offset: int) -> int:
        """Find the raw position that an offset in the text came from."""
        index = max(0, bisect_right(self.places, offset) - 1)
        leaf, inside = self.leaves[index], offset - self.places[index]
        raw = range(leaf.start, leaf.end)
        return leaf.start + bisect_left(raw, inside, key=leaf.place)


class Start(NamedTuple):
    """Where to read on from, and under which heading."""

    position: int
    heading: str


def read_back(
    manuscript: Manuscript, position: int, floor: int, most: int, instruments: Instruments
) -> Strip:
    """Read from a position back to `floor`, or until there are more than `most` tokens.

    The text ends in the newline that will stand behind it.
    """
    leaf = manuscript.leaf_at(position)
    leaves, texts = [leaf], [leaf.text[: leaf.place(position)] + "\n"]
    tokens = instruments.count(texts[0])
    for earlier in manuscript.back_from(leaf):
        if earlier.end <= floor or tokens > most:
            break
        leaves.append(earlier)
        texts.append(earlier.text)
        tokens += instruments.count(earlier.text)
    return _strip(leaves[::-1], texts[::-1], instruments)


def read_on(
    manuscript: Manuscript, start: Start, ceiling: int, most: int, instruments: Instruments
) -> Strip:
    """Read from a position on to `ceiling`, or until there are more than `most` tokens.

    The text begins with the heading that will stand before it.
    """
    leaf = manuscript.leaf_at(start.position)
    leaves, texts = [leaf], [start.heading + leaf.text[leaf.place(start.position) :]]
    tokens = instruments.count(texts[0])
    for later in manuscript.on_from(leaf):
        if later.start >= ceiling or tokens > most:
            break
        leaves.append(later)
        texts.append(later.text)
        tokens += instruments.count(later.text)
    strip = _strip(leaves, texts, instruments)
    begins = len(start.heading) - leaf.place(start.position)
    return strip._replace(places=(begins, *strip.places[1:]))


def _strip(leaves: Sequence[Leaf], texts: Sequence[str], instruments: Instruments) -> Strip:
    pieces: list[str] = []
    for text in texts:
        if pieces and not adds_up(pieces[-1], text):
            pieces[-1] += text
        else:
            pieces.append(text)
    return Strip(
        text="".join(pieces),
        starts=_starts(pieces),
        sums=tuple(accumulate(map(instruments.count, pieces), initial=0)),
        leaves=tuple(leaves),
        places=_starts(texts),
    )


def _starts(texts: Sequence[str]) -> tuple[int, ...]:
    return tuple(accumulate(map(len, texts), initial=0))[:-1]
