"""A document read segment by segment from the cursor, each segment redacted by itself.

However long the document, only the segments that are asked for are redacted and counted.
Positions are those of the raw text; `Segment.offset_of` finds them in what may be sent.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from typing import NamedTuple

from creonowd.context.evidence import add_up
from creonowd.context.text_tools import PartSums, RedactedText, TextTools
from creonowd.redaction import RedactionEvidence
from creonowd.redaction.split_points import SHORT_TEXT, SplitPoint, all_split_points, split_points
from creonowd.tokens.boundaries import additive_points, adds_up

MARGIN = 8192
STRIDE = 16_384
USUAL_TOKENS = 8_000
# To count half of what is new twice is cheaper than all of it at every letter.
CELL = 48


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
    tokens of the parts before the i-th, the last sum those of all. `borders` are those of the
    offsets where a segment begins. `offsets` are where the segments begin in the text; of one
    that is read from its middle on, where it would begin.
    """

    text: str
    starts: list[int]
    sums: list[int]
    borders: list[int]
    segments: tuple[Segment, ...]
    offsets: tuple[int, ...]

    @property
    def tokens(self) -> int:
        """The tokens of the whole text."""
        return self.sums[-1]

    def tokens_from(self, offset: int, before: str, tools: TextTools) -> int:
        """Count the text from an offset on, behind another: its first part anew."""
        part = bisect_right(self.starts, offset)
        end = self.starts[part] if part < len(self.starts) else len(self.text)
        return tools.count(before + self.text[offset:end]) + self.tokens - self.sums[part]

    def tokens_to(self, offset: int, after: str, tools: TextTools) -> int:
        """Count the text up to an offset, before another: its last part anew."""
        part = last_part(self.text, self.starts, offset, after)
        return self.sums[part] + tools.count(self.text[self.starts[part] : offset] + after)

    def border_after(self, offset: int) -> int:
        """Return where the segment ends that an offset lies in."""
        border = bisect_right(self.borders, offset)
        return self.borders[border] if border < len(self.borders) else len(self.text)

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
    segments, parts = [nearest], [_cut_after(nearest.text, nearest.offset_of(position), tools)]
    tokens = parts[0].tokens
    for segment in manuscript.segments_before(nearest):
        if tokens > (USUAL_TOKENS if segment.end <= floor else most):
            break
        segments.append(segment)
        parts.append(_SummedText(segment.text, tools.part_sums(segment.text)))
        tokens += parts[-1].tokens
    return _count(segments[::-1], parts[::-1], tools)


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
    segments, parts = [nearest], [_cut_before(nearest.text, skipped, heading, tools)]
    tokens = parts[0].tokens
    for segment in manuscript.segments_after(nearest):
        if tokens > (USUAL_TOKENS if segment.start >= ceiling else most):
            break
        segments.append(segment)
        parts.append(_SummedText(segment.text, tools.part_sums(segment.text)))
        tokens += parts[-1].tokens
    counted = _count(segments, parts, tools)
    return counted._replace(offsets=(len(heading) - skipped, *counted.offsets[1:]))


class _SummedText(NamedTuple):
    """A text and the sums of its parts."""

    text: str
    parts: PartSums

    @property
    def tokens(self) -> int:
        return self.parts.sums[-1]


def _cut_after(text: str, end: int, tools: TextTools) -> _SummedText:
    """Return a text up to an offset and a newline; only its last part is counted anew."""
    starts, sums = tools.part_sums(text)
    last = last_part(text, starts, end, "\n")
    tokens = _count_to(text, starts[last], end, tools)
    parts = PartSums(starts[: last + 1], [*sums[: last + 1], sums[last] + tokens])
    return _SummedText(text[:end] + "\n", parts)


def _cut_before(text: str, start: int, heading: str, tools: TextTools) -> _SummedText:
    """Return a text from an offset on behind a heading; only its first part is counted anew."""
    starts, sums = tools.part_sums(text)
    second = bisect_right(starts, start)
    end = starts[second] if second < len(starts) else len(text)
    tokens, shift = _count_from(text, start, end, heading, tools), len(heading) - start
    gained = tokens - sums[second]
    parts = PartSums(
        [0, *(at + shift for at in starts[second:])],
        [0, tokens, *(gained + each for each in sums[second + 1 :])],
    )
    return _SummedText(heading + text[start:], parts)


def _count_to(text: str, start: int, end: int, tools: TextTools) -> int:
    """Count a part from its start to the cursor and a newline.

    What lies before the last additive point on a grid is counted by itself: it stays the same for
    a few words that are typed, and only those are new.
    """
    mark = start + (end - start) // CELL * CELL
    point = next(reversed(additive_points(text, max(start, mark - CELL), mark)), start)
    before = tools.count(text[start:point]) if point > start else 0
    return before + tools.count(text[point:end] + "\n")


def _count_from(text: str, start: int, end: int, heading: str, tools: TextTools) -> int:
    """Count a part from the cursor to its end, behind a heading; in the same way."""
    mark = end - (end - start) // CELL * CELL
    point = next(iter(additive_points(text, mark, min(end, mark + CELL))), end)
    behind = tools.count(text[point:end]) if point < end else 0
    return tools.count(heading + text[start:point]) + behind


def last_part(text: str, starts: Sequence[int], end: int, after: str) -> int:
    """Return the last part that begins before an offset and adds up if the text is cut there."""
    part = bisect_left(starts, end) - 1
    while part > 0:
        start = starts[part]
        if adds_up(text[start - 1 : start], text[start:end] + after):
            return part
        part -= 1
    return 0


def _count(
    segments: Sequence[Segment], texts: Sequence[_SummedText], tools: TextTools
) -> CountedText:
    """Put texts together; where two do not add up, the parts that meet there are one."""
    whole = "".join(each.text for each in texts)
    starts: list[int] = []
    sums = [0]
    borders: list[int] = []
    offset = 0
    for text, (own, counts) in texts:
        if not starts or adds_up(whole[max(0, offset - 1) : offset], text):
            borders.append(offset)
            first, gained = 0, sums[-1]
        else:
            end = offset + (own[1] if len(own) > 1 else len(text))
            sums[-1] = sums[-2] + tools.count(whole[starts[-1] : end])
            first, gained = 1, sums[-1] - counts[1]
        starts += [offset + at for at in own[first:]]
        sums += [gained + each for each in counts[first + 1 :]]
        offset += len(text)
    return CountedText(
        text=whole,
        starts=starts,
        sums=sums,
        borders=borders,
        segments=tuple(segments),
        offsets=tuple(accumulate((len(each.text) for each in texts), initial=0))[:-1],
    )
