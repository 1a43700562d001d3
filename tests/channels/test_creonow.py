"""`context:creonow:*`: the folder of a project, and the watch on it."""

import json
import os
import re
import shutil
from pathlib import Path
from typing import get_args

import anyio
import pytest

from creonowd.channels.creonow import CreonowChanged, LayerName, merge_changes, start_watching
from creonowd.channels.project import ProjectId
from creonowd.context.fragment import Layer
from creonowd.engine.services import Session
from creonowd.rpc.server import Server
from testing.clients import Client, in_memory
from testing.logs import LogLines
from testing.novels import Novel

SECRET = "sk-abcdefghij0123456789ABCDEFGHIJ"
SCOPES = ["rules", "settings", "characters"]
STYLE = ".creonow/rules/style.md"
CHANGED = "context:creonow:changed"


@pytest.mark.requirement("CN-009", "CN-023")
async def test_ensure_answers_the_root_of_the_project(
    client: Client, novel: Novel, logged: LogLines
) -> None:
    answer = await client.call("context:creonow:ensure", novel.params)

    assert answer == {"rootPath": str(novel.root), "ensured": True}
    assert (novel.root / ".creonow/rules/style.md").read_bytes() == b"# Style\n\n"
    assert [line["event"] for line in logged if "ensure" in line["event"]] == ["context_ensure"]


@pytest.mark.requirement("CN-008", "CN-010", "CN-011")
async def test_ensure_makes_the_tree_of_creonow_alone(client: Client, novel: Novel) -> None:
    (novel.root / ".writenow/rules").mkdir(parents=True)
    novel.put(".writenow/rules/style.md", "old")

    await client.call("context:creonow:ensure", novel.params)

    made = {path.relative_to(novel.root).as_posix() for path in novel.root.rglob("*")}
    assert made == {
        ".writenow",
        ".writenow/rules",
        ".writenow/rules/style.md",
        ".creonow",
        ".creonow/rules",
        ".creonow/rules/style.md",
        ".creonow/rules/terminology.json",
        ".creonow/rules/constraints.json",
        ".creonow/settings",
        ".creonow/skills",
        ".creonow/characters",
        ".creonow/conversations",
        ".creonow/cache",
    }
    rules = novel.root / ".creonow/rules"
    assert (rules / "style.md").read_bytes() == b"# Style\n\n"
    assert json.loads((rules / "terminology.json").read_bytes()) == {"terms": []}
    assert json.loads((rules / "constraints.json").read_bytes()) == {"version": 1, "items": []}


@pytest.mark.requirement("CN-024")
async def test_status_before_and_after_ensure(client: Client, novel: Novel) -> None:
    before = await client.call("context:creonow:status", novel.params)
    await client.call("context:creonow:ensure", novel.params)
    after = await client.call("context:creonow:status", novel.params)

    assert before == {"exists": False, "watching": False}
    assert after == {"exists": True, "watching": False, "rootPath": str(novel.root)}


@pytest.mark.parametrize(
    "channel",
    [
        "context:creonow:ensure",
        "context:creonow:status",
        "context:creonow:watch:start",
        "context:creonow:watch:stop",
        "context:creonow:rules:get",
        *(f"context:creonow:{scope}:list" for scope in SCOPES),
    ],
)
async def test_every_channel_knows_unknown_and_blank_projects(client: Client, channel: str) -> None:
    unknown = await client.failure(channel, {"projectId": "prj_unknown"})
    blank = await client.failure(channel, {"projectId": " "})
    missing = await client.failure(channel, {})

    assert unknown.code == "NOT_FOUND"
    assert blank.code == "INVALID_ARGUMENT"
    assert missing.code == "INVALID_ARGUMENT"
    assert missing.details["field"] == "projectId"


