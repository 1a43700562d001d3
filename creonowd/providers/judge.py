"""The judge: does an output keep the constraints? Rules where they cannot err, a model for the rest.

Without a model the rest is unchecked, never passed. Knows no project and no file.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import NamedTuple

from creonowd.errors import DaemonError
from creonowd.providers import judge_model
from creonowd.providers.bans import Ban, Hit, ban_in, hits
from creonowd.providers.provider import Call, Provider
from creonowd.providers.terms import REF, Term, misuses
from creonowd.providers.verdict import (
    Charge,
    Checker,
    Unchecked,
    Verdict,
    Violation,
    all_unchecked,
    conclude,
)
from creonowd.redaction import Redacted, redact

NO_MODEL = "no model is configured to judge"
MOST = 200


async def judge(
    text: str,
    charges: Sequence[Charge],
    terms: Sequence[Term],
    provider: Provider | None,
    model: str = "",
    *,
    clean: Callable[[str], Redacted] = redact,
) -> Verdict:
    """Check an output; `provider` None leaves all that rules cannot check unchecked.

    A model may have made up a secret, or heard one from its host: it is not sent out again.
    """
    docket = _docket(tuple(charges))
    broken = list(islice(chain(_by_rules(text, docket), _by_terms(text, terms)), MOST))
    rest = docket.rest
    unchecked: list[Unchecked] = []
    if provider is None or not provider.judges:
        unchecked = all_unchecked(rest, NO_MODEL)
    else:
        shown = clean(text).text
        for start in range(0, len(rest), judge_model.BATCH):
            batch = rest[start : start + judge_model.BATCH]
            question = judge_model.question(batch, shown, model)
            found, open_ones = await _by_model(text, batch, provider, question)
            broken += found
            unchecked += open_ones
    return conclude(len(charges) + len(terms), broken[:MOST], unchecked)


def named(verdict: Verdict) -> str:
    """Name what was violated, as an instruction for the next attempt."""
    lines = [
        f"- {v.constraint}" + (f"（{v.quote}）" if v.quote else "") for v in verdict.violations
    ]
    return "上一稿违反了以下约束，请重写并遵守：\n" + "\n".join(dict.fromkeys(lines))


class _Docket(NamedTuple):
    """Charges sorted out: those that are bans, and those that rules do not settle."""

    bans: tuple[tuple[Charge, Ban], ...]
    rest: tuple[Charge, ...]


@lru_cache(maxsize=64)
def _docket(charges: tuple[Charge, ...]) -> _Docket:
    read = [(charge, ban_in(charge.text)) for charge in charges]
    return _Docket(
        bans=tuple((charge, ban) for charge, ban in read if ban is not None),
        rest=tuple(charge for charge, ban in read if ban is None or not ban.whole),
    )


def _by_rules(text: str, docket: _Docket) -> Iterator[Violation]:
    for charge, ban in docket.bans:
        yield from (_certain(charge.id, charge.text, hit) for hit in hits(ban, text))


def _by_terms(text: str, terms: Sequence[Term]) -> Iterator[Violation]:
    for term, hit in misuses(tuple(terms), text):
        yield _certain(REF, term.says, hit)


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


async def _by_model(
    text: str, charges: Sequence[Charge], provider: Provider, question: Call
) -> tuple[list[Violation], list[Unchecked]]:
    try:
        answer = await provider.answer(question, _ignore)
    except DaemonError as error:
        return [], all_unchecked(charges, error.code)
    findings = judge_model.read_findings(answer.text, charges)
    if findings is None:
        return [], all_unchecked(charges, judge_model.UNREADABLE)
    found = judge_model.violations(findings, charges, text)
    return list(found), list(judge_model.unsure(findings, charges))


def _ignore(_text: str) -> None:
    """A verdict is read when it is whole."""
