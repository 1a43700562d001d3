"""The window on the document: as much of the text around the cursor as fits into some tokens.

The text before the cursor begins on a coarse grid, so that typing rarely moves its beginning; the
text after it ends at a paragraph, else a sentence, else a grapheme.
"""

from bisect import bisect_left, bisect_right
from typing import NamedTuple

from creonowd.context.evidence import Decision, TrimEvidence
from creonowd.context.fragment import Action, Layer, Reason, Rule, Span
from creonowd.context.manuscript import CountedText, Manuscript, read_after, read_before
from creonowd.context.plan import Document, Plan
from creonowd.context.template import excerpt, heading, heading_after
from creonowd.context.text_tools import TextTools
from creonowd.context.units import head_within, visible_ref
from creonowd.model import Model
from creonowd.tokens.boundaries import grapheme_ceiling, paragraphs, sentences
from creonowd.tokens.truncate import keep_head, keep_tail

MOST_LINES = 9_999_999


class DocumentWindow(Model):
    """What is shown of the document: its tokens, the decision on it, and its span."""

    tokens: int = 0
    decision: Decision | None = None
    span: Span | None = None


class TextBefore(NamedTuple):
    """The text before the cursor, down to `floor`, and the heading it will have.

    `starts` keeps where the window begins for each multiple of the step.
    """

    manuscript: Manuscript
    position: int
    floor: int
    counted: CountedText
    heading: str
    starts: dict[int, int]

    @property
    def lowest(self) -> int:
        """The first raw position that could be shown."""
        return max(self.floor, self.counted.segments[0].start)


class TextAfter(NamedTuple):
    """The text after the cursor, behind its heading, up to the offset `limit`."""

    counted: CountedText
    position: int
    heading: str
    limit: int

    @property
    def text(self) -> str:
        """All that was read, without the heading."""
        return self.counted.text[len(self.heading) :]


class Surroundings(NamedTuple):
    """The text on both sides of the cursor or selection, as far as it could ever be shown.

    `bounded` says that the skill asked for no more than was read.
    """

    before: TextBefore
    after: TextAfter
    step: int
    document: Document
    tools: TextTools
    bounded: bool = False


class Side(NamedTuple):
    """What is shown on one side of the cursor.

    `tokens` includes its heading and the newline behind it, and is 0 if nothing is shown;
    `reach` is how many raw code points it covers.
    """

    text: str = ""
    tokens: int = 0
    reach: int = 0


class _Excerpt(NamedTuple):
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
    """Read both sides of the cursor as far as they could ever be shown; None if there is no text."""
    document = plan.document
    if document is None or not document.text.strip():
        return None
    start, end = document.here
    most, around = plan.allowances.total, plan.surrounding
    floor = 0 if around is None else max(0, start - around)
    ceiling = len(document.text) if around is None else end + around
    ref = visible_ref(document.source_ref, tools)
    before = read_before(manuscript, start, floor, most, tools)
    title = heading_after(ref)
    counted = read_after(manuscript, end, ceiling, most, tools, heading=title)
    after = TextAfter(counted, end, title, len(counted.text))
    if around is not None:
        after = after._replace(limit=len(title) + head_within(after.text, around))
    return Surroundings(
        TextBefore(manuscript, start, floor, before, heading(ref), {}),
        after,
        plan.step,
        document,
        tools,
        bounded=around is not None,
    )


def fit_window(around: Surroundings, room: int, most: int) -> DocumentWindow:
    """Show as much of the document as fits into `room`: first what lies before the cursor.

    `most` is the whole budget: what would fit into that is the candidate.
    """
    candidate = _fit(around, most)
    if not candidate.text:
        return DocumentWindow()
    shown = _fit(around, room)
    whole = shown == candidate and (around.bounded or not shown.closing)
    more = None if whole or not _is_read(around, most) else max(1, candidate.tokens - room)
    ref = visible_ref(around.document.source_ref, around.tools)
    return DocumentWindow(
        tokens=shown.tokens,
        span=_span(around, shown),
        decision=Decision(
            evidence=_evidence(ref, candidate, shown, whole=whole),
            text=shown.text,
            rendered=_render(around, shown),
            fits_with=more,
            redactions=around.before.manuscript.evidence(ref),
        ),
    )


