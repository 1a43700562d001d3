"""How the people on the page are related, as their cards say it."""

from pathlib import Path
from typing import Any

import pytest

from testing.clients import Client
from testing.novels import Novel, make_novel

CARDS = {
    ".creonow/characters/林黛玉.md": "---\nname: 林黛玉\nrelations:\n  贾宝玉: 表兄，自幼同住\n"
    "  薛宝钗: 情敌，后来和解\n---\n寄居贾府。\n",
    ".creonow/characters/贾宝玉.md": "---\nname: 贾宝玉\n关系:\n  - 袭人：贴身丫鬟\n---\n衔玉而生。\n",
    ".creonow/characters/薛宝钗.md": "---\nname: 薛宝钗\n---\n稳重。\n",
    ".creonow/characters/柳湘莲.md": "---\nname: 柳湘莲\n---\n侠气。\n",
}
ENGLISH = {
    ".creonow/characters/elizabeth.md": "---\nname: Elizabeth Bennet\nrelations:\n"
    "  Jane Bennet: her elder sister\n---\nQuick.\n",
    ".creonow/characters/jane.md": "---\nname: Jane Bennet\n---\nKind.\n",
}
ABSENT = "SKILL_SOURCE_ABSENT"


async def talk(client: Client, root: Path, files: dict[str, str], page: str) -> tuple[str, bool]:
    """Return the prompt of `dialogue`, and whether it misses relations."""
    novel = await make_novel(client, root, files | {"第3章.md": page}, documentId="第3章.md")
    result: dict[str, Any] = await novel.assemble(
        skillId="builtin:dialogue", cursorPosition=len(page)
    )
    return result["prompt"], any(ABSENT in warning for warning in result["warnings"])


async def test_the_relations_of_the_people_on_the_page_are_in_the_prompt(
    client: Client, tmp_path: Path
) -> None:
    prompt, absent = await talk(client, tmp_path / "梦", CARDS, "黛玉见宝玉来了，便笑。\n")

    assert "林黛玉 – 贾宝玉：表兄，自幼同住" in prompt
    assert ".creonow/characters/林黛玉.md#relations" in prompt
    assert "情敌" not in prompt, "宝钗 is not on the page"
    assert not absent


async def test_english_relations_are_in_the_prompt_too(client: Client, tmp_path: Path) -> None:
    page = "Elizabeth looked at Jane. " * 30

    prompt, absent = await talk(client, tmp_path / "pride", ENGLISH, page)

    assert "Elizabeth Bennet – Jane Bennet: her elder sister" in prompt
    assert not absent


async def test_a_new_chapter_begins_with_the_people_of_the_one_before(
    client: Client, tmp_path: Path
) -> None:
    waiting = {".creonow/characters/袭人.md": "---\nname: 袭人\ninject: mentioned\n---\n丫鬟。\n"}
    before = {"第2章.md": "黛玉见宝玉来了，便笑。袭人在旁。\n", "第4章.md": "宝钗来了。\n"}

    empty, _ = await talk(client, tmp_path / "空", CARDS | waiting | before, "")
    begun, _ = await talk(client, tmp_path / "始", CARDS | waiting | before, "次日清晨。\n")

    for prompt in (empty, begun):
        assert "林黛玉 – 贾宝玉：表兄，自幼同住" in prompt
        assert "丫鬟。" in prompt
        assert "情敌" not in prompt, "宝钗 comes later"


async def test_a_name_inside_another_word_is_nobody_on_the_page(
    client: Client, tmp_path: Path
) -> None:
    card = "---\nname: Elizabeth Bennet\nrelations:\n  Ann: her cousin\n---\nQuick.\n"

    prompt, _ = await talk(
        client, tmp_path / "ann", {".creonow/characters/e.md": card}, "Elizabeth met Annabel. " * 30
    )

    assert "her cousin" not in prompt


@pytest.mark.parametrize(
    ("files", "page", "absent"),
    [
        ({}, "黛玉见宝玉来了。", False),
        (CARDS, "黛玉一人坐着。", False),
        (CARDS, "宝钗见了柳湘莲。", True),
    ],
    ids=["no cards", "one person", "two who do not know each other"],
)
async def test_relations_are_absent_only_where_cards_could_have_some(
    client: Client, tmp_path: Path, files: dict[str, str], page: str, *, absent: bool
) -> None:
    assert (await talk(client, tmp_path / "梦", files, page))[1] is absent


async def test_a_relation_holds_as_long_as_its_card(client: Client, tmp_path: Path) -> None:
    card = "---\nname: 林黛玉\nuntil: 第3章\nrelations: {贾宝玉: 表兄}\n---\n寄居贾府。\n"
    files = CARDS | {".creonow/characters/林黛玉.md": card, "第2章.md": "黛玉与宝玉说话。\n"}

    prompt, _ = await talk(client, tmp_path / "梦", files, "黛玉见宝玉来了。\n")

    assert "表兄" not in prompt


@pytest.mark.parametrize(
    "value", ["表兄", "[1]", "{贾宝玉: 1}", "[没有冒号]", "{贾宝玉: ''}", "[[a]]"]
)
async def test_relations_that_make_no_sense_cost_the_card(
    client: Client, tmp_path: Path, value: str
) -> None:
    card = f"---\nname: 林黛玉\nrelations: {value}\n---\n寄居贾府。\n"
    novel: Novel = await make_novel(
        client,
        tmp_path / "梦",
        {".creonow/characters/林黛玉.md": card, "1.md": "黛玉。"},
        documentId="1.md",
        cursorPosition=3,
    )

    result = await novel.assemble(skillId="builtin:dialogue")

    assert "寄居贾府" not in result["prompt"]
    (notice,) = [n for n in result["notices"] if n["code"] == "CHARACTERS_UNAVAILABLE"]
    assert "relations" in notice["message"]
