"""What a result has to say beside its prompt. Judges nothing; reads what was judged."""

from collections.abc import Iterator, Mapping

from creonowd.context.fragment import Layer, Rule
from creonowd.context.judged import Judged
from creonowd.context.plan import Plan
from creonowd.errors import WarningCode, warning_text

Warned = tuple[Layer | None, str]


def trimming_warnings(
    plan: Plan, layers: Mapping[Layer, Judged], *, rules_over: bool
) -> Iterator[Warned]:
    """Walk the warnings that trimming gives rise to."""
    rules, retrieved = layers[Layer.RULES], layers[Layer.RETRIEVED]
    if rules_over:
        yield Layer.RULES, WarningCode.CONTEXT_RULES_OVERBUDGET
    if Rule.CONSTRAINT_LIMIT in rules.rules:
        yield Layer.RULES, WarningCode.CONTEXT_CONSTRAINT_LIMIT
    if Rule.CHUNK_LIMIT in retrieved.rules:
        yield Layer.RETRIEVED, WarningCode.CONTEXT_RETRIEVED_CHUNK_LIMIT
    if plan.skill.rules is None and retrieved.truncated and not retrieved.chunks:
        yield Layer.RETRIEVED, warning_text(WarningCode.CONTEXT_RETRIEVED_STARVED)
    for layer, judged in layers.items():
        if judged.falls_short(plan.figures.minimum(layer)):
            yield layer, f"{WarningCode.CONTEXT_MINIMUM_UNMET}: {layer}"
