"""Story: a project's folder with a daemon in it, another daemon, an editor, and a power cut."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from testing.clients import PATIENCE, Client, over_stdio

CONSTRAINTS = ".creonow/rules/constraints.json"
CHANGED = "context:creonow:changed"


async def opened(client: Client, novel: Path) -> dict[str, Any]:
    made = await client.call("project:create", {"rootPath": str(novel)})
    return {"projectId": made["projectId"]}


@pytest.fixture
def novel(tmp_path: Path) -> Path:
    root = tmp_path / "小说 novel"
    root.mkdir()
    return root


async def test_what_an_editor_saves_is_sent_and_what_was_secret_is_not(
    tmp_path: Path, novel: Path
) -> None:
    style = novel / ".creonow/rules/style.md"

    with anyio.fail_after(2 * PATIENCE):
        async with over_stdio(tmp_path / "data") as client:
            project = await opened(client, novel)
            await client.call("context:creonow:ensure", project)
            await client.call("context:creonow:watch:start", project)
            style.with_name("style.new").write_text(
                "apiKey=sk-THIS_SHOULD_BE_REDACTED\n", encoding="utf-8"
            )
            style.with_name("style.new").replace(style)
            event = await client.event(CHANGED)
            rules = await client.call("context:creonow:rules:get", project)
    log = (tmp_path / "data/logs/main.log").read_text(encoding="utf-8")

    assert ".creonow/rules/style.md" in event["paths"]
    assert "rules" in event["layers"]
    assert rules["fragments"][0]["content"] == "apiKey=***REDACTED***\n"
    assert "THIS_SHOULD" not in log
    assert str(novel) not in log
    for line in ("context_ensure", "context_watch_started", "context_redaction_applied"):
        assert f'"event": "{line}"' in log


async def test_two_daemons_on_one_folder_see_and_keep_each_others_constraints(
    tmp_path: Path, novel: Path
) -> None:
    async def add(client: Client, project: dict[str, Any], name: str) -> None:
        for number in range(20):
            await client.call(
                "constraints:create", {**project, "constraint": {"text": f"{name} {number}"}}
            )

    with anyio.fail_after(4 * PATIENCE):
        async with (
            over_stdio(tmp_path / "one") as first,
            over_stdio(tmp_path / "two") as second,
        ):
            here, there = await opened(first, novel), await opened(second, novel)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(add, first, here, "甲")
                tasks.start_soon(add, second, there, "乙")
            one = await first.call("constraints:list", here)
            two = await second.call("constraints:list", there)

    assert one == two
    assert {item["text"] for item in one["constraints"]} == {
        f"{name} {number}" for name in "甲乙" for number in range(20)
    }


async def test_a_killed_daemon_loses_nothing_that_it_acknowledged(
    tmp_path: Path, novel: Path
) -> None:
    acknowledged: list[str] = []

    async def write(client: Client, project: dict[str, Any], turn: int) -> None:
        for number in range(2 + 3 * turn):
            text = f"{turn}-{number}"
            await client.call("constraints:create", {**project, "constraint": {"text": text}})
            saved = {"id": f"c{text}", "messages": [{"role": "user", "content": text}]}
            await client.call(
                "context:creonow:conversations:save", {**project, "conversation": saved}
            )
            acknowledged.append(text)

    with anyio.fail_after(6 * PATIENCE):
        for turn in range(4):
            async with over_stdio(tmp_path / "data") as client:
                project = await opened(client, novel)
                await write(client, project, turn)
                payload = {**project, "constraint": {"text": f"under way {turn}"}}
                await client.post(
                    {"jsonrpc": "2.0", "method": "constraints:create", "params": payload}
                )
                assert client.process is not None
                client.process.kill()
        async with over_stdio(tmp_path / "data") as client:
            project = await opened(client, novel)
            kept = await client.call("constraints:get", project)
            listed = await client.call(
                "context:creonow:conversations:list", {**project, "limit": 200}
            )
            projects = await client.call("project:list")

    assert len(projects["items"]) == 1
    assert set(acknowledged) <= set(kept["constraints"]["items"])
    assert {f"c{text}" for text in acknowledged} == {item["id"] for item in listed["items"]}
    assert json.loads((novel / CONSTRAINTS).read_bytes())["version"] == 2
