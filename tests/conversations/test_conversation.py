"""Whole conversations, made up at random; the one of 200 rounds is a story of `e2e`."""

import json
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from creonowd.context.text_tools import Memory, TextTools
from creonowd.conversations import builder
from creonowd.conversations.build_result import Part
from creonowd.conversations.cutting import policy_of
from creonowd.conversations.histories import History
from creonowd.conversations.messages import Message, Speaker, ToolCall
from creonowd.conversations.rounds import checked, grouped
from creonowd.conversations.todo import TodoItem
from creonowd.conversations.turn import Wanted
from creonowd.errors import DaemonError, ErrorCode
from creonowd.redaction import Redactor
from creonowd.settings import Settings
from creonowd.tokens import ByteTokenizer
from tests.conversations.talk import broken_pairs, conversations

INSTRUMENTS = TextTools(ByteTokenizer(), Redactor(), Memory())
ORDER = list(Part)
USUAL = policy_of(Settings())


def history_of(rounds: list[list[dict[str, Any]]]) -> History:
    """A history as `append` would keep it, with results as they are."""
    messages = [_message(message) for one in rounds for message in one]
    return History(rounds=tuple(grouped((), checked((), messages))))


def _message(raw: dict[str, Any]) -> Message:
    called = [
        ToolCall(id=c["id"], name=c["name"], arguments=c["arguments"])
        for c in raw.get("toolCalls", [])
    ]
    return Message(
        role=Speaker(raw["role"]),
        content=str(raw["content"]),
        **({"tool_calls": tuple(called)} if called else {}),
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
    wanted = Wanted(
        system_prompt="You help.",
        code_law="Write plainly.",
        tool_prompts=("Use Read.",),
        input="and now?",
        budget=budget,
        todo=(TodoItem(text="draft"),) if todo else (),
    )
    policy = USUAL

    prepared = builder.prepare(wanted, history, policy, INSTRUMENTS)
    try:
        built = builder.compose(prepared, history, policy, INSTRUMENTS)
    except DaemonError as error:
        assert error.code is ErrorCode.CONTEXT_INPUT_TOO_LARGE  # noqa: PT017
        return

    parts = [ORDER.index(piece.part) for piece in built.pieces]
    shown = {piece.round for piece in built.pieces if piece.part is Part.RECENT_MESSAGES}
    texts = [piece.message.content for piece in built.pieces]
    assert parts == sorted(parts)
    assert built.tokens <= budget
    assert broken_pairs(wire(built.messages)) == []
    assert len(shown) >= min(2, len(history.rounds))
    assert shown == set(range(len(history.rounds))[len(history.rounds) - len(shown) :])
    assert texts[:3] == ["You help.", "Write plainly.", "Use Read."]
    assert "and now?" in texts
    assert sum("[History Summary]" in text for text in texts) <= 1


@settings(max_examples=60)
@given(conversations)
def test_earlier_turns_keep_their_summaries_as_the_conversation_goes_on(
    rounds: list[list[dict[str, Any]]],
) -> None:
    """Between two summaries a prompt is the beginning of the next turn's, byte for byte."""
    policy = policy_of(Settings(history_rounds=2, history_rounds_floor=1))
    numbered = [
        [{**r[0], "content": f"{n}: {r[0]['content']}"}, *r[1:]] for n, r in enumerate(rounds)
    ]
    growing = history_of(numbered)
    told: list[tuple[int, list[Message]]] = []
    for turn, one in enumerate(numbered):
        history = History(rounds=growing.rounds[:turn])
        fresh = history_of(numbered[:turn])
        wanted = Wanted(system_prompt="You help.", input=one[0]["content"], budget=900)
        prepared = builder.prepare(wanted, history, policy, INSTRUMENTS)
        anew = builder.prepare(wanted, fresh, policy, INSTRUMENTS)

        assert prepared.covers == anew.covers
        roomy = msgspec.structs.replace(
            prepared, wanted=msgspec.structs.replace(wanted, budget=10**6)
        )
        told.append(
            (prepared.covers, builder.compose(roomy, history, policy, INSTRUMENTS).messages)
        )

    for (covers, before), (covers_then, after) in pairwise(told):
        assert covers_then >= covers
        assert covers_then > covers or after[: len(before)] == before


@settings(max_examples=25)
@given(conversations)
def test_the_same_conversation_gives_the_same_bytes(rounds: list[list[dict[str, Any]]]) -> None:
    wanted = Wanted(system_prompt="You help.", input="x", budget=900)

    def once() -> str:
        history = history_of(rounds)
        prepared = builder.prepare(wanted, history, USUAL, INSTRUMENTS)
        try:
            built = builder.compose(prepared, history, USUAL, INSTRUMENTS)
        except DaemonError as error:
            return error.message
        return json.dumps(wire(built.messages))

    assert once() == once()