@pytest.mark.requirement("CN-027")
@pytest.mark.parametrize("scope", SCOPES)
async def test_what_is_listed_can_be_read(client: Client, novel: Novel, scope: str) -> None:
    novel.put(f".creonow/{scope}/甲/乙.md", "内容\n")

    listed = await client.call(f"context:creonow:{scope}:list", novel.params)
    (item,) = listed["items"]
    read = await client.call(
        f"context:creonow:{scope}:read", {**novel.params, "path": item["path"]}
    )

    assert item == {
        "path": f".creonow/{scope}/甲/乙.md",
        "sizeBytes": 7,
        "updatedAtMs": item["updatedAtMs"],
    }
    assert read == {**item, "content": "内容\n", "redactionEvidence": []}


async def test_what_is_read_is_redacted_with_evidence_and_a_log_line(
    client: Client, novel: Novel, logged: LogLines
) -> None:
    novel.put(".creonow/settings/密.md", f"{SECRET}\n路径 /home/alice/novel/draft.txt\n")

    read = await client.call(
        "context:creonow:settings:read", {**novel.params, "path": ".creonow/settings/密.md"}
    )

    assert SECRET not in str(read)
    assert "/home/alice" not in str(read)
    assert "***REDACTED***" in read["content"]
    evidence = {piece["patternId"]: piece for piece in read["redactionEvidence"]}
    assert evidence["openai_api_key_sk"] == {
        "patternId": "openai_api_key_sk",
        "sourceRef": ".creonow/settings/密.md",
        "matchCount": 1,
    }
    assert "unix_abs_path" in evidence
    (line,) = [line for line in logged if line["event"] == "context_redaction_applied"]
    assert line["matches"] == 2
    assert SECRET not in str(logged)


async def test_a_clean_text_leaves_no_redaction_line(
    client: Client, novel: Novel, logged: LogLines
) -> None:
    novel.put(".creonow/settings/a.md", "平安无事")

    await client.call(
        "context:creonow:settings:read", {**novel.params, "path": ".creonow/settings/a.md"}
    )

    assert not [line for line in logged if line["event"] == "context_redaction_applied"]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        (".creonow/rules/style.md", "INVALID_ARGUMENT"),
        (".creonow/settings/../rules/style.md", "INVALID_ARGUMENT"),
        ("../outside.md", "INVALID_ARGUMENT"),
        ("/etc/passwd", "INVALID_ARGUMENT"),
        ("C:\\Windows\\win.ini", "INVALID_ARGUMENT"),
        (".creonow/settings/a\0.md", "INVALID_ARGUMENT"),
        ("", "INVALID_ARGUMENT"),
        (".creonow/settings/sub", "UNSUPPORTED"),
        (".creonow/settings/nothing.md", "NOT_FOUND"),
        (".creonow/settings/big.md", "IO_ERROR"),
        (".creonow/settings/gbk.md", "UNSUPPORTED"),
    ],
)
async def test_what_cannot_be_read_has_a_code_and_no_absolute_path(
    client: Client, novel: Novel, path: str, code: str
) -> None:
    await client.call("context:creonow:ensure", novel.params)
    novel.put(".creonow/settings/sub/a.md", "a")
    novel.put(".creonow/settings/big.md", b"x" * (4 * 1024 * 1024 + 1))
    novel.put(".creonow/settings/gbk.md", "林黛玉".encode("gbk"))

    error = await client.failure("context:creonow:settings:read", {**novel.params, "path": path})

    assert error.code == code
    assert str(novel.root) not in f"{error} {error.data}"
    if code == "IO_ERROR":
        assert error.details["limitBytes"] == 4 * 1024 * 1024


@pytest.mark.requirement("CN-019")
@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
async def test_a_link_out_of_the_tree_is_refused_and_logged_without_a_path(
    client: Client, novel: Novel, tmp_path: Path, logged: LogLines
) -> None:
    (tmp_path / "secret.md").write_text("secret", encoding="utf-8")
    (novel.root / ".creonow/settings").mkdir(parents=True)
    (novel.root / ".creonow/settings/a.md").symlink_to(tmp_path / "secret.md")

    error = await client.failure(
        "context:creonow:settings:read", {**novel.params, "path": ".creonow/settings/a.md"}
    )

    assert error.code == "INVALID_ARGUMENT"
    (line,) = [line for line in logged if line["event"] == "context_scope_violation"]
    assert line["reason"] == "link"
    assert str(tmp_path) not in str(logged)


