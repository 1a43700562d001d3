from pathlib import Path

import pytest

from testing.clients import Client

GOOD = "---\nname: 我的\ncontext_rules:\n  surrounding: 5\n---\n"
BAD = "---\nname: 我的\ncontext_rules:\n  surounding: 5\n---\n"

KEY = "ghp_Zq8Lw2Xv9Rt4Yb7Nc1Md6Kf3Hs5Jg0Pd2Xa"


async def project_of(client: Client, root: Path) -> str:
    root.mkdir()
    return (await client.call("project:create", {"rootPath": str(root)}))["projectId"]


async def test_built_in_skills_are_listed_with_what_they_declare(client: Client) -> None:
    listed = await client.call("skill:list")

    polish = next(item for item in listed["items"] if item["id"] == "builtin:polish")
    assert polish == {
        "id": "builtin:polish",
        "name": "润色",
        "description": "润色选中的文字：用词更准、行文更顺，意思不变",
        "names": {"en": "Polish", "zh": "润色"},
        "descriptions": {
            "en": "Polish a passage; smoother wording, the same meaning",
            "zh": "润色选中的文字：用词更准、行文更顺，意思不变",
        },
        "scope": "builtin",
        "slug": "polish",
        "path": "builtin/polish/SKILL.md",
        "valid": True,
        "errors": [],
        "contextRules": {
            "surrounding": 500,
            "userPreferences": True,
            "styleGuide": True,
            "characters": False,
            "outline": False,
            "recentSummary": 3,
            "knowledgeGraph": False,
            "retrieval": False,
            "synopsis": False,
        },
        "contextRulesText": '{"surrounding":500,"user_preferences":true,"style_guide":true,'
        '"characters":false,"outline":false,"recent_summary":3,"knowledge_graph":false,'
        '"retrieval":false,"synopsis":false}',
        "requiresSelection": True,
        "targetTokens": 1500,
    }


@pytest.mark.parametrize("locale", ["en", "zh-CN"])
async def test_skills_are_named_in_the_language_of_the_client(client: Client, locale: str) -> None:
    await client.call("initialize", {"locale": locale})

    items = (await client.call("skill:list"))["items"]

    assert len(items) >= 6
    for item in items:
        assert item["name"] == item["names"][locale[:2]]
        assert item["description"] == item["descriptions"][locale[:2]]
        assert (item["name"] + item["description"]).isascii() is (locale == "en")


async def test_a_skill_with_one_name_has_it_in_both_languages(
    client: Client, tmp_path: Path
) -> None:
    project = {"projectId": await project_of(client, tmp_path / "小说")}
    content = GOOD.replace("---\n", "---\nname_en: Mine\n", 1)

    await client.call("skill:write", project | {"scope": "project", "slug": "a", "content": GOOD})
    await client.call(
        "skill:write", project | {"scope": "project", "slug": "b", "content": content}
    )
    items = {one["slug"]: one for one in (await client.call("skill:list", project))["items"]}

    own = items["a"]["name"]
    assert items["a"]["names"] == {"en": own, "zh": own}
    assert items["b"]["names"] == {"en": "Mine", "zh": items["b"]["name"]}


@pytest.mark.requirement("CN-013")
async def test_a_skill_is_written_listed_and_read(client: Client, tmp_path: Path) -> None:
    project = {"projectId": await project_of(client, tmp_path / "小说")}

    written = await client.call(
        "skill:write", project | {"scope": "project", "slug": "mine", "content": GOOD}
    )
    listed = await client.call("skill:list", project)
    read = await client.call("skill:read", project | {"skillId": "project:mine"})

    assert written == read
    assert read["skill"]["content"] == GOOD
    assert read["skill"]["prompt"] == {"system": "", "user": "{{text}}"}
    assert listed["items"][-1]["id"] == "project:mine"
    assert str(tmp_path) not in repr(listed)


@pytest.mark.requirement("SK-019", "SK-029")
async def test_an_invalid_skill_is_refused_with_its_key_and_line(
    client: Client, tmp_path: Path
) -> None:
    project = {"projectId": await project_of(client, tmp_path / "小说")}

    error = await client.failure("skill:write", project | {"scope": "project", "content": BAD})
    validity = await client.call("skill:validate", {"content": BAD})

    fault = {
        "key": "context_rules.surounding",
        "message": "`surounding` is not known; did you mean `surrounding`?",
        "line": 4,
    }
    assert (error.code, error.number) == ("INVALID_ARGUMENT", -32602)
    assert error.details["errors"] == [fault]
    assert validity == {"valid": False, "errors": [fault]}
    assert await client.call("skill:validate", {"content": GOOD}) == {"valid": True, "errors": []}


@pytest.mark.parametrize(
    ("locale", "message", "error_begins"),
    [
        (
            "en",
            "`surounding` is not known; did you mean `surrounding`?",
            "The skill is not valid (line 4): `surounding`",
        ),
        (
            "zh-CN",
            "`surounding` 不认识；是否想写 `surrounding`？",
            "技能不合法（第 4 行）：`surounding`",
        ),
    ],
)
async def test_faults_are_in_the_language_of_the_connection(
    client: Client, tmp_path: Path, locale: str, message: str, error_begins: str
) -> None:
    await client.call("initialize", {"locale": locale})
    project = {"projectId": await project_of(client, tmp_path / "小说")}
    file = tmp_path / "小说" / ".creonow" / "skills" / "bad" / "SKILL.md"
    file.parent.mkdir(parents=True)
    file.write_text(BAD, encoding="utf-8")

    error = await client.failure("skill:write", project | {"scope": "project", "content": BAD})
    validity = await client.call("skill:validate", {"content": BAD})
    listed = await client.call("skill:list", project)

    assert str(error).startswith(error_begins)
    found = (error.details["errors"], validity["errors"], listed["items"][-1]["errors"])
    assert [[fault["message"] for fault in faults] for faults in found] == [[message]] * 3


