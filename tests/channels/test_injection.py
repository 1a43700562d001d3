"""A skill gets what it declares and nothing else: every subset of `context_rules`, over the wire."""

from collections.abc import Iterator
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import anyio
import pytest

from testing.clients import Client
from testing.novels import Novel, make_novel

ALWAYS = ("约束标记", "守则标记")
MARKERS = {
    "surrounding": ("正文标记",),
    "user_preferences": ("偏好标记", "记忆宿主标记"),
    "style_guide": ("文风标记", "术语标记"),
    "characters": ("人物标记", "设定标记"),
    "outline": ("大纲标记", "→ 章节标记"),
    "recent_summary": ("摘要标记",),
    "knowledge_graph": ("图谱标记",),
    "retrieval": ("召回标记", "自定宿主标记", "段落标记"),
}
HOSTS = {
    "kg": ("rules", "图谱标记"),
    "memory": ("settings", "记忆宿主标记"),
    "rag": ("retrieved", "召回标记"),
    "custom": ("retrieved", "自定宿主标记"),
}
FILES = {
    "rules/style.md": "文风标记\n",
    "rules/terminology.json": '{"terms":[{"term":"术语标记"}]}',
    "rules/more.md": "守则标记\n",
    "settings/world.md": "设定标记\n",
    "settings/outline.md": "大纲标记\n",
    "settings/memory.json": '{"version":1,"rules":[{"text":"偏好标记","confidence":1}]}',
    "characters/林远.md": "人物标记\n",
}
CHAPTER = "# 序\n# 章节标记\n" + "很久以前。\n" * 200 + "正文标记在此。\n"

PAIR = "林远推开门，苏晴没有抬头。\n"
STRANGERS = {f".creonow/characters/{name}.md": f"{name}的设定。\n" for name in ("林远", "苏晴")}
MISSING = {
    "dialogue": "SKILL_SOURCE_ABSENT: the summary of the relations is missing",
    "consistency": "SKILL_SOURCE_ABSENT: the summary of the whole text is missing",
}

OUTLINE_SKILL = "---\nname: 试\ncontext_rules:\n  outline: true\n  retrieval: true\n---\n"
OUTLINES = (
    "大纲.md",
    "提纲.txt",
    "Outline.md",
    "OUTLINE.markdown",
    ".creonow/settings/大纲.md",
    ".creonow/settings/Outline.txt",
)


def subsets() -> Iterator[tuple[str, ...]]:
    names = list(MARKERS)
    return chain.from_iterable(combinations(names, size) for size in range(len(names) + 1))


def skill(flags: tuple[str, ...]) -> str:
    values = {
        name: {"surrounding": "60", "recent_summary": "2"}.get(name, "true") for name in flags
    }
    rules = "".join(f"  {name}: {value}\n" for name, value in values.items())
    declared = f"context_rules:\n{rules}" if rules else ""
    return f"---\nname: 试\n{declared}prompt:\n  user: 任务标记\n---\n"


def found(prompt: str) -> set[str]:
    return {n for n, marks in MARKERS.items() if all(mark in part(n, prompt) for mark in marks)}


def touched(prompt: str) -> set[str]:
    return {n for n, marks in MARKERS.items() if any(mark in part(n, prompt) for mark in marks)}


def part(name: str, prompt: str) -> str:
    """Look for the surroundings in Immediate: retrieval may find passages of the same document."""
    return prompt.partition("\n## Immediate\n")[2] if name == "surrounding" else prompt


@pytest.fixture
async def asked() -> list[str]:
    """The hosts that were asked, in order."""
    return []


@pytest.fixture
async def novel(client: Client, tmp_path: Path, asked: list[str]) -> Novel:
    """A project in which every source has a text of its own."""
    novel = await make_novel(client, tmp_path / "小说")
    (novel.root / "一.md").write_bytes(CHAPTER.encode())
    (novel.root / "序章.md").write_bytes("很久以前，正文在此：段落标记。\n".encode())
    for path, content in FILES.items():
        novel.put(f".creonow/{path}", content)
    await novel.constrain("约束标记")
    client.handlers["context:source:fetch"] = lambda params: answer(params, asked)
    for kind, (layer, _) in HOSTS.items():
        await client.call("context:source:register", {"layer": layer, "name": kind, "kind": kind})
    await novel.script({"text": "摘要标记"})
    run = await novel.run(skillId="builtin:continue", cursorPosition=0)
    await client.call("ai:run:accept", novel.params | {"runId": run["runId"]})
    await until_indexed(novel)
    asked.clear()
    return novel


