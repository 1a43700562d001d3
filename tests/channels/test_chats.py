import os
from typing import Any

import pytest

from creonowd.redaction import PLACEHOLDER
from testing.clients import Client
from testing.logs import LogLines
from testing.novels import Novel

PREFIX = "context:creonow:conversations"
FOLDER = ".creonow/conversations"
SECRET = "sk-abcdefghij0123456789ABCDEFGHIJ"
PASSWORD = "Kd83!mQz71pL"


def messages_of(text: str, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], **more}


async def save(client: Client, novel: Novel, conversation: dict[str, Any]) -> dict[str, Any]:
    return await client.call(f"{PREFIX}:save", {**novel.params, "conversation": conversation})


@pytest.mark.requirement("CN-015", "CN-028")
async def test_a_conversation_is_saved_listed_read_and_analysed(
    client: Client, novel: Novel
) -> None:
    saved = await save(client, novel, messages_of("请续写", id="c-1", documentId="第一章.md"))
    listed = await client.call(f"{PREFIX}:list", novel.params)
    read = await client.call(f"{PREFIX}:read", {**novel.params, "conversationId": "c-1"})
    updated = await client.call(
        f"{PREFIX}:analysis:update",
        {
            **novel.params,
            "conversationId": "c-1",
            "analysis": {"summary": "续写第一章", "mood": "好"},
        },
    )
    again = await client.call(f"{PREFIX}:read", {**novel.params, "conversationId": "c-1"})

    index = saved["index"]
    assert saved == {"saved": True, "index": index}
    assert index == {
        "id": "c-1",
        "documentId": "第一章.md",
        "createdAt": index["createdAt"],
        "updatedAt": index["updatedAt"],
        "messageCount": 1,
        "summary": "请续写",
        "summaryQuality": "heuristic",
    }
    assert listed == {"items": [index]}
    assert read == {
        "conversation": {
            "id": "c-1",
            "documentId": "第一章.md",
            "createdAt": index["createdAt"],
            "updatedAt": index["updatedAt"],
            "messages": [{"role": "user", "content": "请续写"}],
        }
    }
    assert updated == {
        "updated": True,
        "index": {**index, "summary": "续写第一章", "summaryQuality": "analysis"},
    }
    assert again["conversation"]["analysis"] == {"summary": "续写第一章", "mood": "好"}
    assert (novel.root / FOLDER / "c-1.json").is_file()


async def test_the_list_is_limited_and_can_be_of_one_document(client: Client, novel: Novel) -> None:
    for number in range(60):
        document = "甲.md" if number % 2 else "乙.md"
        await save(client, novel, messages_of(str(number), id=f"c{number}", documentId=document))

    default = await client.call(f"{PREFIX}:list", novel.params)
    all_of_them = await client.call(f"{PREFIX}:list", {**novel.params, "limit": 200})
    of_one = await client.call(
        f"{PREFIX}:list", {**novel.params, "documentId": "甲.md", "limit": 3}
    )

    assert len(default["items"]) == 50
    assert [item["id"] for item in all_of_them["items"]] == [f"c{n}" for n in range(59, -1, -1)]
    assert [item["id"] for item in of_one["items"]] == ["c59", "c57", "c55"]


@pytest.mark.parametrize("limit", [0, -1, 201, 1.5, "5"])
async def test_a_limit_out_of_range_is_refused(client: Client, novel: Novel, limit: Any) -> None:
    error = await client.failure(f"{PREFIX}:list", {**novel.params, "limit": limit})

    assert error.code == "INVALID_ARGUMENT"
    assert error.details["field"] == "limit"


