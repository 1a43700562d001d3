"""The default profile, its exact arithmetic, and the checks of a change in the promised order."""

from typing import Any

import msgspec
import pytest
from msgspec import structs, to_builtins

from creonowd.context.budget import (
    BudgetChange,
    BudgetKind,
    BudgetProfile,
    LayerBudget,
    LayerBudgets,
    LayerChange,
    LayerChanges,
    allowances_of,
    apply_change,
    budget_of,
    is_off,
    share,
    with_current_tokenizer,
)
from creonowd.context.fragment import Layer
from creonowd.errors import DaemonError, ErrorCode, Language

EVERYTHING_WRONG: dict[str, Any] = {
    "version": 7,
    "tokenizerVersion": "other",
    "totalBudgetTokens": 70_000,
    "layers": {"rules": {"ratio": 2, "minimumTokens": -1}},
}


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

    assert with_current_tokenizer(old) == BudgetProfile()


def change(**fields: Any) -> BudgetChange:
    """Read a change as it comes over the wire."""
    return msgspec.convert({"version": 1, **fields}, BudgetChange)


def refusal(**fields: Any) -> DaemonError:
    """Apply a change that must be refused."""
    with pytest.raises(DaemonError) as caught:
        apply_change(BudgetProfile(), change(**fields))
    return caught.value


def test_the_checks_come_in_the_promised_order() -> None:
    wrong = dict(EVERYTHING_WRONG)
    codes = [refusal(**wrong).code]
    for mended in (
        {"version": 1},
        {"tokenizerVersion": None},
        {"layers": {"rules": {"minimumTokens": -1}}},
        {"layers": {"immediate": {"minimumTokens": 6000}}},
        {"totalBudgetTokens": 6000},
    ):
        wrong |= mended
        codes.append(refusal(**wrong).code)

    assert codes == [
        ErrorCode.CONTEXT_BUDGET_CONFLICT,
        ErrorCode.CONTEXT_TOKENIZER_MISMATCH,
        ErrorCode.CONTEXT_BUDGET_INVALID_RATIO,
        ErrorCode.CONTEXT_BUDGET_INVALID_MINIMUM,
        ErrorCode.INVALID_ARGUMENT,
        ErrorCode.CONTEXT_BUDGET_INVALID_MINIMUM,
    ]


def test_a_conflict_returns_the_current_version() -> None:
    assert refusal(version=3).details["currentVersion"] == 1


def test_a_change_without_a_version_is_not_one() -> None:
    error = refusal(version=None)

    assert error.code is ErrorCode.INVALID_ARGUMENT
    assert error.details["field"] == "version"


def test_what_a_change_leaves_out_stays() -> None:
    profile = apply_change(BudgetProfile(), change(layers={"rules": {"ratio": 0.1}}))

    before = BudgetProfile()
    assert profile.version == 2
    assert profile.layers.rules.ratio == 0.1
    assert profile.layers.rules.minimum_tokens == before.layers.rules.minimum_tokens
    assert profile.layers.immediate == before.layers.immediate
    assert profile.total_budget_tokens == before.total_budget_tokens


@pytest.mark.parametrize(
    "rules", [{"ratio": -0.1}, {"ratio": 1.01}, {"ratio": 0.2}], ids=["negative", "over", "sum"]
)
def test_ratios_must_be_shares_of_one(rules: dict[str, float]) -> None:
    assert refusal(layers={"rules": rules}).code is ErrorCode.CONTEXT_BUDGET_INVALID_RATIO


def test_ratios_that_are_all_zero_leave_nothing_to_assemble() -> None:
    layers = {layer.value: {"ratio": 0} for layer in Layer}

    assert refusal(layers=layers).code is ErrorCode.CONTEXT_BUDGET_INVALID_RATIO


@pytest.mark.parametrize("minimum", [-1, 0.5, 1e30])
def test_a_minimum_is_a_number_of_tokens_that_fits(minimum: float) -> None:
    error = refusal(layers={"retrieved": {"minimumTokens": minimum}})

    assert error.code is ErrorCode.CONTEXT_BUDGET_INVALID_MINIMUM


def test_the_minimums_may_fill_the_total_exactly() -> None:
    profile = apply_change(BudgetProfile(), change(totalBudgetTokens=2700))

    assert profile.total_budget_tokens == 2700
    assert refusal(totalBudgetTokens=2699).code is ErrorCode.CONTEXT_BUDGET_INVALID_MINIMUM


