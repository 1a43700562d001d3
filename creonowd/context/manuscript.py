"""A document read leaf by leaf from where the author is, each leaf redacted by itself.

However long the document, only the leaves that are asked for are looked at. Positions are those
of the raw text; `Leaf.place` finds them again in what may be sent. Knows no budget.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from typing import NamedTuple

from creonowd.context.evidence import merged
from creonowd.context.text_tools import RedactedText, TextTools
from creonowd.redaction import RedactionEvidence
from creonowd.redaction.split_points import SplitPoint, split_points
from creonowd.tokens.additive import adds_up

MARGIN = 8192
STRIDE = 16_384


class Segment(NamedTuple):
    """The raw text between two edges, and what may be sent of it.

    Where an edge is torn, `raw` reaches beyond it, so that a secret that lies across is seen
    whole; `start` and `end` stay the edges.
    """

    start: int
    end: int
    raw: str
    raw_start: int
    clean: RedactedText
    text: str

    def place(self, position: int) -> int:
        """Find a raw position in the text; inside a secret, the side it begins on."""
        if position >= self.end:
            return len(self.text)
        skipped = self.clean.place(self.raw, self.start - self.raw_start)
        return max(0, self.clean.place(self.raw, position - self.raw_start) - skipped)


class Manuscript:
    """A raw text that can be read from any place in either direction.

    Knows its edges around the place that it was opened at, as far as it has been read.
    """

    def __init__(self, text: str, opened_at: int, instruments: TextTools) -> None:
        self.text = text
        self._instruments = instruments
        self._known = (opened_at, opened_at)
        self._edges: list[SplitPoint] = []
        self._read: dict[int, RedactedText] = {}

    def leaf_at(self, position: int) -> Segment:
        """Read the leaf that a position lies in; at an edge, the one after it."""
        start = self._edge_at_or_before(position)
        return self._leaf(start, self._edge_after(position))

    def back_from(self, leaf: Segment) -> Iterator[Segment]:
        """Read the leaves before one, nearest first."""
        while leaf.start > 0:
            leaf = self.leaf_at(leaf.start - 1)
            yield leaf

    def on_from(self, leaf: Segment) -> Iterator[Segment]:
        """Read the leaves after one, nearest first."""
        while leaf.end < len(self.text):
            leaf = self.leaf_at(leaf.end)
            yield leaf

    def between(self, start: int, end: int) -> str:
        """Read what may be sent of a stretch."""
        if start >= end:
            return ""
        leaf = self.leaf_at(start)
        pieces = [leaf.text[leaf.place(start) : leaf.place(end)]]
        for following in self.on_from(leaf):
            if following.start >= end:
                break
            pieces.append(following.text[: following.place(end)])
        return "".join(pieces)

    def evidence(self, source_ref: str) -> tuple[RedactionEvidence, ...]:
        """Say what was taken out of all that has been read."""
        found = (clean.evidence(source_ref) for clean in self._read.values() if clean.findings)
        return merged(chain.from_iterable(found))

    def _edge_at_or_before(self, position: int) -> SplitPoint:
        self._learn(max(0, position - 1))
        self._learn(position)
        while not self._edges or self._edges[0].at > position:
            if self._known[0] == 0:
                return SplitPoint(0)
            self._learn(max(0, self._known[0] - STRIDE))
        return self._edges[bisect_right(self._edges, position, key=_at) - 1]

    def _edge_after(self, position: int) -> SplitPoint:
        self._learn(position)
        while not self._edges or self._edges[-1].at <= position:
            if self._known[1] == len(self.text):
                return SplitPoint(len(self.text))
            self._learn(min(len(self.text), self._known[1] + STRIDE))
        return self._edges[bisect_right(self._edges, position, key=_at)]

    def _learn(self, position: int) -> None:
        """Know every edge after `low` up to and including `high`."""
        low, high = self._known
        if position < low:
            self._edges = split_points(self.text, position, low + 1) + self._edges
            self._known = (position, high)
        elif position > high:
            self._edges += split_points(self.text, high, position + 1)
            self._known = (low, position)

    def _leaf(self, start: SplitPoint, end: SplitPoint) -> Segment:
        raw_start = max(0, start.at - MARGIN) if start.may_cut_secret else start.at
        if start.key is not None:
            raw_start = min(raw_start, start.key)
        raw = self.text[raw_start : end.at + MARGIN if end.may_cut_secret else end.at]
        clean = self._read[start.at] = self._instruments.clean(raw)
        if not start.may_cut_secret and not end.may_cut_secret:
            return Segment(start.at, end.at, raw, raw_start, clean, clean.text)
        first = clean.place(raw, start.at - raw_start)
        last = clean.place(raw, end.at - raw_start)
        # What lies beyond the edges is another leaf's to tell.
        self._read[start.at] = clean._replace(findings=clean.findings_within(first, last))
        return Segment(start.at, end.at, raw, raw_start, clean, clean.text[first:last])


def _at(edge: SplitPoint) -> int:
    return edge.at


class CountedText(NamedTuple):
    """What was read, as it may be sent: its text, where its pieces and its leaves begin in that.

    `sums[i]` are the tokens of the pieces before the i-th; the last sum is that of all. Of a leaf
    that is read from its middle on, the place is where it would begin.
    """

    text: str
    starts: tuple[int, ...]
    sums: tuple[int, ...]
    leaves: tuple[Segment, ...]
    places: tuple[int, ...]

    def piece_at(self, offset: int) -> int:
        """Find the piece that an offset lies in."""
        return bisect_right(self.starts, offset) - 1

    def end_of(self, piece: int) -> int:
        """Tell where a piece ends in the text."""
        return self.starts[piece + 1] if piece + 1 < len(self.starts) else len(self.text)

    def leaf_holding(self, position: int) -> tuple[Segment, int]:
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
    manuscript: Manuscript, position: int, floor: int, most: int, instruments: TextTools
) -> CountedText:
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
    manuscript: Manuscript, start: Start, ceiling: int, most: int, instruments: TextTools
) -> CountedText:
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


def _strip(leaves: Sequence[Segment], texts: Sequence[str], instruments: TextTools) -> CountedText:
    pieces: list[str] = []
    for text in texts:
        if pieces and not adds_up(pieces[-1], text):
            pieces[-1] += text
        else:
            pieces.append(text)
    return CountedText(
        text="".join(pieces),
        starts=_starts(pieces),
        sums=tuple(accumulate(map(instruments.count, pieces), initial=0)),
        leaves=tuple(leaves),
        places=_starts(texts),
    )


def _starts(texts: Sequence[str]) -> tuple[int, ...]:
    return tuple(accumulate(map(len, texts), initial=0))[:-1]
