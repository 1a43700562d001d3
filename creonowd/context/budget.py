"""How many tokens each layer may spend: the profile, its defaults and its arithmetic.

Knows no disk: `workspace.budgets` keeps profiles, `budget_change` checks new ones.
"""

import math
from decimal import Decimal

from msgspec import UNSET, UnsetType, structs

from creonowd.model import Model, Result
from creonowd.tokens.tables import DEFAULT_ENCODING, ENCODINGS, encoding_for, tokenizer_version

LARGEST_TOTAL = 64_000
LAYERS = ("rules", "settings", "retrieved", "immediate")


class LayerBudget(Model):
    """A layer's share of the total and the tokens it is promised; zero and zero is off."""

    ratio: float
    minimum_tokens: int


class LayerBudgets(Model):
    """The four layers; their order in the prompt is fixed."""

    rules: LayerBudget = LayerBudget(ratio=0.15, minimum_tokens=500)
    settings: LayerBudget = LayerBudget(ratio=0.10, minimum_tokens=200)
    retrieved: LayerBudget = LayerBudget(ratio=0.25, minimum_tokens=0)
    immediate: LayerBudget = LayerBudget(ratio=0.50, minimum_tokens=2000)


class BudgetProfile(Result):
    """A budget; `totalBudgetTokens` is the window less the system prompt and the output reserve.

    `version` grows by one with every update. `tokenizerId` and `tokenizerVersion` follow from
    `model`; `tokenizerExact` is false for models whose tokenizer is not public.
    """

    version: int = 1
    tokenizer_id: str = DEFAULT_ENCODING
    tokenizer_version: str = tokenizer_version(DEFAULT_ENCODING)
    tokenizer_exact: bool = True
    model: str = "gpt-4o"
    context_window_tokens: int = 8000
    system_prompt_tokens: int = 500
    output_reserve_tokens: int = 1500
    total_budget_tokens: int = 6000
    layers: LayerBudgets = LayerBudgets()
    warnings: list[str] | UnsetType = UNSET


def share(profile: BudgetProfile, layer: str) -> int:
    """Tell how many tokens a layer's ratio stands for, but no fewer than its minimum."""
    budget: LayerBudget = getattr(profile.layers, layer)
    exact = Decimal(repr(budget.ratio)) * profile.total_budget_tokens
    return max(budget.minimum_tokens, math.floor(exact))


def is_off(profile: BudgetProfile, layer: str) -> bool:
    """Tell whether a layer takes no part at all."""
    budget: LayerBudget = getattr(profile.layers, layer)
    return budget.ratio == 0 and budget.minimum_tokens == 0


def refreshed(profile: BudgetProfile) -> BudgetProfile:
    """Let a stored profile's tokenizer follow its model and the tables of this release."""
    known = profile.tokenizer_id in ENCODINGS
    match = encoding_for(profile.model, profile.tokenizer_id if known else DEFAULT_ENCODING)
    return structs.replace(
        profile,
        tokenizer_id=match.encoding,
        tokenizer_version=tokenizer_version(match.encoding),
        tokenizer_exact=match.exact,
        warnings=UNSET,
    )
