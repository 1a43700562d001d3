from hypothesis import given
from hypothesis import strategies as st

from creonowd.engine.skill_run import HEAD, LONGEST_INSTRUCTION, TAIL, run_summary
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
