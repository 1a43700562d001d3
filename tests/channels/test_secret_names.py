"""A secret in a name is hidden in every reply, and what bears the name is still found."""

from pathlib import Path
from typing import Any

import pytest

from testing.clients import Client, RpcError

KEY = "ghp_Zq8Lw2Xv9Rt4Yb7Nc1Md6Kf3Hs5Jg0Pd2Xa"
CHAPTER = {"documentId": "chapters/02.md", "cursorPosition": 4, "skillId": "builtin:continue"}
CONVERSATION = {"conversationId": "con_1"}
LISTS = (
    "context:creonow:rules:list", "context:creonow:settings:list", "context:creonow:characters:list",
    "context:creonow:rules:get", "context:document:list", "project:story", "skill:list", "viewer:skills",
)  # fmt: skip
TOOL_CALL = {"role": "tool", "content": "x", "callId": KEY, "name": KEY}
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("context:creonow:rules:read", {"path": f".creonow/rules/{KEY}.md"}),
    ("context:creonow:rules:read", {"path": f".creonow/rules/none-{KEY}.md"}),
    ("context:creonow:rules:read", {"path": f"../{KEY}"}),
    ("context:assemble", CHAPTER),
    ("context:assemble", CHAPTER | {"documentId": f"chapters/01-{KEY}.md"}),
    ("context:assemble", CHAPTER | {"skillId": f"no-{KEY}"}),
    ("context:retrieve", {"documentId": "chapters/02.md", "cursorPosition": 4, "query": "rain"}),
    (f"no:{KEY}", {}),
    ("skill:read", {"skillId": KEY}),
    ("ai:skill:run", CHAPTER | {"skillId": KEY, "documentId": f"chapters/01-{KEY}.md"}),
    ("ai:run:list", {}),
    ("ipc:invoke", {"channel": KEY, "payload": {}}),
    ("context:source:register", {"name": KEY, "layer": KEY}),
    ("context:files:put", CONVERSATION | {"kind": "artifact", "content": "x", "hint": KEY, "key": KEY}),
    ("context.list", CONVERSATION),
    ("context:history:append", CONVERSATION | {"messages": [TOOL_CALL]}),
    ("context:history:read", CONVERSATION),
    ("context:tool:compress", CONVERSATION | {"tool": KEY, "result": "x" * 20_000}),
)  # fmt: skip


@pytest.fixture
async def project(client: Client, tmp_path: Path) -> str:
    for kind in ("rules", "settings", "characters"):
        folder = tmp_path / ".creonow" / kind
        folder.mkdir(parents=True)
        (folder / f"{KEY}.md").write_text(f"# {KEY}\nrain", encoding="utf-8")
        (folder / f"bad-{KEY}.json").write_text("{", encoding="utf-8")
    (tmp_path / "chapters").mkdir()
    (tmp_path / "chapters" / f"01-{KEY}.md").write_text("rain and rain.\n" * 30, encoding="utf-8")
    (tmp_path / "chapters" / "02.md").write_text("It rained.\n", encoding="utf-8")
    skill = tmp_path / ".creonow" / "skills" / f"s-{KEY}"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(f"---\nname: {KEY}\n{KEY}: 1\n---\n", encoding="utf-8")
    created = await client.call("project:create", {"rootPath": str(tmp_path), "name": f"a {KEY}"})
    return created["projectId"]


async def answer(client: Client, method: str, params: dict[str, Any]) -> str:
    """Return all of a reply, or all of an error, as text."""
    try:
        return str(await client.call(method, params))
    except RpcError as error:
        return f"{error} {vars(error)}"


async def test_no_reply_and_no_error_shows_a_secret_of_a_name(client: Client, project: str) -> None:
    lists: list[tuple[str, dict[str, Any]]] = [
        (method, {}) for method in ("project:list", "viewer:projects", *LISTS)
    ]

    shown = [
        method
        for method, params in (*lists, *CALLS)
        if KEY in await answer(client, method, {"projectId": project} | params)
    ]

    assert shown == []


async def test_what_is_listed_can_be_read_by_the_name_it_is_listed_with(
    client: Client, project: str
) -> None:
    rules = await client.call("context:creonow:rules:list", {"projectId": project})
    listed = [item["path"] for item in rules["items"] if item["path"].endswith(".md")]
    (rule,) = [path for path in listed if "REDACTED" in path]

    read = await client.call("context:creonow:rules:read", {"projectId": project, "path": rule})

    assert read["path"] == rule == ".creonow/rules/***REDACTED***.md"
    assert read["content"] == "# ***REDACTED***\nrain"
