"""The judge: does an output keep the constraints? Rules where they cannot err, a model for the rest.

Without a model the rest is unchecked, never passed. Knows no project and no file.
"""

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import NamedTuple

from anyio import to_thread

from creonowd.errors import DaemonError
from creonowd.providers import judge_model
from creonowd.providers.bans import ban_in
from creonowd.providers.breaches import QUICK, Bans, broken, shared_out
from creonowd.providers.provider import Call, Provider
from creonowd.providers.terms import Term
from creonowd.providers.verdict import (
    Charge,
    Unchecked,
    Verdict,
    Violation,
    all_unchecked,
    conclude,
)
from creonowd.redaction import Redacted, redact

NO_MODEL = "no model is configured to judge"


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
    violations = await broken(text, docket.bans, tuple(terms))
    if provider is None or not provider.judges:
        return conclude(len(charges) + len(terms), violations, docket.unasked)
    unchecked: list[Unchecked] = []
    shown = await _shown(text, clean) if docket.rest else ""
    for start in range(0, len(docket.rest), judge_model.BATCH):
        batch = docket.rest[start : start + judge_model.BATCH]
        question = judge_model.question(batch, shown, model)
        found, open_ones = await _by_model(text, batch, provider, question)
        violations += found
        unchecked += open_ones
    told = shared_out(violations, _constraint)
    return conclude(len(charges) + len(terms), told, unchecked)


def named(verdict: Verdict) -> str:
    """Name what was violated, as an instruction for the next attempt."""
    lines = [
        f"- {v.constraint}" + (f"（{v.quote}）" if v.quote else "") for v in verdict.violations
    ]
    return "上一稿违反了以下约束，请重写并遵守：\n" + "\n".join(dict.fromkeys(lines))


class _Docket(NamedTuple):
    """Charges sorted out: bans, what rules do not settle, and that said of it if nobody is asked."""

    bans: Bans
    rest: tuple[Charge, ...]
    unasked: tuple[Unchecked, ...]


@lru_cache(maxsize=64)
def _docket(charges: tuple[Charge, ...]) -> _Docket:
    read = [(charge, ban_in(charge.text)) for charge in charges]
    rest = tuple(charge for charge, ban in read if ban is None or not ban.whole)
    return _Docket(
        bans=tuple((charge, ban) for charge, ban in read if ban is not None),
        rest=rest,
        unasked=tuple(all_unchecked(rest, NO_MODEL)),
    )


async def _shown(text: str, clean: Callable[[str], Redacted]) -> str:
    """Take out what no one else may see; of a long output, beside the event loop."""
    if len(text) <= QUICK:
        return clean(text).text
    return (await to_thread.run_sync(clean, text, abandon_on_cancel=True)).text


def _constraint(violation: Violation) -> Hashable:
    return violation.constraint_id, violation.constraint


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