async def test_one_project_never_sees_another(client: Client, novel: Novel, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    made = await client.call("project:create", {"rootPath": str(other)})
    novel.put(".creonow/settings/a.md", "mine")

    listed = await client.call("context:creonow:settings:list", {"projectId": made["projectId"]})
    error = await client.failure(
        "context:creonow:settings:read",
        {"projectId": made["projectId"], "path": ".creonow/settings/a.md"},
    )

    assert listed == {"items": []}
    assert error.code == "NOT_FOUND"


@pytest.mark.requirement("CN-026")
async def test_all_rules_come_in_one_reply(client: Client, novel: Novel) -> None:
    await client.call("context:creonow:ensure", novel.params)
    novel.put(".creonow/rules/禁用词.txt", "突然")

    rules = await client.call("context:creonow:rules:get", novel.params)

    assert [(piece["kind"], piece["path"]) for piece in rules["fragments"]] == [
        ("style", ".creonow/rules/style.md"),
        ("terminology", ".creonow/rules/terminology.json"),
        ("other", ".creonow/rules/禁用词.txt"),
        ("constraints", ".creonow/rules/constraints.json"),
    ]
    assert rules["fragments"][0]["content"] == "# Style\n\n"
    assert rules["fragments"][0]["updatedAtMs"] > 0
    assert rules["errors"] == []
    assert rules["redactionEvidence"] == []


async def test_rules_without_a_tree_are_empty(client: Client, novel: Novel) -> None:
    assert await client.call("context:creonow:rules:get", novel.params) == {
        "fragments": [],
        "errors": [],
        "redactionEvidence": [],
    }


async def test_a_rule_that_cannot_be_used_is_an_error_and_the_rest_still_comes(
    client: Client, novel: Novel
) -> None:
    novel.put(".creonow/rules/style.md", f"key={SECRET}")
    novel.put(".creonow/rules/terminology.json", '{"terms": [')
    novel.put(".creonow/rules/gbk.md", "林黛玉".encode("gbk"))
    novel.put(".creonow/rules/big.md", b"x" * (4 * 1024 * 1024 + 1))

    rules = await client.call("context:creonow:rules:get", novel.params)

    assert [piece["kind"] for piece in rules["fragments"]] == ["style"]
    assert SECRET not in str(rules)
    assert rules["redactionEvidence"][0]["sourceRef"] == ".creonow/rules/style.md"
    assert [(error["path"], error["reason"]) for error in rules["errors"]] == [
        (".creonow/rules/big.md", "too_large"),
        (".creonow/rules/gbk.md", "invalid_format"),
        (".creonow/rules/terminology.json", "invalid_format"),
    ]


async def test_a_byte_order_mark_and_crlf_do_no_harm(client: Client, novel: Novel) -> None:
    novel.put(".creonow/rules/terminology.json", b'\xef\xbb\xbf{"terms": []}\r\n')

    rules = await client.call("context:creonow:rules:get", novel.params)

    assert rules["errors"] == []
    assert rules["fragments"][0]["content"] == '{"terms": []}\r\n'


async def test_ensure_says_what_stands_in_the_way(client: Client, novel: Novel) -> None:
    novel.put(".creonow", "a file")

    error = await client.failure("context:creonow:ensure", novel.params)

    assert error.code == "IO_ERROR"
    assert error.details == {"path": ".creonow", "reason": "in_the_way"}
    assert (await client.call("context:creonow:status", novel.params))["exists"] is False


async def watched(client: Client, novel: Novel) -> bool:
    return (await client.call("context:creonow:status", novel.params))["watching"]


@pytest.mark.requirement("CN-025")
async def test_a_watching_client_is_notified_of_what_changed(
    client: Client, novel: Novel, logged: LogLines
) -> None:
    await client.call("context:creonow:ensure", novel.params)

    started = await client.call("context:creonow:watch:start", novel.params)
    novel.put(STYLE, "短句。")
    event = await client.event(CHANGED)
    stopped = await client.call("context:creonow:watch:stop", novel.params)

    assert started == {"watching": True}
    assert event == {
        "projectId": novel.project_id,
        "paths": [STYLE],
        "layers": ["rules"],
        "atMs": event["atMs"],
        "seq": 1,
        "ts": event["ts"],
    }
    assert stopped == {"watching": False}
    events = [line["event"] for line in logged if line["event"].startswith("context_watch")]
    assert events == ["context_watch_started", "context_watch_stopped"]


async def test_starting_and_stopping_twice_is_fine(client: Client, novel: Novel) -> None:
    for _ in range(2):
        assert await client.call("context:creonow:watch:start", novel.params) == {"watching": True}
    novel.put("第一章.md", "一")
    await client.event(CHANGED)

    for _ in range(2):
        assert await client.call("context:creonow:watch:stop", novel.params) == {"watching": False}

    assert [event for event in client.events if event["method"] == CHANGED] == []
    assert not await watched(client, novel)


async def test_watching_is_per_connection_and_status_means_anyone(
    client: Client, server: Server, novel: Novel
) -> None:
    async with in_memory(server) as other:
        await other.call("context:creonow:watch:start", novel.params)

        assert await watched(client, novel)
        assert await client.call("context:creonow:watch:stop", novel.params) == {"watching": False}
        assert await watched(client, novel)
        novel.put("第一章.md", "一")
        await other.event(CHANGED)
        assert client.events == []

    with anyio.fail_after(60):
        while await watched(client, novel):  # noqa: ASYNC110 - a hang-up notifies nobody
            await anyio.sleep(0.01)


async def test_a_watcher_that_dies_says_so_and_can_be_started_again(
    client: Client, novel: Novel
) -> None:
    await client.call("context:creonow:watch:start", novel.params)

    shutil.rmtree(novel.root)
    event = await client.event(CHANGED)

    assert event["watching"] is False
    assert event["paths"] == []
    assert not await watched(client, novel)
    assert (await client.failure("context:creonow:watch:start", novel.params)).code == "NOT_FOUND"
    novel.root.mkdir()
    await client.call("context:creonow:watch:start", novel.params)
    assert await watched(client, novel)


async def test_a_deleted_project_is_no_longer_watched(client: Client, novel: Novel) -> None:
    await client.call("context:creonow:watch:start", novel.params)

    await client.call("project:delete", novel.params)
    event = await client.event(CHANGED)

    assert event["watching"] is False


def test_a_lagging_client_gets_one_joined_event() -> None:
    first = CreonowChanged(project_id="p", paths=["b.md"], layers=["retrieved"], at_ms=1)
    second = CreonowChanged(project_id="p", paths=[STYLE, "b.md"], layers=["rules"], at_ms=2)

    both = merge_changes(first, second)

    assert both.paths == [STYLE, "b.md"]
    assert both.layers == ["rules", "retrieved", "immediate"]
    assert both.at_ms == 2


async def test_a_hundred_starts_leave_one_reminder_to_hang_up(
    session: Session, novel: Novel, server: Server
) -> None:
    for _ in range(100):
        await start_watching(session, ProjectId(project_id=novel.project_id))

    assert not session.watcher.register(session.peer.id)


async def test_what_is_wrong_with_a_file_is_reported_in_the_connections_language(
    client: Client, novel: Novel
) -> None:
    await client.call("initialize", {"locale": "zh-CN"})
    novel.put(".creonow/rules/big.md", b"x" * (4 * 1024 * 1024 + 1))
    novel.put(".creonow/rules/terminology.json", '{"terms": [')
    novel.put(".creonow/conversations/bad.json", "{")

    rules = await client.call("context:creonow:rules:get", novel.params)
    chats = await client.call("context:creonow:conversations:list", novel.params)

    messages = [error["message"] for error in (*rules["errors"], *chats["errors"])]
    assert len(messages) == 3
    assert all(re.search("[\u4e00-\u9fff]", message) for message in messages)


def test_an_event_names_the_layers_of_a_prompt() -> None:
    assert get_args(LayerName) == tuple(Layer)
