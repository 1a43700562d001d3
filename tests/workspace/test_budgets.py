"""Budgets survive restarts, damage and each other; of two updates one wins."""

import json
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.context.budget import (
    BudgetChange,
    BudgetProfile,
    CountCorrection,
    apply_correction,
    budget_of,
)
from creonowd.errors import DaemonError, ErrorCode
from creonowd.tokens import CountKind
from creonowd.workspace.budgets import (
    CORRECTIONS_FILE,
    KEPT_RUNS,
    MOST_MODELS,
    Budgets,
    Corrections,
)

BOUND, ROUGH = CountKind.BOUND, CountKind.APPROXIMATE

steps = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(["look", "update"]), st.integers(2700, 6000)),
    max_size=12,
)

WRITER = """
import anyio, sys
from pathlib import Path
from creonowd.context.budget import BudgetChange
from creonowd.errors import DaemonError
from creonowd.workspace.budgets import Budgets

async def main() -> None:
    budgets, won = Budgets(Path(sys.argv[1])), []
    while len(won) < 20:
        seen = (await budgets.get("prj_a")).profile.version
        try:
            made = await budgets.update(
                BudgetChange(version=seen, total_budget_tokens=3000 + seen), "prj_a")
        except DaemonError:
            continue
        won.append(made.profile.version)
    print(won, file=sys.stderr)

sys.stdin.readline()
anyio.run(main)
"""


def total(version: int, tokens: int) -> BudgetChange:
    """Ask for another total."""
    return BudgetChange(version=version, total_budget_tokens=tokens)


async def test_a_project_has_the_default_budget_until_it_has_its_own(tmp_path: Path) -> None:
    budgets = Budgets(tmp_path)

    inherited = await budgets.get("prj_a")
    await budgets.update(total(1, 5000))
    followed = await budgets.get("prj_a")
    own = await budgets.update(total(2, 4000), "prj_a")
    await budgets.update(total(2, 3000))

    assert inherited == budget_of(BudgetProfile())
    assert followed.profile.total_budget_tokens == 5000
    assert own.profile.version == 3
    assert (await budgets.get("prj_a")).profile.total_budget_tokens == 4000
    assert (await budgets.get("prj_b")).profile.total_budget_tokens == 3000


async def test_a_budget_survives_a_restart(tmp_path: Path) -> None:
    written = await Budgets(tmp_path).update(total(1, 5000), "prj_a")

    assert await Budgets(tmp_path).get("prj_a") == written


async def test_an_update_of_another_store_is_seen_at_the_next_look(tmp_path: Path) -> None:
    one, other = Budgets(tmp_path), Budgets(tmp_path)
    await one.get("prj_a")

    await other.update(total(1, 5000), "prj_a")

    assert (await one.get("prj_a")).profile.version == 2


@pytest.mark.requirement("CE-074", "CE-080")
async def test_of_two_updates_from_one_version_exactly_one_wins(tmp_path: Path) -> None:
    stores = (Budgets(tmp_path), Budgets(tmp_path))
    outcomes: list[int | DaemonError] = []

    async def update(store: Budgets, tokens: int) -> None:
        try:
            outcomes.append(
                (await store.update(total(1, tokens), "prj_a")).profile.total_budget_tokens
            )
        except DaemonError as error:
            outcomes.append(error)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for number in range(8):
                tasks.start_soon(update, stores[number % 2], 3000 + number)

    winners = [outcome for outcome in outcomes if isinstance(outcome, int)]
    losers = [outcome for outcome in outcomes if isinstance(outcome, DaemonError)]
    assert len(winners) == 1
    assert {loser.code for loser in losers} == {ErrorCode.CONTEXT_BUDGET_CONFLICT}
    assert {loser.details["currentVersion"] for loser in losers} == {2}
    assert (await stores[0].get("prj_a")).profile.total_budget_tokens == winners[0]


@pytest.mark.requirement("CE-095")
@given(steps)
def test_any_interleaving_of_updates_equals_some_serial_order(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, str, int]]
) -> None:
    """Three clients look and update as they like; every winner builds on the one before it."""
    folder = tmp_path_factory.mktemp("budgets")

    history, final = anyio.run(_play, folder, steps)

    assert [before + 1 for before, _, _ in history] == [after for _, after, _ in history]
    assert [after for _, after, _ in history] == list(range(2, len(history) + 2))
    assert final.version == len(history) + 1
    assert final.total_budget_tokens == (history[-1][2] if history else 6000)


async def _play(
    folder: Path, steps: list[tuple[int, str, int]]
) -> tuple[list[tuple[int, int, int]], BudgetProfile]:
    clients = [Budgets(folder) for _ in range(3)]
    seen = [1, 1, 1]
    history: list[tuple[int, int, int]] = []
    for client, action, tokens in steps:
        if action == "look":
            seen[client] = (await clients[client].get("prj_a")).profile.version
            continue
        made = await _attempt(clients[client], total(seen[client], tokens))
        if made is not None:
            history.append((seen[client], made.version, made.total_budget_tokens))
    return history, (await clients[0].get("prj_a")).profile


async def _attempt(budgets: Budgets, change: BudgetChange) -> BudgetProfile | None:
    try:
        return (await budgets.update(change, "prj_a")).profile
    except DaemonError as error:
        if error.code is not ErrorCode.CONTEXT_BUDGET_CONFLICT:
            raise
    return None


