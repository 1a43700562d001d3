"""Does a real provider get to reuse what did not change? Shown in the bodies it is sent."""

from collections.abc import AsyncGenerator
from hashlib import sha256
from pathlib import Path
from typing import Any

import anyio
import pytest

from creonowd.daemon.build import build
from creonowd.settings import Settings
from testing.clients import in_memory
from testing.novels import Novel, make_novel
from testing.providers import KEY, PROXIES, SCRIPTED_PROVIDERS, ModelServer, open_model_server

STYLE = "".join(f"第{n}条：写景不超过三句，写人先写手，对话里不用成语。\n" for n in range(80))


@pytest.fixture
async def model_server(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[ModelServer]:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, KEY)
    async with open_model_server() as opened:
        yield opened


@pytest.fixture(params=["openai", "anthropic"])
def provider(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
async def novel(provider: Any, model_server: ModelServer, tmp_path: Path) -> AsyncGenerator[Novel]:
    """An author whose daemon asks the model server."""
    settings = Settings(
        e2e=True, ai_provider=provider, ai_model="claude-sonnet-x", ai_base_url=model_server.url
    )
    SCRIPTED_PROVIDERS[provider](model_server, 60_000).sends("他", "没有动。")
    user_data = tmp_path / "user data"
    user_data.mkdir()
    async with anyio.create_task_group() as tasks, build(user_data, settings, tasks) as server:
        async with in_memory(server) as client:
            yield await make_novel(client, tmp_path / "小说")
        tasks.cancel_scope.cancel()


def prefix_in(body: dict[str, Any]) -> str:
    """Find the stable prefix in a request body of either form."""
    return joined(body["system"] if "system" in body else body["messages"][0]["content"])


def rest_in(body: dict[str, Any]) -> str:
    return joined(body["messages"][-1]["content"])


def joined(content: Any) -> str:
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


def marks_in(body: dict[str, Any]) -> list[str]:
    """Return the text up to each mark."""
    content = body["messages"][-1]["content"]
    blocks: list[dict[str, Any]] = [*body["system"]]
    blocks += [] if isinstance(content, str) else content
    ends = [n for n, block in enumerate(blocks, start=1) if "cache_control" in block]
    return [joined(blocks[:end]) for end in ends]


def asks_to_cache(body: dict[str, Any]) -> bool:
    if "system" in body:
        return body["system"][-1].get("cache_control") == {"type": "ephemeral"}
    return body["prompt_cache_key"] == sha256(prefix_in(body).encode()).hexdigest()


@pytest.mark.requirement("CE-029", "CE-035")
async def test_continuing_three_times_hits_the_cache_from_the_second_call(
    novel: Novel, model_server: ModelServer
) -> None:
    """连续续写 3 次."""
    novel.put(".creonow/rules/style.md", STYLE)

    runs = [await novel.run(cursorPosition=position) for position in (12, 20, 30)]

    bodies = [request.body for request in model_server.received]
    assert len({prefix_in(body) for body in bodies}) == 1
    assert [run["diagnostics"]["stablePrefixUnchanged"] for run in runs] == [False, True, True]
    assert all(asks_to_cache(body) for body in bodies)
    assert all(run["diagnostics"]["prefixMarked"] for run in runs)
    assert runs[2]["usage"]["cacheReadTokens"] == 100


@pytest.mark.requirement("CN-033")
async def test_the_bytes_sent_are_the_bytes_hashed(novel: Novel, model_server: ModelServer) -> None:
    run = await novel.run()

    (request,) = model_server.received
    diagnostics = run["diagnostics"]
    sent = prefix_in(request.body), rest_in(request.body)
    assert sha256(sent[0].encode()).hexdigest() == diagnostics["stablePrefixHash"]
    assert sha256("".join(sent).encode()).hexdigest() == diagnostics["promptHash"]


@pytest.mark.parametrize("provider", ["anthropic"])
async def test_blocks_are_marked_where_parts_of_different_life_meet(
    novel: Novel, model_server: ModelServer
) -> None:
    """The window is marked from the second call on, up to a paragraph that typing leaves alone."""
    novel.put(".creonow/rules/style.md", STYLE)
    lines = [f"第{n}段，林远推开门，风从门外灌进来，灯灭了，谁也没有说话。\n" for n in range(60)]
    novel.put("长.md", "".join(lines))
    ends = [len("".join(lines[:n])) for n in (40, 41, 42)]

    runs = [await novel.run(documentId="长.md", cursorPosition=end) for end in ends]

    bodies = [request.body for request in model_server.received]
    marks = [marks_in(body) for body in bodies]
    assert all(len(each) <= 4 for each in marks)
    assert ["第30段" in each[-1] for each in marks] == [False, True, True]
    assert prefix_in(bodies[0]) in marks[0]
    assert (prefix_in(bodies[2]) + rest_in(bodies[2])).startswith(marks[1][-1])
    for run, body in zip(runs, bodies, strict=True):
        sent = prefix_in(body) + rest_in(body)
        assert sha256(sent.encode()).hexdigest() == run["diagnostics"]["promptHash"]


async def test_every_break_point_has_the_bytes_the_hash_and_the_tokens_up_to_it(
    novel: Novel,
) -> None:
    lines = [f"第{n}段，林远推开门🖋️，风灌进来。\r\n\r\n　　灯灭了。\n" for n in range(200)]
    novel.put("前.md", "渡口的夜色很深。\n" * 300)
    novel.put("后.md", "".join(lines))

    for cursor in (0, 7, 2_000, 10**6):
        made = await novel.assemble(documentId="后.md", cursorPosition=cursor, skillId="bench")
        data = made["prompt"].encode()
        points = made["cacheBreakPoints"]
        sizes = [point["bytes"] for point in points]
        assert sizes == sorted(set(sizes))
        assert [p["after"] for p in points[:2]] == ["rules", "systemPrompt"]
        for point in points:
            text = data[: point["bytes"]].decode()
            counted = await novel.client.call("tokens:count", {"text": text, "model": "gpt-4o"})
            assert sha256(text.encode()).hexdigest() == point["hash"]
            assert point["reachesMinimum"] == (point["tokens"] >= point["minimumTokens"])
            if made["tokenizerId"] == "o200k_base":
                assert counted["tokens"] == point["tokens"]


@pytest.mark.requirement("CE-036")
async def test_a_new_preference_is_a_new_prefix_that_says_why(
    novel: Novel, model_server: ModelServer
) -> None:
    """Settings 变更导致缓存失效."""
    novel.put(".creonow/rules/style.md", STYLE)
    await novel.run()
    await novel.run()

    novel.put(
        ".creonow/settings/memory.json",
        '{"version":1,"rules":[{"text":"动作场景偏好短句","confidence":0.9}]}',
    )
    run = await novel.run()

    before, after = model_server.received[1].body, model_server.received[2].body
    assert prefix_in(before) != prefix_in(after)
    assert run["diagnostics"]["stablePrefixUnchanged"] is False
    assert run["diagnostics"]["prefixChange"]["sourceRef"].startswith(".creonow/settings/memory")


@pytest.mark.parametrize("provider", ["anthropic"])
async def test_a_prefix_too_short_to_be_cached_is_not_marked(
    novel: Novel, model_server: ModelServer
) -> None:
    run = await novel.run()

    assert not asks_to_cache(model_server.received[0].body)
    assert run["diagnostics"]["prefixMarked"] is False
    assert not any(p["reachesMinimum"] for p in run["diagnostics"]["cacheBreakPoints"])


@pytest.mark.requirement("CE-033")
@pytest.mark.parametrize("provider", ["anthropic"])
async def test_a_prefix_that_changes_every_time_is_not_marked(
    novel: Novel, model_server: ModelServer
) -> None:
    for number in range(3):
        novel.put(".creonow/rules/style.md", f"{STYLE}第{number}版\n")
        await novel.run()

    assert [asks_to_cache(request.body) for request in model_server.received] == [
        True,
        False,
        False,
    ]


@pytest.mark.requirement("SK-036")
async def test_skills_that_ask_for_the_same_sources_share_a_prefix(
    novel: Novel, model_server: ModelServer
) -> None:
    novel.put(".creonow/rules/style.md", STYLE)
    selection = {"from": 0, "to": 12}

    await novel.run(skillId="builtin:polish", selection=selection)
    await novel.run(skillId="builtin:condense", selection=selection)

    polish, condense = (request.body for request in model_server.received)
    assert prefix_in(polish) == prefix_in(condense)
    assert rest_in(polish) != rest_in(condense)


async def test_no_key_is_shown_in_an_error(
    novel: Novel, model_server: ModelServer, provider: str
) -> None:
    SCRIPTED_PROVIDERS[provider](model_server, 60_000).refuses_the_key()

    error = await novel.client.failure("ai:skill:run", novel.payload())

    assert error.code == "AI_AUTH_FAILED"
    assert KEY not in str(error) + repr(error.data)


async def test_cancelling_a_run_hangs_up_on_the_provider(
    novel: Novel, model_server: ModelServer, provider: str
) -> None:
    SCRIPTED_PROVIDERS[provider](model_server, 60_000).falls_silent_after("他")
    await novel.start("mine", stream=True)
    await novel.client.event("ai:skill:stream")

    await novel.client.call("ai:skill:cancel", {"runId": "mine"})

    assert (await novel.client.reply("mine"))["error"]["data"]["code"] == "CANCELED"
    with anyio.fail_after(60):
        await model_server.hung_up.wait()
