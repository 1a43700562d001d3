"""The story so far, over the wire: only what lies before the cursor, first in Retrieved, firm."""

import random
from pathlib import Path
from typing import Any

import pytest

from creonowd.settings import Settings
from testing.clients import Client
from testing.novels import SECRET, Novel, make_novel, write_files

Result = dict[str, Any]

CHINESE = {
    f"第{n}章.md": f"# 第{n}章 {title}\n\n"
    + "".join(
        f"林远在{title}遇见了第{n}位旧友，两人谈起往事，一直谈到第{hour}更天。\n\n"
        for hour in range(5)
    )
    for n, title in enumerate(
        ("渡口", "雨巷", "当铺", "灯会", "城门", "雪夜", "归途", "书院", "荒村", "断桥", "尾声"), 1
    )
}
ENGLISH = {
    f"Chapter {n}.md": f"# Chapter {n}: {title}\n\n"
    + "".join(
        f"Anna Lindqvist walked to the {title.lower()} and asked number {n} about the lost letter"
        f" for the {turn} time.\n\n"
        for turn in ("first", "second", "third", "fourth")
    )
    for n, title in enumerate(
        ("Harbour", "Mill", "Orchard", "Chapel", "Station", "Lighthouse", "Market", "Bridge"), 1
    )
}
NOVELS = pytest.mark.parametrize(
    ("files", "name"), [(CHINESE, "第{}章.md"), (ENGLISH, "Chapter {}.md")], ids=["zh", "en"]
)


def story_so_far(result: Result) -> str:
    """Return the part of the prompt with the story so far."""
    retrieved = result["userContent"].split("## Retrieved\n", 1)[1].split("## Immediate\n", 1)[0]
    units = retrieved.split("### ref:")[1:]
    return "".join(
        unit for unit in units if unit.startswith("synopsis\n") or "#summary\n" in unit[:120]
    )


def refs(result: Result) -> list[str]:
    return result["layers"]["retrieved"]["source"]


@pytest.fixture
def daemon_settings() -> Settings:
    """Patience for a machine that does many things at once."""
    return Settings(e2e=True, warm_up=False, source_timeout_ms=60_000)


@pytest.fixture
async def make(client: Client, tmp_path: Path) -> Any:
    async def make(files: dict[str, str], document: str) -> Novel:
        return await make_novel(client, tmp_path / "小说", files, documentId=document)

    return make


@NOVELS
async def test_near_chapters_have_their_summary_and_far_ones_a_sentence(
    make: Any, files: dict[str, str], name: str
) -> None:
    novel = await make(files, name.format(8))

    result = await novel.assemble(skillId="builtin:continue")

    story = story_so_far(result)
    assert refs(result)[0] == "synopsis"
    assert f"{name.format(7)}#summary" in story
    colon = "：" if files is CHINESE else ": "
    assert f"- {name.format(1)[:-3]}{colon}" in story
    assert name.format(8)[:-3] not in story
    nearest = story.index(name.format(7))
    assert (
        story.index(f"- {name.format(1)[:-3]}") < story.index(f"- {name.format(2)[:-3]}") < nearest
    )
    assert "（摘录）" in story or "(Extract)" in story
    assert result["userContent"].index(story[:20]) < len("## Retrieved\n### ref:") + 5


@NOVELS
async def test_typing_changes_no_byte_of_the_story_so_far(
    make: Any, files: dict[str, str], name: str
) -> None:
    """Whatever stands in the current chapter, and wherever the cursor is."""
    novel = await make(files, name.format(6))
    dice = random.Random(23)
    stories = {story_so_far(await novel.assemble(cursorPosition=0))}
    for _ in range(25):
        words = "".join(
            dice.choices("雨夜灯火林远回头看 the old gate.\n\n🙂𠮷", k=dice.randrange(3000))
        )
        novel.put(name.format(6), words)
        place = dice.randrange(len(words) + 1)
        stories.add(story_so_far(await novel.assemble(cursorPosition=place)))

    assert len(stories) == 1
    assert stories != {""}