async def until_indexed(novel: Novel) -> None:
    with anyio.fail_after(60):
        while any("INDEXING" in warning for warning in (await novel.assemble())["warnings"]):
            await anyio.lowlevel.checkpoint()


def answer(params: dict[str, Any], asked: list[str]) -> dict[str, Any]:
    asked.append(params["name"])
    return {"chunks": [{"source": params["name"], "content": HOSTS[params["name"]][1]}]}


@pytest.mark.requirement(
    "SK-001",
    "SK-009",
    "SK-010",
    "SK-011",
    "SK-012",
    "SK-013",
    "SK-014",
    "SK-015",
    "SK-032",
    "SK-033",
    "SK-037",
)
async def test_what_is_injected_follows_the_rules_for_every_subset(
    novel: Novel, asked: list[str]
) -> None:
    wrong: list[tuple[tuple[str, ...], set[str], set[str]]] = []
    for flags in subsets():
        novel.put(".creonow/skills/trial/SKILL.md", skill(flags))
        asked.clear()

        result = await novel.assemble(skillId="project:trial", cursorPosition=len(CHAPTER))

        prompt = result["prompt"]
        if not found(prompt) == touched(prompt) == set(flags):
            wrong.append((flags, found(prompt), touched(prompt)))
        assert all(mark in prompt for mark in (*ALWAYS, "任务标记"))
        expected = {kind for kind, (_, mark) in HOSTS.items() if mark in prompt}
        assert set(asked) == expected
    assert wrong == []


@pytest.mark.requirement("SK-012", "SK-015")
@pytest.mark.parametrize(
    ("flags", "given"),
    [(("characters",), True), (("knowledge_graph",), True), (("outline", "retrieval"), False)],
)
async def test_entities_that_are_spoken_of_are_characters_and_evidence(
    novel: Novel, flags: tuple[str, ...], *, given: bool
) -> None:
    novel.put(".creonow/characters/苏晴.md", "---\ninject: mentioned\n---\n实体标记\n")
    (novel.root / "一.md").write_bytes(f"苏晴没有抬头。\n{CHAPTER}苏晴笑了。\n".encode())
    novel.put(".creonow/skills/trial/SKILL.md", skill(flags))

    result = await novel.assemble(skillId="project:trial", cursorPosition=len(CHAPTER))

    assert ("实体标记" in result["userContent"]) is given


async def test_an_unknown_skill_gets_everything(novel: Novel) -> None:
    chapter = CHAPTER.replace("正文标记", "很久以前。\n" * 4000 + "正文标记")
    novel.put("一.md", chapter)

    result = await novel.assemble(skillId="nobody:knows", cursorPosition=len(chapter))

    assert found(result["prompt"]) == set(MARKERS)
    assert any(warning.startswith("SKILL_UNKNOWN") for warning in result["warnings"])


@pytest.mark.requirement("SK-002")
async def test_a_skill_that_declares_nothing_gets_little(novel: Novel) -> None:
    novel.put(".creonow/skills/trial/SKILL.md", skill(()))

    little = await novel.assemble(skillId="project:trial", cursorPosition=len(CHAPTER))
    everything = await novel.assemble(skillId="nobody:knows", cursorPosition=len(CHAPTER))

    assert little["layers"]["settings"]["tokens"] == 0
    assert little["layers"]["retrieved"]["tokens"] == 0
    assert ".creonow/rules/style.md" not in little["layers"]["rules"]["source"]
    assert ".creonow/rules/style.md" in everything["layers"]["rules"]["source"]
    assert little["tokenCount"] < everything["tokenCount"] / 2