async def test_an_invalid_skill_on_disk_stays_listed_with_its_error(
    client: Client, tmp_path: Path
) -> None:
    project = {"projectId": await project_of(client, tmp_path / "小说")}
    file = tmp_path / "小说" / ".creonow" / "skills" / "bad" / "SKILL.md"
    file.parent.mkdir(parents=True)
    file.write_text(BAD, encoding="utf-8")

    listed = await client.call("skill:list", project)

    bad = listed["items"][-1]
    assert (bad["id"], bad["valid"], bad["errors"][0]["line"]) == ("project:bad", False, 4)


async def test_a_skill_is_reloaded_as_soon_as_the_watcher_reports_it(
    client: Client, tmp_path: Path
) -> None:
    project = {"projectId": await project_of(client, tmp_path / "小说")}
    await client.call("context:creonow:ensure", project)
    await client.call("context:creonow:watch:start", project)
    file = tmp_path / "小说" / ".creonow" / "skills" / "mine" / "SKILL.md"
    file.parent.mkdir(parents=True)
    path = ".creonow/skills/mine/SKILL.md"
    states: list[tuple[bool, list[int]]] = []

    for content in (GOOD, BAD, GOOD.replace("5", "7")):
        file.write_text(content, encoding="utf-8")
        await client.event("context:creonow:changed", lambda event: path in event["paths"])
        skill = (await client.call("skill:read", project | {"skillId": "project:mine"}))["skill"]
        states.append((skill["valid"], [fault["line"] for fault in skill["errors"]]))

    assert states == [(True, []), (False, [4]), (True, [])]
    assert skill["contextRules"]["surrounding"] == 7
    file.unlink()
    await client.event("context:creonow:changed", lambda event: path in event["paths"])
    gone = await client.failure("skill:read", project | {"skillId": "project:mine"})
    assert gone.code == "NOT_FOUND"


@pytest.mark.parametrize(
    ("channel", "payload", "code"),
    [
        ("skill:read", {"skillId": "nobody"}, "NOT_FOUND"),
        ("skill:read", {"skillId": ""}, "INVALID_ARGUMENT"),
        ("skill:list", {"projectId": "prj_nobody"}, "NOT_FOUND"),
        ("skill:list", {"projectId": " "}, "INVALID_ARGUMENT"),
        ("skill:write", {"scope": "builtin", "content": GOOD}, "INVALID_ARGUMENT"),
        ("skill:write", {"scope": "project", "content": GOOD}, "INVALID_ARGUMENT"),
        ("skill:write", {"scope": "global", "slug": "../x", "content": GOOD}, "INVALID_ARGUMENT"),
        ("skill:validate", {}, "INVALID_ARGUMENT"),
    ],
)
async def test_what_cannot_be_done_says_why(
    client: Client, channel: str, payload: dict[str, str], code: str
) -> None:
    assert (await client.failure(channel, payload)).code == code


async def test_secrets_in_names_keys_and_placeholders_of_a_skill_are_hidden(
    client: Client, tmp_path: Path
) -> None:
    project = await project_of(client, tmp_path / "novel")
    folder = tmp_path / "novel" / ".creonow" / "skills" / f"skill-{KEY}"
    folder.mkdir(parents=True)
    text = f"---\nname: {KEY}\n{KEY}: 1\ncontext_rules:\n  {KEY}: 2\n---\n{{{{{KEY}}}}}\n"
    (folder / "SKILL.md").write_text(text, encoding="utf-8")

    listed = await client.call("skill:list", {"projectId": project})
    checked = await client.call("skill:validate", {"content": text})
    (skill_id,) = [item["id"] for item in listed["items"] if "REDACTED" in item["id"]]
    read = await client.call("skill:read", {"projectId": project, "skillId": skill_id})

    assert KEY not in str(listed) + str(checked)
    assert read["skill"]["id"] == skill_id


async def test_a_secret_in_a_skills_text_is_hidden_and_not_written_over(
    client: Client, tmp_path: Path
) -> None:
    project = await project_of(client, tmp_path / "novel")
    file = tmp_path / "novel" / ".creonow" / "skills" / "a" / "SKILL.md"
    file.parent.mkdir(parents=True)
    text = f"---\nname: a\nprompt:\n  system: Use {KEY}.\n---\nThe key is {KEY}.\n"
    file.write_text(text, encoding="utf-8")

    read = (await client.call("skill:read", {"skillId": "a", "projectId": project}))["skill"]
    write = {"scope": "project", "slug": "a", "projectId": project, "content": read["content"]}
    refused = await client.failure("skill:write", write)

    assert KEY not in str(read)
    assert read["content"] == text.replace(KEY, "***REDACTED***")
    assert read["prompt"]["system"] == "Use ***REDACTED***."
    assert (refused.code, refused.details["field"]) == ("INVALID_ARGUMENT", "content")
    assert file.read_text(encoding="utf-8") == text


async def test_a_project_is_listed_without_the_secret_in_its_name(
    client: Client, tmp_path: Path
) -> None:
    (tmp_path / "novel").mkdir()
    created = await client.call(
        "project:create", {"rootPath": str(tmp_path / "novel"), "name": f"a {KEY}"}
    )

    listed = await client.call("project:list")

    assert created["name"] == "a ***REDACTED***"
    assert KEY not in str(listed)