@pytest.mark.requirement("CE-079")
def test_two_processes_never_overwrite_each_other(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path)]

    writers = [_process(command) for _ in range(2)]
    for writer in writers:
        assert writer.stdin
        writer.stdin.write(b"go\n")
        writer.stdin.flush()
    won = [json.loads(writer.communicate(timeout=60)[1]) for writer in writers]

    assert sorted(won[0] + won[1]) == list(range(2, 42))
    assert anyio.run(Budgets(tmp_path).get, "prj_a").profile.version == 41


def _process(command: list[str]) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=subprocess.DEVNULL, stderr=pipe)


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b'{"version": 1}',
        b'{"version": 1, "profile": {"totalBudgetTokens": 1}}',
        b'{"version": 1, "profile": {"layers": {"rules": {"ratio": 9, "minimumTokens": 1}}}}',
    ],
)
@pytest.mark.requirement("CE-062")
async def test_a_damaged_file_is_kept_aside_and_the_default_serves(
    tmp_path: Path, damage: bytes
) -> None:
    path = tmp_path / "budgets" / "prj_a.json"
    path.parent.mkdir()
    path.write_bytes(damage)
    budgets = Budgets(tmp_path)

    first = await budgets.get("prj_a")
    second = await budgets.get("prj_a")
    mended = await budgets.update(total(1, 5000), "prj_a")

    assert first == second
    assert [w.code for w in first.warnings] == ["CONTEXT_BUDGET_FALLBACK"]
    assert first.profile.total_budget_tokens == 6000
    assert path.with_name("prj_a.damaged-1.json").read_bytes() == damage
    assert mended.warnings == ()
    assert (await budgets.get("prj_a")) == mended
    assert budgets.set_aside() == {}


async def test_a_damaged_default_does_not_spoil_a_projects_own_budget(tmp_path: Path) -> None:
    budgets = Budgets(tmp_path)
    own = await budgets.update(total(1, 5000), "prj_a")
    (tmp_path / "budgets" / "default.json").write_bytes(b"{")

    assert await budgets.get("prj_a") == own
    assert (await budgets.get()).warnings
    assert budgets.set_aside() == {"default": "default.damaged-1.json"}


async def test_a_newer_file_is_refused_and_never_rewritten(tmp_path: Path) -> None:
    path = tmp_path / "budgets" / "default.json"
    path.parent.mkdir()
    path.write_bytes(b'{"version": 2, "budget": "of tomorrow"}')
    budgets = Budgets(tmp_path)

    with pytest.raises(DaemonError) as looked:
        await budgets.get()
    with pytest.raises(DaemonError) as updated:
        await budgets.update(total(1, 5000))

    assert looked.value.code is updated.value.code is ErrorCode.VERSION_TOO_NEW
    assert path.read_bytes() == b'{"version": 2, "budget": "of tomorrow"}'


@pytest.mark.requirement("CE-062")
async def test_an_assembly_goes_on_with_the_default_when_no_budget_can_be_read(
    tmp_path: Path,
) -> None:
    (tmp_path / "budgets").mkdir()
    (tmp_path / "budgets" / "default.json").mkdir()

    budget = await Budgets(tmp_path).effective()

    assert budget.profile.total_budget_tokens == 6000
    assert [w.code for w in budget.warnings] == ["CONTEXT_BUDGET_FALLBACK"]


@pytest.mark.parametrize("project", ["../evil", "a/b", "..", "con:", "a\0b", "préj"])
async def test_no_name_leads_out_of_the_folder(tmp_path: Path, project: str) -> None:
    with pytest.raises(DaemonError) as caught:
        await Budgets(tmp_path).get(project)

    assert caught.value.code is ErrorCode.NOT_FOUND


async def test_a_damaged_file_that_cannot_be_moved_still_costs_no_answer(tmp_path: Path) -> None:
    path = tmp_path / "budgets" / "default.json"
    path.parent.mkdir()
    path.write_bytes(b"{")
    (tmp_path / "budgets" / "write.lock").mkdir()
    budgets = Budgets(tmp_path)

    budget = await budgets.get()
    with pytest.raises(DaemonError) as caught:
        await budgets.update(total(1, 5000))

    assert [w.code for w in budget.warnings] == ["CONTEXT_BUDGET_FALLBACK"]
    assert caught.value.code is ErrorCode.IO_ERROR
    assert path.read_bytes() == b"{"


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
    assert not (tmp_path / CORRECTIONS_FILE).exists()


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
    (tmp_path / CORRECTIONS_FILE).write_bytes(b'{"version": 1, "models": 7}')

    corrections = Corrections(tmp_path)
    await corrections.learn("claude-opus-5", BOUND, ours=4000, theirs=4100)

    assert (tmp_path / "corrections.damaged-1.json").exists()
    assert len(Corrections(tmp_path).all()) == 1


async def test_a_newer_file_is_never_overwritten(tmp_path: Path) -> None:
    newer = b'{"version": 2, "models": "another shape"}'
    (tmp_path / CORRECTIONS_FILE).write_bytes(newer)
    corrections = Corrections(tmp_path)

    await corrections.learn("claude-opus-5", BOUND, ours=4000, theirs=4100)
    with pytest.raises(DaemonError):
        await corrections.reset()

    assert (tmp_path / CORRECTIONS_FILE).read_bytes() == newer
    assert corrections.of("claude-opus-5", BOUND) is not None


def test_a_corrected_budget_keeps_the_minimums_and_the_limit() -> None:
    budget = budget_of(BudgetProfile())

    totals = [
        apply_correction(budget, CountCorrection(factor=factor, runs=1)).profile.total_budget_tokens
        for factor in (1.5, 1.25, 0.75, 4.0)
    ]

    assert totals == [4000, 4800, 8000, 2700]
    assert apply_correction(budget, None) is budget
