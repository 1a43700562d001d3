"""The window on the document: as much of the text around the cursor as fits into some tokens.

The text before the cursor begins on a coarse grid, so that typing rarely moves its beginning; the
text after it ends at a paragraph, else a sentence, else a grapheme. Both are cut finer where the
layer would lack its minimum otherwise.

However long the document, only the segments that are asked for are redacted and counted, from the
cursor on and each by itself. Positions are those of the raw text; `Segment.offset_of` finds them
in what may be sent.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from itertools import chain
from typing import NamedTuple

from creonowd.context.candidates import Decision, TrimEvidence, add_up, head_within, visible_ref
from creonowd.context.fragment import Action, Extent, Fragment, Layer, Reason, Rule, Span
from creonowd.context.language import heading
from creonowd.context.plan import Document, Plan
from creonowd.context.text_tools import PartSums, RedactedText, TextTools
from creonowd.model import Model
from creonowd.redaction import RedactionEvidence
from creonowd.redaction.split_points import SHORT_TEXT, SplitPoint, all_split_points, split_points
from creonowd.tokens.boundaries import (
    adds_up,
    grapheme_ceiling,
    paragraphs,
    sentences,
)
from creonowd.tokens.truncate import keep_head, keep_tail

MOST_LINES = 9_999_999
MARGIN = 8192
STRIDE = 16_384
USUAL_TOKENS = 8_000
# Around how many segments of one document what lies before and after is kept.
MOST_SIDES = 8
MOST_STARTS = 512


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

    It keeps the split points around the position it was opened at, as far as it was read. What was
    read of a document of a usual length is kept between assemblies.
    """

    def __init__(self, text: str, opened_at: int, tools: TextTools) -> None:
        self.text = text
        self._tools = tools
        self._searched = (opened_at, opened_at)
        self._split_points: Sequence[SplitPoint] = ()
        self.kept = KeptReading(len(text))
        if len(text) <= SHORT_TEXT:
            self._searched, self._split_points = (0, len(text)), all_split_points(text)
            readings = tools.memory.readings
            self.kept = readings.get((tools.key, text), lambda: KeptReading(len(text)))
        self._with_findings: dict[int, RedactedText] = {}

    def segment_at(self, position: int) -> Segment:
        """Read the segment that a position lies in; at a split point, the one after it."""
        start = self._split_before(position)
        segment = self.kept.segments.get(start)
        if segment is None or position >= segment.end:
            segment = self.kept.segments[start] = self._read(start, self._split_after(position))
        self.note_findings(segment)
        return segment

    def segments_after(self, segment: Segment) -> Iterator[Segment]:
        """Read the segments after one, nearest first."""
        while segment.end < len(self.text):
            segment = self.segment_at(segment.end)
            yield segment

    def far_side(self, nearest: Segment, *, before: bool) -> "FarSide":
        """Return the segments before or after one, nearest first, as far as they were read."""
        sides = self.kept.sides
        side = sides.get((nearest.start, nearest.end, before))
        if side is None:
            if len(sides) >= MOST_SIDES:
                sides.clear()
            side = sides[nearest.start, nearest.end, before] = FarSide(nearest, before=before)
        return side

    def note_findings(self, segment: Segment) -> None:
        """Take into account for the evidence what was taken out of a segment."""
        if segment.redacted.findings:
            self._with_findings[segment.start] = segment.redacted

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
        found = (text.evidence(source_ref) for text in self._with_findings.values())
        return add_up(chain.from_iterable(found))

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
        redacted = self._tools.redact(raw)
        if not start.may_cut_secret and not end.may_cut_secret:
            return Segment(start.at, end.at, raw, raw_start, redacted, redacted.text)
        first = redacted.offset_of(raw, start.at - raw_start)
        last = redacted.offset_of(raw, end.at - raw_start)
        # Secrets beyond the split points belong to the neighbouring segments.
        own = redacted._replace(findings=redacted.findings_between(first, last))
        return Segment(start.at, end.at, raw, raw_start, own, redacted.text[first:last])


def _at(split_point: SplitPoint) -> int:
    return split_point.at


