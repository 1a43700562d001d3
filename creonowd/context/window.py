"""The window on the document.

What lies before the cursor begins on the grid; what lies after it is cut at a paragraph, else a
sentence, else a grapheme. Knows rooms in tokens and the step; knows no layer and no budget.
"""

from bisect import bisect_left, bisect_right
from typing import NamedTuple

from creonowd.context.grid import snap
from creonowd.context.instruments import Instruments
from creonowd.context.manuscript import Manuscript
from creonowd.context.strips import Strip
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
    strip: Strip
    heading: str
    starts: dict[int, int]

    @property
    def lowest(self) -> int:
        """The first raw position that could be shown."""
        return max(self.floor, self.strip.leaves[0].start)


class After(NamedTuple):
    """What lies after a raw position, up to `limit` in the text of the strip, heading included."""

    strip: Strip
    position: int
    heading: str
    limit: int

    @property
    def rest(self) -> str:
        """All that was read, without the heading."""
        return self.strip.text[len(self.heading) :]


def show_before(before: Before, room: int, step: int, instruments: Instruments) -> Side:
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


def show_after(after: After, room: int, instruments: Instruments) -> Side:
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


def _tokens_from(before: Before, offset: int, instruments: Instruments) -> int:
    strip = before.strip
    piece = strip.piece_at(offset)
    first = before.heading + strip.text[offset : strip.end_of(piece)]
    return instruments.count(first) + strip.sums[-1] - strip.sums[piece + 1]


def _shown_from(before: Before, offset: int, reach: int, instruments: Instruments) -> Side:
    text = before.strip.text[offset:-1]
    if not text.strip():
        return Side()
    return Side(text, _tokens_from(before, offset, instruments), reach)


def _finer(before: Before, room: int, instruments: Instruments) -> Side:
    start = _offset(before, before.lowest)
    tail = before.strip.text[start:-1]
    cut = keep_tail(tail, room, instruments.tokenizer, before=before.heading, after="\n")
    reach = before.position - before.strip.raw_at(start + cut.at)
    return _shown_from(before, start + cut.at, reach, instruments)


def _tokens_to(after: After, end: int, instruments: Instruments) -> int:
    strip = after.strip
    piece = strip.piece_at(end - 1)
    return strip.sums[piece] + instruments.count(strip.text[strip.starts[piece] : end] + "\n")


def _last_fitting(after: After, ends: list[int], room: int, instruments: Instruments) -> int:
    fitting = bisect_right(ends, room, key=lambda end: _tokens_to(after, end, instruments))
    return ends[fitting - 1] if fitting else 0


def _shown_to(after: After, end: int, instruments: Instruments) -> Side:
    text = after.strip.text[len(after.heading) : end]
    if not text.strip():
        return Side()
    reach = after.strip.raw_at(end) - after.position
    return Side(text, _tokens_to(after, end, instruments), reach)
