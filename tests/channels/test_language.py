"""The language of the manuscript decides the words around it; one language at a time."""

import re
from pathlib import Path
from typing import Any

import pytest

from testing.clients import Client
from testing.novels import Novel, make_novel

ENGLISH = "The rain had not stopped since noon, and Anna waited by the door.\n\n" * 12
CHINESE = "林远推开门，雨还在下，檐水滴在石阶上。\n\n" * 12
HAN = re.compile("[\u4e00-\u9fff]")
SELECTED = {"from": 0, "to": 20}
SKILLS = ["continue", "polish", "condense", "expand", "dialogue", "consistency"]


async def novel_of(client: Client, tmp_path: Path, text: str) -> Novel:
    return await make_novel(client, tmp_path / "novel", {"one.md": text}, documentId="one.md")


def broken(result: dict[str, Any]) -> list[str]:
    return [text for text in result["warnings"] if text.startswith("PROJECT_FILE")]


@pytest.mark.parametrize("slug", SKILLS)
async def test_an_english_manuscript_has_no_chinese_word_around_it(
    client: Client, tmp_path: Path, slug: str
) -> None:
    novel = await novel_of(client, tmp_path, ENGLISH)
    await novel.constrain("No exclamation marks")

    result = await novel.assemble(
        skillId=f"builtin:{slug}", selection=SELECTED, additionalInput="Be brief."
    )

    assert not HAN.search(result["prompt"])
    assert "\n[Writing constraints - inviolable]\n1. No exclamation marks\n" in result["prompt"]
    assert "You are an assistant for writing novels." in result["systemPrompt"]


@pytest.mark.parametrize("slug", SKILLS)
async def test_a_chinese_manuscript_has_no_english_instruction(
    client: Client, tmp_path: Path, slug: str
) -> None:
    novel = await novel_of(client, tmp_path, CHINESE)
    await novel.constrain("避免使用感叹号")

    prompt = (await novel.assemble(skillId=f"builtin:{slug}", selection=SELECTED))["prompt"]

    assert "\n[创作约束 - 不可违反]\n1. 避免使用感叹号\n" in prompt
    assert "你是小说创作助手。" in prompt
    assert "language of the" not in prompt


async def test_the_project_file_overrides_the_manuscript(client: Client, tmp_path: Path) -> None:
    novel = await novel_of(client, tmp_path, ENGLISH)
    english = await novel.assemble()
    novel.put(".creonow/project.json", '{"version": 1, "language": "zh"}')

    chinese = await novel.assemble()

    assert "# End of the fixed context\n" in english["systemPrompt"]
    assert "# 以上为固定上下文\n" in chinese["systemPrompt"]
    assert "从光标处续写正文" in chinese["userContent"]
    assert not broken(chinese) + broken(english)


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"version": 2}', '{"language": "fr"}', '{"language": 5}', b"\xff\xfe{}"],
)
async def test_a_project_file_that_makes_no_sense_costs_a_warning(
    client: Client, tmp_path: Path, content: Any
) -> None:
    novel = await novel_of(client, tmp_path, ENGLISH)
    novel.put(".creonow/project.json", content)

    result = await novel.assemble()

    (warning,) = broken(result)
    assert warning.startswith("PROJECT_FILE_INVALID: .creonow/project.json")
    assert "# End of the fixed context\n" in result["systemPrompt"]


async def test_a_short_document_takes_the_language_of_the_projects_texts(
    client: Client, tmp_path: Path
) -> None:
    novel = await novel_of(client, tmp_path, "Chapter 1\n")
    alone = await novel.assemble()
    novel.put(".creonow/settings/world.md", CHINESE)

    beside = await novel.assemble()

    assert "# End of the fixed context\n" in alone["systemPrompt"]
    assert "# 以上为固定上下文\n" in beside["systemPrompt"]


async def test_what_was_accepted_is_rendered_in_the_language_of_the_manuscript(
    client: Client, tmp_path: Path
) -> None:
    novel = await novel_of(client, tmp_path, ENGLISH)
    await novel.script({"text": "She slept."})
    await novel.run(runId="r1", input="Make her tired")
    await client.call("ai:run:accept", novel.params | {"runId": "r1"})

    run = await novel.run(cursorPosition=100)

    assert "\nInstruction: Make her tired\nAccepted (10 characters): She slept.\n" in run["output"]
    assert "ref:one.md" in {ref.partition("#")[0] for ref in run["refs"]}
    assert not [ref for ref in run["refs"] if "cursor" in ref]
