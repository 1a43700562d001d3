"""The Retrieved layer: chunks by falling score as long as they fit beside everything else.

One that is too big does not stand in the way of a smaller one. Those that so fill a gap stand
behind the others: with every sentence that the author adds the gap gets smaller and others fill
it, and what stands before them must stay as it is. Knows no source.
"""

from collections.abc import Sequence

from creonowd.context.fragment import Fragment, Rule, Span
from creonowd.context.plan import CHUNK_LIMIT
from creonowd.context.units import Unit
from creonowd.context.verdict import Verdict, drop, keep


def choose(units: Sequence[Unit], room: int, shown: Span | None) -> tuple[Verdict, ...]:
    """Take chunks by falling score; the verdicts stand in the order of the prompt.

    That is the order of the documents, with the chunks that fill a gap behind all others.
    `shown` is what the window already shows of the current document: what lies there is no
    candidate, and what says the same elsewhere is a duplicate.
    """
    verdicts: dict[int, Verdict] = {}
    hidden = [i for i, unit in enumerate(units) if not _lies_in(unit.fragment.span, shown)]
    seen = {unit.text for unit in units if _lies_in(unit.fragment.span, shown)}
    counted = wanted = 0
    left = room
    gap: set[int] | None = None
    for index in sorted(hidden, key=lambda i: rank_key(units[i].fragment)):
        unit = units[index]
        rule = Rule.DUPLICATE if unit.text in seen else None
        counted += rule is None
        if rule is None and counted > CHUNK_LIMIT:
            rule = Rule.CHUNK_LIMIT
        wanted += 0 if rule else unit.tokens
        if rule is not None:
            verdicts[index] = drop(unit, rule)
        elif unit.tokens <= left:
            verdicts[index] = keep(unit, Rule.SCORE)
            left -= unit.tokens
            if gap is not None:
                gap.add(index)
        else:
            # Sure to be kept only where all that ranks above it is.
            verdicts[index] = drop(unit, Rule.SCORE, wanted - room)
            gap = gap or set()
        seen.add(unit.text)
    late = gap or ()
    order = sorted(verdicts, key=lambda i: (i in late, *reading_key(units[i].fragment)))
    return tuple(verdicts[index] for index in order)


def rank_key(fragment: Fragment) -> tuple[object, ...]:
    """Sort chunks, the best first."""
    return (-(fragment.score or 0.0), *reading_key(fragment))


def reading_key(fragment: Fragment) -> tuple[object, ...]:
    """Sort chunks by path and offset."""
    _, path, offset = fragment.place
    return (path, offset, fragment.source_ref, fragment.text)


def _lies_in(span: Span | None, shown: Span | None) -> bool:
    if span is None or shown is None:
        return False
    return max(span.start, shown.start) < min(span.end, shown.end)
