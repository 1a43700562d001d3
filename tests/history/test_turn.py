"""Whole conversations, made up at random; the one of 200 rounds is a story of `e2e`."""

import json
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from creonowd.context.text_tools import Memory, TextTools
from creonowd.errors import DaemonError
from creonowd.history.budget_fit import summary_policy
from creonowd.history.build_result import Part, Step
from creonowd.history.histories import History
from creonowd.history.rounds import Message, Speaker, ToolCall, check_messages, group_rounds
from creonowd.history.tool_result import TodoItem
from creonowd.history.turn import TurnRequest, fit_turn, plan_turn
from creonowd.redaction import Redactor
from creonowd.settings import Settings
from creonowd.tokens import ByteTokenizer
from testing.conversations import assistant, broken_pairs, calls, conversations, result, user

TOOLS = TextTools(ByteTokenizer(), Redactor(), Memory())
ORDER = list(Part)
USUAL = summary_policy(Settings())

_long = st.integers(0, 60_000).map(lambda size: ("林远推开门，夜色很深。\n" * 6000)[:size])


def history_of(rounds: list[list[dict[str, Any]]]) -> History:
    """A history as `append` would keep it, with results as they are."""
    messages = [_message(message) for one in rounds for message in one]
    return History(rounds=tuple(group_rounds((), check_messages((), messages))))


def _message(raw: dict[str, Any]) -> Message:
    tool_calls = [
        ToolCall(id=c["id"], name=c["name"], arguments=c["arguments"])
        for c in raw.get("toolCalls", [])
    ]
    return Message(
        role=Speaker(raw["role"]),
        content=str(raw["content"]),
        **({"tool_calls": tuple(tool_calls)} if tool_calls else {}),
        **({"tool_call_id": raw["toolCallId"]} if "toolCallId" in raw else {}),
    )


def wire(messages: list[Message]) -> list[dict[str, Any]]:
    return msgspec.json.decode(msgspec.json.encode(messages))


@pytest.mark.requirement("CB-018", "CB-019", "CB-023", "CB-029", "CB-042")
@given(conversations, st.integers(200, 4000), st.booleans())
def test_order_pairs_budget_and_floor_hold_in_every_conversation(
    rounds: list[list[dict[str, Any]]],
    budget: int,
    todo: bool,  # noqa: FBT001
) -> None:
    history = history_of(rounds)
    request = TurnRequest(
        system_prompt="You help.",
        code_law="Write plainly.",
        tool_prompts=("Use Read.",),
        input="and now?",
        budget=budget,
        todo=(TodoItem(text="draft"),) if todo else (),
    )
    policy = USUAL

    plan = plan_turn(request, history, policy, TOOLS)
    context = fit_turn(plan, history, policy, TOOLS)

    parts = [ORDER.index(piece.part) for piece in context.pieces]
    rounds_kept = {piece.round for piece in context.pieces if piece.part is Part.RECENT_MESSAGES}
    texts = [piece.message.content for piece in context.pieces]
    assert parts == sorted(parts)
    assert context.tokens <= budget
    assert broken_pairs(wire(context.messages)) == []
    if Step.FLOOR_ROUNDS not in context.draft.steps:
        assert len(rounds_kept) >= min(2, len(history.rounds))
    assert rounds_kept == set(range(len(history.rounds))[len(history.rounds) - len(rounds_kept) :])
    assert texts[:3] == ["You help.", "Write plainly.", "Use Read."]
    assert "and now?" in texts
    assert sum("[History Summary]" in text for text in texts) <= 1


@st.composite
def _heavy_round(draw: st.DrawFn, number: int) -> list[dict[str, Any]]:
    made = [
        (f"c{number}-{n}", "Read", {"file_path": draw(_long)[:9000]})
        for n in range(draw(st.integers(0, 40)))
    ]
    messages = [user(draw(_long) or "on"), *([calls(*made)] if made else [])]
    messages += [result(call_id, draw(_long)) for call_id, _, _ in made[: draw(st.integers(0, 4))]]
    return [*messages, assistant(draw(_long))] if draw(st.booleans()) else messages


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    st.lists(st.integers(0, 9), max_size=6).flatmap(
        lambda numbers: st.tuples(*(_heavy_round(n) for n, _ in enumerate(numbers)))
    )
)
def test_any_sequence_of_messages_builds(rounds: tuple[list[dict[str, Any]], ...]) -> None:
    """However long messages, calls and results are, the next turn is no error."""
    history = history_of(list(rounds))
    request = TurnRequest(system_prompt="You help.", input="and now?", budget=16_000)

    context = fit_turn(plan_turn(request, history, USUAL, TOOLS), history, USUAL, TOOLS)

    assert context.tokens <= 16_000
    assert context.messages[-1].content == "and now?"
    assert broken_pairs(wire(context.messages)) == []


@settings(max_examples=60)
@given(conversations)
def test_earlier_turns_keep_their_summaries_as_the_conversation_goes_on(
    rounds: list[list[dict[str, Any]]],
) -> None:
    """Between two summaries a prompt is the beginning of the next turn's, byte for byte.

    None of these rounds corrects another; a correction would take what it corrects from the summary.
    """
    policy = summary_policy(Settings(history_rounds=2, history_rounds_floor=1))
    numbered = [
        [{**r[0], "content": f"{n}: {r[0]['content']}"}, *r[1:]] for n, r in enumerate(rounds)
    ]
    growing = history_of(numbered)
    prompts: list[tuple[int, list[Message]]] = []
    for index, one in enumerate(numbered):
        history = History(rounds=growing.rounds[:index])
        fresh = history_of(numbered[:index])
        request = TurnRequest(system_prompt="You help.", input=one[0]["content"], budget=900)
        plan = plan_turn(request, history, policy, TOOLS)
        anew = plan_turn(request, fresh, policy, TOOLS)

        assert plan.covers == anew.covers
        roomy = msgspec.structs.replace(
            plan, request=msgspec.structs.replace(request, budget=10**6)
        )
        prompts.append((plan.covers, fit_turn(roomy, history, policy, TOOLS).messages))

    for (covers, before), (covers_then, after) in pairwise(prompts):
        assert covers_then >= covers
        assert covers_then > covers or after[: len(before)] == before


@settings(max_examples=25)
@given(conversations)
def test_the_same_conversation_gives_the_same_bytes(rounds: list[list[dict[str, Any]]]) -> None:
    request = TurnRequest(system_prompt="You help.", input="x", budget=900)

    def once() -> str:
        history = history_of(rounds)
        plan = plan_turn(request, history, USUAL, TOOLS)
        try:
            context = fit_turn(plan, history, USUAL, TOOLS)
        except DaemonError as error:
            return error.message
        return json.dumps(wire(context.messages))

    assert once() == once()
