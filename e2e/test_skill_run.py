"""Running skills against a real process: streamed, judged, stopped, recorded, and on a provider.

The providers are local HTTP servers that speak the real ones' formats; nothing leaves the machine.
What needs no daemon of its own shares one, with a connection and a project for each test.
"""

from collections.abc import AsyncGenerator, Generator
from hashlib import sha256
from pathlib import Path
from typing import Any

import anyio
import pytest

from creonowd.rpc.messages import Framing
from creonowd.testing.harness import Harness
from testing.clients import Client, endpoints_of, over_socket, over_stdio
from testing.novels import Novel, make_novel
from testing.providers import KEY, SCRIPTED_PROVIDERS, ModelServer, open_model_server

SECRET = "sk-THIS_SHOULD_BE_REDACTED"
STREAM = "ai:skill:stream"
STYLE = "".join(f"第{n}条：写景不超过三句，写人先写手，对话里不用成语。\n" for n in range(80))
WORLD = "".join(f"第{n}条设定：城里的钟每天慢{n}分钟，没有人说得清为什么。\n\n" for n in range(900))


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Generator[Harness]:
    with Harness(tmp_path_factory.mktemp("用户 数据")) as started:
        yield started


@pytest.fixture
async def client(daemon: Harness) -> AsyncGenerator[Client]:
    ways = await endpoints_of(daemon.user_data)
    async with over_socket(Path(ways["unix"].address)) as connected:
        yield connected


@pytest.fixture
async def novel(client: Client, tmp_path: Path) -> Novel:
    made = await make_novel(client, tmp_path / "小说 一")
    await client.call("context:creonow:ensure", {"projectId": made.project_id})
    return made


def heard(client: Client) -> list[dict[str, Any]]:
    return [event["params"] for event in client.events if event["method"] == STREAM]


@pytest.mark.requirement("SK-027", "CN-040")
async def test_a_built_in_skill_runs_on_the_fake_and_reports_all_that_it_did(novel: Novel) -> None:
    """§7, step 5: a secret in the style guide, a settings file that is far too large."""
    novel.put(".creonow/rules/style.md", f"短句。\napiKey={SECRET}\n")
    novel.put(".creonow/settings/世界观.md", WORLD)

    run = await novel.run(stream=True, input="写他上楼")

    diagnostics = run["diagnostics"]
    assert sha256(run["output"].encode()).hexdigest() == diagnostics["promptHash"]
    assert "".join(event["delta"] for event in heard(novel.client)) == run["output"]
    assert [event["done"] for event in heard(novel.client)].index(True) == len(
        heard(novel.client)
    ) - 1
    assert "***REDACTED***" in run["output"]
    assert SECRET not in repr(run)
    assert any(one["patternId"] == "openai_api_key_sk" for one in diagnostics["redactionEvidence"])
    actions = {one["sourceRef"]: one["action"] for one in diagnostics["trimEvidence"]}
    assert actions[".creonow/settings/世界观.md"] == "trimmed"
    assert any(ref.startswith("ref:.creonow/settings/世界观.md#L1-L") for ref in run["refs"])
    assert diagnostics["tokenCount"] <= diagnostics["budget"]["maxInputTokens"]


@pytest.mark.requirement("CE-053")
async def test_a_skill_calls_the_model_with_the_prompt_that_was_assembled(novel: Novel) -> None:
    """AI 技能调用时组装上下文."""
    novel.put(".creonow/rules/style.md", "短句。\n")
    novel.put(".creonow/settings/世界观.md", "城里的钟每天慢一分钟。\n")

    assembled = await novel.assemble()
    run = await novel.run()

    assert run["output"] == assembled["prompt"]
    assert run["diagnostics"]["layers"] == assembled["layers"]
    assert all(assembled["layers"][name]["tokens"] > 0 for name in ("rules", "settings"))


async def test_the_next_process_knows_what_the_last_one_wrote(tmp_path: Path) -> None:
    user_data = tmp_path / "用户 数据"
    async with over_stdio(user_data) as client:
        novel = await make_novel(client, tmp_path / "小说 一")
        await novel.script({"text": "他终于睡着了。"})
        await novel.run(input="写困意", runId="sleepy")
        await client.call("ai:run:accept", novel.params | {"runId": "sleepy"})
        assert client.process is not None
        client.process.kill()
        await client.process.wait()

    async with over_stdio(user_data) as again:
        run = await Novel(again, novel.root, novel.project_id).run()

    assert "指令：写困意\n已采纳（7 字）：他终于睡着了。" in run["output"]


@pytest.mark.parametrize("way", ["ai:skill:cancel", "$/cancelRequest"])
async def test_a_run_is_stopped_in_the_middle_and_the_daemon_lives_on(
    novel: Novel, way: str
) -> None:
    await novel.script(
        {"text": "夜深了。", "piece": 2, "after": 1, "stall": True}, {"text": "好。"}
    )
    await novel.start("mine", stream=True)
    first = await novel.client.event(STREAM)

    params = {"runId": "mine"} if way == "ai:skill:cancel" else {"id": "mine"}
    message = {"jsonrpc": "2.0", "method": way, "params": params}
    await novel.client.post(message | ({} if way.startswith("$") else {"id": "stop"}))
    reply = await novel.client.reply("mine")
    last = await novel.client.event(STREAM, lambda event: event["done"])

    assert (first["delta"], last["runId"]) == ("夜深", "mine")
    assert (reply["error"]["code"], reply["error"]["data"]["code"]) == (-32800, "CANCELED")
    assert (await novel.run())["output"] == "好。"


