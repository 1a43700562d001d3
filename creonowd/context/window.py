"""The window on the document.

What lies before the cursor begins on the grid; what lies after it is cut at a paragraph, else a
sentence, else a grapheme. Knows rooms in tokens and the step; knows no layer and no budget.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from creonowd.context.evidence import Decision, TrimEvidence, drop, keep
from creonowd.context.fragment import Action, Layer, Reason, Rule, Span, rank_key
from creonowd.context.manuscript import CountedText, Manuscript, Start, read_back, read_on
from creonowd.context.plan import Document, Plan, snap
from creonowd.context.template import excerpt, heading, heading_after
from creonowd.context.text_tools import TextTools
from creonowd.context.units import Unit, head_within, visible_ref
from creonowd.model import Model
from creonowd.tokens.boundaries import paragraphs
from creonowd.tokens.truncate import keep_head, keep_tail


class Side(NamedTuple):
    """What is shown of one side of the cursor.

    `tokens` covers its heading and the newline behind it, and is 0 if nothing is shown;
    `reach` is how many raw code points it covers.
    """

    text: str = ""
    tokens: int = 0
    reach: int = 0


class Before(NamedTuple):
    """What lies before a raw position, down to `floor`, and the heading it will have.

    `starts` remembers where the window begins for which multiple of the step.
    """

    manuscript: Manuscript
    position: int
    floor: int
    strip: CountedText
    heading: str
    starts: dict[int, int]

    @property
    def lowest(self) -> int:
        """The first raw position that could be shown."""
        return max(self.floor, self.strip.leaves[0].start)


class After(NamedTuple):
    """What lies after a raw position, up to `limit` in the text of the strip, heading included."""

    strip: CountedText
    position: int
    heading: str
    limit: int

    @property
    def rest(self) -> str:
        """All that was read, without the heading."""
        return self.strip.text[len(self.heading) :]


def show_before(before: Before, room: int, step: int, instruments: TextTools) -> Side:
    """Begin at the smallest multiple of the step from which the text up to the cursor fits.

    Where not even the last multiple will do, the cut is finer.
    """
    marks = range(before.lowest // step, (before.position - 1) // step + 1)

    def start(mark: int) -> int:
        if mark not in before.starts:
            before.starts[mark] = snap(before.manuscript.text, mark * step, step, before.position)
        return before.starts[mark]

    def fits(mark: int) -> bool:
        at = start(mark)
        if not before.lowest <= at < before.position:
            return at >= before.position
        return _tokens_from(before, _offset(before, at), instruments) <= room

    fitting = bisect_left(marks, x=True, key=fits)
    if fitting < len(marks) and (at := start(marks[fitting])) < before.position:
        return _shown_from(before, _offset(before, at), before.position - at, instruments)
    return _finer(before, room, instruments)


def show_after(after: After, room: int, instruments: TextTools) -> Side:
    """Show the text after the cursor up to where it fits, at a paragraph if there is one."""
    if _tokens_to(after, after.limit, instruments) <= room:
        return _shown_to(after, after.limit, instruments)
    ends = [
        end for i in range(len(after.strip.starts)) if (end := after.strip.end_of(i)) < after.limit
    ]
    fitting = _last_fitting(after, ends, room, instruments)
    beyond = min(after.limit, after.strip.end_of(after.strip.piece_at(fitting)))
    finer = list(paragraphs(after.strip.text, max(fitting, len(after.heading)), beyond))
    fitting = _last_fitting(after, finer, room, instruments) or fitting
    if fitting and after.strip.text[fitting - 1] == "\n":
        return _shown_to(after, fitting, instruments)
    text = after.strip.text[len(after.heading) : beyond]
    cut = keep_head(text, room, instruments.tokenizer, before=after.heading, after="\n")
    return _shown_to(after, len(after.heading) + cut.at, instruments)


def _offset(before: Before, position: int) -> int:
    leaf, place = before.strip.leaf_holding(position)
    return place + leaf.place(position)


def _tokens_from(before: Before, offset: int, instruments: TextTools) -> int:
    strip = before.strip
    piece = strip.piece_at(offset)
    first = before.heading + strip.text[offset : strip.end_of(piece)]
    return instruments.count(first) + strip.sums[-1] - strip.sums[piece + 1]


def _shown_from(before: Before, offset: int, reach: int, instruments: TextTools) -> Side:
    text = before.strip.text[offset:-1]
    if not text.strip():
        return Side()
    return Side(text, _tokens_from(before, offset, instruments), reach)


def _finer(before: Before, room: int, instruments: TextTools) -> Side:
    start = _offset(before, before.lowest)
    tail = before.strip.text[start:-1]
    cut = keep_tail(tail, room, instruments.tokenizer, before=before.heading, after="\n")
    reach = before.position - before.strip.raw_at(start + cut.at)
    return _shown_from(before, start + cut.at, reach, instruments)


def _tokens_to(after: After, end: int, instruments: TextTools) -> int:
    strip = after.strip
    piece = strip.piece_at(end - 1)
    return strip.sums[piece] + instruments.count(strip.text[strip.starts[piece] : end] + "\n")


def _last_fitting(after: After, ends: list[int], room: int, instruments: TextTools) -> int:
    fitting = bisect_right(ends, room, key=lambda end: _tokens_to(after, end, instruments))
    return ends[fitting - 1] if fitting else 0


def _shown_to(after: After, end: int, instruments: TextTools) -> Side:
    text = after.strip.text[len(after.heading) : end]
    if not text.strip():
        return Side()
    reach = after.strip.raw_at(end) - after.position
    return Side(text, _tokens_to(after, end, instruments), reach)


NOTES_SHARE = 4
MOST_LINES = 9_999_999


class DocumentWindow(Model):
    """What is shown of the document: its tokens, the verdict on it, and where it lies in it."""

    tokens: int = 0
    verdict: Decision | None = None
    span: Span | None = None


class _SideReader(NamedTuple):
    near: Side
    beyond: Side
    closing: str = ""
    closing_tokens: int = 0

    @property
    def tokens(self) -> int:
        return self.near.tokens + self.beyond.tokens + self.closing_tokens

    @property
    def text(self) -> str:
        return self.near.text + self.beyond.text


class Surroundings(NamedTuple):
    """Both sides of where the author is, and what they are measured with.

    `bounded` says that the skill asked for no more than was read.
    """

    before: Before
    after: After
    step: int
    document: Document
    instruments: TextTools
    bounded: bool = False


def take_notes(units: Sequence[Unit], room: int) -> list[Decision]:
    """Take the notes of hosts by falling score into a quarter of the room, in that order."""
    left, wanted = room // NOTES_SHARE, 0
    verdicts: list[Decision] = []
    for unit in sorted(units, key=lambda unit: rank_key(unit.fragment)):
        wanted += unit.tokens
        if unit.tokens <= left:
            verdicts.append(keep(unit, Rule.SCORE))
            left -= unit.tokens
        else:
            verdicts.append(drop(unit, Rule.SCORE, wanted * NOTES_SHARE - room))
    return verdicts


def surroundings_of(
    plan: Plan, manuscript: Manuscript, instruments: TextTools
) -> Surroundings | None:
    """Read both sides of where the author is, as far as could ever be shown."""
    document = plan.document
    if document is None or not document.text.strip():
        return None
    sides = _sides(plan, document, manuscript, instruments)
    bounded = plan.surrounding is not None
    return Surroundings(*sides, plan.step, document, instruments, bounded=bounded)


def fit_window(scene: Surroundings, room: int, most: int) -> DocumentWindow:
    """Show as much of the document as fits: first what lies before, then what lies after."""
    could = _see(scene, most)
    if not could.text:
        return DocumentWindow()
    shown = _see(scene, room)
    whole = shown == could and (scene.bounded or not shown.closing)
    ref = visible_ref(scene.document.source_ref, scene.instruments)
    return DocumentWindow(
        tokens=shown.tokens,
        span=_span(scene, shown),
        verdict=Decision(
            evidence=_evidence(ref, could, shown, whole=whole),
            text=shown.text,
            rendered=_rendered(scene, shown),
            fits_with=None if whole or not _is_read(scene, most) else max(1, could.tokens - room),
            redactions=scene.before.manuscript.evidence(ref),
        ),
    )


def _is_read(scene: Surroundings, most: int) -> bool:
    """Tell whether reading came to its end: else with more room there is more to show."""
    read = scene.before.strip.sums[-1] + scene.after.strip.sums[-1]
    return read + 2 * _reserve(scene) <= most


def _reserve(scene: Surroundings) -> int:
    return scene.instruments.count(_excerpt(scene, MOST_LINES, MOST_LINES))


def _see(scene: Surroundings, room: int) -> _SideReader:
    """Show what fits; where that is not all of the document, with the lines that it covers."""
    reserve = _reserve(scene)
    near = _near(scene, room, reserve)
    sight = _SideReader(near, show_after(scene.after, room - near.tokens, scene.instruments))
    left = room - near.tokens - reserve
    if not sight.text or left < 0 or _is_all(sight, scene):
        return sight
    sight = _SideReader(near, show_after(scene.after, left, scene.instruments))
    if not sight.text:
        return sight
    closing = _excerpt(scene, *_lines(scene.document.text, _span(scene, sight)))
    return sight._replace(closing=closing, closing_tokens=scene.instruments.count(closing))


def _near(scene: Surroundings, room: int, reserve: int) -> Side:
    """Show what lies before; what lies after must not matter, so what it may cost is not asked."""
    near = show_before(scene.before, room, scene.step, scene.instruments)
    if _is_all_before(near, scene.before):
        return near
    less = show_before(scene.before, room - reserve, scene.step, scene.instruments)
    return less if less.text else near


def _span(scene: Surroundings, sight: _SideReader) -> Span:
    start = scene.before.position - sight.near.reach
    return Span(start, scene.document.here.end + sight.beyond.reach)


def _lines(text: str, span: Span) -> tuple[int, int]:
    first = text.count("\n", 0, span.start) + 1
    return first, first + text.count("\n", span.start, max(span.start, span.end - 1))


def _excerpt(scene: Surroundings, first: int, last: int) -> str:
    return excerpt(visible_ref(scene.document.source_ref, scene.instruments), first, last)


def _sides(
    plan: Plan, document: Document, manuscript: Manuscript, instruments: TextTools
) -> tuple[Before, After]:
    start, end = document.here
    most, around = plan.figures.total, plan.surrounding
    floor = 0 if around is None else max(0, start - around)
    ceiling = len(document.text) if around is None else end + around
    back = read_back(manuscript, start, floor, most, instruments)
    ref = visible_ref(document.source_ref, instruments)
    title = heading_after(ref)
    on = read_on(manuscript, Start(end, title), ceiling, most, instruments)
    after = After(on, end, title, len(on.text))
    if around is not None:
        after = after._replace(limit=len(title) + head_within(after.rest, around))
    return Before(manuscript, start, floor, back, heading(ref), {}), after


def _is_all(shown: _SideReader, scene: Surroundings) -> bool:
    """Tell whether nothing but blanks of the document is missing."""
    after = scene.after
    last = after.strip.leaves[-1].end == len(scene.before.manuscript.text)
    complete = not after.rest.strip() or shown.beyond.text == after.rest
    return last and complete and _is_all_before(shown.near, scene.before)


def _is_all_before(near: Side, before: Before) -> bool:
    strip = before.strip
    complete = not strip.text.strip() or near.text == strip.text[:-1]
    return strip.leaves[0].start == 0 and complete


def _rendered(scene: Surroundings, shown: _SideReader) -> str:
    near = f"{scene.before.heading}{shown.near.text}\n" if shown.near.text else ""
    beyond = f"{scene.after.heading}{shown.beyond.text}\n" if shown.beyond.text else ""
    return near + beyond + shown.closing


def _evidence(ref: str, could: _SideReader, shown: _SideReader, *, whole: bool) -> TrimEvidence:
    some = Action.TRIMMED if shown.text else Action.DROPPED
    return TrimEvidence(
        layer=Layer.IMMEDIATE,
        source_ref=ref,
        action=Action.KEPT if whole else some,
        reason=Reason.OVER_BUDGET,
        rule=Rule.WINDOW,
        before_chars=len(could.text),
        after_chars=len(shown.text),
        before_tokens=could.tokens,
        after_tokens=shown.tokens,
    )
