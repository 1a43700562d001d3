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
from creonowd.context.template import excerpt, heading, heading_after
from creonowd.context.units import Unit, head_within, visible_ref
from creonowd.context.verdict import TrimEvidence, Verdict, drop, keep
from creonowd.context.window import After, Before, Side, show_after, show_before
from creonowd.model import Model

NOTES_SHARE = 4
MOST_LINES = 9_999_999


class View(Model):
    """What is shown of the document: its tokens, the verdict on it, and where it lies in it."""

    tokens: int = 0
    verdict: Verdict | None = None
    span: Span | None = None


class _Sight(NamedTuple):
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


class Scene(NamedTuple):
    """Both sides of where the author is, and what they are measured with.

    `bounded` says that the skill asked for no more than was read.
    """

    before: Before
    after: After
    step: int
    document: Document
    instruments: Instruments
    bounded: bool = False


def take_notes(units: Sequence[Unit], room: int) -> list[Verdict]:
    """Take the notes of hosts by falling score into a quarter of the room, in that order."""
    left, wanted = room // NOTES_SHARE, 0
    verdicts: list[Verdict] = []
    for unit in sorted(units, key=lambda unit: rank_key(unit.fragment)):
        wanted += unit.tokens
        if unit.tokens <= left:
            verdicts.append(keep(unit, Rule.SCORE))
            left -= unit.tokens
        else:
            verdicts.append(drop(unit, Rule.SCORE, wanted * NOTES_SHARE - room))
    return verdicts


def scene_of(plan: Plan, manuscript: Manuscript, instruments: Instruments) -> Scene | None:
    """Read both sides of where the author is, as far as could ever be shown."""
    document = plan.document
    if document is None or not document.text.strip():
        return None
    sides = _sides(plan, document, manuscript, instruments)
    bounded = plan.surrounding is not None
    return Scene(*sides, plan.step, document, instruments, bounded=bounded)


def look(scene: Scene, room: int, most: int) -> View:
    """Show as much of the document as fits: first what lies before, then what lies after."""
    could = _see(scene, most)
    if not could.text:
        return View()
    shown = _see(scene, room)
    whole = shown == could and (scene.bounded or not shown.closing)
    ref = visible_ref(scene.document.source_ref, scene.instruments)
    return View(
        tokens=shown.tokens,
        span=_span(scene, shown),
        verdict=Verdict(
            evidence=_evidence(ref, could, shown, whole=whole),
            text=shown.text,
            rendered=_rendered(scene, shown),
            fits_with=None if whole or not _is_read(scene, most) else max(1, could.tokens - room),
            redactions=scene.before.manuscript.evidence(ref),
        ),
    )


def _is_read(scene: Scene, most: int) -> bool:
    """Tell whether reading came to its end: else with more room there is more to show."""
    read = scene.before.strip.sums[-1] + scene.after.strip.sums[-1]
    return read + 2 * _reserve(scene) <= most


def _reserve(scene: Scene) -> int:
    return scene.instruments.count(_excerpt(scene, MOST_LINES, MOST_LINES))


def _see(scene: Scene, room: int) -> _Sight:
    """Show what fits; where that is not all of the document, with the lines that it covers."""
    reserve = _reserve(scene)
    near = _near(scene, room, reserve)
    sight = _Sight(near, show_after(scene.after, room - near.tokens, scene.instruments))
    left = room - near.tokens - reserve
    if not sight.text or left < 0 or _is_all(sight, scene):
        return sight
    sight = _Sight(near, show_after(scene.after, left, scene.instruments))
    if not sight.text:
        return sight
    closing = _excerpt(scene, *_lines(scene.document.text, _span(scene, sight)))
    return sight._replace(closing=closing, closing_tokens=scene.instruments.count(closing))


def _near(scene: Scene, room: int, reserve: int) -> Side:
    """Show what lies before; what lies after must not matter, so what it may cost is not asked."""
    near = show_before(scene.before, room, scene.step, scene.instruments)
    if _is_all_before(near, scene.before):
        return near
    less = show_before(scene.before, room - reserve, scene.step, scene.instruments)
    return less if less.text else near


def _span(scene: Scene, sight: _Sight) -> Span:
    start = scene.before.position - sight.near.reach
    return Span(start, scene.document.here.end + sight.beyond.reach)


def _lines(text: str, span: Span) -> tuple[int, int]:
    first = text.count("\n", 0, span.start) + 1
    return first, first + text.count("\n", span.start, max(span.start, span.end - 1))


def _excerpt(scene: Scene, first: int, last: int) -> str:
    return excerpt(visible_ref(scene.document.source_ref, scene.instruments), first, last)


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
    after = After(on, end, title, len(on.text))
    if around is not None:
        after = after._replace(limit=len(title) + head_within(after.rest, around))
    return Before(manuscript, start, floor, back, heading(ref), {}), after


def _is_all(shown: _Sight, scene: Scene) -> bool:
    """Tell whether nothing but blanks of the document is missing."""
    after = scene.after
    last = after.strip.leaves[-1].end == len(scene.before.manuscript.text)
    complete = not after.rest.strip() or shown.beyond.text == after.rest
    return last and complete and _is_all_before(shown.near, scene.before)


def _is_all_before(near: Side, before: Before) -> bool:
    strip = before.strip
    complete = not strip.text.strip() or near.text == strip.text[:-1]
    return strip.leaves[0].start == 0 and complete


def _rendered(scene: Scene, shown: _Sight) -> str:
    near = f"{scene.before.heading}{shown.near.text}\n" if shown.near.text else ""
    beyond = f"{scene.after.heading}{shown.beyond.text}\n" if shown.beyond.text else ""
    return near + beyond + shown.closing


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
