"""The place in the story decides what is injected: over the wire, with evidence and reasons."""

from pathlib import Path
from typing import Any

import pytest

from testing.clients import Client
from testing.novels import Novel, make_novel

Result = dict[str, Any]


@pytest.fixture
async def novel(client: Client, tmp_path: Path) -> Novel:
    """A novel of six chapters, with its author in the third."""
    files = {f"第{n}章.md": f"# 第{n}章\n\n这一章的正文。\n" for n in "一二三四五六"}
    return await make_novel(
        client, tmp_path / "长夜", files, documentId="第三章.md", cursorPosition=10
    )


async def constrain(novel: Novel, text: str, **more: Any) -> Result:
    payload = {"constraint": {"text": text} | more}
    return await novel.client.call("constraints:create", novel.params | payload)


async def at(novel: Novel, chapter: str, **more: Any) -> Result:
    return await novel.assemble(documentId=f"第{chapter}章.md", skillId="builtin:continue", **more)


def rules(result: Result) -> dict[str, str]:
    """Return by what was left out why the story left it out."""
    timing = {"not_yet", "no_longer", "future"}
    return {
        entry["sourceRef"]: entry["rule"]
        for entry in result["trimEvidence"]
        if entry["rule"] in timing and entry["action"] == "dropped"
    }


async def test_a_constraint_holds_between_its_places(novel: Novel) -> None:
    """Seed 2's own example holds before chapter five, and nowhere after it."""
    made = await constrain(novel, "主角在第五章之前不知道真相", until="第五章")
    ref = f".creonow/rules/constraints.json#{made['constraint']['id']}"

    before, after = await at(novel, "四"), await at(novel, "五")

    assert "不知道真相" in before["systemPrompt"]
    assert "不知道真相" not in after["systemPrompt"]
    assert rules(before) == {}
    assert rules(after) == {ref: "no_longer"}
    assert made["constraint"]["until"] == "第五章"
    assert not after["layers"]["rules"]["truncated"]


async def test_characters_settings_and_preferences_have_a_time(novel: Novel) -> None:
    novel.put(".creonow/characters/苏晴.md", "---\nfrom: 4\n---\n苏晴，医生。\n")
    novel.put(".creonow/settings/战争.md", "---\nuntil: 第四章.md\n---\n两国交战。\n")
    novel.put(
        ".creonow/settings/memory.json",
        '{"version":1,"rules":[{"id":"p","text":"多用短句","confidence":1,"from":"第九章"}]}',
    )

    early, late = await at(novel, "三"), await at(novel, "四")

    assert "苏晴，医生" not in early["prompt"]
    assert "两国交战" in early["prompt"]
    assert "苏晴，医生" in late["prompt"]
    assert "两国交战" not in late["prompt"]
    assert rules(early) == {
        ".creonow/characters/苏晴.md": "not_yet",
        ".creonow/settings/memory.json#p": "not_yet",
    }
    assert rules(late) == {
        ".creonow/settings/战争.md": "no_longer",
        ".creonow/settings/memory.json#p": "not_yet",
    }
    assert not any(notice["code"].startswith("STORY") for notice in early["notices"])


async def test_a_character_progresses(novel: Novel) -> None:
    novel.put(".creonow/characters/林远.md", "# 林远\n\n学徒。\n\n## 自第四章\n\n已是掌柜。\n")

    early, late = await at(novel, "三"), await at(novel, "四")

    assert "已是掌柜" not in early["prompt"]
    assert "学徒" in late["prompt"]
    assert "已是掌柜" in late["prompt"]
    assert rules(early) == {".creonow/characters/林远.md#自第四章": "not_yet"}


async def test_english_chapters_have_places_too(client: Client, tmp_path: Path) -> None:
    files = {f"Chapter {n}.md": f"# Chapter {n}\n\nProse.\n" for n in ("I", "II", "III")}
    novel = await make_novel(client, tmp_path / "novel", files, cursorPosition=3)
    novel.put(
        ".creonow/characters/Anna.md", "# Anna\n\nA clerk.\n\n## From chapter 3\n\nA widow.\n"
    )

    second = await novel.assemble(documentId="Chapter II.md")
    third = await novel.assemble(documentId="Chapter III.md")

    assert "A widow" not in second["prompt"]
    assert "A widow" in third["prompt"]


