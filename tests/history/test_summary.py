"""The six-field form, and the summariser that fills it with the rounds' own words."""

import pytest

from creonowd.history.rounds import Message, Round, Speaker, ToolCall, group_rounds
from creonowd.history.summary import (
    LABELS,
    HistorySummary,
    extractive_summary,
    read_summary,
    render_summary,
    to_one_sentence,
    with_items,
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
        "- Overall Goal: Write the first chapter. Keep it dark. Now: 改成第一人称。",
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


def test_a_list_is_shortened_from_its_end_where_the_oldest_stands() -> None:
    summary = HistorySummary(files="c.md (read), b.md (read)", knowledge="new. Yes.; older.; old.")

    assert with_items(summary, 2).knowledge == "new. Yes.; older."
    assert with_items(summary, 1).files == "c.md (read)"
    assert with_items(summary, 9) == summary


def test_the_goal_is_the_first_request_and_the_latest_that_changed_it() -> None:
    said = ["Hi! Write a novel about a lighthouse.", "Make it a play instead.", "Fix the typo."]
    messages = [Message(role=Speaker.USER, content=text) for text in said]

    summary = extractive_summary(group_rounds((), messages))

    assert summary.overall_goal == (
        "Write a novel about a lighthouse. Now: Make it a play instead."
    )


def test_the_plan_names_the_last_intention_until_it_is_long_ago() -> None:
    planned = [
        Message(role=Speaker.USER, content="Go."),
        Message(role=Speaker.ASSISTANT, content="Done. Next I will draft chapter 8."),
    ]
    idle = [
        Message(role=Speaker.USER, content="Thanks."),
        Message(role=Speaker.ASSISTANT, content="Fine. I'll go on if you like."),
    ]

    soon = extractive_summary(group_rounds((), [*planned, *idle]))
    late = extractive_summary(group_rounds((), [*planned, *idle * 6]))

    assert soon.plan_and_progress.endswith("next: Next I will draft chapter 8.")
    assert "next:" not in late.plan_and_progress


def test_an_offer_to_go_on_is_no_open_question() -> None:
    def left_off(answer: str) -> str:
        asked = Message(role=Speaker.USER, content="Rename it.")
        said = Message(role=Speaker.ASSISTANT, content=answer)
        return extractive_summary(group_rounds((), [asked, said])).left_off

    assert left_off("Renamed. Anything else?") == "Rename it. → Renamed."
    assert left_off("Renamed. Per user or per key?") == "asked: Per user or per key?"


def called(command: str, result: str) -> list[Message]:
    """Return a round in which a command is run."""
    call = ToolCall(id="c", name="Bash", arguments={"command": command})
    return [
        Message(role=Speaker.USER, content="Run it."),
        Message(role=Speaker.ASSISTANT, tool_calls=(call,)),
        Message(role=Speaker.TOOL, content=result, tool_call_id="c", name="Bash"),
        Message(role=Speaker.ASSISTANT, content="I see."),
    ]


def test_a_failure_stays_with_its_code_until_the_same_call_succeeds() -> None:
    failed = f"[Bash] make: exit code 2, code ETIMEDOUT\nstderr:\nno reply\nFull output: {REF}"
    other = called("make docs", "[Bash] make docs: exit code 0")
    passed = called("make", "[Bash] make: exit code 0\nstdout: empty")

    open_ = extractive_summary(group_rounds((), [*called("make", failed), *other]))
    mended = extractive_summary(group_rounds((), [*called("make", failed), *other, *passed]))

    assert "[Bash] make: exit code 2, code ETIMEDOUT no reply" in open_.knowledge
    assert "ETIMEDOUT" not in mended.knowledge


def test_many_failures_leave_a_bounded_summary() -> None:
    failed = [
        message
        for n in range(200)
        for message in called(f"make {n}", f"[Bash] make {n}: exit code 2\n{'x' * 9_000}")
    ]

    assert len(extractive_summary(group_rounds((), failed)).knowledge) < 10_000


def test_a_file_whose_name_speaks_of_errors_is_no_failure() -> None:
    read = called("cat", "[Read] src/errors.py: lines 1-15\n1: failed = True")

    summary = extractive_summary(group_rounds((), read))

    assert summary.left_off == "Run it. → I see."


def test_what_a_later_round_corrects_leaves_the_summary_and_repeats_leave_it_as_it_is() -> None:
    """The later rounds stand in the prompt themselves, behind the summary."""
    rounds = group_rounds(
        (),
        [
            *a_round("The thief is the gardener, Mr Dale.", "He has a key to the shed."),
            *a_round("The lamp must hang in the hall.", "It hangs there."),
            *called("make", "[Bash] make: exit code 2, code ETIMEDOUT"),
            *a_round("I changed my mind about the thief. It should be the cook.", "Dale is free."),
            *a_round("The lamp must hang in the hall, as ever.", "It does."),
            *called("make", "[Bash] make: exit code 0"),
        ],
    )

    before = extractive_summary(rounds[:3])
    corrected = extractive_summary(rounds[:3], later=rounds[3:4])
    repeated = extractive_summary(rounds[:3], later=rounds[3:5])
    resolved = extractive_summary(rounds[:3], later=rounds[3:])

    assert "Mr Dale" in before.knowledge
    assert "Mr Dale" not in corrected.knowledge
    assert "The lamp must hang in the hall." in corrected.knowledge
    assert "cook" not in corrected.knowledge
    assert repeated == corrected
    assert "ETIMEDOUT" in corrected.knowledge
    assert "ETIMEDOUT" not in resolved.knowledge


def test_what_later_rounds_took_from_the_summary_does_not_come_back() -> None:
    """A prompt that changes with each run of a shaky test is never read from a cache."""
    fails = called("make", "[Bash] make: exit code 2, code ETIMEDOUT")
    passes = called("make", "[Bash] make: exit code 0")
    red = a_round("The lamp in the hall must be red.", "It is red.")
    green = a_round("I changed my mind, the lamp in the hall must be green.", "It is green.")
    rounds = group_rounds(
        (), [*red, *fails, *fails, *passes, *green, *fails, *red, *passes, *fails]
    )

    texts = [extractive_summary(rounds[:2], later=rounds[2:end]).knowledge for end in range(2, 10)]

    assert ["ETIMEDOUT" in text for text in texts] == [True] * 2 + [False] * 6
    assert ["must be red" in text for text in texts] == [True] * 3 + [False] * 5
    assert len(set(texts)) == 3


def test_many_later_failures_take_nothing_from_the_summary() -> None:
    fails = [called(f"make {n}", f"[Bash] make {n}: exit code 2, code E{n}") for n in range(60)]
    rounds = group_rounds((), [message for one in fails for message in one])

    assert extractive_summary(rounds[:3], later=rounds[3:]) == extractive_summary(rounds[:3])


def a_round(request: str, reply: str) -> list[Message]:
    """Return a round of a request and its answer."""
    return [
        Message(role=Speaker.USER, content=request),
        Message(role=Speaker.ASSISTANT, content=reply),
    ]


def test_a_long_conversation_is_extracted_step_by_step_as_all_at_once() -> None:
    messages = [Message(role=Speaker.USER, content=f"Do {n}. Then rest.") for n in range(40)]
    growing = [Round(index, [message]) for index, message in enumerate(messages)]

    stepwise = [extractive_summary(growing[:covers]) for covers in (3, 11, 12, 40)]

    anew = [
        extractive_summary(
            [Round(index, [message]) for index, message in enumerate(messages[:covers])]
        )
        for covers in (3, 11, 12, 40)
    ]
    assert stepwise == anew
    assert stepwise[-1].overall_goal == "Do 0. Then rest."
