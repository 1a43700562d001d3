import hashlib
import json
from typing import Any

import pytest

from creonowd.rpc.server import Server
from testing.clients import Client, in_memory
from testing.logs import LogLines
from testing.novels import Novel

PATH = ".creonow/rules/constraints.json"
SECRET = "sk-abcdefghij0123456789ABCDEFGHIJ"
CHANNELS: dict[str, dict[str, Any]] = {
    "constraints:get": {},
    "constraints:set": {"constraints": {"version": 1, "items": ["甲"]}},
    "constraints:list": {},
    "constraints:create": {"constraint": {"text": "甲"}},
    "constraints:update": {"constraintId": "con_x", "patch": {"text": "甲"}},
    "constraints:delete": {"constraintId": "con_x"},
    "constraints:check": {"documentId": "1.md", "text": "甲"},
}


def revision(novel: Novel) -> str:
    return hashlib.sha256((novel.root / PATH).read_bytes()).hexdigest()


async def create(client: Client, novel: Novel, text: str, **more: Any) -> dict[str, Any]:
    made = await client.call(
        "constraints:create", {**novel.params, "constraint": {"text": text, **more}}
    )
    return made["constraint"]


@pytest.mark.parametrize("channel", CHANNELS)
async def test_unknown_and_blank_projects(client: Client, channel: str) -> None:
    unknown = await client.failure(channel, {**CHANNELS[channel], "projectId": "prj_unknown"})
    blank = await client.failure(channel, {**CHANNELS[channel], "projectId": ""})

    assert unknown.code == "NOT_FOUND"
    assert blank.code == "INVALID_ARGUMENT"


@pytest.mark.requirement("CN-022")
async def test_without_a_file_the_defaults_are_answered_and_nothing_is_written(
    client: Client, novel: Novel
) -> None:
    got = await client.call("constraints:get", novel.params)
    listed = await client.call("constraints:list", novel.params)

    assert got == {"constraints": {"version": 1, "items": []}, "revision": listed["revision"]}
    assert listed["constraints"] == []
    assert list(novel.root.iterdir()) == []


@pytest.mark.requirement("CN-020")
async def test_get_and_set_are_a_view_of_the_one_file(client: Client, novel: Novel) -> None:
    wanted = {"version": 1, "items": ["第一人称", "没有魔法"]}

    put = await client.call("constraints:set", {**novel.params, "constraints": wanted})
    got = await client.call("constraints:get", novel.params)
    listed = await client.call("constraints:list", novel.params)

    assert put == got == {"constraints": wanted, "revision": revision(novel)}
    assert [item["text"] for item in listed["constraints"]] == wanted["items"]
    assert [
        item["text"] for item in json.loads((novel.root / PATH).read_bytes())["items"]
    ] == wanted["items"]
    novel.put(PATH, '{"version": 1, "items": ["手写"]}')
    assert (await client.call("constraints:get", novel.params))["constraints"]["items"] == ["手写"]


@pytest.mark.requirement("CE-039", "CE-041")
async def test_a_created_constraint_has_its_defaults_and_its_source(
    client: Client, novel: Novel, logged: LogLines
) -> None:
    made = await client.call(
        "constraints:create", {**novel.params, "constraint": {"text": "主角不知道真相"}}
    )

    item = made["constraint"]
    assert made == {"constraint": item, "revision": revision(novel)}
    assert item == {
        "id": item["id"],
        "text": "主角不知道真相",
        "type": "narrative",
        "source": "user",
        "priority": 100,
        "degradable": False,
        "updatedAt": item["updatedAt"],
    }
    (line,) = [line for line in logged if line["event"] == "constraints_updated"]
    assert line["count"] == 1
    assert "真相" not in str(logged)


@pytest.mark.requirement("CE-038")
async def test_the_five_types_and_no_other(client: Client, novel: Novel) -> None:
    for kind in ("narrative", "character", "world", "style", "plot"):
        assert (await create(client, novel, f"{kind} 约束", type=kind))["type"] == kind

    error = await client.failure(
        "constraints:create", {**novel.params, "constraint": {"text": "x", "type": "poem"}}
    )

    assert error.code == "CONSTRAINT_VALIDATION_ERROR"
    assert error.number == -32803


