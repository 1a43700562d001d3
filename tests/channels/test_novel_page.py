"""The page about `.creonow`: every example on it is a file that an assembly can use."""

import re
from pathlib import Path

import pytest
from msgspec.structs import fields

from creonowd.context.story import StoryFile
from creonowd.retrieval.document_list import IGNORE_FILES
from creonowd.workspace.creonow_tree import FOLDERS, OUTLINE_NAMES, CreonowFolder, ProjectFile
from testing.clients import Client
from testing.novels import Novel

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```(markdown|json)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILES = (
    "rules/style.md",
    "rules/terminology.json",
    "rules/constraints.json",
    "characters/garrick.md",
    "settings/town.md",
    "settings/memory.json",
    "threads/key.md",
    "story.json",
    "characters/ferryman.md",
    "project.json",
)


@pytest.mark.parametrize(
    ("page", "chapters"),
    [
        ("novel.md", {number: f"Chapter {number}" for number in range(1, 13)}),
        ("novel.zh.md", {number: f"第{number}章" for number in range(1, 13)}),
    ],
)
async def test_every_example_is_used_as_the_page_says(
    client: Client, novel: Novel, page: str, chapters: dict[int, str]
) -> None:
    blocks = BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))
    assert len(blocks) == len(FILES)
    for name, (kind, text) in zip(FILES, blocks, strict=True):
        assert name.endswith(".json" if kind == "json" else ".md")
        novel.put(f".creonow/{name}", text)
    for number, title in chapters.items():
        novel.put(f"part1/{number}.md", f"# {title}\n\n…\n")

    place = {"documentId": "part1/1.md", "cursorPosition": 0, "wait": True}
    await client.call("context:retrieve", {**novel.params, **place})
    early = await assemble(client, novel, 2)
    late = await assemble(client, novel, 12)

    assert [notice["code"] for notice in early["notices"] + late["notices"]] == []
    for name in FILES:
        if name.endswith(".md"):
            assert f".creonow/{name}" in kept(early), name
    assert ".creonow/threads/key.md" in kept(late), "an open thread stays, however late"
    constraints = [ref for ref in kept(early) if "constraints.json#" in ref]
    assert (len(constraints), len([ref for ref in kept(late) if "constraints.json#" in ref])) == (
        3,
        2,
    ), "`until` ends a constraint"
    assert late["prompt"] != early["prompt"]


async def assemble(client: Client, novel: Novel, chapter: int) -> dict[str, list[dict[str, str]]]:
    place = {"documentId": f"part1/{chapter}.md", "cursorPosition": 0}
    return await client.call("context:assemble", {**novel.params, **place})


def kept(result: dict[str, list[dict[str, str]]]) -> set[str]:
    return {row["sourceRef"] for row in result["trimEvidence"] if row["action"] == "kept"}


# What these modules read of a file's front matter, or of a JSON file of `.creonow`.
READERS = (
    "sources/project_files.py",
    "sources/characters.py",
    "sources/synopsis.py",
    "sources/file_fragments.py",
    "context/story.py",
    "judge/rule_judge.py",
    "workspace/creonow_tree.py",
)
READ = re.compile(r'\b(?:values|fields|memory)(?:\.get\(|\[)"(\w+)"')
SPELLINGS = re.compile(r"^\w*KEYS\w* = \(([^)]+)\)", re.MULTILINE)


@pytest.mark.parametrize("page", ["novel.md", "novel.zh.md"])
def test_every_key_and_every_file_that_is_read_is_on_the_page(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    package = DOCS.parent / "creonowd"
    sources = [(package / name).read_text(encoding="utf-8") for name in READERS]
    keys = {key for source in sources for key in READ.findall(source)}
    keys |= {
        key
        for source in sources
        for row in SPELLINGS.findall(source)
        for key in re.findall(r'"(\w+)"', row)
    }
    keys |= {field.encode_name for struct in (StoryFile, ProjectFile) for field in fields(struct)}
    files = [*CreonowFolder, *FOLDERS, *OUTLINE_NAMES, *IGNORE_FILES]
    files += ["style.md", "constraints.json", "memory.json", "story.json", "project.json"]

    assert len(keys) > 40
    assert sorted(key for key in keys if not re.search(rf"[`\"]?\b{key}\b", text)) == []
    assert [name for name in files if name.partition("/")[0] not in text] == []