@pytest.mark.requirement("SK-024", "SK-025")
@pytest.mark.parametrize(
    ("slug", "other", "kind"),
    [
        ("dialogue", "rag", "kg"),
        ("consistency", "kg", "rag"),
        ("consistency", "memory", "custom"),
    ],
)
async def test_a_summary_that_no_host_offers_is_missing_with_a_warning(
    client: Client, tmp_path: Path, slug: str, other: str, kind: str
) -> None:
    # A note has no place in the story, so that there is no story so far; no card knows another.
    files = STRANGERS | {"notes/一.md": PAIR}
    novel = await make_novel(client, tmp_path / "小说", files, documentId="notes/一.md")
    client.handlers["context:source:fetch"] = lambda params: answer(params, [])
    place = {"layer": "retrieved"}
    await client.call("context:source:register", place | {"name": other, "kind": other})

    without = await novel.run(skillId=f"builtin:{slug}")
    await client.call("context:source:register", place | {"name": kind, "kind": kind})
    with_host = await novel.run(skillId=f"builtin:{slug}")

    assert MISSING[slug] in without["warnings"]
    assert not [warning for warning in with_host["warnings"] if "SKILL_SOURCE_ABSENT" in warning]
    assert HOSTS[kind][1] in with_host["output"]


@pytest.mark.parametrize(
    "chunks", [[], [{"source": "kg:1", "content": " \n"}], [{"source": "kg:1", "score": 7}], None]
)
async def test_a_host_that_gives_nothing_is_as_good_as_none(
    client: Client, tmp_path: Path, chunks: list[Any] | None
) -> None:
    novel = await make_novel(client, tmp_path / "小说", STRANGERS | {"一.md": PAIR})
    client.handlers["context:source:fetch"] = lambda _params: {"chunks": chunks}
    offer = {"layer": "retrieved", "name": "图谱", "kind": "kg"}
    await client.call("context:source:register", offer)

    result = await novel.assemble(skillId="builtin:dialogue")

    assert MISSING["dialogue"] in result["warnings"]


@pytest.mark.parametrize("slug", ["polish", "condense", "expand", "continue"])
async def test_skills_that_rely_on_no_host_do_not_warn(
    client: Client, tmp_path: Path, slug: str
) -> None:
    novel = await make_novel(client, tmp_path / "小说")

    run = await novel.run(skillId=f"builtin:{slug}", selection={"from": 0, "to": 5})

    assert not [warning for warning in run["warnings"] if "SKILL_SOURCE_ABSENT" in warning]


@pytest.mark.requirement("SK-013")
@pytest.mark.parametrize("path", [*OUTLINES, "计划.md", ".creonow/settings/深/计划.md"])
async def test_an_outline_is_found_by_its_name_or_its_kind(
    client: Client, tmp_path: Path, path: str
) -> None:
    novel = await make_novel(client, tmp_path / "小说")
    header = "---\nkind: outline\n---\n" if "计划" in path else ""
    novel.put(path, f"{header}林远推开门以后，大纲标记。\n")
    novel.put(".creonow/skills/trial/SKILL.md", OUTLINE_SKILL)
    await until_indexed(novel)

    result = await novel.assemble(skillId="project:trial")
    without = await novel.assemble(skillId="builtin:dialogue")

    assert f"### ref:{path}\n林远推开门以后，大纲标记。\n" in result["systemPrompt"]
    assert result["layers"]["settings"]["source"] == [path]
    assert "大纲标记" not in result["userContent"]
    assert "大纲标记" not in without["prompt"]


async def test_an_outline_elsewhere_is_a_document(client: Client, tmp_path: Path) -> None:
    novel = await make_novel(client, tmp_path / "小说")
    novel.put("卷一/大纲.md", "林远推开门以后，大纲标记。\n")
    novel.put(".creonow/skills/trial/SKILL.md", OUTLINE_SKILL)
    await until_indexed(novel)

    result = await novel.assemble(skillId="project:trial", additionalInput="大纲标记")

    assert "大纲标记" not in result["systemPrompt"]
    assert "卷一/大纲.md" in result["layers"]["retrieved"]["source"]
