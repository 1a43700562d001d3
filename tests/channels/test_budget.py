"""`context:budget:*` and `tokens:count` over the wire."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from creonowd.channels import budget
from creonowd.rpc.server import Server
from creonowd.settings import Settings
from creonowd.threads import call_in_thread
from testing.clients import Client, daemon, in_memory
from testing.novels import make_novel
from tests.tokens.user_table_files import write_table

GET = "context:budget:get"
UPDATE = "context:budget:update"
COUNT = "tokens:count"


@pytest.fixture
async def project(client: Client, tmp_path: Path) -> dict[str, str]:
    made = await client.call("project:create", {"rootPath": str(tmp_path)})
    return {"projectId": made["projectId"]}


@pytest.mark.requirement("CE-024", "CE-064")
async def test_a_fresh_project_has_the_default_budget(
    client: Client, project: dict[str, str]
) -> None:
    profile = await client.call(GET, project)

    assert profile == await client.call(GET)
    assert profile == {
        "version": 1,
        "kind": "default",
        "tokenizerId": "o200k_base",
        "tokenizerVersion": "446a9538cb6c348e",
        "tokenizerExact": True,
        "countKind": "exact",
        "model": "gpt-4o",
        "contextWindowTokens": 8000,
        "systemPromptTokens": 500,
        "outputReserveTokens": 1500,
        "totalBudgetTokens": 6000,
        "layers": {
            "rules": {"ratio": 0.15, "minimumTokens": 500},
            "settings": {"ratio": 0.1, "minimumTokens": 200},
            "retrieved": {"ratio": 0.25, "minimumTokens": 0},
            "immediate": {"ratio": 0.5, "minimumTokens": 2000},
        },
    }


@pytest.mark.requirement("CE-025")
@pytest.mark.parametrize("nested", [True, False], ids=["in profile", "flat"])
async def test_an_update_changes_what_it_names_and_nothing_else(
    client: Client, project: dict[str, str], *, nested: bool
) -> None:
    before = await client.call(GET, project)
    change: dict[str, Any] = {"version": 1, "layers": {"retrieved": {"ratio": 0.2}}}

    updated = await client.call(UPDATE, project | ({"profile": change} if nested else change))

    expected = before | {"version": 2}
    expected["layers"]["retrieved"]["ratio"] = 0.2
    assert updated == expected
    assert await client.call(GET, project) == expected
    assert (await client.call(GET))["version"] == 1


@pytest.mark.requirement("CE-065")
async def test_no_field_changes_the_layers_or_their_order(
    client: Client, project: dict[str, str]
) -> None:
    layers = {"immediate": {"ratio": 0.4, "priority": 1}, "extra": {"ratio": 1}, "order": ["rules"]}

    updated = await client.call(UPDATE, project | {"version": 1, "layers": layers})

    assert list(updated["layers"]) == ["rules", "settings", "retrieved", "immediate"]
    assert updated["layers"]["immediate"] == {"ratio": 0.4, "minimumTokens": 2000}


@pytest.mark.requirement("CE-074", "CE-080")
async def test_the_later_of_two_connections_is_refused_and_overwrites_nothing(
    server: Server, client: Client, project: dict[str, str]
) -> None:
    async with in_memory(server) as other:
        await client.call(UPDATE, project | {"version": 1, "totalBudgetTokens": 5000})
        error = await other.failure(UPDATE, project | {"version": 1, "totalBudgetTokens": 4000})

        assert (error.number, error.code) == (-32803, "CONTEXT_BUDGET_CONFLICT")
        assert error.details["currentVersion"] == 2
        assert error.data["retryable"] is True
        assert (await other.call(GET, project))["totalBudgetTokens"] == 5000


async def test_updates_sent_at_once_have_one_winner(
    server: Server, client: Client, project: dict[str, str]
) -> None:
    async with in_memory(server) as other:
        for number in range(10):
            params = project | {"version": 1, "totalBudgetTokens": 3000 + number}
            request = {"jsonrpc": "2.0", "id": f"u{number}", "method": UPDATE, "params": params}
            await (client, other)[number % 2].post(request)
        replies = [await (client, other)[n % 2].reply(f"u{n}") for n in range(10)]

    errors = [reply["error"]["data"]["code"] for reply in replies if "error" in reply]
    assert errors == ["CONTEXT_BUDGET_CONFLICT"] * 9


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"version": 2}, "CONTEXT_BUDGET_CONFLICT"),
        ({"tokenizerVersion": "0"}, "CONTEXT_TOKENIZER_MISMATCH"),
        ({"layers": {"rules": {"ratio": 2}}}, "CONTEXT_BUDGET_INVALID_RATIO"),
        ({"layers": {"rules": {"minimumTokens": -1}}}, "CONTEXT_BUDGET_INVALID_MINIMUM"),
        ({"totalBudgetTokens": 64_001}, "INVALID_ARGUMENT"),
        ({"totalBudgetTokens": "many"}, "INVALID_ARGUMENT"),
        ({"version": None}, "INVALID_ARGUMENT"),
        ({"projectId": "prj_00000000000000000000"}, "NOT_FOUND"),
        ({"projectId": ""}, "INVALID_ARGUMENT"),
    ],
)
async def test_a_wrong_update_has_its_code_and_changes_nothing(
    client: Client, project: dict[str, str], change: dict[str, Any], code: str
) -> None:
    error = await client.failure(UPDATE, project | {"version": 1} | change)

    assert error.code == code
    assert (await client.call(GET, project))["version"] == 1


async def test_a_budget_survives_a_restart_of_the_daemon(tmp_path: Path) -> None:
    results: list[Any] = []
    calls: tuple[tuple[str, dict[str, int]], ...] = (
        (UPDATE, {"version": 1, "totalBudgetTokens": 5000}),
        (GET, {}),
    )

    for method, payload in calls:
        async with daemon(tmp_path / "data") as connected:
            results.append(await connected.call(method, payload))

    assert results[0] == results[1]
    assert results[1]["totalBudgetTokens"] == 5000


async def test_the_window_of_a_real_model_is_accepted_and_the_total_clamped(
    tmp_path: Path,
) -> None:
    clamped = "CONTEXT_BUDGET_CLAMPED: the window has room for 126000, the total budget is the limit of 64000."
    async with daemon(tmp_path / "data") as connected:
        novel = await make_novel(connected, tmp_path / "小说")
        change = novel.params | {"version": 1, "contextWindowTokens": 128_000}
        updated = await connected.call(UPDATE, change)
        assembled = await novel.assemble()
    async with daemon(tmp_path / "data") as restarted:
        read = await restarted.call(GET, novel.params)

    assert (updated["contextWindowTokens"], updated["totalBudgetTokens"]) == (128_000, 64_000)
    assert updated["warnings"] == [clamped]
    assert read == updated
    assert clamped in assembled["warnings"]
    assert assembled["budget"]["maxInputTokens"] == 64_000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 9}, "预算已是版本 1；请重新读取后再修改。"),
        ({"layers": {"rules": {"ratio": 2}}}, "rules 的比例须在 0 与 1 之间。"),
        ({"layers": {"rules": {"ratio": 1}}}, "各比例之和须大于 0 且不超过 1。"),
        ({"layers": {"rules": {"minimumTokens": -1}}}, "rules 的最小保障须为不小于 0 的整数。"),
        (
            {"layers": {"rules": {"minimumTokens": 6000}}},
            "各层最小保障合计 8200，超过总预算 6000。",
        ),
        ({"totalBudgetTokens": 0}, "totalBudgetTokens 须在 1 与 64000 之间，现为 0。"),
    ],
)
async def test_what_is_wrong_with_a_budget_is_reported_in_chinese_too(
    client: Client, project: dict[str, str], change: dict[str, Any], message: str
) -> None:
    await client.call("initialize", {"locale": "zh"})

    error = await client.failure(UPDATE, project | {"profile": {"version": 1} | change})

    assert str(error) == message


@pytest.mark.requirement("CE-062")
async def test_a_damaged_budget_is_reported_with_the_budget_and_by_health(
    client: Client, project: dict[str, str], server_data: Path, tmp_path: Path
) -> None:
    (server_data / "budgets").mkdir()
    (server_data / "budgets" / f"{project['projectId']}.json").write_bytes(b"half a fi")

    profile = await client.call(GET, project)
    health = await client.call("app:health")
    await client.call("initialize", {"locale": "zh"})
    chinese = await client.call("app:health")

    assert chinese["degraded"][0]["reason"].startswith("已存的预算无法读取")
    assert chinese["degraded"][0]["remedy"] == "现用默认预算；请重新设置。"
    assert profile["warnings"][0].startswith("CONTEXT_BUDGET_FALLBACK: ")
    assert [part["part"] for part in health["degraded"]] == ["budgets"]
    assert str(server_data) not in str((profile, health))
    assert str(tmp_path) not in str((profile, health))


@pytest.mark.requirement("CE-023")
@pytest.mark.parametrize(
    ("model", "tokenizer", "tokens"),
    [
        (None, ("o200k_base", "446a9538cb6c348e", True), 8),
        ("gpt-4o", ("o200k_base", "446a9538cb6c348e", True), 8),
        ("gpt-4", ("cl100k_base", "223921b76ee99bde", True), 9),
        ("gemini-2.5-pro", ("o200k_base", "446a9538cb6c348e", False), 8),
        ("deepseek-chat", ("deepseek_v4", "ea36143983116520", True), 7),
    ],
)
async def test_a_text_is_counted_with_the_tokenizer_of_its_model(
    client: Client, model: str | None, tokenizer: tuple[str, str, bool], tokens: int
) -> None:
    result = await client.call(COUNT, {"text": "お誕生日おめでとう", "model": model})

    assert result == {
        "tokens": tokens,
        "tokenizerId": tokenizer[0],
        "tokenizerVersion": tokenizer[1],
        "tokenizerExact": tokenizer[2],
        "countKind": "exact" if tokenizer[2] else "approximate",
    }


async def test_a_text_for_claude_has_a_count_and_a_bound(client: Client) -> None:
    result = await client.call(COUNT, {"text": "她走了。", "model": "claude-opus-4-8"})

    assert (result["tokenizerId"], result["countKind"]) == ("claude_v4_7", "bound")
    assert result["countTokens"]["bound"] == result["tokens"]
    assert 0 < result["countTokens"]["counted"] <= result["tokens"]


@pytest.mark.parametrize("text", ["", "<|endoftext|>", "👨\u200d👩\u200d👧", "a" * 100_000])
async def test_any_text_has_a_count(client: Client, text: str) -> None:
    assert (await client.call(COUNT, {"text": text}))["tokens"] >= bool(text)


async def test_white_space_that_no_tokenizer_takes_is_not_called_exact(client: Client) -> None:
    for length, exact in ((800_000, True), (1_200_000, False)):
        result = await client.call(COUNT, {"text": "前" + " " * length + "后"})

        assert result["tokenizerExact"] is exact
        assert ("warnings" in result) is not exact


async def test_another_tokenizer_version_is_a_mismatch(client: Client) -> None:
    same = await client.call(COUNT, {"text": "a", "tokenizerVersion": "446a9538cb6c348e"})
    error = await client.failure(COUNT, {"text": "a", "tokenizerVersion": "2"})

    assert same["tokens"] == 1
    assert (error.number, error.code) == (-32803, "CONTEXT_TOKENIZER_MISMATCH")
    assert error.details["tokenizerVersion"] == "446a9538cb6c348e"


@pytest.mark.parametrize("payload", [{}, {"text": 5}, {"text": "a", "model": 1}])
async def test_a_count_of_the_wrong_shape_is_an_invalid_argument(
    client: Client, payload: dict[str, Any]
) -> None:
    assert (await client.failure(COUNT, payload)).code == "INVALID_ARGUMENT"


@pytest.mark.requirement("CE-062")
async def test_without_its_table_the_daemon_counts_bytes_and_says_so(tmp_path: Path) -> None:
    settings = Settings(tokenizer_tables=str(tmp_path))
    answers: list[Any] = []

    async with daemon(tmp_path / "data", settings) as client:
        for method, payload in (("app:health", {}), (COUNT, {"text": "林远"}), ("app:health", {})):
            answers.append(await client.call(method, payload))

    healthy, result, health = answers
    assert healthy["status"] == "ok"
    assert (result["tokens"], result["tokenizerId"]) == (6, "utf8_bytes")
    assert result["tokenizerExact"] is False
    assert result["countKind"] == "approximate"
    assert result["warnings"][0].startswith("CONTEXT_BUDGET_FALLBACK: ")
    assert health["status"] == "degraded"
    assert [part["part"] for part in health["degraded"]] == ["tokenizer"]
    assert str(tmp_path) not in str(health)


async def test_a_table_that_the_user_brought_counts_its_models(tmp_path: Path) -> None:
    write_table(tmp_path)
    write_table(tmp_path, "llama3", sha256="0" * 64)

    async with daemon(tmp_path, Settings()) as client:
        own = await client.call(COUNT, {"text": "林远", "model": "kimi-k3"})
        listed = await client.call("app:health")
        torn = await client.call(COUNT, {"text": "林远", "model": "llama3:8b"})
        health = await client.call("app:health")
        update = {"version": 1, "model": "moonshotai/kimi-k3"}
        profile = await client.call("context:budget:update", update)

    assert (own["tokens"], own["tokenizerId"], own["countKind"]) == (6, "kimi_k3", "exact")
    assert listed["status"] == "ok"
    assert torn["tokenizerId"] == "utf8_bytes"
    assert torn["warnings"][0].startswith("CONTEXT_BUDGET_FALLBACK: ")
    (part,) = health["degraded"]
    assert part["part"] == "tokenizer"
    assert "SHA-256 differ" in part["reason"]
    assert "tokenizers" in part["remedy"]
    assert profile["tokenizerId"] == "kimi_k3"
    assert profile["tokenizerVersion"] == own["tokenizerVersion"]


async def test_a_long_text_has_as_many_tokens_as_its_slices(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "“雨停了。” said Mei,\n\n  and 3 lamps went out… 然后呢？ " * 200
    whole = await client.call(COUNT, {"text": text})
    monkeypatch.setattr(budget, "SLICE", 500)
    monkeypatch.setattr(budget, "BOUNDARY_SEARCH", 50)

    assert await client.call(COUNT, {"text": text}) == whole


async def test_a_count_that_nobody_waits_for_any_more_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "SLICE", 100)
    monkeypatch.setattr(budget, "BOUNDARY_SEARCH", 50)
    text = "It rained, and then it rained. " * 1000
    counted: list[str] = []

    def count(part: str) -> int:
        anyio.from_thread.run_sync(scope.cancel)
        counted.append(part)
        return 1

    with anyio.fail_after(60), anyio.CancelScope() as scope:
        await call_in_thread(budget.count_in_slices, count, text)

    assert len("".join(counted)) < len(text)


async def test_a_name_too_long_for_a_model_is_refused(client: Client) -> None:
    """What is known of a model is kept by its name."""
    longest = await client.call(COUNT, {"text": "雨", "model": "x" * 256})
    error = await client.failure(COUNT, {"text": "雨", "model": "x" * 257})

    assert longest["tokens"] > 0
    assert error.code == "INVALID_ARGUMENT"