async def test_a_run_that_takes_too_long_is_no_cancelled_one(novel: Novel) -> None:
    await novel.script({"stall": True})

    error = await novel.client.failure(
        "ai:skill:run", novel.payload() | {"_meta": {"timeoutMs": 80}}
    )

    assert error.code == "TIMEOUT"


@pytest.mark.requirement("CE-046")
async def test_a_broken_constraint_is_annotated_or_written_again(novel: Novel) -> None:
    """AI 生成违反约束时的处理."""
    await novel.constrain("严格第一人称叙述", "避免使用感叹号")
    found = (
        '{"violations":[{"constraint":1,"quote":"他跑了","confidence":0.8,"reason":"第三人称"}]}'
    )
    kept = '{"violations":[]}'
    await novel.script(
        {"text": "他跑了！"},
        {"text": "他跑了！"},
        {"text": "我跑了。"},
        verdicts=(found, found, kept),
    )

    annotated = await novel.run()
    again = await novel.run(onViolation="regenerate", stream=True)

    places = [(v["by"], v["from"], v["to"]) for v in annotated["verdict"]["violations"]]
    assert places == [("rules", 3, 4), ("model", 0, 3)]
    assert (again["output"], again["attempts"]) == ("我跑了。", 2)
    assert again["verdict"]["status"] == "passed"
    assert again["earlier"]["verdict"]["status"] == "violated"
    second = [event["delta"] for event in heard(novel.client) if event["attempt"] == 2]
    assert "".join(second) == "我跑了。"


@pytest.mark.requirement("CE-035")
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_of_three_continuations_the_second_and_third_hit(
    tmp_path: Path, provider: str
) -> None:
    """连续续写 3 次, shown in the bodies; and the key is nowhere that anyone could read it."""
    user_data = tmp_path / "用户 数据"
    async with (
        open_model_server() as model_server,
        over_stdio(user_data, Framing.LINES, **asking(provider, model_server)) as client,
    ):
        novel = await make_novel(client, tmp_path / "小说 一")
        novel.put(".creonow/rules/style.md", STYLE)
        scripted = SCRIPTED_PROVIDERS[provider](model_server, 60_000)
        scripted.sends("他", "没有动。")
        runs = [await novel.run(cursorPosition=place, stream=True) for place in (12, 20, 30)]
        bodies = [request.body for request in model_server.received]
        scripted.refuses_the_key()
        refused = await client.failure("ai:skill:run", novel.payload())
        scripted.asks_to_slow_down(2.5)
        slow = await client.failure("ai:skill:run", novel.payload())
        config = await client.call("ai:config:get")

    assert [run["output"] for run in runs] == ["他没有动。"] * 3
    assert [run["diagnostics"]["stablePrefixUnchanged"] for run in runs] == [False, True, True]
    assert {cached_prefix(body) for body in bodies} == {runs[0]["diagnostics"]["stablePrefixHash"]}
    assert all(marks(body) <= 4 for body in bodies)
    assert [run["usage"]["cacheReadTokens"] for run in runs] == [100, 100, 100]
    assert (refused.code, slow.code) == ("AI_AUTH_FAILED", "AI_RATE_LIMITED")
    assert slow.details["retryAfterMs"] == 2500
    assert config["keyOrigin"] == "environment"
    assert KEY not in repr((runs, str(refused), refused.data, slow.data, config))
    assert not [path for path in written(user_data) if KEY.encode() in path.read_bytes()]


async def test_stopping_a_run_hangs_up_on_the_provider(tmp_path: Path) -> None:
    user_data = tmp_path / "用户 数据"
    async with (
        open_model_server() as model_server,
        over_stdio(user_data, Framing.LINES, **asking("openai", model_server)) as client,
    ):
        novel = await make_novel(client, tmp_path / "小说 一")
        SCRIPTED_PROVIDERS["openai"](model_server, 60_000).falls_silent_after("他")
        await novel.start("mine", stream=True)
        await client.event(STREAM)

        await client.post({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "mine"}})
        reply = await client.reply("mine")
        with anyio.fail_after(60):
            await model_server.hung_up.wait()

    assert reply["error"]["data"]["code"] == "CANCELED"


def asking(provider: str, model_server: ModelServer) -> dict[str, str]:
    """Say in the environment whom to ask, past any proxy of this machine."""
    return {
        "CREONOW_AI_PROVIDER": provider,
        "CREONOW_AI_MODEL": "claude-sonnet-x",
        "CREONOW_AI_BASE_URL": model_server.url,
        f"{provider.upper()}_API_KEY": KEY,
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }


def cached_prefix(body: dict[str, Any]) -> str:
    """Give the hash of the prefix that a body asks to have cached; empty if it asks for none."""
    if "system" not in body:
        return body["prompt_cache_key"]
    prefix: list[dict[str, Any]] = body["system"]
    text = "".join(block["text"] for block in prefix)
    return sha256(text.encode()).hexdigest() if "cache_control" in prefix[-1] else ""


def marks(body: dict[str, Any]) -> int:
    """Count the blocks that a body marks; Anthropic takes four at the most."""
    content = body["messages"][-1]["content"]
    blocks: list[dict[str, Any]] = [*body.get("system", [])]
    blocks += [] if isinstance(content, str) else content
    return sum("cache_control" in block for block in blocks)


def written(user_data: Path) -> list[Path]:
    return [path for path in user_data.rglob("*") if path.is_file()]
