"""What providers counted corrects our bounds and guesses, within limits, and can be forgotten."""

from pathlib import Path

import pytest

from creonowd.context.budget import BudgetProfile, CountCorrection, apply_correction, budget_of
from creonowd.errors import DaemonError
from creonowd.tokens import CountKind
from creonowd.workspace.corrections import FILE, KEPT_RUNS, MOST_MODELS, Corrections

BOUND, ROUGH = CountKind.BOUND, CountKind.APPROXIMATE


async def test_a_bound_that_was_too_low_is_raised_at_once(tmp_path: Path) -> None:
    corrections = Corrections(tmp_path)

    await corrections.learn("claude-opus-5", BOUND, ours=4000, theirs=4100)

    assert corrections.of("claude-opus-5", BOUND) == CountCorrection(factor=1.03125, runs=1)
    assert corrections.of("anthropic/Claude-Opus-5", BOUND) is not None


async def test_a_bound_is_never_lowered(tmp_path: Path) -> None:
    corrections = Corrections(tmp_path)

    for _ in range(KEPT_RUNS):
        await corrections.learn("claude-opus-5", BOUND, ours=4000, theirs=3600)

    assert corrections.of("claude-opus-5", BOUND) is None


async def test_a_guess_moves_either_way_after_three_runs_by_the_greatest(tmp_path: Path) -> None:
    corrections = Corrections(tmp_path)
    found: list[CountCorrection | None] = []

    for theirs in (3300, 3400, 3200):
        await corrections.learn("gemini-3", ROUGH, ours=4000, theirs=theirs)
        found.append(corrections.of("gemini-3", ROUGH))

    assert found == [None, None, CountCorrection(factor=0.875, runs=3)]


async def test_a_correction_has_limits(tmp_path: Path) -> None:
    corrections = Corrections(tmp_path)

    for _ in range(3):
        await corrections.learn("much", ROUGH, ours=1000, theirs=2900)
        await corrections.learn("little", ROUGH, ours=1000, theirs=510)

    assert corrections.of("much", ROUGH) == CountCorrection(factor=1.5, runs=3)
    assert corrections.of("little", ROUGH) == CountCorrection(factor=0.75, runs=3)


async def test_what_says_nothing_is_not_learned(tmp_path: Path) -> None:
    corrections = Corrections(tmp_path)

    await corrections.learn("gpt-4o", CountKind.EXACT, ours=4000, theirs=4400)
    await corrections.learn("short", BOUND, ours=100, theirs=140)
    await corrections.learn("cut-by-the-server", ROUGH, ours=4000, theirs=700)
    await corrections.learn("nonsense", ROUGH, ours=4000, theirs=40_000)

    assert corrections.all() == ()
    assert not (tmp_path / FILE).exists()


async def test_only_the_last_runs_and_the_last_models_count(tmp_path: Path) -> None:
    corrections = Corrections(tmp_path)

    await corrections.learn("claude-opus-5", BOUND, ours=1000, theirs=1400)
    for _ in range(KEPT_RUNS):
        await corrections.learn("claude-opus-5", BOUND, ours=1000, theirs=1000)
    gone = corrections.of("claude-opus-5", BOUND)
    for number in range(MOST_MODELS):
        await corrections.learn(f"model-{number}", ROUGH, ours=1000, theirs=1000)

    assert gone is None
    assert len(corrections.all()) == MOST_MODELS
    assert "claude-opus-5" not in {one.model for one in corrections.all()}


async def test_what_was_learned_is_kept_until_it_is_reset(tmp_path: Path) -> None:
    first = Corrections(tmp_path)
    await first.learn("claude-opus-5", BOUND, ours=4000, theirs=4100)
    await first.learn("other", BOUND, ours=4000, theirs=4100)

    again = Corrections(tmp_path)
    kept = again.of("claude-opus-5", BOUND)
    await again.reset("claude-opus-5")

    assert kept == first.of("claude-opus-5", BOUND)
    assert [one.model for one in Corrections(tmp_path).all()] == ["other"]
    await again.reset()
    assert Corrections(tmp_path).all() == ()


async def test_a_damaged_file_is_kept_aside(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b'{"version": 1, "models": 7}')

    corrections = Corrections(tmp_path)
    await corrections.learn("claude-opus-5", BOUND, ours=4000, theirs=4100)

    assert (tmp_path / "corrections.damaged-1.json").exists()
    assert len(Corrections(tmp_path).all()) == 1


async def test_a_newer_file_is_never_overwritten(tmp_path: Path) -> None:
    newer = b'{"version": 2, "models": "another shape"}'
    (tmp_path / FILE).write_bytes(newer)
    corrections = Corrections(tmp_path)

    await corrections.learn("claude-opus-5", BOUND, ours=4000, theirs=4100)
    with pytest.raises(DaemonError):
        await corrections.reset()

    assert (tmp_path / FILE).read_bytes() == newer
    assert corrections.of("claude-opus-5", BOUND) is not None


def test_a_corrected_budget_keeps_the_minimums_and_the_limit() -> None:
    budget = budget_of(BudgetProfile())

    totals = [
        apply_correction(budget, CountCorrection(factor=factor, runs=1)).profile.total_budget_tokens
        for factor in (1.5, 1.25, 0.75, 4.0)
    ]

    assert totals == [4000, 4800, 8000, 2700]
    assert apply_correction(budget, None) is budget
