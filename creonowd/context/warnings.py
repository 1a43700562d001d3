"""What a result has to say beside its prompt. Judges nothing; reads verdicts."""

from collections.abc import Iterable, Iterator

from creonowd.context.dynamic import Dynamic
from creonowd.context.fragment import Layer, Rule
from creonowd.context.plan import Plan
from creonowd.context.stable import Stable
from creonowd.context.verdict import Verdict
from creonowd.errors import WarningCode, told

Warned = tuple[Layer | None, str]


def findings(plan: Plan, stable: Stable, dynamic: Dynamic) -> Iterator[Warned]:
    """Walk the warnings that trimming gives rise to."""
    if stable.rules_over:
        yield Layer.RULES, WarningCode.CONTEXT_RULES_OVERBUDGET
    if any(verdict.evidence.rule is Rule.CONSTRAINT_LIMIT for verdict in stable.rules):
        yield Layer.RULES, WarningCode.CONTEXT_CONSTRAINT_LIMIT
    if dynamic.retrieved.over_limit:
        yield Layer.RETRIEVED, WarningCode.CONTEXT_RETRIEVED_CHUNK_LIMIT
    if plan.skill.rules is None and _starved(dynamic):
        yield Layer.RETRIEVED, told(WarningCode.CONTEXT_RETRIEVED_STARVED)
    judged = {
        Layer.RULES: stable.rules,
        Layer.SETTINGS: stable.settings,
        Layer.RETRIEVED: dynamic.retrieved.verdicts,
        Layer.IMMEDIATE: dynamic.immediate,
    }
    for layer, verdicts in judged.items():
        if _unmet(verdicts, plan.figures.minimum(layer)):
            yield layer, f"{WarningCode.CONTEXT_MINIMUM_UNMET}: {layer}"


def unique(warnings: Iterable[Warned]) -> tuple[Warned, ...]:
    """Say nothing twice, in the order of the first time."""
    return tuple(dict.fromkeys(warnings))


def _starved(dynamic: Dynamic) -> bool:
    chunks = dynamic.retrieved.verdicts
    return any(chunk.ran_short for chunk in chunks) and not any(chunk.stays for chunk in chunks)


def _unmet(verdicts: Iterable[Verdict], minimum: int) -> bool:
    judged = list(verdicts)
    short = any(verdict.ran_short for verdict in judged)
    return short and sum(verdict.tokens for verdict in judged) < minimum
