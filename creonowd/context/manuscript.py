"""A document read segment by segment from the cursor, each segment redacted by itself.

However long the document, only the segments that are asked for are redacted and counted.
Positions are those of the raw text; `Segment.offset_of` finds them in what may be sent.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from typing import NamedTuple

from creonowd.context.evidence import add_up
from creonowd.context.text_tools import RedactedText, TextTools
from creonowd.redaction import RedactionEvidence
from creonowd.redaction.split_points import SHORT_TEXT, SplitPoint, all_split_points, split_points
from creonowd.tokens.boundaries import adds_up

MARGIN = 8192
STRIDE = 16_384
USUAL_TOKENS = 8_000


class Segment(NamedTuple):
    """The raw text between two split points, and what may be sent of it.

    Where a split point may cut a secret, `raw` reaches beyond it, so that a secret across it is
    found whole; `start` and `end` stay the split points.
    """

    start: int
    end: int
    raw: str
    raw_start: int
    redacted: RedactedText
    text: str

    @property
    def is_as_written(self) -> bool:
        """Whether every position lies as far from the start in the text as in the raw text."""
        return not self.redacted.secrets and not self.redacted.crlf

    def offset_of(self, position: int) -> int:
        """Return where a raw position lies in the text; inside a secret, before it."""
        if position >= self.end:
            return len(self.text)
        if self.is_as_written:
            return max(0, position - self.start)
        margin = self.redacted.offset_of(self.raw, self.start - self.raw_start)
        return max(0, self.redacted.offset_of(self.raw, position - self.raw_start) - margin)


class Manuscript:
    """A document that can be read from any position in either direction.

    It keeps the split points around the position it was opened at, as far as it was read.
    """

    def __init__(self, text: str, opened_at: int, tools: TextTools) -> None:
        self.text = text
        self._tools = tools
        self._searched = (opened_at, opened_at)
        self._split_points: Sequence[SplitPoint] = ()
        if len(text) <= SHORT_TEXT:
            self._searched, self._split_points = (0, len(text)), all_split_points(text)
        self._redacted: dict[int, RedactedText] = {}

    def segment_at(self, position: int) -> Segment:
        """Read the segment that a position lies in; at a split point, the one after it."""
        return self._read(self._split_before(position), self._split_after(position))

    def segments_before(self, segment: Segment) -> Iterator[Segment]:
        """Read the segments before one, nearest first."""
        while segment.start > 0:
            segment = self.segment_at(segment.start - 1)
            yield segment

    def segments_after(self, segment: Segment) -> Iterator[Segment]:
        """Read the segments after one, nearest first."""
        while segment.end < len(self.text):
            segment = self.segment_at(segment.end)
            yield segment

    def read_span(self, start: int, end: int) -> str:
        """Read what may be sent of a span."""
        if start >= end:
            return ""
        first = self.segment_at(start)
        texts = [first.text[first.offset_of(start) : first.offset_of(end)]]
        for segment in self.segments_after(first):
            if segment.start >= end:
                break
            texts.append(segment.text[: segment.offset_of(end)])
        return "".join(texts)

    def evidence(self, source_ref: str) -> tuple[RedactionEvidence, ...]:
        """Return what was taken out of all that has been read."""
        redacted = (text.evidence(source_ref) for text in self._redacted.values() if text.findings)
        return add_up(chain.from_iterable(redacted))

    def _split_before(self, position: int) -> SplitPoint:
        """Return the last split point at or before a position."""
        self._search_to(max(0, position - 1))
        self._search_to(position)
        while not self._split_points or self._split_points[0].at > position:
            if self._searched[0] == 0:
                return SplitPoint(0)
            self._search_to(max(0, self._searched[0] - STRIDE))
        return self._split_points[bisect_right(self._split_points, position, key=_at) - 1]

    def _split_after(self, position: int) -> SplitPoint:
        """Return the first split point after a position."""
        self._search_to(position)
        while not self._split_points or self._split_points[-1].at <= position:
            if self._searched[1] == len(self.text):
                return SplitPoint(len(self.text))
            self._search_to(min(len(self.text), self._searched[1] + STRIDE))
        return self._split_points[bisect_right(self._split_points, position, key=_at)]

    def _search_to(self, position: int) -> None:
        """Extend the searched range (low, high] to a position."""
        low, high = self._searched
        if position < low:
            before = split_points(self.text, position, low + 1)
            self._split_points = (*before, *self._split_points)
            self._searched = (position, high)
        elif position > high:
            after = split_points(self.text, high, position + 1)
            self._split_points = (*self._split_points, *after)
            self._searched = (low, position)

    def _read(self, start: SplitPoint, end: SplitPoint) -> Segment:
        raw_start = max(0, start.at - MARGIN) if start.may_cut_secret else start.at
        if start.key is not None:
            raw_start = min(raw_start, start.key)
        raw = self.text[raw_start : end.at + MARGIN if end.may_cut_secret else end.at]
        redacted = self._redacted[start.at] = self._tools.redact(raw)
        if not start.may_cut_secret and not end.may_cut_secret:
            return Segment(start.at, end.at, raw, raw_start, redacted, redacted.text)
        first = redacted.offset_of(raw, start.at - raw_start)
        last = redacted.offset_of(raw, end.at - raw_start)
        # Secrets beyond the split points belong to the neighbouring segments.
        own_findings = redacted.findings_between(first, last)
        self._redacted[start.at] = redacted._replace(findings=own_findings)
        return Segment(start.at, end.at, raw, raw_start, redacted, redacted.text[first:last])


def _at(split_point: SplitPoint) -> int:
    return split_point.at


class CountedText(NamedTuple):
    """Consecutive segments as they may be sent, with the tokens of their text.

    The text consists of parts whose tokens add up: `starts` are their offsets, `sums[i]` the
    tokens of the parts before the i-th, the last sum those of all. `offsets` are where the
    segments begin in the text; of one that is read from its middle on, where it would begin.
    """

    text: str
    starts: tuple[int, ...]
    sums: tuple[int, ...]
    segments: tuple[Segment, ...]
    offsets: tuple[int, ...]

    @property
    def tokens(self) -> int:
        """The tokens of the whole text."""
        return self.sums[-1]

    def part_at(self, offset: int) -> int:
        """Return the index of the part that an offset lies in."""
        return bisect_right(self.starts, offset) - 1

    def end_of(self, part: int) -> int:
        """Return the offset at which a part ends."""
        return self.starts[part + 1] if part + 1 < len(self.starts) else len(self.text)

    def offset_of(self, position: int) -> int:
        """Return where a raw position lies in the text."""
        index = bisect_right(self.segments, position, key=lambda segment: segment.start) - 1
        return self.offsets[index] + self.segments[index].offset_of(position)

    def position_of(self, offset: int) -> int:
        """Return the raw position that an offset in the text comes from."""
        index = max(0, bisect_right(self.offsets, offset) - 1)
        segment, inside = self.segments[index], offset - self.offsets[index]
        if segment.is_as_written:
            return segment.start + min(max(0, inside), segment.end - segment.start)
        positions = range(segment.start, segment.end)
        return segment.start + bisect_left(positions, inside, key=segment.offset_of)


def read_before(
    manuscript: Manuscript, position: int, floor: int, most: int, tools: TextTools
) -> CountedText:
    """Read from a position back to `floor`, or until there are more than `most` tokens.

    As much as a usual chapter has is read in any case. The text ends in the newline that will
    stand behind it.
    """
    nearest = manuscript.segment_at(position)
    segments, texts = [nearest], [nearest.text[: nearest.offset_of(position)] + "\n"]
    tokens = tools.count(texts[0])
    for segment in manuscript.segments_before(nearest):
        if tokens > (USUAL_TOKENS if segment.end <= floor else most):
            break
        segments.append(segment)
        texts.append(segment.text)
        tokens += tools.count(segment.text)
    return _count(segments[::-1], texts[::-1], tools)


def read_after(
    manuscript: Manuscript,
    position: int,
    ceiling: int,
    most: int,
    tools: TextTools,
    *,
    heading: str,
) -> CountedText:
    """Read from a position on to `ceiling`, or until there are more than `most` tokens.

    As much as a usual chapter has is read in any case. The text begins with the heading that will
    stand before it.
    """
    nearest = manuscript.segment_at(position)
    skipped = nearest.offset_of(position)
    segments, texts = [nearest], [heading + nearest.text[skipped:]]
    tokens = tools.count(texts[0])
    for segment in manuscript.segments_after(nearest):
        if tokens > (USUAL_TOKENS if segment.start >= ceiling else most):
            break
        segments.append(segment)
        texts.append(segment.text)
        tokens += tools.count(segment.text)
    counted = _count(segments, texts, tools)
    return counted._replace(offsets=(len(heading) - skipped, *counted.offsets[1:]))


def _count(segments: Sequence[Segment], texts: Sequence[str], tools: TextTools) -> CountedText:
    parts: list[str] = []
    for text in texts:
        if parts and not adds_up(parts[-1], text):
            parts[-1] += text
        else:
            parts.append(text)
    return CountedText(
        text="".join(parts),
        starts=_starts(parts),
        sums=tuple(accumulate(map(tools.count, parts), initial=0)),
        segments=tuple(segments),
        offsets=_starts(texts),
    )


def _starts(texts: Sequence[str]) -> tuple[int, ...]:
    return tuple(accumulate(map(len, texts), initial=0))[:-1]