@pytest.mark.requirement("CE-040")
async def test_the_list_is_in_the_order_of_the_file(client: Client, novel: Novel) -> None:
    made = [await create(client, novel, text) for text in ("甲", "乙", "丙")]

    listed = await client.call("constraints:list", novel.params)

    assert listed == {"constraints": made, "revision": revision(novel)}


@pytest.mark.requirement("CE-042")
async def test_an_update_answers_the_changed_constraint(client: Client, novel: Novel) -> None:
    item = await create(client, novel, "甲")

    changed = await client.call(
        "constraints:update",
        {
            **novel.params,
            "constraintId": item["id"],
            "patch": {"text": "乙", "type": "plot", "priority": 7, "degradable": True},
        },
    )

    assert changed["constraint"] == {
        **item,
        "text": "乙",
        "type": "plot",
        "priority": 7,
        "degradable": True,
        "updatedAt": changed["constraint"]["updatedAt"],
    }
    assert changed["revision"] == revision(novel)


@pytest.mark.requirement("CE-043")
async def test_a_delete_answers_the_id_and_the_revision(client: Client, novel: Novel) -> None:
    item = await create(client, novel, "甲")

    gone = await client.call("constraints:delete", {**novel.params, "constraintId": item["id"]})

    assert gone["undo"].startswith("undo_")
    del gone["undo"]
    assert gone == {"deletedConstraintId": item["id"], "revision": revision(novel)}
    assert (await client.call("constraints:list", novel.params))["constraints"] == []


@pytest.mark.parametrize(
    ("channel", "payload", "code"),
    [
        ("constraints:create", {"constraint": {"text": " "}}, "CONSTRAINT_VALIDATION_ERROR"),
        ("constraints:create", {"constraint": {}}, "INVALID_ARGUMENT"),
        ("constraints:create", {"constraint": {"text": 7}}, "INVALID_ARGUMENT"),
        ("constraints:create", {"constraint": {"text": "x", "priority": 1.5}}, "INVALID_ARGUMENT"),
        ("constraints:create", {"constraint": {"text": "有"}}, "CONSTRAINT_CONFLICT"),
        (
            "constraints:create",
            {"constraint": {"text": "x", "source": "kg"}},
            "CONTEXT_SCOPE_VIOLATION",
        ),
        ("constraints:update", {"constraintId": "no", "patch": {}}, "CONSTRAINT_NOT_FOUND"),
        ("constraints:update", {"constraintId": " ", "patch": {}}, "INVALID_ARGUMENT"),
        ("constraints:update", {"constraintId": "kg", "patch": {}}, "CONTEXT_SCOPE_VIOLATION"),
        ("constraints:delete", {"constraintId": "no"}, "CONSTRAINT_NOT_FOUND"),
        ("constraints:delete", {"constraintId": "kg"}, "CONTEXT_SCOPE_VIOLATION"),
        ("constraints:delete", {}, "INVALID_ARGUMENT"),
        (
            "constraints:set",
            {"constraints": {"version": 2, "items": []}},
            "CONSTRAINT_VALIDATION_ERROR",
        ),
        ("constraints:set", {"constraints": {"items": []}}, "INVALID_ARGUMENT"),
        ("constraints:set", {"constraints": {"version": 1, "items": [1]}}, "INVALID_ARGUMENT"),
        (
            "constraints:set",
            {"constraints": {"version": 1, "items": ["a", "a"]}},
            "CONSTRAINT_CONFLICT",
        ),
        (
            "constraints:set",
            {"constraints": {"version": 1, "items": [str(n) for n in range(501)]}},
            "CONSTRAINT_VALIDATION_ERROR",
        ),
        (
            "constraints:set",
            {"constraints": {"version": 1, "items": []}, "expectedRevision": "stale"},
            "CONSTRAINT_CONFLICT",
        ),
    ],
)
async def test_what_cannot_be_done_has_its_code_and_changes_nothing(
    client: Client, novel: Novel, channel: str, payload: dict[str, Any], code: str
) -> None:
    novel.put(
        PATH,
        json.dumps({"version": 2, "items": ["有", {"id": "kg", "text": "图", "source": "kg"}]}),
    )
    before = revision(novel)

    error = await client.failure(channel, {**novel.params, **payload})

    assert error.code == code
    assert revision(novel) == before


