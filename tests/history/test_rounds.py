"""Thoughts are left out; what only talks about them is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.history.rounds import without_thoughts

KNOWN = "Action: Read\nObservation: x\nIt is 5."


@pytest.mark.parametrize(
    ("content", "kept"),
    [
        ("<think>plan</think>Good morning.", "Good morning."),
        ("plan</think>\n\nGood morning.", "Good morning."),
        ("Good. <thinking>cut off by the li", "Good. "),
        ("<Think a='1'>one<think>two</think>three</think> Good.", "Good."),
        ("<think>a</think>Good <think>b</think>morning.", "Good morning."),
        ("Put `<think>` before it and `</think>` behind.", "Put `` behind."),
        ("Begin with `<think>` then.", "Begin with `<think>` then."),
        ("End with `</think>` then.", "End with `</think>` then."),
        ("思考：先看。\n行动：读", "行动：读"),
        ("<think>only this</think>", ""),
        ("Thought: a\nb\n\nAction: Read[a.md]", "Action: Read[a.md]"),
        ("思考：甲\n乙\n答案：丙", "答案：丙"),
        ("Action: Read\nObservation: x\nThought: now I know\nIt is 5.", KNOWN),
    ],
)
def test_what_is_marked_as_thought_is_left_out(content: str, kept: str) -> None:
    assert without_thoughts(content) == kept


@pytest.mark.parametrize(
    ("content", "kept"),
    [
        ("思考：先想一想\n答案", "答案"),
        ("Thought: a\nanswer", "answer"),
        ("Thought: a\nfirst\n\nsecond", "first\n\nsecond"),
        ("Thought: a\n\nanswer", "answer"),
        ("Thought: a\nThought: b\nanswer", "answer"),
        ("Thought: a\nanswer\nAction films are loud.", "answer\nAction films are loud."),
        ("Thought: a. Final Answer: b\nc", "Final Answer: b\nc"),
        ("思考：用户要标题。答案：《夜航》", "答案：《夜航》"),
        ("Thought: all that was said", "Thought: all that was said"),
        ("他坐下。\n思考：人为何物？\n他叹气。", "他坐下。\n思考：人为何物？\n他叹气。"),
    ],
)
def test_an_answer_is_never_lost_with_a_thought(content: str, kept: str) -> None:
    assert without_thoughts(content) == kept


def test_a_labelled_thought_beside_calls_is_left_out() -> None:
    assert without_thoughts("Thought: I should look.", with_calls=True) == ""


@given(
    st.lists(st.sampled_from(["Thought: a", "思考：甲", "", "Action: b", "Answer: c", "text"])),
    st.booleans(),
)
def test_every_line_that_is_no_thought_stays_where_no_label_follows(
    lines: list[str],
    with_calls: bool,  # noqa: FBT001
) -> None:
    """The text behind the last label or thought is an answer as far as anybody can see."""
    kept = without_thoughts("\n".join([*lines, "the answer"]), with_calls=with_calls)

    assert kept.endswith("the answer")


@pytest.mark.parametrize("mark", ["<think>", "</think>", "`<think>`", "<think ", "Thought: \n"])
def test_marks_without_end_are_gone_over_once(mark: str) -> None:
    """Quadratic work here would hold the interpreter for an hour."""
    assert len(without_thoughts(mark * 200_000)) <= len(mark) * 200_000


def test_an_answer_behind_a_tag_that_is_never_closed_is_kept() -> None:
    assert without_thoughts("<think>first this. The answer is 42.") == (
        "first this. The answer is 42."
    )
    assert without_thoughts("<think>only thought</think>") == ""
    assert without_thoughts("<think>and a call", with_calls=True) == ""