@NOVELS
@pytest.mark.parametrize("skill", ["continue", "consistency", "expand"])
async def test_nothing_of_a_later_chapter_is_summed_up(
    make: Any, files: dict[str, str], name: str, skill: str
) -> None:
    novel = await make(files, name.format(4))
    call = {"skillId": f"builtin:{skill}", "selection": {"from": 2, "to": 9}}
    before = story_so_far(await novel.assemble(**call))
    dice = random.Random(8)
    for number in (5, 6, 7, 8):
        words = "".join(dice.choices("她终于死了。The heroine dies.\n", k=dice.randrange(4000)))
        novel.put(name.format(number), words)
        assert story_so_far(await novel.assemble(**call)) == before
    (novel.root / name.format(8)).unlink()

    assert story_so_far(await novel.assemble(**call)) == before
    assert all(name.format(number)[:-3] not in before for number in (4, 5, 6, 7, 8))
    assert name.format(3) in before


async def test_the_story_so_far_keeps_to_its_share(make: Any) -> None:
    """15 % of the skill's target, which is less than the budget."""
    files = {
        f"{n}.md": f"# 第{n}章\n\n" + f"第{n}天，林远走了很远的路。\n" * 40 for n in range(1, 400)
    }
    novel = await make(files, "399.md")

    result = await novel.assemble(skillId="builtin:continue")

    entries = [
        entry
        for entry in result["trimEvidence"]
        if entry["sourceRef"] == "synopsis" or entry["sourceRef"].endswith("#summary")
    ]
    tokens = sum(entry["afterTokens"] for entry in entries)
    assert 0.1 * 3500 < tokens <= 0.15 * 3500
    far = next(entry for entry in entries if entry["sourceRef"] == "synopsis")
    assert (far["action"], far["rule"]) == ("trimmed", "synopsis_share")
    assert result["tokenCount"] <= 6000


@pytest.mark.parametrize(("asked", "chapters"), [("false", 0), ("0", 0), ("2", 2), ("true", 7)])
async def test_a_skill_says_how_many_chapters(make: Any, asked: str, chapters: int) -> None:
    novel = await make(CHINESE, "第8章.md")
    head = f"---\nname: 试\ncontext_rules:\n  synopsis: {asked}\n---\n"
    novel.put(".creonow/skills/trial/SKILL.md", head)

    story = story_so_far(await novel.assemble(skillId="project:trial"))

    assert sum(f"第{n}章" in story for n in range(1, 12)) == chapters


async def test_the_first_chapter_and_a_note_have_no_story_so_far(make: Any) -> None:
    novel = await make(CHINESE | {"notes/计划.md": "计划。"}, "第1章.md")

    first = await novel.assemble(skillId="builtin:consistency", selection={"from": 0, "to": 5})
    note = await novel.assemble(skillId="builtin:continue", documentId="notes/计划.md")

    assert story_so_far(first) == story_so_far(note) == ""
    assert not [warning for warning in first["warnings"] if "SKILL_SOURCE_ABSENT" in warning]