async def test_the_prefix_changes_only_where_something_begins_or_ends(novel: Novel) -> None:
    await constrain(novel, "不写真相", until="5")
    novel.put(".creonow/characters/林远.md", "# 林远\n\n学徒。\n\n## 自第四章\n\n掌柜。\n")
    novel.put(".creonow/settings/雪.md", "---\nfrom: 6\n---\n大雪封山。\n")

    changes: list[Any] = []
    hashes: list[str] = []
    for chapter in "一二三四五六":
        for cursor in (0, 8):
            result = await at(novel, chapter, cursorPosition=cursor)
            hashes.append(result["stablePrefixHash"])
            changes.append(result.get("prefixChange"))
    back = await at(novel, "一")

    assert len(dict.fromkeys(hashes)) == 4
    assert [(at // 2 + 1, change) for at, change in enumerate(changes) if change] == [
        (
            4,
            {
                "sourceRef": ".creonow/characters/林远.md",
                "change": "changed",
                "cause": "progression",
            },
        ),
        (5, {"sourceRef": changes[8]["sourceRef"], "change": "removed", "cause": "no_longer"}),
        (6, {"sourceRef": ".creonow/settings/雪.md", "change": "added", "cause": "in_span"}),
    ]
    assert changes[8]["sourceRef"].startswith(".creonow/rules/constraints.json#")
    assert back["stablePrefixHash"] == hashes[0]
    assert back["prefixChange"]["cause"] == "in_span"


async def test_an_edit_is_no_matter_of_time(novel: Novel) -> None:
    novel.put(".creonow/settings/雪.md", "---\nfrom: 1\n---\n大雪封山。\n")
    await at(novel, "三")
    novel.put(".creonow/settings/雪.md", "---\nfrom: 1\n---\n雪停了。\n")

    result = await at(novel, "三")

    assert result["prefixChange"] == {"sourceRef": ".creonow/settings/雪.md", "change": "changed"}


async def test_a_constraint_left_out_by_time_is_not_judged(novel: Novel) -> None:
    await constrain(novel, "不得出现“真相”二字", **{"from": "第五章"})
    await novel.script({"text": "真相大白。"})

    early = await novel.run(documentId="第三章.md")
    late = await novel.run(documentId="第五章.md")

    assert early["verdict"]["violations"] == []
    assert early["verdict"]["unchecked"] == []
    assert late["verdict"]["checked"] + len(late["verdict"]["unchecked"]) == 1


async def test_places_of_a_constraint_are_kept_changed_and_taken_away(novel: Novel) -> None:
    made = await constrain(novel, "一", **{"from": " 3 ", "until": "雪夜"})
    change = {"constraintId": made["constraint"]["id"], "patch": {"from": None, "until": "9"}}

    changed = await novel.client.call("constraints:update", novel.params | change)
    listed = await novel.client.call("constraints:list", novel.params)
    plain = {"constraints": {"version": 1, "items": ["一", "二"]}}
    await novel.client.call("constraints:set", novel.params | plain)
    after_set = await novel.client.call("constraints:list", novel.params)

    assert made["constraint"]["from"] == "3"
    assert changed["constraint"]["until"] == "9"
    assert "from" not in changed["constraint"]
    assert listed["constraints"] == [changed["constraint"]]
    assert after_set["constraints"][0] == changed["constraint"]


async def test_a_place_that_is_too_long_is_refused(novel: Novel) -> None:
    payload = {"constraint": {"text": "一", "until": "章" * 1000}}

    error = await novel.client.failure("constraints:create", novel.params | payload)

    assert error.data["code"] == "CONSTRAINT_VALIDATION_ERROR"
    assert error.data["details"]["field"] == "until"


@pytest.mark.parametrize("front", ["from: [1]", "until: 1.5", "progressions: 3"])
async def test_a_file_whose_time_makes_no_sense_is_left_out(novel: Novel, front: str) -> None:
    novel.put(".creonow/characters/林远.md", f"---\n{front}\n---\n掌柜。\n")

    result = await at(novel, "三")

    assert "掌柜" not in result["prompt"]
    assert any(warning.startswith("CHARACTERS_UNAVAILABLE") for warning in result["warnings"])


@pytest.mark.parametrize("header", ["from: [6\n---\n", "name: 雪\nfrom: '6\n---\n", "from: 6\n"])
async def test_a_note_whose_place_cannot_be_read_gives_nothing_away(
    novel: Novel, header: str
) -> None:
    novel.put(".creonow/settings/雪.md", f"---\n{header}大雪封山。\n")
    novel.put(".creonow/settings/诗.md", "---\n云想衣裳：[花\n---\n春风拂槛。\n")

    result = await at(novel, "三")

    (notice,) = [each for each in result["notices"] if each["code"] == "SETTINGS_UNAVAILABLE"]
    assert notice["sourceRef"] == ".creonow/settings/雪.md"
    assert "大雪封山" not in result["prompt"]
    assert "春风拂槛" in result["prompt"]


async def test_a_place_that_nothing_bears_is_reported(novel: Novel) -> None:
    novel.put(".creonow/settings/雪.md", "---\nfrom: 大雪之夜\n---\n大雪封山。\n")

    result = await at(novel, "六")

    (notice,) = [each for each in result["notices"] if each["code"] == "STORY_PLACE_UNCLEAR"]
    assert notice["sourceRef"] == ".creonow/settings/雪.md"
    assert notice["details"] == {"place": "大雪之夜"}
    assert "大雪封山" not in result["prompt"]


@pytest.mark.parametrize(
    ("begins", "ends", "times"),
    [
        ("第六章", "第三章", 1),
        ("第三章", "第三章", 1),
        ("第三章", "六", 0),
        ("80", "70", 0),
    ],
)
async def test_what_ends_before_it_begins_is_reported(
    novel: Novel, begins: str, ends: str, times: int
) -> None:
    """Chapters that are not written yet have no order among them."""
    novel.put(".creonow/settings/雪.md", f"---\nfrom: {begins}\nuntil: {ends}\n---\n大雪封山。\n")

    result = await at(novel, "五")

    said = [each["message"] for each in result["notices"] if "holds nowhere" in each["message"]]
    assert len(said) == times


async def test_the_story_file_moves_the_border(novel: Novel) -> None:
    await constrain(novel, "不写真相", until="第五章")
    order = '{"version":1,"order":["第五章.md","第三章.md"]}'
    novel.put(".creonow/story.json", order)

    result = await at(novel, "三")

    assert set(rules(result).values()) == {"no_longer"}
