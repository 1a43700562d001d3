"""The scenarios of the context engine's specification, against a real process.

Each says which scenario of seed 2 it is. Those that need a host or a model beside the daemon stand
with the stories of these. One daemon serves all of it; each test has a connection and a project of
its own.
"""

import json
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any

import anyio
import pytest

from creonowd.testing.harness import Harness
from creonowd.tokens import Tokenizers
from testing.clients import Client, endpoints_of, over_socket, over_stdio
from testing.novels import Novel, make_novel

SENTENCE = "他推开门，雨还在下，檐水滴在石阶上，她没有抬头。"


@pytest.fixture(scope="module")
def user_data(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    with Harness(tmp_path_factory.mktemp("用户 数据")) as daemon:
        yield daemon.user_data


@pytest.fixture
async def client(user_data: Path) -> AsyncGenerator[Client]:
    async with over_socket(Path((await endpoints_of(user_data))["unix"].address)) as connected:
        yield connected


@pytest.fixture
async def novel(client: Client, tmp_path: Path) -> Novel:
    cursor = {"documentId": "chapters/10.md", "cursorPosition": 0, "skillId": "通用"}
    made = await make_novel(client, tmp_path / "小说 一", {}, **cursor)
    await client.call("context:creonow:ensure", made.params)
    return made


def prose(tokens: int, salt: str = "") -> str:
    """Make about so many tokens of prose."""
    line = f"{salt}{SENTENCE}\n"
    return line * max(1, tokens // Tokenizers().load().count(line))


@pytest.mark.requirement("CE-009")
async def test_a_new_project_has_empty_rules_and_settings(novel: Novel) -> None:
    """新项目——Rules 和 Settings 为空."""
    novel.put("chapters/10.md", "刚写下第一句。")

    result = await novel.assemble(cursorPosition=7)

    tokens = {name: summary["tokens"] for name, summary in result["layers"].items()}
    assert (tokens["rules"], tokens["settings"], tokens["retrieved"]) == (0, 0, 0)
    assert result["layers"]["immediate"]["source"] == ["chapters/10.md"]
    assert "刚写下第一句。" in result["userContent"]
    assert result["systemPrompt"].startswith("# CreoNow\n")
    run = await novel.client.call("ai:skill:run", novel.payload(cursorPosition=7))
    assert "刚写下第一句。" in run["output"]
    assert run["stopReason"] == "end"


@pytest.mark.requirement("CE-009")
@pytest.mark.parametrize("skill_id", ["builtin:continue", "none"])
async def test_a_new_chapter_with_headings_is_not_retrieved_for_itself(
    novel: Novel, skill_id: str
) -> None:
    novel.put("chapters/10.md", "# 雨夜\n\n## 第一章\n\n刚写下第一句。\n\n## 第二章\n")

    result = await novel.assemble(cursorPosition=20, skillId=skill_id)

    assert result["layers"]["retrieved"]["tokens"] == 0
    assert "\n## Retrieved\n(none)\n" in result["prompt"]


@pytest.mark.requirement("CE-026", "CE-020")
async def test_within_the_budget_nothing_is_trimmed(novel: Novel) -> None:
    """Token 预算内——不裁剪."""
    novel.put(".creonow/rules/style.md", prose(700, "规则"))
    novel.put(".creonow/settings/世界观.md", prose(1300, "设定"))
    novel.put("chapters/10.md", prose(3200, "正文"))

    result = await novel.assemble(cursorPosition=400)

    assert 5000 < result["tokenCount"] <= 6000
    assert {entry["action"] for entry in result["trimEvidence"]} == {"kept"}
    assert not any(summary["truncated"] for summary in result["layers"].values())
    estimate = result["budget"]["estimate"]
    assert estimate["totalTokens"] + result["fixedTokens"] == result["tokenCount"]


@pytest.mark.requirement("CE-028")
async def test_rules_alone_are_over_the_budget(novel: Novel) -> None:
    """极端场景——Rules 层单独超出预算."""
    for number in range(100):
        novel.put(f".creonow/characters/角色{number:03}.md", f"角色{number:03}，{SENTENCE}\n")
    novel.put("chapters/10.md", "那天角色042遇见了角色077。" + prose(800))

    result = await novel.assemble(cursorPosition=20)

    kept = [
        e["sourceRef"]
        for e in result["trimEvidence"]
        if e["layer"] == "rules" and e["action"] == "kept"
    ]
    assert "CONTEXT_RULES_OVERBUDGET" in result["warnings"]
    assert {".creonow/characters/角色042.md", ".creonow/characters/角色077.md"} <= set(kept)
    assert 2 <= len(kept) < 100
    assert result["layers"]["rules"]["tokens"] <= 900
    dropped = [e for e in result["trimEvidence"] if e["action"] == "dropped"]
    assert {e["rule"] for e in dropped} == {"not_mentioned"}
    assert result["layers"]["immediate"]["truncated"] is False


@pytest.mark.requirement("CE-032")
async def test_continuing_three_times_hits_the_stable_prefix(novel: Novel) -> None:
    """连续续写——Stable Prefix 命中缓存."""
    novel.put(".creonow/rules/style.md", "短句为主。")
    text = prose(9000)
    results: list[dict[str, Any]] = []

    for turn in range(3):
        novel.put("chapters/10.md", text + "她终于开口。" * turn)
        results.append(await novel.assemble(cursorPosition=len(text) + 6 * turn))

    assert [r["stablePrefixUnchanged"] for r in results] == [False, True, True]
    assert len({r["stablePrefixHash"] for r in results}) == 1
    assert len({r["promptHash"] for r in results}) == 3


@pytest.mark.requirement("CE-036")
async def test_a_change_of_settings_misses_the_cache(novel: Novel) -> None:
    """Settings 变更导致缓存失效."""
    rules = [{"id": "a", "text": "动作场景偏好短句", "confidence": 0.9}]
    novel.put(".creonow/settings/memory.json", json.dumps({"version": 1, "rules": rules}))
    before = await novel.assemble()
    rules.append({"id": "b", "text": "对白少用感叹号", "confidence": 0.8})

    novel.put(".creonow/settings/memory.json", json.dumps({"version": 1, "rules": rules}))
    after = await novel.assemble()

    assert "动作场景偏好短句" in before["systemPrompt"]
    assert after["stablePrefixHash"] != before["stablePrefixHash"]
    assert after["stablePrefixUnchanged"] is False
    assert after["prefixChange"] == {
        "sourceRef": ".creonow/settings/memory.json#b",
        "change": "added",
    }


@pytest.mark.requirement("CE-045", "CE-037")
async def test_the_user_adds_a_constraint(novel: Novel, client: Client) -> None:
    """用户添加创作约束."""
    before = await novel.assemble()

    await client.call(
        "constraints:create",
        {**novel.params, "constraint": {"text": "主角在第五章之前不知道真相", "type": "plot"}},
    )
    after = [await novel.assemble(skillId=skill) for skill in ("通用", "builtin:continue")]

    line = "[创作约束 - 不可违反]\n1. 主角在第五章之前不知道真相\n"
    assert line not in before["systemPrompt"]
    assert all(line in result["systemPrompt"] for result in after)


@pytest.mark.requirement("CE-047")
async def test_too_many_constraints_swell_rules(novel: Novel, user_data: Path) -> None:
    """约束过多导致 Rules 层膨胀."""
    user = [
        {
            "id": f"con_user{n:02}",
            "text": f"第{n}条：{SENTENCE}",
            "type": "plot",
            "source": "user",
            "priority": 100,
            "degradable": False,
            "updatedAt": "2026-01-01T00:00:00Z",
        }
        for n in range(15)
    ]
    graph = [
        {
            **item,
            "id": f"con_graph{n:02}",
            "source": "kg",
            "priority": n,
            "text": f"图谱{n}：{SENTENCE * 2}",
        }
        for n, item in enumerate(user)
    ]
    constraints = {"version": 2, "items": [*user, *graph]}
    novel.put(".creonow/rules/constraints.json", json.dumps(constraints))

    result = await novel.assemble()

    dropped = [
        e["sourceRef"].rpartition("#")[2]
        for e in result["trimEvidence"]
        if e["action"] == "dropped"
    ]
    assert "CONTEXT_RULES_OVERBUDGET" in result["warnings"]
    assert dropped
    assert all(name.startswith("con_graph") for name in dropped)
    assert all(f"第{n}条：" in result["systemPrompt"] for n in range(15))
    kept_graph = [n for n in range(15) if f"图谱{n}：" in result["systemPrompt"]]
    assert kept_graph == list(range(15 - len(kept_graph), 15))
    log = anyio.Path(user_data / "logs/main.log")
    with anyio.fail_after(60):  # lines are written in a thread of their own
        while "context_rules_constraint_trimmed" not in await log.read_text(encoding="utf-8"):
            await anyio.lowlevel.checkpoint()
    assert "檐水" not in await log.read_text(encoding="utf-8")


@pytest.mark.requirement("CE-068")
async def test_a_failing_budget_calculator_falls_back(tmp_path: Path) -> None:
    """预算计算器异常自动回退."""
    tables = tmp_path / "no tables"
    tables.mkdir()
    root = tmp_path / "小说"
    root.mkdir()
    async with over_stdio(tmp_path / "用户", CREONOW_TOKENIZER_TABLES=str(tables)) as client:
        made = await client.call("project:create", {"rootPath": str(root)})
        novel = Novel(client, root, made["projectId"])
        novel.put("chapters/10.md", "雨还在下。")
        budget = await client.call("context:budget:get", novel.params)
        change = {**novel.params, "version": budget["version"], "totalBudgetTokens": 20_000}
        await client.call("context:budget:update", change)

        result = await novel.assemble(cursorPosition=5)

    assert "CONTEXT_BUDGET_FALLBACK" in result["warnings"]
    assert result["budget"]["maxInputTokens"] == 6000
    assert result["tokenCount"] == len(result["prompt"].encode()) <= 6000
    assert result["tokenizerExact"] is False


@pytest.mark.requirement("CE-088", "CE-097")
async def test_huge_input_is_refused(novel: Novel) -> None:
    """超大上下文输入保护."""
    error = await novel.client.failure(
        "context:assemble", novel.payload(additionalInput=prose(90_000))
    )

    assert error.code == "CONTEXT_INPUT_TOO_LARGE"
    assert "narrow the retrieval" in str(error)
    assert error.details["heaviest"][0]["sourceRef"] == "additionalInput"


@pytest.mark.requirement("CE-099", "CE-073")
async def test_concurrent_assemblies_are_held_back(novel: Novel) -> None:
    """并发组装背压."""
    novel.put(".creonow/settings/世界观.md", prose(3000, "设定"))
    novel.put("chapters/10.md", prose(20_000))
    client = novel.client

    for number in range(20):
        payload = novel.payload(cursorPosition=number * 300)
        request = {"jsonrpc": "2.0", "id": f"n{number}", "method": "context:assemble"}
        await client.post({**request, "params": payload})
    replies = [await client.reply(f"n{number}") for number in range(20)]

    assert all(reply["result"]["tokenCount"] <= 6000 for reply in replies)
    assert len({reply["result"]["stablePrefixHash"] for reply in replies}) == 1


async def test_five_hundred_assemblies_at_once_keep_the_budget(
    novel: Novel, user_data: Path
) -> None:
    """组装性能与预算一致性达标: what they cost is measured by `scripts/bench assemble`."""
    novel.put(".creonow/rules/style.md", prose(300, "文风"))
    novel.put(".creonow/settings/世界观.md", prose(1500, "设定"))
    for number in range(125):
        novel.put(f"chapters/{number:03}.md", prose(1200, f"第{number}章"))
    socket = Path((await endpoints_of(user_data))["unix"].address)
    replies: list[dict[str, Any]] = []

    async def ask(window: int) -> None:
        async with over_socket(socket) as client:
            for number in range(125):
                place = {"documentId": f"chapters/{number:03}.md", "cursorPosition": window * 100}
                request = {"jsonrpc": "2.0", "id": f"w{number}", "method": "context:assemble"}
                await client.post({**request, "params": novel.payload(**place)})
            replies.extend([(await client.reply(f"w{number}"))["result"] for number in range(125)])

    async with anyio.create_task_group() as windows:
        for window in range(4):
            windows.start_soon(ask, window)

    assert len(replies) == 500
    assert all(reply["tokenCount"] <= 6000 for reply in replies)
    assert len({reply["stablePrefixHash"] for reply in replies}) == 1
    assert not [text for reply in replies for text in reply["warnings"] if "UNAVAILABLE" in text]
