"""A change is checked in the promised order, and what it leaves out stays."""

from typing import Any

import msgspec
import pytest

from creonowd.context.budget import LAYERS, BudgetChange, BudgetProfile, revised
from creonowd.errors import DaemonError, ErrorCode

EVERYTHING_WRONG: dict[str, Any] = {
    "version": 7,
    "tokenizerVersion": "other",
    "totalBudgetTokens": 70_000,
    "layers": {"rules": {"ratio": 2, "minimumTokens": -1}},
}


def change(**fields: Any) -> BudgetChange:
    """Read a change as it comes over the wire."""
    return msgspec.convert({"version": 1, **fields}, BudgetChange)


def refusal(**fields: Any) -> DaemonError:
    """Apply a change that must be refused."""
    with pytest.raises(DaemonError) as caught:
        revised(BudgetProfile(), change(**fields))
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


def test_a_conflict_tells_the_current_version() -> None:
    assert refusal(version=3).details["currentVersion"] == 1


def test_a_change_without_a_version_is_not_one() -> None:
    error = refusal(version=None)

    assert error.code is ErrorCode.INVALID_ARGUMENT
    assert error.details["field"] == "version"


def test_what_a_change_leaves_out_stays() -> None:
    profile = revised(BudgetProfile(), change(layers={"rules": {"ratio": 0.1}}))

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
    layers = {name: {"ratio": 0} for name in LAYERS}

    assert refusal(layers=layers).code is ErrorCode.CONTEXT_BUDGET_INVALID_RATIO


@pytest.mark.parametrize("minimum", [-1, 0.5, 1e30])
def test_a_minimum_is_a_number_of_tokens_that_fits(minimum: float) -> None:
    error = refusal(layers={"retrieved": {"minimumTokens": minimum}})

    assert error.code is ErrorCode.CONTEXT_BUDGET_INVALID_MINIMUM


def test_the_minimums_may_fill_the_total_exactly() -> None:
    profile = revised(BudgetProfile(), change(totalBudgetTokens=2700))

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
    profile = revised(BudgetProfile(), change(**fields))

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


@pytest.mark.requirement("CE-023")
def test_the_tokenizer_follows_the_model() -> None:
    profile = revised(BudgetProfile(), change(model="gpt-4-turbo"))
    claude = revised(BudgetProfile(), change(model="claude-sonnet-4-5"))

    assert (profile.tokenizer_id, profile.tokenizer_exact) == ("cl100k_base", True)
    assert (claude.tokenizer_id, claude.tokenizer_exact) == ("o200k_base", False)


@pytest.mark.parametrize(
    "fields",
    [{"tokenizerId": "cl100k_base"}, {"tokenizerVersion": "0"}, {"tokenizerId": ""}],
)
def test_another_tokenizer_than_the_models_is_a_mismatch(fields: dict[str, str]) -> None:
    error = refusal(**fields)

    assert error.code is ErrorCode.CONTEXT_TOKENIZER_MISMATCH
    assert error.details["tokenizerId"] == "o200k_base"


def test_the_whole_profile_can_be_sent_back_as_it_was_read() -> None:
    profile = revised(BudgetProfile(), change(**msgspec.to_builtins(BudgetProfile())))

    assert profile == msgspec.structs.replace(BudgetProfile(), version=2)
