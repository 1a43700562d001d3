"""The share of Settings: the most confident stay, the last one may be cut at a paragraph.

The allowance holds no dynamic quantity; see `stable`. Knows nothing of the other layers.
"""

from bisect import bisect_left
from collections.abc import Sequence

from msgspec.structs import replace

from creonowd.context.fragment import Rule
from creonowd.context.instruments import Instruments
from creonowd.context.template import heading
from creonowd.context.units import Unit, with_lines
from creonowd.context.verdict import Verdict, drop, keep, trim
from creonowd.tokens.boundaries import paragraphs


def share(units: Sequence[Unit], allowance: int, instruments: Instruments) -> tuple[Verdict, ...]:
    """Judge the units of Settings; the verdicts stand in the order of the units."""
    verdicts: dict[int, Verdict] = {}
    room = allowance
    for index in sorted(range(len(units)), key=lambda i: (-_confidence(units[i]), i)):
        unit = units[index]
        if 0 <= unit.tokens <= room:
            verdicts[index] = keep(unit, Rule.SETTINGS_SHARE)
        elif room >= 0:
            verdicts[index] = _cut_or_drop(unit, room, instruments)
        else:
            verdicts[index] = drop(unit, Rule.SETTINGS_SHARE, unit.tokens - room)
        room -= unit.tokens
    return tuple(verdicts[index] for index in range(len(units)))


def _confidence(unit: Unit) -> float:
    return 1.0 if unit.fragment.confidence is None else unit.fragment.confidence


def _cut_or_drop(unit: Unit, room: int, instruments: Instruments) -> Verdict:
    missing = unit.tokens - room
    if unit.fragment.whole:
        return drop(unit, Rule.SETTINGS_SHARE, missing)
    ends = list(paragraphs(unit.text, 0, len(unit.text) - 1))
    fitting = bisect_left(ends, x=True, key=lambda end: _head(unit, end, instruments).tokens > room)
    if not fitting:
        return drop(unit, Rule.SETTINGS_SHARE, missing)
    return trim(_head(unit, ends[fitting - 1], instruments), Rule.SETTINGS_SHARE, missing)


def _head(unit: Unit, end: int, instruments: Instruments) -> Unit:
    text = unit.text[:end]
    rendered = f"{heading(with_lines(unit.ref, text))}{text}\n"
    return replace(unit, text=text, rendered=rendered, tokens=instruments.count(rendered))