class KeptReading:
    """What was read of a document, kept while an author moves in it.

    A cursor that moves changes only the segment in which it stands: to put all others together
    anew took 50 µs of each assembly. `starts` are those of windows that the cursor does not touch.
    """

    def __init__(self, length: int) -> None:
        self._length = length
        self.segments: dict[SplitPoint, Segment] = {}
        self.sides: dict[tuple[int, int, bool], FarSide] = {}
        self.starts: dict[tuple[int, int], int] = {}

    @property
    def weight(self) -> int:
        """About how many characters it takes to keep it: segments, and what they were joined to."""
        return 2000 + 6 * self._length


class FarSide:
    """The segments before or after another one, nearest first, as far as they were read.

    `sums[i]` are the tokens of the first `i`. Several threads may read on at once: each finds the
    same.
    """

    def __init__(self, nearest: Segment, *, before: bool) -> None:
        self._nearest, self._before = nearest, before
        self._read: tuple[tuple[Segment, ...], tuple[int, ...]] = ((), (0,))
        self._joined: tuple[int, CountedText | None] = (0, None)

    def read(
        self, manuscript: Manuscript, within: Callable[[Segment, int], bool], tools: TextTools
    ) -> "CountedText | None":
        """Join the segments that lie within a bound; None if the nearest does not.

        The bound is asked with a segment and the tokens of those that are nearer.
        """
        chosen: list[Segment] = []
        while (following := self._following(len(chosen), manuscript, tools)) is not None:
            segment, tokens = following
            manuscript.note_findings(segment)
            if not within(segment, tokens):
                break
            chosen.append(segment)
        if not chosen:
            return None
        count, joined = self._joined
        if joined is None or count != len(chosen):
            ordered = chosen[::-1] if self._before else chosen
            parts = (_counted(one, one.text, tools.part_sums(one.text)) for one in ordered)
            joined = reduce(partial(_join, tools=tools), parts)
            self._joined = len(chosen), joined
        return joined

    def _following(
        self, number: int, manuscript: Manuscript, tools: TextTools
    ) -> tuple[Segment, int] | None:
        """Return a segment by its number, and the tokens of those that are nearer."""
        segments, sums = self._read
        while number >= len(segments):
            last = segments[-1] if segments else self._nearest
            at = last.start - 1 if self._before else last.end
            if not 0 <= at < len(manuscript.text):
                return None
            segment = manuscript.segment_at(at)
            segments = (*segments, segment)
            sums = (*sums, sums[-1] + tools.part_sums(segment.text).sums[-1])
            self._read = segments, sums
        return segments[number], sums[number]


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
        return _count_behind(before, self.text[offset:end], tools) + self.tokens - self.sums[part]

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
    cut = _counted(nearest, *_cut_after(nearest.text, nearest.offset_of(position), tools))

    def within(segment: Segment, tokens: int) -> bool:
        return cut.tokens + tokens <= (USUAL_TOKENS if segment.end <= floor else most)

    far = manuscript.far_side(nearest, before=True).read(manuscript, within, tools)
    return cut if far is None else _join(far, cut, tools)


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
    cut = _counted(nearest, *_cut_before(nearest.text, skipped, heading, tools))

    def within(segment: Segment, tokens: int) -> bool:
        return cut.tokens + tokens <= (USUAL_TOKENS if segment.start >= ceiling else most)

    far = manuscript.far_side(nearest, before=False).read(manuscript, within, tools)
    counted = cut if far is None else _join(cut, far, tools)
    return counted._replace(offsets=(len(heading) - skipped, *counted.offsets[1:]))


def _cut_after(text: str, end: int, tools: TextTools) -> tuple[str, PartSums]:
    """Return a text up to an offset and a newline; only its last part is counted anew."""
    starts, sums = tools.part_sums(text)
    last, following = last_part(text, starts, end, "\n"), bisect_left(starts, end)
    stop = starts[following] if following < len(starts) else len(text)
    tokens = _count_to(text[starts[last] : stop], end - starts[last], tools)
    parts = PartSums(starts[: last + 1], [*sums[: last + 1], sums[last] + tokens])
    return text[:end] + "\n", parts


def _cut_before(text: str, start: int, heading: str, tools: TextTools) -> tuple[str, PartSums]:
    """Return a text from an offset on behind a heading; only its first part is counted anew."""
    starts, sums = tools.part_sums(text)
    second = bisect_right(starts, start)
    end = starts[second] if second < len(starts) else len(text)
    begin = starts[second - 1]
    tokens = _count_from(text[begin:end], start - begin, heading, tools)
    shift = len(heading) - start
    gained = tokens - sums[second]
    parts = PartSums(
        [0, *(at + shift for at in starts[second:])],
        [0, tokens, *(gained + each for each in sums[second + 1 :])],
    )
    return heading + text[start:], parts


