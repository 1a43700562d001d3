"""A budget that is fitted to the model that gets the prompt."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from creonowd.context.budget import (
    THINKING_RESERVE,
    BudgetKind,
    BudgetProfile,
    budget_of,
    fit_to_model,
    usual_profile,
)
from creonowd.context.fragment import Layer
from creonowd.errors import WarningCode

USUAL = budget_of(BudgetProfile())


def minimums(profile: BudgetProfile) -> int:
    return sum(getattr(profile.layers, layer).minimum_tokens for layer in Layer)


def test_a_model_with_room_changes_nothing() -> None:
    assert fit_to_model(USUAL, window=128_000) == fit_to_model(USUAL) == USUAL


def test_a_smaller_window_is_reported_and_every_layer_yields() -> None:
    fitted = fit_to_model(USUAL, window=4096)

    (warning,) = fitted.warnings
    assert warning.code is WarningCode.CONTEXT_WINDOW_REDUCED
    assert fitted.profile.total_budget_tokens == 4096 - 500 - 1500
    assert minimums(fitted.profile) <= fitted.profile.total_budget_tokens


@pytest.mark.parametrize(
    ("window", "reserve", "total"), [(None, THINKING_RESERVE, 6000), (8192, 4096, 3596)]
)
def test_a_model_that_thinks_gets_a_larger_reserve(
    window: int | None, reserve: int, total: int
) -> None:
    profile = fit_to_model(USUAL, window=window, thinks=True).profile

    assert (profile.output_reserve_tokens, profile.total_budget_tokens) == (reserve, total)


def test_a_reserve_that_somebody_chose_stays() -> None:
    chosen = structs.replace(
        BudgetProfile(), output_reserve_tokens=2000, context_window_tokens=8500
    )

    assert fit_to_model(budget_of(chosen), thinks=True).profile.output_reserve_tokens == 2000
    assert fit_to_model(USUAL, thinks=True, output_tokens=900).profile.output_reserve_tokens == 900


@given(
    st.integers(8, 200_000) | st.none(),
    st.booleans(),
    st.integers(1, 1_000_000) | st.none(),
    st.integers(1, 200_000) | st.none(),
)
def test_prompt_and_answer_fit_into_the_window(
    window: int | None,
    thinks: bool,  # noqa: FBT001 - drawn by position
    output: int | None,
    limit: int | None,
) -> None:
    fitted = fit_to_model(
        USUAL, window=window, thinks=thinks, output_tokens=output, output_limit=limit
    ).profile

    needed = fitted.total_budget_tokens + fitted.output_reserve_tokens
    assert 1 <= fitted.total_budget_tokens <= USUAL.profile.total_budget_tokens
    assert needed <= fitted.context_window_tokens
    assert window is None or fitted.context_window_tokens <= window
    assert minimums(fitted) <= fitted.total_budget_tokens


def test_a_long_budget_makes_room_for_thought_in_a_large_window() -> None:
    long = budget_of(usual_profile(BudgetKind.LONG))

    fitted = fit_to_model(long, window=1_000_000, thinks=True)

    assert fitted.profile.total_budget_tokens == 64_000
    assert not fitted.warnings


def test_a_long_budget_yields_to_a_small_window() -> None:
    fitted = fit_to_model(budget_of(usual_profile(BudgetKind.LONG)), window=32_000)

    (warning,) = fitted.warnings
    assert warning.code is WarningCode.CONTEXT_WINDOW_REDUCED
    assert fitted.profile.total_budget_tokens == 30_000
    assert fitted.profile.kind is BudgetKind.LONG