@pytest.mark.requirement("CE-090")
async def test_the_501st_is_refused_with_the_limit(client: Client, novel: Novel) -> None:
    many = {"version": 1, "items": [f"约束 {number}" for number in range(500)]}
    await client.call("constraints:set", {**novel.params, "constraints": many})

    error = await client.failure(
        "constraints:create", {**novel.params, "constraint": {"text": "多"}}
    )

    assert error.code == "CONSTRAINT_VALIDATION_ERROR"
    assert error.details["limit"] == 500


async def test_two_windows_with_one_revision_and_the_second_must_look_again(
    client: Client, server: Server, novel: Novel
) -> None:
    seen = (await client.call("constraints:list", novel.params))["revision"]
    async with in_memory(server) as other:
        await client.call(
            "constraints:create",
            {**novel.params, "constraint": {"text": "甲"}, "expectedRevision": seen},
        )
        error = await other.failure(
            "constraints:create",
            {**novel.params, "constraint": {"text": "乙"}, "expectedRevision": seen},
        )

    assert error.code == "CONSTRAINT_CONFLICT"
    assert error.data["retryable"] is True
    assert error.details["revision"] == revision(novel)


async def test_a_broken_file_is_reported_with_line_and_column(client: Client, novel: Novel) -> None:
    novel.put(PATH, '{\n  "version": 1,\n  "items": [\n    "甲",\n  ]\n}\n')

    for channel in CHANNELS.keys() - {"constraints:check"}:
        payload = CHANNELS[channel]
        error = await client.failure(channel, {**novel.params, **payload})
        assert error.code == "CONSTRAINT_VALIDATION_ERROR"
        assert error.details == {"path": PATH, "line": 5, "column": 3}


async def test_constraints_leave_redacted_and_come_back_unharmed(
    client: Client, novel: Novel, logged: LogLines
) -> None:
    await create(client, novel, f"不得泄露 {SECRET}")

    got = await client.call("constraints:get", novel.params)
    listed = await client.call("constraints:list", novel.params)
    put = await client.call("constraints:set", {**novel.params, "constraints": got["constraints"]})

    assert SECRET not in f"{got}{listed}{put}"
    assert listed["redactionEvidence"] == [
        {"patternId": "openai_api_key_sk", "sourceRef": PATH, "matchCount": 1}
    ]
    assert put["revision"] == got["revision"]
    assert SECRET in (novel.root / PATH).read_text(encoding="utf-8")
    assert [line for line in logged if line["event"] == "context_redaction_applied"]
    assert SECRET not in str(logged)


async def test_the_graphs_constraints_are_listed_but_not_in_the_plain_view(
    client: Client, novel: Novel
) -> None:
    novel.put(
        PATH,
        json.dumps({"version": 2, "items": [{"id": "k", "text": "图", "source": "kg"}, "甲"]}),
    )

    got = await client.call("constraints:get", novel.params)
    listed = await client.call("constraints:list", novel.params)

    assert got["constraints"]["items"] == ["甲"]
    assert [item["source"] for item in listed["constraints"]] == ["kg", "user"]


async def test_a_text_is_checked_by_the_constraints_that_hold_at_its_place(
    client: Client, novel: Novel
) -> None:
    for chapter in ("第1章.md", "第99章.md"):
        novel.put(chapter, "雨停了。")
    await novel.constrain("不要出现「手机」", "文字要美")
    later = {"text": "不要出现「长剑」", "from": "第99章"}
    await client.call("constraints:create", {**novel.params, "constraint": later})
    payload = {**novel.params, "documentId": "第1章.md", "text": f"😀他拿出手机{SECRET}和长剑。"}

    checked = await client.call("constraints:check", payload)

    verdict = checked["verdict"]
    assert verdict["status"] == "violated"
    (violation,) = verdict["violations"]
    assert payload["text"][violation["from"] : violation["to"]] == "手机"
    assert SECRET not in json.dumps(checked, ensure_ascii=False)
    assert [one["constraint"] for one in verdict["unchecked"]] == ["文字要美"]


async def test_a_check_says_that_the_constraints_could_not_be_read(
    client: Client, novel: Novel
) -> None:
    novel.put(PATH, "{")

    checked = await client.call(
        "constraints:check", {**novel.params, "documentId": "1.md", "text": "雨停了。"}
    )

    assert checked["verdict"]["status"] != "passed"
    assert checked["verdict"]["unchecked"]
