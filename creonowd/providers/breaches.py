"""What an output breaks beyond doubt: banned things, and words to avoid. Asks no model.

An output that breaks one rule a thousand times still tells of every other rule that it breaks.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from itertools import islice
from typing import TypeVar

from anyio import to_thread

from creonowd.providers.bans import Ban, Hit, hits
from creonowd.providers.terms import REF, Term, misuses
from creonowd.providers.verdict import Charge, Checker, Violation

MOST = 200
QUICK = 16 * 1024

Bans = tuple[tuple[Charge, Ban], ...]
Breach = tuple[str, str, Hit]
T = TypeVar("T")


async def broken(text: str, bans: Bans, terms: tuple[Term, ...]) -> list[Violation]:
    """Find what is broken and where; a long output is looked through beside the event loop."""
    if len(text) <= QUICK:
        return _broken(text, bans, terms)
    return await to_thread.run_sync(_broken, text, bans, terms, abandon_on_cancel=True)


def shared_out(found: Sequence[T], rule: Callable[[T], Hashable]) -> Sequence[T]:
    """Keep so many as a verdict may hold: the first of each rule, then the second, and so on."""
    if len(found) <= MOST:
        return found
    seen = Counter[Hashable]()
    ranked: list[tuple[int, int]] = []
    for number, one in enumerate(found):
        of = rule(one)
        ranked.append((seen[of], number))
        seen[of] += 1
    return [found[number] for number in sorted(number for _, number in sorted(ranked)[:MOST])]


def _broken(text: str, bans: Bans, terms: tuple[Term, ...]) -> list[Violation]:
    found: list[Breach] = [
        (charge.id, charge.text, hit)
        for charge, ban in bans
        for hit in islice(hits(ban, text), MOST)
    ]
    found += [(REF, term.says, hit) for term, hit in misuses(terms, text, MOST)]
    return [_certain(*breach) for breach in shared_out(found, _rule)]


def _rule(breach: Breach) -> Hashable:
    return breach[:2]


def _certain(constraint_id: str, constraint: str, hit: Hit) -> Violation:
    return Violation(
        constraint_id=constraint_id,
        constraint=constraint,
        by=Checker.RULES,
        confidence=1.0,
        quote=hit.text,
        start=hit.start,
        end=hit.end,
    )
