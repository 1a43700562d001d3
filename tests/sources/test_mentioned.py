"""Entities that come when they are spoken of."""

from pathlib import Path

import pytest

from creonowd.clock import SystemClock
from creonowd.context.plan import Ask, Document
from creonowd.sources.batched_reads import BatchedReads, SharedReads
from creonowd.sources.characters import EntityCache, MentionedSource, ProjectEntities
from creonowd.workspace.creonow_tree import Tree, make_tree
from creonowd.workspace.projects import Project

FILLER = "众人说了一回闲话。"


@pytest.fixture
def source(tmp_path: Path) -> MentionedSource:
    make_tree(tmp_path)
    for name, inject, more in (
        ("林远", "mentioned", "aliases: [老更夫]"),
        ("林远山", "mentioned", ""),
        ("Ann", "mentioned", ""),
        ("阿青", "manual", ""),
        ("鬼", "never", ""),
        ("主角", "always", ""),
    ):
        path = tmp_path / f".creonow/characters/{name}.md"
        path.write_text(f"---\ninject: {inject}\n{more}\n---\n{name}的事。", encoding="utf-8")
    project = Project(project_id="prj", name="x", root=tmp_path)
    return MentionedSource(
        ProjectEntities(BatchedReads(Tree(SystemClock()), project, SharedReads()), EntityCache())
    )


async def mentioned(
    source: MentionedSource, text: str = "", wish: str = "", cursor: int | None = None
) -> list[str]:
    at = len(text) if cursor is None else cursor
    document = Document(source_ref="a.md", text=text, cursor=at) if text else None
    fetched = await source.fetch(
        Ask(project_id="prj", skill_id="s", limit=200, document=document, wish=wish)
    )
    return [Path(fragment.source_ref).stem for fragment in fetched.fragments]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("林远来了。", ["林远"]),
        ("那老更夫又来了。", ["林远"]),
        ("林远山来了。", ["林远山"]),
        ("林远山与林远。", ["林远", "林远山"]),
        ("Annabel and Anne", []),
        ("Ann走了", ["Ann"]),
        ("主角、阿青和鬼都在。", []),
    ],
)
async def test_whoever_the_text_names_comes(
    source: MentionedSource, text: str, found: list[str]
) -> None:
    assert await mentioned(source, text) == found


async def test_what_the_author_says_counts_too(source: MentionedSource) -> None:
    assert await mentioned(source, wish="让林远和阿青见面") == ["林远", "阿青"]


async def test_whoever_is_far_away_does_not_come(source: MentionedSource) -> None:
    text = f"林远。{FILLER * 1000}Ann。{FILLER * 200}林远山。"

    assert await mentioned(source, text, cursor=len(FILLER) * 1000 + 10) == ["Ann"]


async def test_names_are_lost_in_steps_and_not_with_every_letter(source: MentionedSource) -> None:
    text = f"林远。{FILLER * 1000}"

    found = [bool(await mentioned(source, text, cursor=at)) for at in range(0, 8000, 250)]

    assert found == [at < 6000 for at in range(0, 8000, 250)]


async def test_without_a_document_nobody_comes(source: MentionedSource) -> None:
    assert await mentioned(source) == []
