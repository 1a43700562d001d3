from hypothesis import given
from hypothesis import strategies as st

from creonowd.engine.skill_run import HEAD, LONGEST_INSTRUCTION, TAIL, run_summary


def test_a_short_run_is_summarised_in_full() -> None:
    assert run_summary("续写", "更紧张些", "林远推门。\n\n“谁？”") == (
        "技能：续写\n指令：更紧张些\n产出（11 字）：林远推门。 “谁？”"
    )


def test_a_run_without_instruction_or_output_says_so() -> None:
    assert run_summary("续写", " ", "\n") == "技能：续写\n产出：无"


def test_a_long_output_is_cut_to_its_beginning_and_end_at_sentences() -> None:
    output = "".join(f"第{n}句话到此为止。" for n in range(100))

    summary = run_summary("续写", "", output)

    head, _, tail = summary.partition(" …… ")
    assert head.endswith("。")
    assert tail.startswith("第")
    assert tail.endswith("第99句话到此为止。")


@given(st.text(max_size=50), st.text(max_size=500), st.text(max_size=2000))
def test_a_summary_is_short_and_always_the_same(name: str, instruction: str, output: str) -> None:
    summary = run_summary(name, instruction, output)

    assert summary == run_summary(name, instruction, output)
    assert len(summary) <= len(name) + LONGEST_INSTRUCTION + HEAD + TAIL + 60
    assert summary.count("\n") <= 2