def _count_to(part: str, end: int, tools: TextTools) -> int:
    """Count a part up to the cursor and a newline; only what is behind its last cell is new."""
    starts, sums = tools.cell_sums(part)
    cell = max(0, bisect_left(starts, end) - 1)
    return sums[cell] + tools.count(part[starts[cell] : end] + "\n")


def _count_from(part: str, start: int, heading: str, tools: TextTools) -> int:
    """Count a part from the cursor on, behind a heading; only what is before its next cell is new."""
    starts, sums = tools.cell_sums(part)
    cell = bisect_right(starts, start)
    end = starts[cell] if cell < len(starts) else len(part)
    return _count_behind(heading, part[start:end], tools) + sums[-1] - sums[cell]


def _count_behind(heading: str, text: str, tools: TextTools) -> int:
    """Count a text behind its heading; where they add up, the heading is not counted again."""
    if adds_up(heading[-1:], text):
        return tools.count(heading) + tools.count(text)
    return tools.count(heading + text)


def last_part(text: str, starts: Sequence[int], end: int, after: str) -> int:
    """Return the last part that begins before an offset and adds up if the text is cut there."""
    part = bisect_left(starts, end) - 1
    while part > 0:
        start = starts[part]
        if adds_up(text[start - 1 : start], text[start:end] + after):
            return part
        part -= 1
    return 0


def _counted(segment: Segment, text: str, parts: PartSums) -> CountedText:
    """Return a text that comes from one segment."""
    return CountedText(text, parts.starts, parts.sums, [0], (segment,), (0,))


def _join(one: CountedText, other: CountedText, tools: TextTools) -> CountedText:
    """Put two texts together; where they do not add up, the parts that meet there are one."""
    text, offset = one.text + other.text, len(one.text)
    first_segment = other.text if len(other.offsets) == 1 else other.text[: other.offsets[1]]
    if adds_up(one.text[-1:], first_segment):
        merged, sums, gained = 0, one.sums, one.sums[-1]
    else:
        end = offset + (other.starts[1] if len(other.starts) > 1 else len(other.text))
        last = one.sums[-2] + tools.count(text[one.starts[-1] : end])
        merged, sums, gained = 1, [*one.sums[:-1], last], last - other.sums[1]
    return CountedText(
        text=text,
        starts=one.starts + [offset + at for at in other.starts[merged:]],
        sums=sums + [gained + each for each in other.sums[merged + 1 :]],
        borders=one.borders + [offset + at for at in other.borders[merged:]],
        segments=one.segments + other.segments,
        offsets=one.offsets + tuple([offset + at for at in other.offsets]),
    )


class DocumentWindow(Model):
    """What is shown of the document: its tokens, the decision on it, and its span.

    `from_start` says that nothing before the cursor is missing.
    """

    tokens: int = 0
    decision: Decision | None = None
    span: Span | None = None
    from_start: bool = True


class TextBefore(NamedTuple):
    """The text before the cursor, of which what lies below `floor` is never shown, and its heading.

    `starts` keeps where the window begins for multiples of a grid near the cursor, `tokens` what was
    counted from an offset on.
    """

    manuscript: Manuscript
    position: int
    floor: int
    counted: CountedText
    heading: str
    starts: dict[tuple[int, int], int]
    tokens: dict[int, int]

    @property
    def lowest(self) -> int:
        """The first raw position that could be shown."""
        return max(self.floor, self.counted.segments[0].start)


class TextAfter(NamedTuple):
    """The text after the cursor, behind its heading, up to the offset `limit`.

    `tokens` keeps what was counted up to an offset, `paragraphs` where those between two offsets
    begin.
    """

    counted: CountedText
    position: int
    heading: str
    limit: int
    tokens: dict[int, int]
    paragraphs: dict[tuple[int, int], list[int]]

    @property
    def text(self) -> str:
        """All that was read, without the heading."""
        return self.counted.text[len(self.heading) :]


