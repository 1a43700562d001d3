"""Story: two windows of the IDE, one daemon: budgets do not overwrite, buffers do not outlive."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from testing.clients import PATIENCE, Client, endpoints_of, over_socket, over_stdio, over_tcp


def _visit(user_data: Path, endpoints: dict[str, Any]) -> Any:
    if "unix" in endpoints:
        return over_socket(Path(endpoints["unix"].address))
    return over_tcp(endpoints["tcp"].address, endpoints["tcp"].token)


async def _length(client: Client, project: dict[str, str], version: int) -> int:
    """Ask how long the daemon thinks our buffer is, by an edit that changes nothing."""
    payload: dict[str, Any] = project | {
        "documentId": "ch1.md",
        "baseVersion": version,
        "version": version + 1,
        "edits": list[str](),
    }
    return (await client.call("context:document:sync", payload))["length"]


@pytest.mark.requirement("CE-079")
async def test_the_later_update_is_refused_and_the_earlier_survives_a_restart(
    tmp_path: Path,
) -> None:
    """并发更新预算配置的版本校验."""
    user_data, novel = tmp_path / "user data 用户", tmp_path / "novel"
    novel.mkdir()

    async with (
        over_stdio(user_data) as first,
        _visit(user_data, await endpoints_of(user_data)) as second,
    ):
        made = await first.call("project:create", {"rootPath": str(novel)})
        project = {"projectId": made["projectId"]}
        seen = await second.call("context:budget:get", project)
        won = await first.call(
            "context:budget:update", project | {"version": 1, "totalBudgetTokens": 5000}
        )
        lost = await second.failure(
            "context:budget:update",
            project | {"version": seen["version"], "totalBudgetTokens": 4000},
        )
    async with over_stdio(user_data) as again:
        kept = await again.call("context:budget:get", project)

    assert lost.code == "CONTEXT_BUDGET_CONFLICT"
    assert lost.details["currentVersion"] == won["version"] == 2
    assert kept == won


async def test_a_novel_is_typed_in_while_another_window_crashes(tmp_path: Path) -> None:
    user_data, novel = tmp_path / "user data 用户", tmp_path / "novel"
    novel.mkdir()
    text = "林远推开门，屋里没有人。😀\r\n" * 70_000

    with anyio.fail_after(4 * PATIENCE):
        async with over_stdio(user_data) as editor:
            await editor.call("initialize", {"positionEncoding": "utf-16"})
            made = await editor.call("project:create", {"rootPath": str(novel)})
            project = {"projectId": made["projectId"]}
            whole = project | {"documentId": "ch1.md", "version": 1, "text": text}
            opened = await editor.call("context:document:sync", whole)
            async with _visit(user_data, await endpoints_of(user_data)) as crashing:
                await crashing.call("context:document:sync", whole | {"text": "other"})
            for version in range(1, 101):
                stroke = {"from": version, "to": version, "text": "字"}
                payload = project | {"documentId": "ch1.md", "baseVersion": version}
                await editor.call(
                    "context:document:sync", payload | {"version": version + 1, "edits": [stroke]}
                )
            length = await _length(editor, project, 101)

    assert opened["length"] == len(text) + 70_000
    assert length == opened["length"] + 100


async def test_tokens_are_counted_without_a_network(tmp_path: Path) -> None:
    cache = str(tmp_path / "none")
    proxy = "http://127.0.0.1:9"

    async with over_stdio(tmp_path / "data", HTTPS_PROXY=proxy, TIKTOKEN_CACHE_DIR=cache) as client:
        counted = await client.call("tokens:count", {"text": "お誕生日おめでとう"})
        health = await client.call("app:health")

    assert (counted["tokens"], counted["tokenizerId"]) == (8, "o200k_base")
    assert health["status"] == "ok"
    assert not (tmp_path / "none").exists()