@pytest.mark.parametrize(
    ("fields", "parts"),
    [
        ({"contextWindowTokens": 16_000}, (16_000, 500, 1500, 14_000)),
        ({"contextWindowTokens": 16_000, "totalBudgetTokens": 6000}, (16_000, 500, 1500, 14_000)),
        ({"outputReserveTokens": 1000}, (8000, 500, 1000, 6500)),
        ({"systemPromptTokens": 0, "outputReserveTokens": 0}, (8000, 0, 0, 8000)),
        ({"totalBudgetTokens": 64_000}, (66_000, 500, 1500, 64_000)),
        ({"contextWindowTokens": 9000, "totalBudgetTokens": 7000}, (9000, 500, 1500, 7000)),
    ],
)
@pytest.mark.requirement("CE-018")
def test_the_total_is_always_the_window_less_the_rest(
    fields: dict[str, int], parts: tuple[int, int, int, int]
) -> None:
    profile = apply_change(BudgetProfile(), change(**fields))

    assert parts == (
        profile.context_window_tokens,
        profile.system_prompt_tokens,
        profile.output_reserve_tokens,
        profile.total_budget_tokens,
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"totalBudgetTokens": 64_001},
        {"totalBudgetTokens": 0},
        {"contextWindowTokens": 100},
        {"contextWindowTokens": 9000, "totalBudgetTokens": 7001},
        {"systemPromptTokens": -1},
        {"outputReserveTokens": -2000},
    ],
)
def test_a_total_out_of_bounds_is_refused(fields: dict[str, int]) -> None:
    assert refusal(**fields).code is ErrorCode.INVALID_ARGUMENT


@pytest.mark.parametrize(
    "fields",
    [
        {"contextWindowTokens": 128_000},
        {"contextWindowTokens": 128_000, "totalBudgetTokens": 126_000},
        {"contextWindowTokens": 128_000, "totalBudgetTokens": 64_000},
    ],
)
def test_a_larger_window_is_accepted_and_the_total_is_the_limit(fields: dict[str, int]) -> None:
    profile = apply_change(BudgetProfile(), change(**fields))

    assert (profile.context_window_tokens, profile.total_budget_tokens) == (128_000, 64_000)
    (warning,) = budget_of(profile).warnings
    assert warning.text(Language.CHINESE) == (
        "CONTEXT_BUDGET_CLAMPED: 窗口可容 126000，总预算按上限 64000 计。"
    )
    assert dict(warning.details) == {"windowTokens": 126_000, "totalBudgetTokens": 64_000}


def test_the_warning_leaves_with_its_reason() -> None:
    clamped = apply_change(BudgetProfile(), change(contextWindowTokens=128_000))
    whole = change(**(msgspec.to_builtins(clamped)))

    again = apply_change(clamped, whole)
    smaller = apply_change(again, change(version=3, contextWindowTokens=66_000))

    assert again == structs.replace(clamped, version=3)
    assert smaller.total_budget_tokens == 64_000
    assert budget_of(smaller).warnings == ()


@pytest.mark.requirement("CE-023")
def test_the_tokenizer_follows_the_model() -> None:
    profile = apply_change(BudgetProfile(), change(model="gpt-4-turbo"))
    claude = apply_change(BudgetProfile(), change(model="claude-sonnet-4-5"))

    assert (profile.tokenizer_id, profile.tokenizer_exact) == ("cl100k_base", True)
    assert (claude.tokenizer_id, claude.tokenizer_exact) == ("claude_v3", False)
    assert claude.count_kind == "bound"


@pytest.mark.parametrize(
    "fields",
    [{"tokenizerId": "cl100k_base"}, {"tokenizerVersion": "0"}, {"tokenizerId": ""}],
)
def test_another_tokenizer_than_the_models_is_a_mismatch(fields: dict[str, str]) -> None:
    error = refusal(**fields)

    assert error.code is ErrorCode.CONTEXT_TOKENIZER_MISMATCH
    assert error.details["tokenizerId"] == "o200k_base"


def test_the_whole_profile_can_be_sent_back_as_it_was_read() -> None:
    profile = apply_change(BudgetProfile(), change(**msgspec.to_builtins(BudgetProfile())))

    assert profile == msgspec.structs.replace(BudgetProfile(), version=2)


def test_a_long_budget_brings_its_total_and_layers_and_takes_them_away_again() -> None:
    current = BudgetProfile(output_reserve_tokens=2500, context_window_tokens=9000)

    long = apply_change(current, BudgetChange(version=1, kind=BudgetKind.LONG))
    back = apply_change(long, BudgetChange(version=2, kind=BudgetKind.DEFAULT))

    assert (long.total_budget_tokens, long.context_window_tokens) == (64_000, 67_000)
    assert long.layers.retrieved.ratio > long.layers.immediate.ratio
    assert allowances_of(long).long
    assert back == structs.replace(current, version=3)


def test_what_a_change_to_a_long_budget_names_wins() -> None:
    layers = LayerChanges(rules=LayerChange(ratio=0.05))
    change = BudgetChange(
        version=1, kind=BudgetKind.LONG, total_budget_tokens=20_000, layers=layers
    )

    profile = apply_change(BudgetProfile(), change)

    assert (profile.total_budget_tokens, profile.context_window_tokens) == (20_000, 22_000)
    assert (profile.layers.rules.ratio, profile.layers.retrieved.ratio) == (0.05, 0.5)


def test_the_same_kind_again_changes_nothing_else() -> None:
    long = apply_change(BudgetProfile(), BudgetChange(version=1, kind=BudgetKind.LONG))
    smaller = apply_change(long, BudgetChange(version=2, total_budget_tokens=30_000))

    again = apply_change(smaller, BudgetChange(version=3, kind=BudgetKind.LONG))

    assert again == structs.replace(smaller, version=4)
