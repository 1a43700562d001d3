"""The story of an agent that works for 200 rounds on one novel."""

import json
from pathlib import Path
from typing import Any

import pytest

from testing.clients import over_stdio
from testing.conversations import SECRETS, broken_pairs, realistic_round

ORDER = ["system_prompt", "tool_prompts", "summary", "recent_messages", "user_input", "todo_recap"]
SYSTEM = "\n".join(
    f"Rule {n}: keep the author's voice, change one thing at a time." for n in range(40)
)


@pytest.mark.requirement("CB-045", "CB-046", "CB-047")
async def test_a_long_conversation_stays_short_ordered_and_clean(tmp_path: Path) -> None:
    (tmp_path / "book").mkdir()
    async with over_stdio(tmp_path / "user") as client:
        made = await client.call("project:create", {"rootPath": str(tmp_path / "book")}, 30)
        where = {"projectId": made["projectId"], "conversationId": "long"}
        turns: list[Any] = []
        asked: dict[str, Any] = {}
        for number in range(200):
            messages = realistic_round(number)
            asked = {
                **where,
                "input": messages[0]["content"],
                "systemPrompt": SYSTEM,
                "toolPrompts": ["Use Grep before Read.", "Use Bash to run tests."],
                "todo": [{"text": f"step {number}", "status": "in_progress"}],
            }
            turns.append(await client.call("context:build", asked, 30))
            await client.call("context:history:append", {**where, "messages": messages}, 30)
        tight = await client.call(
            "context:build", {**asked, "input": "x", "budgetTokens": 1500}, 30
        )

    order = [turn["assemblyOrder"] for turn in turns]
    first = next(n for n, turn in enumerate(turns) if "summary" in turn)
    sent = json.dumps(turns)
    assert turns[first - 1]["tokenCount"] < 8000 <= turns[first - 1]["tokenCount"] + 1500
    assert all(taken == [part for part in ORDER if part in taken] for taken in order)
    assert all("summary" in turn and turn["recentRounds"] >= 5 for turn in turns[first:])
    assert all(turn["tokenCount"] <= turn["budgetTokens"] for turn in turns)
    assert not [broken for turn in turns for broken in broken_pairs(turn["messages"])]
    assert not [secret for secret in SECRETS if secret in sent]
    assert sum(turn["prefix"]["share"] for turn in turns[1:]) / 199 >= 0.8
    assert tight["steps"][:2] == ["tool_snippets", "summary_lines"]