class Surroundings(NamedTuple):
    """The text on both sides of the cursor or selection, as far as it was read.

    `bounded` says that the skill asks for no more than lies between `before.floor` and `ceiling`.
    `ref` is how the document may be called, and `reserve` what the line that closes an excerpt of
    it needs at most.
    """

    before: TextBefore
    after: TextAfter
    step: int
    document: Document
    tools: TextTools
    ceiling: int
    ref: str
    reserve: int
    bounded: bool = False

    @property
    def is_read(self) -> bool:
        """Whether all that the skill asks for was read, so that more room would show no more."""
        first, last = self.before.counted.segments[0], self.after.counted.segments[-1]
        return first.start <= self.before.floor and last.end >= self.ceiling

    @property
    def unread_chars(self) -> int:
        """How many code points of the document were not read, with line ends unified."""
        text, first = self.document.text, self.before.counted.segments[0].start
        last = self.after.counted.segments[-1].end
        line_ends = text.count("\r\n", 0, first) + text.count("\r\n", last)
        return first + len(text) - last - line_ends


class Side(NamedTuple):
    """What is shown on one side of the cursor.

    `tokens` includes its heading and the newline behind it, and is 0 if nothing is shown;
    `reach` is how many raw code points it covers.
    """

    text: str = ""
    tokens: int = 0
    reach: int = 0


class _ShownSides(NamedTuple):
    """What is shown on both sides, and the line that closes it unless it is the whole document."""

    before: Side
    after: Side
    closing: str = ""
    closing_tokens: int = 0

    @property
    def tokens(self) -> int:
        return self.before.tokens + self.after.tokens + self.closing_tokens

    @property
    def text(self) -> str:
        return self.before.text + self.after.text


def surroundings_of(plan: Plan, manuscript: Manuscript, tools: TextTools) -> Surroundings | None:
    """Read both sides of the cursor as far as they could ever be shown; None if there is no text.

    Where that is little, read on for a while, so that the size of a usual chapter is known.
    """
    document = plan.document
    if document is None or not document.text.strip():
        return None
    start, end = document.here
    most, around = plan.allowances.total, plan.surrounding
    floor, ceiling = 0, len(document.text)
    if around is not None:
        floor = grapheme_ceiling(document.text, max(0, start - around))
        ceiling = min(ceiling, end + around)
    ref = visible_ref(document.source_ref, tools)
    before = read_before(manuscript, start, floor, most, tools)
    title = tools.frame.heading_after(ref)
    counted = read_after(manuscript, end, ceiling, most, tools, heading=title)
    after = TextAfter(counted, end, title, len(counted.text), {}, {})
    if around is not None:
        limit = head_within(after.text, around, least=around - plan.step)
        after = after._replace(limit=len(title) + limit)
    return Surroundings(
        TextBefore(manuscript, start, floor, before, heading(ref), {}, {}),
        after,
        plan.step,
        document,
        tools,
        ceiling,
        ref,
        tools.count(tools.frame.excerpt_of(ref, MOST_LINES, MOST_LINES)),
        bounded=around is not None,
    )


def fit_window(around: Surroundings, room: int, least: int = 0, others: int = 0) -> DocumentWindow:
    """Show as much of the document as fits into `room`: first what lies before the cursor.

    At least `least` tokens are shown where there is that much room and that much text. `others`
    is what else might take the tokens of a larger budget first.
    """
    shown = _fit(around, room, least)
    whole = _is_whole(shown, around)
    if not shown.text and whole:
        return DocumentWindow()
    rule, more = Rule.WINDOW, None
    all_before, all_after = _all_sides(around)
    if not whole and around.is_read:
        # Where nothing bounds the window, more room would show the whole document.
        wanted_tokens = all_before.tokens + all_after.tokens
        if around.bounded:
            wanted = _fit(around, _room_for_all(around), least)
            wanted_tokens = wanted.tokens
            rule = Rule.SKILL_WINDOW if shown == wanted else rule
        if rule is not Rule.SKILL_WINDOW:
            more = max(1, wanted_tokens - room + others)
    ref = around.ref
    return DocumentWindow(
        tokens=shown.tokens,
        span=_span(around, shown),
        from_start=_is_whole_before(shown.before, around.before),
        decision=Decision(
            evidence=_evidence(around, shown, rule, all_before, all_after, whole=whole),
            text=shown.text,
            fragment=_fragment(around.document, _span(around, shown)),
            rendered=_render(around, shown),
            settled=len(around.before.heading) + len(shown.before.text) if shown.before.text else 0,
            fits_with=more,
            redactions=around.before.manuscript.evidence(ref),
        ),
    )


