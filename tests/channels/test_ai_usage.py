"""`ai:usage`: what runs, judges and summaries used, by the counts of each provider's own format."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from creonowd.daemon.build import build
from creonowd.providers.anthropic import AnthropicMessages
from creonowd.providers.openai import OpenAIChat
from creonowd.providers.provider import Call, Usage
from creonowd.providers.sdk import Address
from creonowd.settings import Settings
from testing.clients import Client, in_memory
from testing.conversations import realistic_round
from testing.novels import Chat, Novel, make_novel
from testing.providers import KEY, PROXIES, Reply, open_model_server

CALL = Call(model="m", system="s", user="u", max_output_tokens=10)
STEP = {"text": "他没有动。", "usage": {"inputTokens": 5000, "outputTokens": 400}}


def openai_reply(usage: dict[str, Any]) -> Reply:
    said: dict[str, Any] = {
        "choices": [{"index": 0, "delta": {"content": "好"}, "finish_reason": "stop"}]
    }
    chunks: tuple[Any, ...] = (said, {"choices": [], "usage": usage})
    return Reply([b"data: %s\n\n" % json.dumps(chunk).encode() for chunk in chunks])


def anthropic_reply(usage: dict[str, Any]) -> Reply:
    message: dict[str, Any] = {"id": "m", "type": "message", "role": "assistant", "content": []}
    message |= {"model": "m", "stop_reason": None, "stop_sequence": None}
    events = [
        {"type": "message_start", "message": message | {"usage": {**usage, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": "好"},
        },
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": usage["output_tokens"]},
        },
        {"type": "message_stop"},
    ]
    return Reply([f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events])


@pytest.mark.parametrize(
    ("provider", "usage", "counted"),
    [
        pytest.param(
            "anthropic",
            {
                "input_tokens": 1000,
                "cache_creation_input_tokens": 300,
                "cache_read_input_tokens": 3700,
                "output_tokens": 400,
                "cache_creation": {
                    "ephemeral_5m_input_tokens": 300,
                    "ephemeral_1h_input_tokens": 0,
                },
            },
            Usage(
                input_tokens=5000,
                output_tokens=400,
                cache_read_tokens=3700,
                cache_write_tokens=300,
            ),
            id="Anthropic counts what was cached beside the input",
        ),
        pytest.param(
            "openai",
            {
                "prompt_tokens": 5000,
                "completion_tokens": 400,
                "total_tokens": 5400,
                "prompt_tokens_details": {"cached_tokens": 3700, "cache_write_tokens": 300},
            },
            Usage(
                input_tokens=5000,
                output_tokens=400,
                cache_read_tokens=3700,
                cache_write_tokens=300,
            ),
            id="OpenAI counts it inside the input",
        ),
        pytest.param(
            "openai",
            {
                "prompt_tokens": 5000,
                "completion_tokens": 400,
                "total_tokens": 5400,
                "prompt_cache_hit_tokens": 3700,
                "prompt_cache_miss_tokens": 1300,
            },
            Usage(input_tokens=5000, output_tokens=400, cache_read_tokens=3700),
            id="DeepSeek has names of its own",
        ),
        pytest.param(
            "openai",
            {
                "prompt_tokens": 5000,
                "completion_tokens": 400,
                "total_tokens": 5400,
                "prompt_tokens_details": {"cached_tokens": 3700},
            },
            Usage(input_tokens=5000, output_tokens=400, cache_read_tokens=3700),
            id="Gemini behind OpenAI's format reads only",
        ),
    ],
)
async def test_the_usage_of_each_providers_own_format_is_read(
    provider: str,
    usage: dict[str, Any],
    counted: Usage,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    async with open_model_server() as server:
        address = Address(key=KEY, url=server.url)
        asked = AnthropicMessages(address) if provider == "anthropic" else OpenAIChat(address)
        reply = anthropic_reply if provider == "anthropic" else openai_reply
        server.replies = [reply(usage)]

        with anyio.fail_after(60):
            answer = await asked.answer(CALL, lambda _text: None)
        await asked.close()

    assert answer.usage == counted


async def usage(client: Client, **asked: Any) -> Any:
    return await client.call("ai:usage", asked)


async def test_runs_and_their_judges_are_added_up(novel: Novel) -> None:
    verdict = json.dumps({"checks": []})
    script = {
        "steps": [STEP, STEP],
        "verdicts": [verdict, verdict],
        "verdictUsage": {"inputTokens": 700, "outputTokens": 50},
    }
    novel.put("第一章.md", "林远推开门。")
    await novel.constrain("不要让林远开口")
    await novel.client.call("e2e:ai:script", script)
    place = {"documentId": "第一章.md", "cursorPosition": 3, "judge": "model"}

    for _ in range(2):
        await novel.run(**place)

    by = {each["key"]: each for each in (await usage(novel.client, groupBy="purpose"))["groups"]}
    whole = await usage(novel.client, groupBy="skill", projectId=novel.project_id)
    assert {key: each["calls"] for key, each in by.items()} == {"judge": 2, "write": 2}
    assert by["judge"]["inputTokens"] == 1400
    assert whole["total"]["inputTokens"] == 11_400
    assert whole["total"]["outputTokens"] == 900
    assert [each["calls"] for each in whole["groups"]] == [4]


async def test_summaries_of_conversations_and_chapters_are_counted(novel: Novel) -> None:
    novel.put("第一章.md", "林远推开门。" * 40)
    form = "\n".join(["[History Summary]"])
    await novel.client.call("e2e:ai:script", {"steps": [STEP, {**STEP, "text": form}] * 4})

    await novel.client.call("story:summarise", {"projectId": novel.project_id})

    (summarised,) = (await usage(novel.client, groupBy="purpose"))["groups"]
    assert (summarised["key"], summarised["calls"]) == ("summarise", 1)
    assert summarised["inputTokens"] == 5000


async def test_a_model_that_summarises_conversations_is_counted(tmp_path: Path) -> None:
    settings = Settings(e2e=True, history_summariser="model", warm_up=False)
    (tmp_path / "data").mkdir()
    report: Any = None
    async with anyio.create_task_group() as tasks:
        async with build(tmp_path / "data", settings, tasks) as server, in_memory(server) as client:
            novel = await make_novel(client, tmp_path / "小说")
            chat = Chat(client, novel.project_id)
            for number in range(30):
                await chat.call("context:history:append", messages=realistic_round(number))
            await client.call("e2e:ai:script", {"steps": [STEP] * 4})

            await chat.call("context:build", input="go on", systemPrompt="You help.")
            report = await usage(client, groupBy="purpose")
        tasks.cancel_scope.cancel()

    assert [(g["key"], g["inputTokens"] > 0) for g in report["groups"]] == [("summarise", True)]


async def test_what_a_change_of_a_setting_cost_is_named(novel: Novel) -> None:
    style = "".join(f"第{n}条：写景不超过三句，写人先写手。\n" for n in range(120))
    step = {"text": "好。", "usage": {"inputTokens": 5000, "outputTokens": 9}}
    novel.put("第一章.md", "林远推开门。")
    novel.put(".creonow/rules/style.md", style)
    await novel.client.call("e2e:ai:script", {"steps": [step, step, step]})
    place = {"documentId": "第一章.md", "cursorPosition": 3, "judge": "off"}

    await novel.run(**place)
    novel.put(".creonow/rules/style.md", style + "少用感叹号。\n")
    await novel.run(**place)
    await novel.run(**place)

    report = await usage(novel.client)
    (lost,) = report["lostTo"]
    assert lost["sourceRef"].endswith("rules/style.md")
    assert (lost["calls"], lost["tokens"] > 1024) == (1, True)
    assert report["total"]["lostTokens"] == lost["tokens"]
    assert (report["total"]["unpricedCalls"], report["total"]["cost"]) == (3, 0)


async def test_an_echo_is_no_call_to_a_model(novel: Novel) -> None:
    novel.put("第一章.md", "林远推开门。")

    await novel.run(documentId="第一章.md", cursorPosition=3)

    assert (await usage(novel.client))["groups"] == []


@pytest.mark.parametrize(
    "asked",
    [
        {"groupBy": "colour"},
        {"from": -1},
        {"to": "yesterday"},
        {"utcOffsetMinutes": 10_000},
        {"from": 2**63},
    ],
)
async def test_a_bad_question_names_the_field(novel: Novel, asked: dict[str, Any]) -> None:
    error = await novel.client.failure("ai:usage", asked)

    assert error.code == "INVALID_ARGUMENT"
    assert error.details["field"] == next(iter(asked))


async def test_an_unknown_project_is_not_found(novel: Novel) -> None:
    error = await novel.client.failure("ai:usage", {"projectId": "prj_none"})

    assert error.code == "NOT_FOUND"
