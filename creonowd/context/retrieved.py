"""The Retrieved layer: chunks by falling score as long as they fit beside everything else.

One that is too big does not stand in the way of a smaller one. Knows no source.
"""

from collections.abc import Sequence

from creonowd.context.fragment import Fragment, Rule, Span
from creonowd.context.plan import CHUNK_LIMIT
from creonowd.context.units import Unit
from creonowd.context.verdict import Verdict, drop, keep


def choose(units: Sequence[Unit], room: int, shown: Span | None) -> tuple[Verdict, ...]:
    """Take chunks by falling score; the verdicts stand in the order of the documents.

    `shown` is what the window already shows of the current document.
    """
    verdicts: dict[int, Verdict] = {}
    seen: set[str] = set()
    counted = 0
    for index in sorted(range(len(units)), key=lambda i: rank_key(units[i].fragment)):
        unit = units[index]
        rule = _excluded(unit, seen, shown)
        counted += rule is None
        if rule is None and counted > CHUNK_LIMIT:
            rule = Rule.CHUNK_LIMIT
        if rule is not None:
            verdicts[index] = drop(unit, rule)
        elif unit.tokens <= room:
            verdicts[index] = keep(unit, Rule.SCORE)
            room -= unit.tokens
        else:
            verdicts[index] = drop(unit, Rule.SCORE, unit.tokens - room)
        seen.add(unit.text)
    order = sorted(verdicts, key=lambda i: reading_key(units[i].fragment))
    return tuple(verdicts[index] for index in order)


def rank_key(fragment: Fragment) -> tuple[object, ...]:
    """Sort chunks, the best first."""
    return (-(fragment.score or 0.0), *reading_key(fragment))


def reading_key(fragment: Fragment) -> tuple[object, ...]:
    """Sort chunks by path and offset."""
    _, path, offset = fragment.place
    return (path, offset, fragment.source_ref, fragment.text)


def _excluded(unit: Unit, seen: set[str], shown: Span | None) -> Rule | None:
    span = unit.fragment.span
    if span is not None and shown is not None and max(span[0], shown[0]) < min(span[1], shown[1]):
        return Rule.IN_WINDOW
    return Rule.DUPLICATE if unit.text in seen else None
