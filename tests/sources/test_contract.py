"""What holds for every source: from memory `fetch` returns what it returns if it has to read."""

import anyio
import pytest
from msgspec.structs import replace

from creonowd.context.plan import place
from creonowd.context.source import Source, SourceQuery
from creonowd.context.story import Story, StoryDocument, StoryPlace
from creonowd.engine.services import Session
from creonowd.threads import BatchCache
from creonowd.workspace.projects import Project
from testing.clients import PATIENCE, Client
from testing.novels import Novel, write_files
from testing.sources import result_at_once, result_of

CHAPTER = "林远推开门，雨还在下。苏晴没有抬头。"
PLACED = place("章/二.md", CHAPTER, len(CHAPTER), None)
ASK = SourceQuery(
    project_id="",
    skill_id="s",
    limit=20,
    document_id="章/二.md",
    document=PLACED.document,
    query=CHAPTER,
    query_end=len(CHAPTER),
    query_ends=(len(CHAPTER),),
    passage_room=1000,
    synopsis_room=500,
    recent_summary=3,
    rules_line=10,
    story=Story(
        (
            StoryDocument(path="章/一.md", length=100),
            StoryDocument(path="章/二.md", length=len(CHAPTER)),
        )
    ),
    earlier=(StoryDocument(path="章/一.md", length=100),),
    here=StoryPlace(1, len(CHAPTER)),
)


@pytest.fixture
async def project(client: Client, session: Session, novel: Novel) -> Project:
    write_files(
        novel.root,
        {
            ".creonow/rules/style.md": "短句。",
            ".creonow/rules/对白.md": "不用感叹号。",
            ".creonow/settings/港口.md": "潮水。",
            ".creonow/settings/outline.md": "第一卷",
            ".creonow/characters/林远.md": "---\ninject: mentioned\n---\n侦探。",
            ".creonow/threads/信.md": "---\nstatus: open\n---\n那封信。",
            "章/一.md": "# 一\n\n林远收到一封信。雨下了一夜，苏晴站在门口。\n",
            "章/二.md": CHAPTER,
        },
    )
    found = await session.projects.find(novel.project_id)
    await session.indexes.of(found).catch_up(PATIENCE)
    await client.call("context:assemble", novel.payload())
    return found


def read_ahead(session: Session, project: Project) -> list[Source]:
    """Make the sources of a new assembly, and read what they need in one batch."""
    cache, sources = BatchCache(), session.engine.sources_of(project)
    for source in sources:
        source.read_ahead(cache)
    return sources


async def test_what_was_read_ahead_is_what_fetch_returns(
    session: Session, project: Project
) -> None:
    ask = replace(ASK, project_id=project.project_id)
    with anyio.fail_after(PATIENCE):
        expected = [await result_of(source, ask) for source in session.engine.sources_of(project)]

    found = [result_at_once(source, ask) for source in read_ahead(session, project)]

    quick = [(one, same) for one, same in zip(found, expected, strict=True) if one is not None]
    assert [one for one, _ in quick] == [same for _, same in quick]
    assert len(quick) >= len(expected) - 1
    assert sum(bool(one.fragments) for one, _ in quick) >= 7


async def test_a_revision_stays_as_long_as_the_answer_does(
    session: Session, project: Project
) -> None:
    before = [source.revision() for source in read_ahead(session, project)]
    again = [source.revision() for source in read_ahead(session, project)]
    write_files(project.root, {".creonow/settings/港口.md": "涨潮了。"})
    sources = read_ahead(session, project)
    after = [source.revision() for source in sources]

    changed = {one.name for one, old, new in zip(sources, before, after, strict=True) if old != new}
    assert None not in before
    assert before == again
    assert changed == {"settings"}