def _fit(around: Surroundings, room: int) -> _Excerpt:
    """Show what fits; where that is not the whole document, close it with the lines it covers."""
    reserve = _closing_reserve(around)
    before = _fit_before(around, room, reserve)
    shown = _Excerpt(before, show_after(around.after, room - before.tokens, around.tools))
    left = room - before.tokens - reserve
    if not shown.text or left < 0 or _is_whole(shown, around):
        return shown
    shown = _Excerpt(before, show_after(around.after, left, around.tools))
    if not shown.text:
        return shown
    closing = _closing(around, *_lines(around.document, _span(around, shown)))
    return shown._replace(closing=closing, closing_tokens=around.tools.count(closing))


def _fit_before(around: Surroundings, room: int, reserve: int) -> Side:
    """Fit the text before the cursor first; it must not depend on the text after it."""
    before = show_before(around.before, room, around.step, around.tools)
    if _is_whole_before(before, around.before):
        return before
    less = show_before(around.before, room - reserve, around.step, around.tools)
    return less if less.text else before


def show_before(before: TextBefore, room: int, step: int, tools: TextTools) -> Side:
    """Begin at the smallest multiple of the step from which the text up to the cursor fits.

    Where not even the last multiple will do, the cut is finer.
    """
    marks = range(before.lowest // step, (before.position - 1) // step + 1)

    def start(mark: int) -> int:
        if mark not in before.starts:
            before.starts[mark] = snap(before.manuscript.text, mark * step, step, before.position)
        return before.starts[mark]

    def fits(mark: int) -> bool:
        position = start(mark)
        if not before.lowest <= position < before.position:
            return position >= before.position
        return _tokens_from(before, before.counted.offset_of(position), tools) <= room

    fitting = bisect_left(marks, x=True, key=fits)
    if fitting < len(marks) and (position := start(marks[fitting])) < before.position:
        offset = before.counted.offset_of(position)
        return _side_from(before, offset, before.position - position, tools)
    lowest = before.counted.offset_of(before.lowest)
    text = before.counted.text[lowest:-1]
    kept = keep_tail(text, room, tools.tokenizer, before=before.heading, after="\n")
    reach = before.position - before.counted.position_of(lowest + kept.at)
    return _side_from(before, lowest + kept.at, reach, tools)


def snap(text: str, mark: int, step: int, cursor: int) -> int:
    """Move a multiple of the step on to the next paragraph, else sentence, within one step.

    What lies at the cursor or behind it is not looked at.
    """
    if mark <= 0:
        return 0
    for boundaries in (paragraphs, sentences):
        found = next(boundaries(text, mark - 1, min(mark + step, cursor - 1)), None)
        if found is not None:
            return found
    return grapheme_ceiling(text, mark)


def _side_from(before: TextBefore, offset: int, reach: int, tools: TextTools) -> Side:
    text = before.counted.text[offset:-1]
    if not text.strip():
        return Side()
    return Side(text, _tokens_from(before, offset, tools), reach)


def _tokens_from(before: TextBefore, offset: int, tools: TextTools) -> int:
    """Count the text from an offset on: of its first part anew, the rest by the sums."""
    counted = before.counted
    part = counted.part_at(offset)
    first = before.heading + counted.text[offset : counted.end_of(part)]
    return tools.count(first) + counted.tokens - counted.sums[part + 1]


def show_after(after: TextAfter, room: int, tools: TextTools) -> Side:
    """Show the text after the cursor up to where it fits, at a paragraph if there is one."""
    counted = after.counted
    if _tokens_to(after, after.limit, tools) <= room:
        return _side_to(after, after.limit, tools)
    ends = [
        end for part in range(len(counted.starts)) if (end := counted.end_of(part)) < after.limit
    ]
    fitting = _last_fitting(after, ends, room, tools)
    beyond = min(after.limit, counted.end_of(counted.part_at(fitting)))
    finer = list(paragraphs(counted.text, max(fitting, len(after.heading)), beyond))
    fitting = _last_fitting(after, finer, room, tools) or fitting
    if fitting and counted.text[fitting - 1] == "\n":
        return _side_to(after, fitting, tools)
    text = counted.text[len(after.heading) : beyond]
    kept = keep_head(text, room, tools.tokenizer, before=after.heading, after="\n")
    return _side_to(after, len(after.heading) + kept.at, tools)


def _last_fitting(after: TextAfter, ends: list[int], room: int, tools: TextTools) -> int:
    """Return the last of some offsets up to which the text fits; 0 if none."""
    fitting = bisect_right(ends, room, key=lambda end: _tokens_to(after, end, tools))
    return ends[fitting - 1] if fitting else 0


def _side_to(after: TextAfter, end: int, tools: TextTools) -> Side:
    text = after.counted.text[len(after.heading) : end]
    if not text.strip():
        return Side()
    reach = after.counted.position_of(end) - after.position
    return Side(text, _tokens_to(after, end, tools), reach)


def _tokens_to(after: TextAfter, end: int, tools: TextTools) -> int:
    """Count the text up to an offset: its last part anew, those before by the sums."""
    counted = after.counted
    part = counted.part_at(end - 1)
    return counted.sums[part] + tools.count(counted.text[counted.starts[part] : end] + "\n")


def _is_whole(shown: _Excerpt, around: Surroundings) -> bool:
    """Return whether nothing but blanks of the document is missing."""
    after = around.after
    at_end = after.counted.segments[-1].end == len(around.document.text)
    complete = not after.text.strip() or shown.after.text == after.text
    return at_end and complete and _is_whole_before(shown.before, around.before)


def _is_whole_before(side: Side, before: TextBefore) -> bool:
    counted = before.counted
    complete = not counted.text.strip() or side.text == counted.text[:-1]
    return counted.segments[0].start == 0 and complete


def _is_read(around: Surroundings, most: int) -> bool:
    """Return whether all of the document was read, so that more room would show no more."""
    tokens = around.before.counted.tokens + around.after.counted.tokens
    return tokens + 2 * _closing_reserve(around) <= most


def _closing_reserve(around: Surroundings) -> int:
    return around.tools.count(_closing(around, MOST_LINES, MOST_LINES))


def _closing(around: Surroundings, first: int, last: int) -> str:
    return excerpt(visible_ref(around.document.source_ref, around.tools), first, last)


def _span(around: Surroundings, shown: _Excerpt) -> Span:
    start = around.before.position - shown.before.reach
    return Span(start, around.document.here.end + shown.after.reach)


def _lines(document: Document, span: Span) -> tuple[int, int]:
    """Return the numbers of the first and last line of a span, as they are in the file."""
    text = document.text
    first = document.first_line + text.count("\n", 0, span.start)
    return first, first + text.count("\n", span.start, max(span.start, span.end - 1))


def _render(around: Surroundings, shown: _Excerpt) -> str:
    before, after = shown.before.text, shown.after.text
    return (
        (f"{around.before.heading}{before}\n" if before else "")
        + (f"{around.after.heading}{after}\n" if after else "")
        + shown.closing
    )


def _evidence(ref: str, candidate: _Excerpt, shown: _Excerpt, *, whole: bool) -> TrimEvidence:
    action = Action.TRIMMED if shown.text else Action.DROPPED
    return TrimEvidence(
        layer=Layer.IMMEDIATE,
        source_ref=ref,
        action=Action.KEPT if whole else action,
        reason=Reason.OVER_BUDGET,
        rule=Rule.WINDOW,
        before_chars=len(candidate.text),
        after_chars=len(shown.text),
        before_tokens=candidate.tokens,
        after_tokens=shown.tokens,
    )
