"""The parts of `context:inspect` that are made on request: prompt, reasons, coverage, names."""

from typing import Any

import pytest

from creonowd.settings import Settings
from testing.clients import Client
from testing.novels import SECRET, Novel

HEADER = "---\r\norder: 3\r\n---\r\n"
HERE = "# 第三章\r\n\r\n😀林远推开门，雨还在下。苏晴没有抬头，阿福睡着了，老周走了。\r\n"
EARLIER = "# 第一章\n\n" + "林远在渡口遇见苏晴，雨还在下，铜钥匙丢了。\n\n" * 6
PARTS = ["prompt", "why", "coverage", "names"]


@pytest.fixture
def daemon_settings() -> Settings:
    return Settings(e2e=True, debug=True, warm_up=False)


@pytest.fixture
async def story(client: Client, novel: Novel) -> Novel:
    """Three chapters and a later one, with cards of every kind."""
    await client.call("initialize", {"positionEncoding": "utf-16"})
    novel.put("chapters/01.md", EARLIER)
    novel.put("chapters/02.md", "# 第二章\n\n井边无事。\n")
    novel.put("chapters/03.md", HEADER + HERE)
    novel.put("chapters/04.md", "# 第四章\n\n后来的事。\n")
    novel.put(".creonow/characters/林远.md", f"林远，冷静。{SECRET}\n")
    novel.put(".creonow/characters/苏晴.md", "---\ninject: mentioned\n---\n苏晴，爱笑。\n")
    novel.put(".creonow/characters/阿福.md", "---\ninject: manual\n---\n阿福，一条狗。\n")
    novel.put(".creonow/characters/老周.md", "---\ninject: never\n---\n老周，船家。\n")
    wait = {"documentId": "chapters/03.md", "cursorPosition": 0, "wait": True}
    await client.call("context:retrieve", novel.params | wait)
    return novel


async def inspect(client: Client, novel: Novel, **changes: Any) -> dict[str, Any]:
    return await client.call(
        "context:inspect",
        novel.params
        | {
            "documentId": "chapters/03.md",
            "cursorPosition": units(HEADER + HERE),
            "debugMode": True,
            "show": PARTS,
        }
        | changes,
    )


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def cut(text: str, span: dict[str, Any]) -> str:
    return text.encode("utf-16-le")[2 * span["from"] : 2 * span["to"]].decode("utf-16-le")


async def test_without_show_nothing_of_it_is_there(client: Client, story: Novel) -> None:
    result = await inspect(client, story, show=[])

    assert not {"prompt", "coverage", "names"} & result.keys()
    held, left = result["held"], result["totals"]["leftTokens"]
    assert held["immediate"] + held["retrieved"] + held["free"] == left
    assert held["immediate"] > 0


async def test_a_brief_one_has_evidence_on_what_is_not_kept_whole(
    client: Client, story: Novel
) -> None:
    story.put(".creonow/settings/井.md", "井水很冷。\n\n" * 2000)

    whole, brief = [await inspect(client, story, brief=one) for one in (False, True)]

    cut = [one for one in whole["trimEvidence"] if one["action"] != "kept"]
    assert 0 < len(cut) < len(whole["trimEvidence"])
    assert brief["trimEvidence"] == cut
    assert brief["layersDetail"] == whole["layersDetail"]


async def test_the_prompt_is_that_of_an_assembly_cut_by_source(
    client: Client, story: Novel
) -> None:
    shown = await inspect(client, story)
    place = {"documentId": "chapters/03.md", "cursorPosition": units(HEADER + HERE)}
    assembled = await client.call("context:assemble", story.params | place)

    prompt = shown["prompt"]

    assert prompt["text"] == assembled["prompt"]
    assert SECRET not in prompt["text"]
    assert "".join(cut(prompt["text"], span) for span in prompt["spans"]) == prompt["text"]
    assert sum(span["tokens"] for span in prompt["spans"]) == assembled["tokenCount"]
    (card,) = (s for s in prompt["spans"] if s.get("sourceRef") == ".creonow/characters/林远.md")
    assert (card["layer"], card["kind"]) == ("rules", "person")
    assert "冷静" in cut(prompt["text"], card)
    cuts = [cut(prompt["text"], {"from": 0, "to": one["at"]}) for one in prompt["breakPoints"]]
    assert [len(one.encode()) for one in cuts] == [
        one["bytes"] for one in assembled["cacheBreakPoints"]
    ]


async def test_a_passage_says_why_it_was_found_and_where_it_stands(
    client: Client, story: Novel
) -> None:
    details = (await inspect(client, story))["layersDetail"]["retrieved"]["fragments"]

    passages = [one for one in details if one["kind"] == "passage"]

    assert passages
    for one in passages:
        assert one["document"]["documentId"] == "chapters/01.md"
        assert cut(EARLIER, one["document"]) == one["content"]
        assert one["name"] == "第一章"
        assert {"林远", "苏晴"} & set(one["why"]["names"])
        assert one["why"]["terms"]


async def test_coverage_counts_as_the_file_is_on_disk(client: Client, story: Novel) -> None:
    coverage = (await inspect(client, story))["coverage"]

    places = {one["documentId"]: one for one in coverage["documents"]}

    assert [one["place"] for one in coverage["documents"]] == ["before", "before", "here", "after"]
    here = places["chapters/03.md"]
    assert here["length"] == units(HEADER + HERE)
    assert [cut(HEADER + HERE, one) for one in here["ranges"]] == [HEADER, HERE]
    assert [one["state"] for one in here["ranges"]] == ["front_matter", "seen"]
    assert {one["state"] for one in places["chapters/04.md"]["ranges"]} == {"future"}
    assert (here["number"], here["title"]) == (3, "第三章")
    headline = coverage["headline"]
    assert headline["wordsBefore"] == {"seen": 27, "notSeen": 0}
    assert headline["people"] == 2
    (secret,) = headline["secrets"]
    assert secret["sourceRef"] == ".creonow/characters/林远.md"
    assert secret["matchCount"] == 1


async def test_names_say_whether_the_model_has_their_card(client: Client, story: Novel) -> None:
    names = (await inspect(client, story))["names"]

    assert [(one["name"], one["state"]) for one in names] == [
        ("林远", "in"),
        ("苏晴", "in"),
        ("阿福", "never"),
        ("老周", "never"),
    ]
    assert [cut(HEADER + HERE, one) for one in names] == ["林远", "苏晴", "阿福", "老周"]
    assert names[0]["sourceRef"] == ".creonow/characters/林远.md"


async def test_a_document_that_is_nowhere_has_neither_names_nor_coverage(
    client: Client, story: Novel
) -> None:
    result = await inspect(client, story, documentId="chapters/99.md", cursorPosition=7)

    assert result["names"] == []
    listed = [one["documentId"] for one in result["coverage"]["documents"]]
    assert listed == [f"chapters/0{number}.md" for number in range(1, 5)]
    assert result["coverage"]["headline"]["wordsBefore"] == {"seen": 0, "notSeen": 0}