async def test_conversations_leave_redacted_and_come_back_unharmed(
    client: Client, novel: Novel, logged: LogLines
) -> None:
    saved = await save(
        client, novel, messages_of(f"密钥 {SECRET}", id="a", extra={"note": [f"也有 {SECRET}"]})
    )
    await save(client, novel, messages_of("好", id="b", login={"password": PASSWORD, SECRET: 1}))
    named = await client.call(f"{PREFIX}:read", {**novel.params, "conversationId": "b"})
    read = await client.call(f"{PREFIX}:read", {**novel.params, "conversationId": "a"})
    listed = await client.call(f"{PREFIX}:list", novel.params)
    await save(client, novel, read["conversation"])

    assert SECRET not in f"{saved}{read}{listed}{named}{logged}"
    assert named["conversation"]["login"] == {"password": PLACEHOLDER, PLACEHOLDER: 1}
    assert "***REDACTED***" in read["conversation"]["messages"][0]["content"]
    assert read["redactionEvidence"] == [
        {"patternId": "openai_api_key_sk", "sourceRef": f"{FOLDER}/a.json", "matchCount": 2}
    ]
    assert [piece["patternId"] for piece in named["redactionEvidence"]] == [
        "labelled_secret",
        "openai_api_key_sk",
    ]
    assert listed["redactionEvidence"][0]["sourceRef"] == f"{FOLDER}/a.json"
    assert SECRET in (novel.root / FOLDER / "a.json").read_text(encoding="utf-8")
    assert [line for line in logged if line["event"] == "context_redaction_applied"]


@pytest.mark.parametrize(
    ("channel", "payload", "code"),
    [
        ("read", {"conversationId": "none"}, "NOT_FOUND"),
        ("read", {"conversationId": "../a"}, "INVALID_ARGUMENT"),
        ("read", {"conversationId": ""}, "INVALID_ARGUMENT"),
        ("read", {}, "INVALID_ARGUMENT"),
        ("save", {"conversation": {"id": "a"}}, "INVALID_ARGUMENT"),
        ("save", {"conversation": {"id": "a b", "messages": []}}, "INVALID_ARGUMENT"),
        ("save", {"conversation": [1]}, "INVALID_ARGUMENT"),
        ("save", {}, "INVALID_ARGUMENT"),
        (
            "analysis:update",
            {"conversationId": "none", "analysis": {"summary": "x"}},
            "NOT_FOUND",
        ),
        ("analysis:update", {"conversationId": "none", "analysis": {}}, "INVALID_ARGUMENT"),
    ],
)
async def test_what_cannot_be_done_has_its_code(
    client: Client, novel: Novel, channel: str, payload: dict[str, Any], code: str
) -> None:
    error = await client.failure(f"{PREFIX}:{channel}", {**novel.params, **payload})

    assert error.code == code
    assert str(novel.root) not in f"{error} {error.data}"


@pytest.mark.parametrize(
    ("channel", "payload"),
    [
        ("list", {}),
        ("read", {"conversationId": "a"}),
        ("save", {"conversation": messages_of("x")}),
        ("analysis:update", {"conversationId": "a", "analysis": {"summary": "x"}}),
    ],
)
async def test_unknown_and_blank_projects(
    client: Client, channel: str, payload: dict[str, Any]
) -> None:
    unknown = await client.failure(f"{PREFIX}:{channel}", {**payload, "projectId": "prj_no"})
    blank = await client.failure(f"{PREFIX}:{channel}", {**payload, "projectId": "  "})

    assert unknown.code == "NOT_FOUND"
    assert blank.code == "INVALID_ARGUMENT"


async def test_damaged_files_are_named_in_the_list(client: Client, novel: Novel) -> None:
    await save(client, novel, messages_of("甲", id="a"))
    novel.put(f"{FOLDER}/bad.json", "{")
    novel.put(f"{FOLDER}/index.json", "not json")

    listed = await client.call(f"{PREFIX}:list", novel.params)

    assert [item["id"] for item in listed["items"]] == ["a"]
    assert [(error["path"], error["code"]) for error in listed["errors"]] == [
        (f"{FOLDER}/bad.json", "IO_ERROR")
    ]
    assert (novel.root / FOLDER / "index.damaged-1.json").read_bytes() == b"not json"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="only POSIX has named pipes")
async def test_sixty_looks_at_a_pipe_keep_nobody_waiting(client: Client, novel: Novel) -> None:
    novel.put(".creonow/rules/style.md", "雨")
    place = novel.root / ".creonow" / "conversations" / "index.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(place)
    method = "context:creonow:conversations:list"
    for number in range(60):
        await client.post(
            {"jsonrpc": "2.0", "id": f"look {number}", "method": method, "params": novel.params}
        )

    path = {"path": ".creonow/rules/style.md"}
    read = await client.call("context:creonow:rules:read", novel.params | path)
    replies = [await client.reply(f"look {number}") for number in range(60)]

    assert read["content"] == "雨"
    assert not [reply for reply in replies if "INTERNAL" in str(reply)]
