"""A document read leaf by leaf from where the author is, each leaf redacted by itself.

However long the document, only the leaves that are asked for are looked at. Positions are those
of the raw text; `Leaf.place` finds them again in what may be sent. Knows no budget.
"""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from creonowd.context.instruments import Clean, Instruments
from creonowd.context.redactions import merged
from creonowd.redaction import RedactionEvidence
from creonowd.redaction.split_points import SplitPoint, split_points

MARGIN = 8192
STRIDE = 16_384


class Leaf(NamedTuple):
    """The raw text between two edges, and what may be sent of it.

    Where an edge is torn, `raw` reaches beyond it, so that a secret that lies across is seen
    whole; `start` and `end` stay the edges.
    """

    start: int
    end: int
    raw: str
    raw_start: int
    clean: Clean
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

    def __init__(self, text: str, opened_at: int, instruments: Instruments) -> None:
        self.text = text
        self._instruments = instruments
        self._known = (opened_at, opened_at)
        self._edges: list[SplitPoint] = []
        self._read: dict[int, Clean] = {}

    def leaf_at(self, position: int) -> Leaf:
        """Read the leaf that a position lies in; at an edge, the one after it."""
        start = self._edge_at_or_before(position)
        return self._leaf(start, self._edge_after(position))

    def back_from(self, leaf: Leaf) -> Iterator[Leaf]:
        """Read the leaves before one, nearest first."""
        while leaf.start > 0:
            leaf = self.leaf_at(leaf.start - 1)
            yield leaf

    def on_from(self, leaf: Leaf) -> Iterator[Leaf]:
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

    def _leaf(self, start: SplitPoint, end: SplitPoint) -> Leaf:
        raw_start = max(0, start.at - MARGIN) if start.torn else start.at
        if start.key is not None:
            raw_start = min(raw_start, start.key)
        raw = self.text[raw_start : end.at + MARGIN if end.torn else end.at]
        clean = self._read[start.at] = self._instruments.clean(raw)
        if not start.torn and not end.torn:
            return Leaf(start.at, end.at, raw, raw_start, clean, clean.text)
        first = clean.place(raw, start.at - raw_start)
        last = clean.place(raw, end.at - raw_start)
        # What lies beyond the edges is another leaf's to tell.
        self._read[start.at] = clean._replace(findings=clean.findings_within(first, last))
        return Leaf(start.at, end.at, raw, raw_start, clean, clean.text[first:last])


def _at(edge: SplitPoint) -> int:
    return edge.at