async def test_chapters_that_cannot_be_read_or_say_nothing_are_passed_over(
    make: Any, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere.md"
    elsewhere.write_text("别处的秘密。" * 20, "utf-8")
    novel = await make(CHINESE, "第8章.md")
    novel.put("第3章.md", b"\xff\xfe\x00\xd8" * 50)
    novel.put("第4章.md", "")
    novel.put("第5章.md", "# 第5章\n\n\n")
    (novel.root / "第6章.md").unlink()
    (novel.root / "第6章.md").symlink_to(elsewhere)

    result = await novel.assemble(skillId="builtin:continue")

    assert "第7章.md#summary" in story_so_far(result)
    assert "第1章" in story_so_far(result)
    assert "别处的秘密" not in result["prompt"]
    assert not any(notice["code"] == "SYNOPSIS_UNAVAILABLE" for notice in result["notices"])


async def test_a_secret_in_a_chapter_is_not_summed_up(make: Any) -> None:
    secret = "sk-" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2Yz3"
    files = {"1.md": f"林远把密钥 {secret} 抄在了墙上，一遍又一遍。\n" * 3, "2.md": "正文。"}
    novel = await make(files, "2.md")

    result = await novel.assemble(skillId="builtin:continue")

    assert "抄在了墙上" in story_so_far(result)
    assert secret not in result["prompt"]


async def test_an_unsaved_chapter_is_summed_up_as_the_editor_has_it(make: Any) -> None:
    novel = await make(CHINESE, "第2章.md")
    sync = {"documentId": "第1章.md", "version": 1, "text": "林远改名换姓，去了很远很远的南方。\n"}
    await novel.client.call("context:document:sync", novel.params | sync)

    result = await novel.assemble(skillId="builtin:continue")

    assert "改名换姓" in story_so_far(result)


async def test_a_novel_in_one_huge_chapter_does_not_stop_the_story(make: Any) -> None:
    novel = await make({"1.md": "林远走在雨里。\n" * 120_000, "2.md": "正文。"}, "2.md")

    result = await novel.assemble(skillId="builtin:continue")

    assert "林远走在雨里" in story_so_far(result)
    write_files(novel.root, {"1.md": "没有句号" * 200_000})
    assert "1.md#summary" in story_so_far(await novel.assemble(skillId="builtin:continue"))


async def long_budget(novel: Novel, **change: Any) -> Result:
    """Give a novel the budget for long windows."""
    change = {"version": 1, "kind": "long", **change}
    return await novel.client.call("context:budget:update", {**novel.params, "profile": change})


@NOVELS
async def test_a_long_budget_has_earlier_chapters_with_their_whole_text(
    make: Any, files: dict[str, str], name: str
) -> None:
    novel = await make(files, name.format(6))
    await long_budget(novel)

    result = await novel.assemble(
        skillId="builtin:continue", cursorPosition=len(files[name.format(6)])
    )

    whole = [files[name.format(n)].strip() for n in range(1, 7)]
    assert all(result["prompt"].count(text) == 1 for text in whole)
    places = [result["prompt"].index(text) for text in whole]
    assert places == sorted(places)
    assert files[name.format(7)].split("\n")[2] not in result["prompt"]
    assert result["tokenCount"] <= 64_000


async def test_a_long_budget_has_a_sentence_of_each_chapter_that_does_not_fit(make: Any) -> None:
    files = {
        f"{n}.md": f"# 第{n}章\n\n" + f"第{n}天，林远走了很远的路，去见一位故人。\n\n" * 60
        for n in range(1, 31)
    }
    novel = await make(files, "30.md")
    await long_budget(novel, totalBudgetTokens=20_000)

    result = await novel.assemble(skillId="builtin:continue")

    kept = {e["sourceRef"] for e in result["trimEvidence"] if e["action"] == "kept"}
    assert {"29.md", "28.md", "synopsis"} <= kept
    assert "5.md" not in kept
    assert "- 5：" in result["userContent"]
    assert "- 29：" not in result["userContent"]
    assert result["tokenCount"] <= 20_000
    points = result["cacheBreakPoints"]
    assert [point["after"] for point in points].count("story") == 2
    sizes = [point["bytes"] for point in points]
    assert sizes == sorted(set(sizes))
    assert points[-1]["tokens"] <= result["tokenCount"]


async def test_a_chapter_more_is_appended_to_a_long_prompt(make: Any) -> None:
    """So that a provider's cache keeps all that stood there before."""
    novel = await make(CHINESE, "第6章.md")
    await long_budget(novel)
    before = await novel.assemble(skillId="builtin:continue")
    (story,) = [p for p in before["cacheBreakPoints"] if p["after"] == "story"][-1:]

    after = await novel.assemble(skillId="builtin:continue", documentId="第7章.md")

    assert story["hash"] in {point["hash"] for point in after["cacheBreakPoints"]}
    size = story["bytes"]
    assert before["prompt"].encode()[:size] == after["prompt"].encode()[:size]


async def test_a_secret_in_an_earlier_chapter_stays_out_of_a_long_prompt(make: Any) -> None:
    files = dict(CHINESE) | {"第3章.md": f"# 第3章\n\n他把{SECRET}写在墙上。\n"}
    novel = await make(files, "第6章.md")
    await long_budget(novel)

    result = await novel.assemble(skillId="builtin:continue")

    assert SECRET not in result["prompt"]
    assert "第3章.md" in {evidence["sourceRef"] for evidence in result["redactionEvidence"]}


async def test_another_kind_of_budget_than_these_is_refused(make: Any) -> None:
    novel = await make(CHINESE, "第6章.md")

    failure = await novel.client.failure(
        "context:budget:update", {**novel.params, "profile": {"version": 1, "kind": "huge"}}
    )

    assert failure.code == "INVALID_ARGUMENT"
    assert "kind" in str(failure)
