"""The story so far: which chapters it tells, how many tokens it may take, and what fits.

Nothing here depends on what the author is writing: within a chapter it keeps every byte.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from creonowd.context.evidence import Decision, drop, keep, keep_part
from creonowd.context.fragment import Fragment, FragmentKind, Layer, Place, Rule
from creonowd.context.plan import Need, Plan, wants
from creonowd.context.story import StoryDocument
from creonowd.context.template import heading
from creonowd.context.text_tools import TextTools
from creonowd.context.units import Unit

# Of the budget, or of the skill's target if that is less.
SHARE_PERCENT = 15
FAR_REF = "synopsis"

FAR, NEAR = 0, 1


def synopsis_share(plan: Plan) -> int:
    """Return how many tokens the story so far may take at most."""
    total, target = plan.allowances.total, plan.skill.target_tokens
    return (total if target is None else min(total, target)) * SHARE_PERCENT // 100


def earlier_chapters(plan: Plan) -> tuple[StoryDocument, ...] | None:
    """Return the chapters to tell of, all before the author's; None outside of the story."""
    rules = plan.skill.rules
    if plan.here is None or not wants(rules, Need.SYNOPSIS):
        return None
    before = plan.story.documents[: plan.here.document]
    wanted = True if rules is None else rules.synopsis
    return before if wanted is True else before[-wanted:]


def near_fragment(number: int, path: str, text: str) -> Fragment:
    """Make the fragment of a chapter whose summary is told in full."""
    return Fragment(
        layer=Layer.RETRIEVED,
        source=FAR_REF,
        source_ref=f"{path}#summary",
        text=text,
        kind=FragmentKind.SYNOPSIS,
        place=Place(NEAR, "", number),
    )


def far_fragment(lines: Sequence[str]) -> Fragment:
    """Make the fragment of the chapters that have one line each, the earliest first."""
    return Fragment(
        layer=Layer.RETRIEVED,
        source=FAR_REF,
        source_ref=FAR_REF,
        text="\n".join(lines),
        kind=FragmentKind.SYNOPSIS,
        place=Place(FAR),
    )


def is_synopsis(fragment: Fragment) -> bool:
    """Return whether a fragment is a part of the story so far."""
    return fragment.kind is FragmentKind.SYNOPSIS


def trim_synopsis(units: Sequence[Unit], room: int, tools: TextTools) -> tuple[Decision, ...]:
    """Keep chapters from the nearest on as long as they fit; the decisions stand in story order.

    Of the chapters with a line each the earliest lines leave first. Behind a chapter that does
    not fit there is none: the story so far has no holes.
    """
    decisions: list[Decision] = []
    left, wanted = room, 0
    for unit in sorted(units, key=lambda unit: unit.fragment.place, reverse=True):
        wanted += unit.tokens
        if unit.tokens <= left:
            decisions.append(keep(unit, Rule.SYNOPSIS_SHARE))
            left -= unit.tokens
            continue
        rest = _last_lines(unit, left, tools) if unit.fragment.place.group == FAR else None
        if rest is None:
            decisions.append(drop(unit, Rule.SYNOPSIS_SHARE, wanted - room))
        else:
            decisions.append(keep_part(rest, Rule.SYNOPSIS_SHARE, wanted - room))
        left = 0
    return tuple(reversed(decisions))


def _last_lines(unit: Unit, room: int, tools: TextTools) -> Unit | None:
    """Return a unit of as many of the last lines as fit; None if not even one does."""
    lines = unit.text.split("\n")
    fits, over = 0, len(lines)
    best: Unit | None = None
    while over - fits > 1:
        middle = (fits + over) // 2
        text = "\n".join(lines[-middle:])
        rendered = f"{heading(unit.ref)}{text}\n"
        tokens = tools.count(rendered)
        if tokens <= room:
            fits, best = middle, replace(unit, text=text, rendered=rendered, tokens=tokens)
        else:
            over = middle
    return best
