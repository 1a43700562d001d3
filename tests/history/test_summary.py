"""The six-field form, and the summariser that fills it with the rounds' own words."""

import pytest

from creonowd.history.rounds import Message, Speaker, ToolCall, group_rounds
from creonowd.history.summary import (
    LABELS,
    HistorySummary,
    extractive_summary,
    read_summary,
    render_summary,
    to_one_sentence,
)

REF = "ctx_" + "a" * 20


def conversation() -> list[Message]:
    read = ToolCall(id="r", name="Read", arguments={"file_path": "a.md"})
    edit = ToolCall(id="e", name="Edit", arguments='{"file_path": "a.md"}')
    return [
        Message(role=Speaker.USER, content="Write the first chapter. Keep it dark."),
        Message(role=Speaker.ASSISTANT, tool_calls=(read,)),
        Message(
            role=Speaker.TOOL,
            content=f"[Read] a.md: lines 1-900\n1: x\nFull output: {REF}",
            tool_call_id="r",
        ),
        Message(role=Speaker.ASSISTANT, content="Chapter one stands. See https://a.example/x now."),
        Message(role=Speaker.USER, content="改成第一人称。"),
        Message(role=Speaker.ASSISTANT, tool_calls=(edit,)),
    ]


@pytest.mark.requirement("CB-017", "CB-038", "CB-021")
def test_the_extract_fills_all_six_fields_from_the_rounds() -> None:
    summary = extractive_summary(group_rounds((), conversation()))

    assert render_summary(summary).split("\n") == [
        "[History Summary]",
        "- Overall Goal: Write the first chapter. Now: 改成第一人称。",
        "- Current Plan & Progress: 2 rounds done; the last with: Chapter one stands.",
        "- Environment / Files: a.md (changed)",
        "- Key Knowledge / Insights: 改成第一人称。; Chapter one stands.; https://a.example/x",
        f"- Recent Actions: [Read] a.md: lines 1-900 ({REF}); [no result was recorded]",
        "- Left-off Point: waiting for the result of Edit",
    ]


def test_rounds_without_words_still_fill_the_form() -> None:
    summary = extractive_summary(group_rounds((), [Message(role=Speaker.USER, content="")]))

    assert read_summary(render_summary(summary)) == summary


def test_a_form_is_read_with_words_around_it_and_refused_if_it_strays() -> None:
    form = render_summary(HistorySummary(overall_goal="goal"))
    lines = form.split("\n")
    swapped = "\n".join([lines[0], lines[2], lines[1], *lines[3:]])

    assert read_summary(f"Sure:\n{form}") == HistorySummary(overall_goal="goal")
    assert read_summary("\n".join(lines[:-1])) is None
    assert read_summary(swapped) is None
    assert read_summary(form.replace("goal", "")) is None
    assert read_summary("") is None


@pytest.mark.requirement("CB-022", "CB-031")
def test_lines_shorten_to_one_sentence() -> None:
    long = HistorySummary(
        **dict.fromkeys(LABELS, "One thing. Another thing."),
    )
    files = HistorySummary(files=", ".join(f"file{n}.md (read)" for n in range(40)))

    assert to_one_sentence(long) == HistorySummary(**dict.fromkeys(LABELS, "One thing."))
    assert len(to_one_sentence(files).files) <= 165
    assert to_one_sentence(to_one_sentence(files)) == to_one_sentence(files)
