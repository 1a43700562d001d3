from hypothesis import given
from hypothesis import strategies as st

from creonowd.engine.skill_run import HEAD, INSTRUCTION, TAIL, summarise


def test_a_short_run_is_told_in_full() -> None:
    assert summarise("续写", "更紧张些", "林远推门。\n\n“谁？”") == (
        "技能：续写\n指令：更紧张些\n产出（11 字）：林远推门。 “谁？”"
    )


def test_a_run_without_instruction_or_output_says_so() -> None:
    assert summarise("续写", " ", "\n") == "技能：续写\n产出：无"


def test_a_long_output_is_told_by_its_beginning_and_end_at_sentences() -> None:
    output = "".join(f"第{n}句话到此为止。" for n in range(100))

    summary = summarise("续写", "", output)

    head, _, tail = summary.partition(" …… ")
    assert head.endswith("。")
    assert tail.startswith("第")
    assert tail.endswith("第99句话到此为止。")


@given(st.text(max_size=50), st.text(max_size=500), st.text(max_size=2000))
def test_a_summary_is_short_and_always_the_same(name: str, told: str, output: str) -> None:
    summary = summarise(name, told, output)

    assert summary == summarise(name, told, output)
    assert len(summary) <= len(name) + INSTRUCTION + HEAD + TAIL + 60
    assert summary.count("\n") <= 2