def measure_window(
    around: Surroundings, room: int, least: int, up_to: int | None = None
) -> DocumentWindow:
    """Return what `fit_window` does without the decision: its tokens, and what it shows.

    Nothing behind `up_to` matters to the caller where the window does not begin with the document:
    what is shown after the cursor, and the tokens, are then left out if that lies before it.
    """
    if up_to is not None and up_to <= around.before.position:
        side = _fit_side_before(around, room, least)
        if side is not None and side.text and not _is_whole_before(side, around.before):
            position = around.before.position
            return DocumentWindow(span=Span(position - side.reach, position), from_start=False)
    shown = _fit(around, room, least)
    if not shown.text and _is_whole(shown, around):
        return DocumentWindow()
    return DocumentWindow(
        tokens=shown.tokens,
        span=_span(around, shown),
        from_start=_is_whole_before(shown.before, around.before),
    )


def _fit_side_before(around: Surroundings, room: int, least: int) -> Side | None:
    """Return the text before the cursor as `_fit` does; None if that depends on the text after it."""
    is_asked = 0 < least <= room
    if is_asked and _most_before(around) < least:
        return None
    grid = max(1, around.step // 2)
    side = _fit_before(around, grid, room)
    while grid > 1 and is_asked and side.tokens < least:
        grid //= 2
        side = _fit_before(around, grid, room)
    return side


def _room_for_all(around: Surroundings) -> int:
    """Return room enough for all that was read."""
    tokens = around.before.counted.tokens + around.after.counted.tokens
    return tokens + 3 * around.reserve


def _fit(around: Surroundings, room: int, least: int) -> _ShownSides:
    """Show what fits on the grid of half a step; halve that while less than `least` is shown.

    Half of the step, because from a multiple the start moves on to a paragraph: both together
    are no more than one step.
    """
    grid = max(1, around.step // 2)
    shown = _fit_on_grid(around, grid, room, least)
    while grid > 1 and _falls_short(around, shown, room, least):
        grid //= 2
        shown = _fit_on_grid(around, grid, room, least)
    return shown


def _falls_short(around: Surroundings, shown: _ShownSides, room: int, least: int) -> bool:
    """Return whether less than `least` is shown though there is more text and room for it.

    The text before the cursor is looked at by itself first: how finely it is cut must not
    depend on the text after it where it is long enough alone. Where a skill sets the window, up to
    one step may be missing: a window that had to be complete would move with every letter.
    """
    if least <= 0 or room < least:
        return False
    most_before = _most_before(around)
    if most_before >= least:
        return shown.before.tokens < least
    most_after = _tokens_to(around.after, around.after.limit, around.tools)
    return shown.tokens < least <= most_before + most_after


def _most_before(around: Surroundings) -> int:
    """Return the tokens of all that could be shown before the cursor."""
    before = around.before
    lowest = before.lowest
    if around.bounded and before.floor > 0:
        lowest = min(before.position, lowest + around.step)
    return _tokens_from(before, before.counted.offset_of(lowest), around.tools)


def _fit_on_grid(around: Surroundings, grid: int, room: int, least: int) -> _ShownSides:
    """Show what fits; where that is not the whole document, close it with the lines it covers."""
    before = _fit_before(around, grid, room)
    left = room - before.tokens - around.reserve
    if (
        left < 0
        or not before.text
        or _may_be_whole(around.after, room - before.tokens, around.tools)
    ):
        after = show_after(around.after, room - before.tokens, least - before.tokens, around.tools)
        shown = _ShownSides(before, after)
        if not shown.text or left < 0 or _is_whole(shown, around):
            return shown
    shown = _ShownSides(before, show_after(around.after, left, least - before.tokens, around.tools))
    if not shown.text:
        return shown
    first, last = _lines(around.document, _span(around, shown))
    closing = around.tools.frame.excerpt_of(around.ref, first, last)
    return shown._replace(closing=closing, closing_tokens=around.tools.count(closing))


def _fit_before(around: Surroundings, grid: int, room: int) -> Side:
    """Fit the text before the cursor first; it must not depend on the text after it."""
    before = show_before(around.before, room, grid, around.tools)
    if _is_whole_before(before, around.before):
        return before
    less = show_before(around.before, room - around.reserve, grid, around.tools)
    return less if less.text else before


def show_before(before: TextBefore, room: int, grid: int, tools: TextTools) -> Side:
    """Begin at the smallest multiple of the grid from which the text up to the cursor fits.

    Where not even the last multiple will do, the cut is finer.
    """
    marks = range(before.lowest // grid, (before.position - 1) // grid + 1)
    counted = before.counted

    def start(mark: int) -> int:
        # Where the cursor lies beyond the reach of a mark, it is the same for all cursors.
        is_settled = (mark + 1) * grid < before.position
        starts = before.manuscript.kept.starts if is_settled else before.starts
        position = starts.get((grid, mark))
        if position is None:
            if len(starts) >= MOST_STARTS:
                starts.clear()
            position = snap(before.manuscript.text, mark * grid, grid, before.position)
            starts[grid, mark] = position
        return position

    def fits(mark: int) -> bool:
        position = start(mark)
        if not before.lowest <= position < before.position:
            return position >= before.position
        return _tokens_from(before, before.counted.offset_of(position), tools) <= room

    near = min(bisect_left(counted.sums, counted.tokens - room), len(counted.starts) - 1)
    guess = counted.position_of(counted.starts[near]) // grid - marks.start
    fitting = _first_holding(len(marks), guess, lambda number: fits(marks[number]))
    if fitting < len(marks) and (position := start(marks[fitting])) < before.position:
        offset = before.counted.offset_of(position)
        return _side_from(before, offset, before.position - position, tools)
    lowest = before.counted.offset_of(before.lowest)
    text = before.counted.text[lowest:-1]
    kept = keep_tail(text, room, tools.tokenizer, before=before.heading, after="\n")
    reach = before.position - before.counted.position_of(lowest + kept.at)
    return _side_from(before, lowest + kept.at, reach, tools)


def snap(text: str, mark: int, grid: int, cursor: int) -> int:
    """Move a multiple of the grid on to the next paragraph, else sentence, before the next one.

    What lies at the cursor or behind it is not looked at.
    """
    if mark <= 0:
        return 0
    for boundaries in (paragraphs, sentences):
        found = next(boundaries(text, mark - 1, min(mark + grid, cursor - 1)), None)
        if found is not None:
            return found
    return grapheme_ceiling(text, mark)


def _side_from(before: TextBefore, offset: int, reach: int, tools: TextTools) -> Side:
    text = before.counted.text[offset:-1]
    if not text.strip():
        return Side()
    return Side(text, _tokens_from(before, offset, tools), reach)


def _tokens_from(before: TextBefore, offset: int, tools: TextTools) -> int:
    """Count the text from an offset on, with its heading."""
    tokens = before.tokens.get(offset)
    if tokens is None:
        tokens = before.counted.tokens_from(offset, before.heading, tools)
        before.tokens[offset] = tokens
    return tokens


def show_after(after: TextAfter, room: int, least: int, tools: TextTools) -> Side:
    """Show the text after the cursor up to where it fits, at a paragraph if there is one.

    The cut is finer if the paragraphs have less than `least` tokens.
    """
    counted = after.counted
    if _tokens_to(after, after.limit, tools) <= room:
        return _side_to(after, after.limit, tools)
    ends = [end for end in (*counted.borders[1:], len(counted.text)) if end < after.limit]
    fitting = _last_fitting(after, ends, room, tools)
    beyond = min(after.limit, counted.border_after(fitting))
    finer = _paragraphs_between(after, max(fitting, len(after.heading)), beyond)
    fitting = _last_fitting(after, finer, room, tools) or fitting
    end = fitting if fitting and counted.text[fitting - 1] == "\n" else len(after.heading)
    parts = bisect_left(counted.starts, beyond)
    while end == len(after.heading) or _tokens_to(after, end, tools) < min(least, room):
        kept = keep_head(
            counted.text[len(after.heading) : beyond],
            room,
            tools.tokenizer,
            floor=end - len(after.heading),
            before=after.heading,
            after="\n",
            known=list(zip(counted.starts[1:parts], counted.sums[1:parts], strict=True)),
        )
        if len(after.heading) + kept.at <= end:
            break
        end = len(after.heading) + kept.at
    return _side_to(after, end, tools)


def _paragraphs_between(after: TextAfter, start: int, end: int) -> list[int]:
    """Return where the paragraphs in `(start, end]` begin."""
    found = after.paragraphs.get((start, end))
    if found is None:
        found = after.paragraphs[start, end] = list(paragraphs(after.counted.text, start, end))
    return found


def _last_fitting(after: TextAfter, ends: list[int], room: int, tools: TextTools) -> int:
    """Return the last of some offsets up to which the text fits; 0 if none."""
    counted = after.counted
    near = min(bisect_left(counted.sums, room), len(counted.starts) - 1)
    guess = bisect_left(ends, counted.starts[near])
    over = _first_holding(
        len(ends), guess, lambda number: _tokens_to(after, ends[number], tools) > room
    )
    return ends[over - 1] if over else 0


def _first_holding(size: int, guess: int, holds: Callable[[int], bool]) -> int:
    """Return the first number below `size` from which on something holds, else `size`.

    It looks around a guess first: a search by halves also asks at places near the cursor, where
    each letter makes new text to count, once in eight assemblies.
    """
    low, high, step, at = 0, size, 1, guess
    while low < high:
        if not low <= at < high:
            at = (low + high) // 2
        if holds(at):
            high, at = at, at - step
        else:
            low, at = at + 1, at + step
        step *= 2
    return low


def _side_to(after: TextAfter, end: int, tools: TextTools) -> Side:
    text = after.counted.text[len(after.heading) : end]
    if not text.strip():
        return Side()
    reach = after.counted.position_of(end) - after.position
    return Side(text, _tokens_to(after, end, tools), reach)


def _tokens_to(after: TextAfter, end: int, tools: TextTools) -> int:
    """Count the text up to an offset, with the newline behind it."""
    tokens = after.tokens.get(end)
    if tokens is None:
        tokens = after.tokens[end] = after.counted.tokens_to(end, "\n", tools)
    return tokens


def _may_be_whole(after: TextAfter, room: int, tools: TextTools) -> bool:
    """Return whether the text after the cursor could be shown up to its end."""
    return not after.text.strip() or _tokens_to(after, after.limit, tools) <= room


def _is_whole(shown: _ShownSides, around: Surroundings) -> bool:
    """Return whether nothing but blanks of the document is missing."""
    after = around.after
    at_end = after.counted.segments[-1].end == len(around.document.text)
    complete = not after.text.strip() or shown.after.text == after.text
    return at_end and complete and _is_whole_before(shown.before, around.before)


def _is_whole_before(side: Side, before: TextBefore) -> bool:
    counted = before.counted
    complete = not counted.text.strip() or side.text == counted.text[:-1]
    return counted.segments[0].start == 0 and complete


def _span(around: Surroundings, shown: _ShownSides) -> Span:
    start = around.before.position - shown.before.reach
    return Span(start, around.document.here.end + shown.after.reach)


def _fragment(document: Document, span: Span) -> Fragment:
    """Return the document as a fragment, with what is shown of its file."""
    above, path = len(document.front_matter), document.source_ref
    return Fragment(
        layer=Layer.IMMEDIATE,
        source="document",
        source_ref=path,
        text="",
        extent=Extent(path, above + span.start, above + span.end),
    )


def _lines(document: Document, span: Span) -> tuple[int, int]:
    """Return the numbers of the first and last line of a span, as they are in the file."""
    text = document.text
    first = document.first_line + text.count("\n", 0, span.start)
    return first, first + text.count("\n", span.start, max(span.start, span.end - 1))


def _render(around: Surroundings, shown: _ShownSides) -> str:
    before, after = shown.before.text, shown.after.text
    return (
        (f"{around.before.heading}{before}\n" if before else "")
        + (f"{around.after.heading}{after}\n" if after else "")
        + shown.closing
    )


def _all_sides(around: Surroundings) -> tuple[Side, Side]:
    """Return all that was read on either side."""
    before = _side_from(around.before, 0, 0, around.tools)
    after = _side_to(around.after, len(around.after.counted.text), around.tools)
    return before, after


def _evidence(
    around: Surroundings, shown: _ShownSides, rule: Rule, before: Side, after: Side, *, whole: bool
) -> TrimEvidence:
    action = Action.TRIMMED if shown.text else Action.DROPPED
    return TrimEvidence(
        layer=Layer.IMMEDIATE,
        source_ref=around.ref,
        action=Action.KEPT if whole else action,
        reason=Reason.OVER_BUDGET,
        rule=rule,
        before_chars=len(before.text) + len(after.text) + around.unread_chars,
        after_chars=len(shown.text),
        before_tokens=before.tokens + after.tokens,
        after_tokens=shown.tokens,
    )
