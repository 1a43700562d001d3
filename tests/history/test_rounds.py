"""Thoughts are left out; what only talks about them is not."""

import pytest

from creonowd.history.rounds import without_thoughts


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
    ],
)
def test_what_is_marked_as_thought_is_left_out(content: str, kept: str) -> None:
    assert without_thoughts(content) == kept


@pytest.mark.parametrize("mark", ["<think>", "</think>", "`<think>`", "<think ", "Thought: \n"])
def test_marks_without_end_are_gone_over_once(mark: str) -> None:
    """Quadratic work here would hold the interpreter for an hour."""
    assert len(without_thoughts(mark * 200_000)) <= len(mark) * 200_000
