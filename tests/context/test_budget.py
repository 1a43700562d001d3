"""The default profile is seed 2's, and its arithmetic is exact."""

import pytest
from msgspec import structs, to_builtins

from creonowd.context.budget import (
    BudgetProfile,
    LayerBudget,
    LayerBudgets,
    is_off,
    refreshed,
    share,
)


@pytest.mark.requirement("CE-011", "CE-012", "CE-013", "CE-014", "CE-018")
def test_the_default_profile_is_the_one_of_the_specification() -> None:
    profile = to_builtins(BudgetProfile())

    assert profile["layers"] == {
        "rules": {"ratio": 0.15, "minimumTokens": 500},
        "settings": {"ratio": 0.1, "minimumTokens": 200},
        "retrieved": {"ratio": 0.25, "minimumTokens": 0},
        "immediate": {"ratio": 0.5, "minimumTokens": 2000},
    }
    assert profile["contextWindowTokens"] == 8000
    assert profile["systemPromptTokens"] == 500
    assert profile["outputReserveTokens"] == 1500
    assert profile["totalBudgetTokens"] == 8000 - 500 - 1500
    assert profile["tokenizerId"] == "o200k_base"
    assert "warnings" not in profile


@pytest.mark.parametrize(
    ("ratio", "minimum", "total", "tokens"),
    [(0.15, 500, 6000, 900), (0.15, 1000, 6000, 1000), (0.29, 0, 100, 29), (0.1, 0, 7, 0)],
)
def test_a_share_is_the_floor_of_the_ratio_and_at_least_the_minimum(
    ratio: float, minimum: int, total: int, tokens: int
) -> None:
    layers = LayerBudgets(rules=LayerBudget(ratio=ratio, minimum_tokens=minimum))
    profile = BudgetProfile(total_budget_tokens=total, layers=layers)

    assert share(profile, "rules") == tokens


def test_a_layer_is_off_only_without_ratio_and_minimum() -> None:
    off = LayerBudgets(retrieved=LayerBudget(ratio=0, minimum_tokens=0))

    assert is_off(BudgetProfile(layers=off), "retrieved")
    assert not is_off(BudgetProfile(), "retrieved")
    assert not is_off(BudgetProfile(layers=off), "immediate")


def test_a_stored_profile_follows_the_tables_of_this_release() -> None:
    old = structs.replace(BudgetProfile(), tokenizer_id="p50k_base", tokenizer_version="0")

    assert refreshed(old) == BudgetProfile()
