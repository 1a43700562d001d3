"""A secret in a name is hidden in every reply, and what bears the name is still found."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from creonowd.redaction import Redactor
from creonowd.settings import Settings
from testing.clients import Client, RpcError
from testing.novels import Novel

CONFIGURED = "unseen-form-of-a-key"
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


@pytest.fixture(params=[KEY, CONFIGURED], ids=["known form", "configured"])
def key(request: pytest.FixtureRequest) -> str:
    """A secret by its form, or only because the settings say so."""
    return request.param


@pytest.fixture
def daemon_settings(tmp_path: Path) -> Settings:
    """Settings with a key that has no form by which it could be known."""
    file = tmp_path / "key"
    file.touch(mode=0o600)
    file.write_text(CONFIGURED, encoding="utf-8")
    return Settings(e2e=True, warm_up=False, ai_provider="openai", ai_key_file=str(file))


@pytest.fixture
async def project(client: Client, tmp_path: Path, key: str) -> str:
    root = tmp_path / f"novel {key}"
    return await make_project(client, root, key)


async def make_project(client: Client, root: Path, key: str) -> str:
    root.mkdir()
    for kind in ("rules", "settings", "characters"):
        folder = root / ".creonow" / kind
        folder.mkdir(parents=True)
        (folder / f"{key}.md").write_bytes(f"# {key}\nrain".encode())
        (folder / f"bad-{key}.json").write_text("{", encoding="utf-8")
    (root / "chapters").mkdir()
    (root / "chapters" / f"01-{key}.md").write_text("rain and rain.\n" * 30, encoding="utf-8")
    (root / "chapters" / "02.md").write_text("It rained.\n", encoding="utf-8")
    skill = root / ".creonow" / "skills" / f"s-{key}"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(f"---\nname: {key}\n{key}: 1\n---\n", encoding="utf-8")
    created = await client.call("project:create", {"rootPath": str(root), "name": f"a {key}"})
    return created["projectId"]


async def answer(client: Client, method: str, params: dict[str, Any]) -> str:
    """Return all of a reply, or all of an error, as text."""
    try:
        return str(await client.call(method, params))
    except RpcError as error:
        return f"{error} {vars(error)}"


async def test_no_reply_and_no_error_shows_a_secret_of_a_name(
    client: Client, project: str, key: str
) -> None:
    lists: list[tuple[str, dict[str, Any]]] = [
        (method, {}) for method in ("project:list", "viewer:projects", *LISTS)
    ]

    asked = [(method, {"projectId": project} | params) for method, params in (*lists, *CALLS)]
    asked.append(("project:create", {"name": key}))
    asked.append(("context:creonow:ensure", {"projectId": project}))

    shown = [
        method
        for method, params in json.loads(json.dumps(asked).replace(KEY, key))
        if key in await answer(client, method, params)
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


async def test_a_chapter_is_summarised_by_the_name_it_is_listed_with(
    client: Client, project: str
) -> None:
    story = await client.call("project:story", {"projectId": project})
    (listed,) = (one["path"] for one in story["documents"] if "01-" in one["path"])
    chapter = {"projectId": project, "documentId": listed}

    written = await client.call("story:summary:set", chapter | {"text": "It rains."})
    read = await client.call("story:summary:get", chapter)
    threads = await client.call("story:threads", chapter)
    asked = {"projectId": project, "documents": [listed], "dryRun": True}
    work = await client.call("story:summarise", asked)

    assert written["path"] == read["path"] == listed
    assert read["text"] == "It rains."
    assert threads["open"] == 0
    assert work["dryRun"] is True


@pytest.mark.parametrize(
    "channel", [*(one for one in LISTS if "skill" not in one), "context:subjects"]
)
async def test_names_are_hidden_beside_the_event_loop(
    channel: str, client: Client, novel: Novel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of 900 folders, each in the one before, kept everybody waiting for four seconds."""
    for folder in ("", ".creonow/rules/", ".creonow/settings/", ".creonow/characters/"):
        novel.put(f"{folder}a.md", "x")
    threads: set[int] = set()

    def noted(hide: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            threads.add(threading.get_ident())
            return hide(*arguments)

        return call

    monkeypatch.setattr(Redactor, "redact_name", noted(Redactor.redact_name))
    if channel == "project:story":
        monkeypatch.setattr(Redactor, "redact", noted(Redactor.redact))

    await client.call(channel, novel.params)

    assert threads
    assert threading.get_ident() not in threads


RUN = {"skillId": "builtin:continue", "documentId": "chapters/02.md", "cursorPosition": 4}
TALK: tuple[dict[str, Any], ...] = (
    {"role": "user", "content": "Look it up."},
    {"role": "assistant", "toolCalls": [{"id": KEY, "name": "look", "arguments": {}}]},
)


async def test_the_model_of_a_run_shows_no_secret(client: Client, project: str, key: str) -> None:
    of = {"projectId": project}
    asked = of | {"model": key, "backend": "ready"}
    await client.call("ai:config:set", {"backends": {"ready": {"provider": "fake"}}})
    run = await client.call("ai:skill:run", asked | RUN)
    decided = of | {"runId": run["runId"]}

    shown = [
        run,
        await client.call("ai:run:list", of),
        await client.call("ai:run:accept", decided),
        await client.call("ai:run:discard", decided),
        await client.call("ai:usage", {"groupBy": "model"}),
        await client.call("ai:config:probe", asked),
    ]

    assert key not in str(shown)
    assert "***REDACTED***" in str(shown[1])


async def test_a_run_id_that_holds_a_secret_is_refused(
    client: Client, project: str, key: str
) -> None:
    error = await client.failure("ai:skill:run", {"projectId": project, "runId": key} | RUN)
    canceled = await client.call("ai:skill:cancel", {"runId": key})

    assert (error.code, error.details["field"]) == ("INVALID_ARGUMENT", "runId")
    assert key not in f"{error} {vars(error)} {canceled}"


@pytest.mark.parametrize("is_shown", [False, True])
async def test_a_result_finds_its_call_though_the_id_of_that_is_hidden(
    client: Client, project: str, key: str, *, is_shown: bool
) -> None:
    place = {"projectId": project, **CONVERSATION}
    talk = json.loads(json.dumps(TALK).replace(KEY, key))
    answered = "***REDACTED***" if is_shown else key
    result = {"role": "tool", "toolCallId": answered, "content": "It rains."}

    first = await client.call("context:history:append", place | {"messages": talk})
    second = await client.call("context:history:append", place | {"messages": [result]})
    read = await client.call("context:history:read", place)
    built = await client.call(
        "context:build", place | {"systemPrompt": "You write.", "input": "Go on."}
    )

    assert key not in str([first, second, read, built])
    assert "It rains." in str(built["messages"])


async def test_a_conversation_is_read_by_the_id_it_is_listed_with(
    client: Client, project: str, key: str
) -> None:
    of = {"projectId": project}
    chat = {"id": key, "messages": [{"role": "user", "content": "rain"}]}

    saved = await client.call("context:creonow:conversations:save", of | {"conversation": chat})
    listed = await client.call("context:creonow:conversations:list", of)
    place = of | {"conversationId": listed["items"][0]["id"]}
    read = await client.call("context:creonow:conversations:read", place)
    analysis = {"analysis": {"summary": "It rains."}}
    updated = await client.call("context:creonow:conversations:analysis:update", place | analysis)

    assert key not in str([saved, listed, read, updated])
    assert read["conversation"]["messages"][0]["content"] == "rain"
    assert updated["index"]["summary"] == "It rains."
