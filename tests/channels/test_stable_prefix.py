"""The stable prefix, byte for byte: what providers cache must not change by accident.

If a snapshot has to change, every prompt cache of every user misses once; say so in the commit.
"""

from hashlib import sha256
from pathlib import Path

import pytest

from testing.clients import Client
from testing.novels import Novel, make_novel

SNAPSHOTS = Path(__file__).parent / "snapshots"
FILES = {
    "rules/style.md": "短句。\r\n不用成语。\r\n",
    "rules/terminology.json": '{ "terms": [ {"term": "灵石", "avoid": ["灵晶"]} ] }',
    "rules/taboo.txt": "不写血腥。\n",
    "characters/林远.md": "# 林远\n\n冷静，左手有疤。\n",
    "settings/world.md": "---\nconfidence: 0.9\n---\n本世界没有魔法。\n",
    "settings/outline.md": "一、雨夜\n二、真相\n",
    "settings/memory.json": '{"version":1,"rules":[{"text":"动作场景偏好短句","confidence":0.8}]}',
}
SKILLS = ("polish", "expand", "continue", "dialogue", "consistency")


@pytest.fixture
async def novel(client: Client, tmp_path: Path) -> Novel:
    novel = await make_novel(client, tmp_path / "小说")
    for path, content in FILES.items():
        novel.put(f".creonow/{path}", content)
    await novel.constrain("严格第一人称叙述", "避免使用感叹号")
    return novel


@pytest.mark.requirement("SK-039", "CN-030")
@pytest.mark.parametrize("slug", SKILLS)
async def test_the_stable_prefix_is_the_one_on_record(novel: Novel, slug: str) -> None:
    result = await novel.assemble(skillId=f"builtin:{slug}", selection={"from": 0, "to": 5})

    prefix = result["systemPrompt"].encode()
    assert prefix == (SNAPSHOTS / f"{slug}.txt").read_bytes()
    assert sha256(prefix).hexdigest() == result["stablePrefixHash"]


@pytest.mark.requirement("SK-036")
async def test_skills_that_ask_for_the_same_share_every_byte(novel: Novel) -> None:
    polish = await novel.assemble(skillId="builtin:polish", selection={"from": 0, "to": 5})
    condense = await novel.assemble(skillId="builtin:condense", selection={"from": 0, "to": 6})

    assert polish["systemPrompt"] == condense["systemPrompt"]
    assert polish["userContent"] != condense["userContent"]


@pytest.mark.requirement("SK-036")
async def test_the_task_comes_last_and_never_in_the_prefix(novel: Novel) -> None:
    result = await novel.assemble(skillId="builtin:polish", selection={"from": 0, "to": 12})

    assert result["assemblyOrder"] == ["rules", "settings", "retrieved", "immediate"]
    assert "Polish the text below" not in result["systemPrompt"]
    assert result["userContent"].endswith("林远推开门，屋里没有人。\n")
    assert result["prompt"].count("林远推开门") == 1
    assert result["targetTokens"] == 1500


async def test_an_instruction_is_shown_once_and_before_the_task(novel: Novel) -> None:
    result = await novel.assemble(skillId="builtin:continue", additionalInput="写得更冷")

    content = result["userContent"]
    assert content.count("写得更冷") == 1
    assert content.index("写得更冷") < content.index("## Task")
