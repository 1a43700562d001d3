"""The summary of a run; who may stop one under way, and what becomes of it."""

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.engine.skill_run import HEAD, LONGEST_INSTRUCTION, TAIL, SkillRuns, run_summary
from creonowd.errors import DaemonError, ErrorCode
from creonowd.workspace.runs import RunSummary


def test_a_short_run_is_summarised_in_full() -> None:
    assert run_summary("续写", "更紧张些", "林远推门。\n\n“谁？”") == RunSummary(
        skill_name="续写", instruction="更紧张些", excerpt="林远推门。 “谁？”", characters=11
    )


def test_blank_instruction_and_output_are_empty() -> None:
    assert run_summary("续写", " ", "\n") == RunSummary(skill_name="续写", characters=1)


def test_a_long_output_is_cut_to_its_beginning_and_end_at_sentences() -> None:
    output = "".join(f"第{n}句话到此为止。" for n in range(100))

    summary = run_summary("续写", "", output)

    head, _, tail = summary.excerpt.partition(" …… ")
    assert head.endswith("。")
    assert tail.startswith("第")
    assert tail.endswith("第99句话到此为止。")


@given(st.text(max_size=50), st.text(max_size=500), st.text(max_size=2000))
def test_a_summary_is_short_and_always_the_same(name: str, instruction: str, output: str) -> None:
    summary = run_summary(name, instruction, output)

    assert summary == run_summary(name, instruction, output)
    assert len(summary.instruction) <= LONGEST_INSTRUCTION
    assert len(summary.excerpt) <= HEAD + TAIL + 6
    assert "\n" not in summary.skill_name + summary.instruction + summary.excerpt


async def stopped(flights: SkillRuns, *, shielded: bool) -> None:
    """Be a run that is stopped, in the middle or where nothing interrupts it."""
    with flights.register("run", "me"), anyio.CancelScope(shield=shielded):
        assert flights.cancel("run", "me", any_run=False)
        await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("shielded", [False, True])
async def test_a_run_that_is_stopped_ends_as_cancelled(*, shielded: bool) -> None:
    """Also one whose record was just being written: the asker has the answer that it stops."""
    with pytest.raises(DaemonError) as caught:
        await stopped(SkillRuns(), shielded=shielded)

    assert caught.value.code is ErrorCode.CANCELED


async def test_nobody_stops_the_run_of_another() -> None:
    flights = SkillRuns()

    with flights.register("run", "me"):
        assert not flights.cancel("run", "somebody", any_run=False)
        assert not flights.cancel("another", "me", any_run=True)


async def test_an_id_is_taken_while_its_run_lasts() -> None:
    flights = SkillRuns()

    with flights.register("run", "me"), pytest.raises(DaemonError) as caught:
        flights.register("run", "me").__enter__()
    with flights.register("run", "me"):
        pass

    assert caught.value.code is ErrorCode.CONFLICT
