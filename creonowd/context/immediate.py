"""The Immediate layer: the document around the cursor or selection, and the notes of hosts.

Knows the room that is left for it; knows nothing of the other layers.
"""

from collections.abc import Sequence
from typing import NamedTuple

from creonowd.context.document import Document
from creonowd.context.fragment import Action, Layer, Reason, Rule, Span
from creonowd.context.instruments import Instruments
from creonowd.context.manuscript import Manuscript
from creonowd.context.plan import Plan
from creonowd.context.retrieved import rank_key
from creonowd.context.strips import Start, read_back, read_on
from creonowd.context.template import heading, heading_after
from creonowd.context.units import Unit, head_within, visible_ref
from creonowd.context.verdict import TrimEvidence, Verdict, drop, keep
from creonowd.context.window import After, Before, Side, show_after, show_before
from creonowd.model import Model

NOTES_SHARE = 4


class View(Model):
    """What is shown of the document: its tokens, the verdict on it, and where it lies in it."""

    tokens: int = 0
    verdict: Verdict | None = None
    span: Span | None = None


class _Sight(NamedTuple):
    near: Side
    beyond: Side

    @property
    def tokens(self) -> int:
        return self.near.tokens + self.beyond.tokens

    @property
    def text(self) -> str:
        return self.near.text + self.beyond.text


def take_notes(units: Sequence[Unit], room: int) -> list[Verdict]:
    """Take the notes of hosts by falling score into a quarter of the room, in that order."""
    left = room // NOTES_SHARE
    verdicts: list[Verdict] = []
    for unit in sorted(units, key=lambda unit: rank_key(unit.fragment)):
        if unit.tokens <= left:
            verdicts.append(keep(unit, Rule.SCORE))
            left -= unit.tokens
        else:
            verdicts.append(drop(unit, Rule.SCORE, (unit.tokens - left) * NOTES_SHARE))
    return verdicts


def look(
    plan: Plan, document: Document, manuscript: Manuscript, room: int, instruments: Instruments
) -> View:
    """Show as much of the document as fits: first what lies before, then what lies after."""
    if not document.text.strip():
        return View()
    before, after = _sides(plan, document, manuscript, instruments)
    most = plan.figures.total
    could = _Sight(
        show_before(before, most, plan.step, instruments), show_after(after, most, instruments)
    )
    near = show_before(before, room, plan.step, instruments)
    shown = _Sight(near, show_after(after, room - near.tokens, instruments))
    if not could.text:
        return View()
    whole = shown == could and (plan.surrounding is not None or _is_all(shown, before, after))
    ref = visible_ref(document.source_ref, instruments)
    return View(
        tokens=shown.tokens,
        span=Span(before.position - near.reach, document.here.end + shown.beyond.reach),
        verdict=Verdict(
            evidence=_evidence(ref, could, shown, whole=whole),
            text=shown.text,
            rendered=_rendered(before, after, shown),
            fits_with=None if whole else max(1, could.tokens - room),
            redactions=manuscript.evidence(ref),
        ),
    )


def _sides(
    plan: Plan, document: Document, manuscript: Manuscript, instruments: Instruments
) -> tuple[Before, After]:
    start, end = document.here
    most, around = plan.figures.total, plan.surrounding
    floor = 0 if around is None else max(0, start - around)
    ceiling = len(document.text) if around is None else end + around
    back = read_back(manuscript, start, floor, most, instruments)
    ref = visible_ref(document.source_ref, instruments)
    title = heading_after(ref)
    on = read_on(manuscript, Start(end, title), ceiling, most, instruments)
    after = After(on, title, len(on.text))
    if around is not None:
        after = after._replace(limit=len(title) + head_within(after.rest, around))
    return Before(manuscript, start, floor, back, heading(ref)), after


def _is_all(shown: _Sight, before: Before, after: After) -> bool:
    """Tell whether nothing but blanks of the document is missing."""
    first = before.strip.leaves[0].start == 0
    last = after.strip.leaves[-1].end == len(before.manuscript.text)
    blank = not before.strip.text.strip(), not after.rest.strip()
    return (
        first
        and last
        and (blank[0] or shown.near.text == before.strip.text[:-1])
        and (blank[1] or shown.beyond.text == after.rest)
    )


def _rendered(before: Before, after: After, shown: _Sight) -> str:
    near = f"{before.heading}{shown.near.text}\n" if shown.near.text else ""
    beyond = f"{after.heading}{shown.beyond.text}\n" if shown.beyond.text else ""
    return near + beyond


def _evidence(ref: str, could: _Sight, shown: _Sight, *, whole: bool) -> TrimEvidence:
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
