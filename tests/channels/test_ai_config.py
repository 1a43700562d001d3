"""Back ends at run time: chosen, changed and probed, and whether the model saw what it was sent."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest

from creonowd.rpc.channel import Role
from creonowd.rpc.server import Server
from creonowd.settings import Settings, load
from creonowd.tokens import Tokenizers
from testing.clients import PATIENCE, Client, daemon, in_memory
from testing.local_servers import LlamaCppServer, LmStudioServer, OllamaServer
from testing.logs import LogLines
from testing.novels import Novel, make_novel
from testing.providers import (
    KEY,
    PROXIES,
    ModelServer,
    ScriptedAnthropic,
    ScriptedOpenAI,
    open_model_server,
    open_server,
    openai_reply,
)

PROSE = "".join(
    f"第{n}天，他沿着第{n % 7}条街走，数过{n * 3}盏灯，才找到那扇门。\n\n" for n in range(600)
)
STYLE = "".join(f"第{n}条：写景不超过{n}句。\n" for n in range(40))
SKILL = """---
name: 慢写
model: {model}
temperature: 0.2
topP: 0.9
effort: low
maxOutputTokens: 700
context_rules: {{surrounding: 1000, style_guide: true}}
---
续写。
"""


@pytest.fixture(autouse=True)
def a_clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*PROXIES, "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "DEEPSEEK_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def user_data(tmp_path: Path) -> Path:
    return tmp_path / "用户 数据"


@pytest.fixture
async def client(user_data: Path) -> AsyncGenerator[Client]:
    async with daemon(user_data, Settings(e2e=True)) as connected:
        yield connected


@pytest.fixture
async def novel(client: Client, tmp_path: Path) -> Novel:
    files = {"一.md": PROSE, ".creonow/rules/style.md": STYLE}
    return await make_novel(
        client, tmp_path / "小说", files, skillId=None, cursorPosition=len(PROSE)
    )


@pytest.fixture
async def ollama() -> AsyncGenerator[OllamaServer]:
    tokenizer = await Tokenizers().get("qwen3")
    async with open_server(OllamaServer(tokenizer.count)) as server:
        yield server


@pytest.fixture
async def model_server() -> AsyncGenerator[ModelServer]:
    async with open_model_server() as server:
        yield server


async def use(client: Client, name: str = "mine", **backend: Any) -> Any:
    return await client.call("ai:config:set", {"backends": {name: backend}, "use": name})


def codes(result: dict[str, Any]) -> list[str]:
    """Return what a result warns of, but for the index, which may still be built."""
    found = [notice["code"] for notice in result["notices"]]
    return [code for code in found if code != "RETRIEVAL_INDEXING"]


async def test_a_prompt_fits_into_the_window_that_the_server_really_has(
    novel: Novel, ollama: OllamaServer
) -> None:
    await use(novel.client, model="qwen3:8b", baseUrl=f"{ollama.url}/v1", maxOutputTokens=500)

    run = await novel.run()

    assert "CONTEXT_WINDOW_REDUCED" in codes(run)
    assert "PROMPT_TRUNCATED_BY_SERVER" not in codes(run)
    assert ollama.seen.startswith("# CreoNow")
    assert run["usage"]["inputTokens"] == run["diagnostics"]["tokenCount"] <= 4096 - 500
    assert run["output"] == ollama.text


async def test_ollama_itself_is_asked_for_the_window_that_the_prompt_needs(
    novel: Novel, ollama: OllamaServer
) -> None:
    await use(novel.client, provider="ollama", model="qwen3:8b", baseUrl=ollama.url)

    run = await novel.run()

    assert run["provider"] == "ollama"
    assert codes(run) == []
    assert ollama.seen.startswith("# CreoNow")
    assert run["diagnostics"]["tokenCount"] > 4096
    assert ollama.loaded is not None
    assert ollama.loaded >= run["diagnostics"]["tokenCount"] + 8000


async def test_what_a_server_cut_is_reported_with_both_figures_and_what_to_do(
    novel: Novel, model_server: ModelServer
) -> None:
    await use(novel.client, model="qwen3-8b", baseUrl=f"{model_server.url}/v1")
    model_server.replies = [openai_reply("夜。", "stop", 2100, 3)]

    run = await novel.run()

    (notice,) = [n for n in run["notices"] if n["code"] == "PROMPT_TRUNCATED_BY_SERVER"]
    sent = run["diagnostics"]["tokenCount"]
    assert notice["details"] == {"readTokens": 2100, "sentTokens": sent}
    assert f"2100 of {sent}" in notice["message"]
    assert "contextWindowTokens" in notice["message"]
    assert run["usage"]["difference"] == 2100 - sent


@pytest.mark.parametrize(
    ("model", "share", "truncated"),
    [
        ("qwen3-8b", 0.95, False),
        ("qwen3-8b", 0.85, True),
        ("unheard-of", 0.65, False),
        ("unheard-of", 0.55, True),
        ("claude-sonnet-4-5", 0.55, False),
    ],
)
async def test_a_count_that_may_be_off_is_not_taken_for_a_cut(
    novel: Novel, model_server: ModelServer, model: str, share: float, *, truncated: bool
) -> None:
    await use(novel.client, model=model, baseUrl=f"{model_server.url}/v1")
    sent = (await novel.assemble())["tokenCount"]
    model_server.replies = [openai_reply("夜。", "stop", int(share * sent), 3)]

    run = await novel.run()

    assert ("PROMPT_TRUNCATED_BY_SERVER" in codes(run)) is truncated
    learned = (await novel.client.call("tokens:corrections:list"))["models"]
    assert (learned == []) or not truncated, "what a server cut teaches nothing about counting"


async def test_thinking_that_takes_the_whole_answer_is_reported(
    novel: Novel, ollama: OllamaServer
) -> None:
    await use(novel.client, provider="ollama", model="qwen3:8b", baseUrl=ollama.url)
    ollama.thinks_for = 10_000

    run = await novel.run()
    longer = await novel.run(maxOutputTokens=12_000)

    (notice,) = [n for n in run["notices"] if n["code"] == "OUTPUT_EMPTY_AFTER_THINKING"]
    assert (run["output"], run["stopReason"]) == ("", "length")
    assert notice["details"] == {"maxOutputTokens": 8000}
    assert (longer["output"], codes(longer)) == (ollama.text, [])


@pytest.mark.parametrize("make", [ScriptedOpenAI, ScriptedAnthropic])
async def test_an_empty_answer_is_reported_of_every_provider(
    novel: Novel, model_server: ModelServer, user_data: Path, make: Any
) -> None:
    scripted = make(model_server, 60_000)
    scripted.sends(" \n", stop="length")
    write_key(user_data, "mine")
    await use(novel.client, provider=scripted.provider.name, model="m", baseUrl=model_server.url)
    await scripted.provider.close()

    assert "OUTPUT_EMPTY_AFTER_THINKING" in codes(await novel.run())


async def test_a_model_that_thinks_gets_a_larger_reserve_and_no_smaller_prompt(
    novel: Novel,
) -> None:
    await use(novel.client, "slow", provider="fake", model="gpt-5")
    slow = await novel.client.call("ai:config:get")
    await use(novel.client, "quick", provider="fake", model="gpt-4o")
    quick = await novel.client.call("ai:config:get")

    assert (slow["outputReserveTokens"], slow["totalBudgetTokens"]) == (8000, 6000)
    assert (quick["outputReserveTokens"], quick["totalBudgetTokens"]) == (1500, 6000)


def write_key(user_data: Path, name: str, key: str = KEY) -> None:
    path = user_data / "keys" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(key, encoding="utf-8")
    path.chmod(0o600)


async def test_a_back_end_answers_at_once_and_after_a_restart(
    client: Client, novel: Novel, model_server: ModelServer, user_data: Path
) -> None:
    before = await novel.run()
    write_key(user_data, "mine")
    ScriptedOpenAI(model_server, 60_000).sends("夜。")

    config = await use(client, model="qwen3-8b", baseUrl=f"{model_server.url}/v1")
    after = await novel.run()

    assert (before["backend"], before["provider"]) == ("default", "fake")
    assert (config["backend"], config["ready"], config["keyOrigin"]) == ("mine", True, "file")
    assert (after["backend"], after["output"]) == ("mine", "夜。")
    assert model_server.received[-1].headers["authorization"] == f"Bearer {KEY}"
    stored = load(user_data, environ={})
    assert (stored.ai_backend, stored.backends["mine"].model) == ("mine", "qwen3-8b")


async def test_a_key_is_nowhere_but_in_its_file_and_in_what_is_sent(
    client: Client, novel: Novel, model_server: ModelServer, user_data: Path, logged: LogLines
) -> None:
    key = "zz9-plural-z-alpha-the-key-of-no-known-form"
    write_key(user_data, "mine", key)
    ScriptedOpenAI(model_server, 60_000).sends("夜。")
    replies = [await use(client, model="m", baseUrl=f"{model_server.url}/v1")]
    novel.put("一.md", f"他写下 {key} 。\n")
    replies.append(await client.call("ai:config:get"))
    run = await novel.run(cursorPosition=3)
    ScriptedOpenAI(model_server, 60_000).breaks_down()
    failed = await client.failure("ai:skill:run", novel.payload(cursorPosition=3))

    sent = model_server.received[-1]
    assert key not in json.dumps(sent.body)
    assert key not in repr((replies, run["diagnostics"], run["refs"], failed.data, list(logged)))
    files = [path for path in user_data.rglob("*") if path.is_file()]
    places = {path.parent.name for path in files if key.encode() in path.read_bytes()}
    assert places - {"retrieval"} == {"keys"}, "the index has the author's own words"


@pytest.mark.parametrize(
    ("backends", "field"),
    [
        ({"m": {"apiKey": KEY}}, "backends"),
        ({"m": {"keyVariable": KEY}}, "keyVariable"),
        ({"m": {"baseUrl": f"https://u:{KEY}@h/v1"}}, "backends.m"),
        ({"m": {"baseUrl": f"https://h/v1?key={KEY}"}}, "backends.m"),
        ({"m": {"baseUrl": "ftp://h"}}, "backends.m"),
        ({"m": {"baseUrl": "http://[::1"}}, "backends.m"),
        ({"m": {"provider": "nobody"}}, "provider"),
        ({"m": {"temperature": 7}}, "temperature"),
        ({"m": {"contextWindowTokens": 0}}, "contextWindowTokens"),
        ({"default": {"model": "m"}}, "backends.default"),
        ({"con": {"model": "m"}}, "backends.con"),
        ({"../x": {"model": "m"}}, "backends"),
        ({"": {"model": "m"}}, "backends"),
        ({"M": {"model": "m"}}, "backends"),
        ([], "backends"),
    ],
)
async def test_what_is_no_back_end_is_refused_and_changes_nothing(
    client: Client, user_data: Path, backends: Any, field: str
) -> None:
    failed = await client.failure("ai:config:set", {"backends": backends})

    assert failed.code == "INVALID_ARGUMENT"
    assert field in failed.details["field"]
    assert KEY not in repr(failed.data) + str(failed)
    assert not (user_data / "settings.json").exists()


async def test_only_what_there_is_can_be_used_or_removed(client: Client) -> None:
    await use(client, provider="fake", model="m")

    unknown = await client.failure("ai:config:set", {"use": "other"})
    absent = await client.failure("ai:config:set", {"backends": {"other": None}})
    own = await client.call("ai:config:set", {"use": "default"})
    await client.call("ai:config:set", {"use": "mine"})
    removed = await client.call("ai:config:set", {"backends": {"mine": None}})

    assert (unknown.code, absent.code) == ("NOT_FOUND", "NOT_FOUND")
    assert "mine" in str(unknown)
    assert own["backend"] == "default"
    assert (removed["backend"], len(removed["backends"])) == ("default", 1)


async def test_other_settings_stay_and_a_newer_file_is_left_alone(
    client: Client, user_data: Path
) -> None:
    path = user_data / "settings.json"
    path.write_text('{"historyRounds": 3, "version": 1}', encoding="utf-8")

    await use(client, provider="fake", model="m")
    kept = json.loads(path.read_text(encoding="utf-8"))
    path.write_text('{"version": 2}', encoding="utf-8")
    failed = await client.failure("ai:config:set", {"use": "default"})

    assert list(kept) == ["historyRounds", "version", "backends", "aiBackend"]
    assert failed.code == "VERSION_TOO_NEW"
    assert path.read_text(encoding="utf-8") == '{"version": 2}'
    assert (await client.call("ai:config:get"))["backend"] == "mine"


async def test_the_environment_of_the_daemon_wins_and_says_so(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    await use(client, provider="fake", model="m")
    monkeypatch.setenv("CREONOW_AI_PROVIDER", "openai")

    failed = await client.failure("ai:config:set", {"use": "default"})
    added = await client.call("ai:config:set", {"backends": {"more": {"model": "n"}}})

    assert failed.code == "CONFLICT"
    assert "CREONOW_AI_PROVIDER" in str(failed)
    assert [one["name"] for one in added["backends"]] == ["default", "mine", "more"]


async def test_pages_choose_among_back_ends_and_configure_none(
    server: Server, tmp_path: Path
) -> None:
    async with in_memory(server) as owner, in_memory(server, role=Role.RENDERER) as page:
        await owner.call("ai:config:set", {"backends": {"m": {"provider": "fake", "model": "x"}}})
        novel = await make_novel(owner, tmp_path / "小说")
        run = await page.call("ai:skill:run", novel.payload(backend="m"))
        changed = await page.failure("ai:config:set", {"use": "m"})
        probed = await page.failure("ai:config:probe", {})
        read = await page.call("ai:config:get")

    assert (run["backend"], run["model"]) == ("m", "x")
    assert {changed.code, probed.code} == {"FORBIDDEN"}
    assert [one["name"] for one in read["backends"]] == ["default", "m"]


async def test_a_run_chooses_before_its_skill_and_that_before_the_settings(
    novel: Novel, model_server: ModelServer
) -> None:
    novel.put(".creonow/skills/slow/SKILL.md", SKILL.format(model="other"))
    url = f"{model_server.url}/v1"
    more = {"temperature": 1.5, "topP": 0.5, "effort": "high", "maxOutputTokens": 900}
    await novel.client.call(
        "ai:config:set",
        {
            "backends": {
                "mine": {"model": "qwen3-8b", "baseUrl": url, **more},
                "other": {"model": "deepseek-chat", "baseUrl": url, "temperature": 1.0},
            },
            "use": "mine",
        },
    )
    ScriptedOpenAI(model_server, 60_000).sends("夜。")

    settings = await novel.run()
    skill = await novel.run(skillId="project:slow")
    own = await novel.run(skillId="project:slow", model="qwen3-8b", temperature=0, effort="none")

    assert [run["backend"] for run in (settings, skill, own)] == ["mine", "other", "mine"]
    bodies = [request.body for request in model_server.received if "messages" in request.body]
    names = ("model", "temperature", "top_p", "reasoning_effort", "max_tokens")
    assert [[body.get(name) for name in names] for body in bodies] == [
        ["qwen3-8b", 1.5, 0.5, "high", 900],
        ["deepseek-chat", 0.2, 0.9, "low", 700],
        ["qwen3-8b", 0, 0.9, "none", 700],
    ]


async def test_an_assembly_counts_for_the_model_that_a_run_would_ask(novel: Novel) -> None:
    novel.put(".creonow/skills/slow/SKILL.md", SKILL.format(model="deepseek-chat"))
    await use(novel.client, provider="fake", model="qwen3-8b")

    plain = await novel.assemble()
    skill = await novel.assemble(skillId="project:slow")
    named = await novel.assemble(model="gpt-4")
    run = await novel.run(model="gpt-4")

    assert [one["tokenizerId"] for one in (plain, skill, named)] == [
        "qwen3",
        "deepseek_v4",
        "cl100k_base",
    ]
    assert run["diagnostics"]["promptHash"] == named["promptHash"]


async def test_a_parameter_that_the_model_does_not_know_is_dropped_with_a_notice(
    novel: Novel, model_server: ModelServer
) -> None:
    await use(novel.client, model="gpt-5", baseUrl=f"{model_server.url}/v1")
    ScriptedOpenAI(model_server, 60_000).sends("夜。")

    run = await novel.run(temperature=0.5, topP=0.5)

    notices = [n for n in run["notices"] if n["code"] == "AI_PARAMETER_DROPPED"]
    assert [n["details"]["parameter"] for n in notices] == ["temperature", "topP"]
    assert "temperature" not in model_server.received[-1].body


async def test_a_probe_reports_the_window_before_the_first_run(
    novel: Novel, ollama: OllamaServer
) -> None:
    await use(novel.client, model="qwen3:8b", baseUrl=f"{ollama.url}/v1", maxOutputTokens=600)
    before = await novel.client.call("ai:config:get")

    probed = await novel.client.call("ai:config:probe", {})
    asked = await novel.client.call("ai:config:probe", {"ask": True})
    after = await novel.client.call("ai:config:get")
    assembled = await novel.assemble()

    assert "server" not in before
    assert probed["server"] == {
        "kind": "ollama",
        "assumed": True,
        "windowTokens": 4096,
        "largestWindowTokens": 40_960,
        "thinks": True,
    }
    assert (probed["contextWindowTokens"], codes(probed)) == (4096, ["CONTEXT_WINDOW_REDUCED"])
    assert (asked["answered"], asked["server"]["assumed"]) == (True, False)
    assert after["server"]["windowTokens"] == after["contextWindowTokens"] == 4096
    assert assembled["tokenCount"] <= after["totalBudgetTokens"] < 4096
    assert "CONTEXT_WINDOW_REDUCED" in codes(assembled)


@pytest.mark.parametrize(
    ("made", "kind"), [(LmStudioServer(3000), "lmstudio"), (LlamaCppServer(3000), "llama.cpp")]
)
async def test_other_servers_are_probed_as_well(
    client: Client, made: ModelServer, kind: str
) -> None:
    async with open_server(made):
        await use(client, model="qwen3-8b", baseUrl=f"{made.url}/v1")
        probed = await client.call("ai:config:probe", {})

    assert (probed["server"]["kind"], probed["contextWindowTokens"]) == (kind, 3000)


async def test_a_probe_fails_with_what_is_wrong(client: Client, ollama: OllamaServer) -> None:
    await use(client, provider="ollama", model="qwen3:80b", baseUrl=ollama.url)
    missing = await client.failure("ai:config:probe", {})
    await use(client, provider="ollama", model="m", baseUrl="http://127.0.0.1:1")
    nobody = await client.failure("ai:config:probe", {})
    await use(client, model="m", baseUrl="https://example.com", keyVariable="DEEPSEEK_API_KEY")
    keyless = await client.failure("ai:config:probe", {})
    unknown = await client.failure("ai:config:probe", {"backend": "other"})

    assert (missing.code, unknown.code) == ("AI_MODEL_UNKNOWN", "NOT_FOUND")
    assert "qwen3:80b" in str(missing)
    assert (nobody.code, nobody.details["reason"]) == ("UPSTREAM_ERROR", "unreachable")
    assert keyless.code == "AI_NOT_CONFIGURED"
    assert "DEEPSEEK_API_KEY" in str(keyless)


async def test_a_key_of_openai_goes_to_no_other_server(
    novel: Novel, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    ScriptedOpenAI(model_server, 60_000).sends("夜。")
    await use(novel.client, model="m", baseUrl=f"{model_server.url}/v1")

    await novel.run()

    assert KEY not in repr(model_server.received[-1].headers)


async def test_a_key_that_was_refused_is_read_again(
    novel: Novel, model_server: ModelServer, user_data: Path
) -> None:
    scripted = ScriptedOpenAI(model_server, 60_000)
    write_key(user_data, "mine", "old-key")
    await use(novel.client, model="m", baseUrl=f"{model_server.url}/v1")
    scripted.refuses_the_key()
    refused = await novel.client.failure("ai:skill:run", novel.payload())
    write_key(user_data, "mine", "new-key")
    scripted.sends("夜。")

    await novel.run()

    assert refused.code == "AI_AUTH_FAILED"
    assert model_server.received[-1].headers["authorization"] == "Bearer new-key"


async def test_a_run_under_way_keeps_the_back_end_that_is_removed(
    novel: Novel, model_server: ModelServer
) -> None:
    ScriptedOpenAI(model_server, 60_000).sends("夜深了。")
    model_server.replies[0].slow = "body"
    await use(novel.client, model="m", baseUrl=f"{model_server.url}/v1")
    await novel.start("mine")
    with anyio.fail_after(PATIENCE):
        await model_server.request_arrived.wait()

    await novel.client.call("ai:config:set", {"backends": {"mine": None}})
    model_server.released.set()
    run = (await novel.client.reply("mine"))["result"]

    assert (run["output"], run["backend"]) == ("夜深了。", "mine")
    assert (await novel.run())["backend"] == "default"
