"""The indexes of all projects, kept current in the background."""

import sqlite3
from pathlib import Path

import anyio

from creonowd.retrieval.indexes import Indexes
from creonowd.retrieval.project_index import EditorDocument, ProjectIndex
from creonowd.retrieval.query import make_query
from creonowd.retrieval.ranking import source_ref
from creonowd.workspace.projects import Project
from tests.retrieval.indexed_project import PATIENCE, IndexedProject


async def refs(index: ProjectIndex, query: str) -> list[str]:
    found = await index.search(make_query("", query).weights, 20)
    return [source_ref(one) for one in found]


async def until(indexes: Indexes, project: Project, query: str, wanted: list[str]) -> None:
    """Ask again after each step of the index until the answer is right."""
    with anyio.fail_after(PATIENCE):
        while True:
            index = indexes.of(project)
            steps = index.steps
            if await refs(index, query) == wanted:
                return
            await index.step(after=steps)


async def test_a_project_is_indexed_in_the_background(indexed: IndexedProject):
    indexed.write("a.md", "风雪")

    async with indexed.indexes() as indexes:
        index = indexes.of(indexed.project)

        assert not index.is_current
        assert await refs(index, "风雪") == []
        assert await index.catch_up(PATIENCE)
        assert await refs(index, "风雪") == ["a.md#L1-L1"]


async def test_the_watcher_is_followed(indexed: IndexedProject):
    indexed.write("a.md", "风雪")

    async with indexed.indexes() as indexes:
        await until(indexes, indexed.project, "风雪", ["a.md#L1-L1"])
        indexed.write("b.md", "江船")
        await until(indexes, indexed.project, "江船", ["b.md#L1-L1"])
        (indexed.project.root / "a.md").unlink()
        await until(indexes, indexed.project, "风雪", [])


async def test_without_a_watcher_every_question_looks_at_the_disk(indexed: IndexedProject):
    async with indexed.indexes(watching=False) as indexes:
        await indexes.of(indexed.project).catch_up(PATIENCE)
        indexed.write("a.md", "风雪")

        await until(indexes, indexed.project, "风雪", ["a.md#L1-L1"])


async def test_what_is_open_is_found_before_it_is_saved(indexed: IndexedProject):
    indexed.write("a.md", "风雪")

    async with indexed.indexes() as indexes:
        await until(indexes, indexed.project, "风雪", ["a.md#L1-L1"])
        indexed.open_documents["a.md"] = EditorDocument(mark="1", text=lambda: "月色")
        await until(indexes, indexed.project, "月色", ["a.md#L1-L1"])
        del indexed.open_documents["a.md"]
        await until(indexes, indexed.project, "风雪", ["a.md#L1-L1"])


async def test_an_index_survives_a_restart_and_notices_what_changed_meanwhile(
    indexed: IndexedProject,
):
    indexed.write("a.md", "风雪")
    indexed.write("b.md", "江船")
    async with indexed.indexes() as indexes:
        await until(indexes, indexed.project, "江船", ["b.md#L1-L1"])
    indexed.write("b.md", "月色")

    async with indexed.indexes() as indexes:
        await until(indexes, indexed.project, "月色", ["b.md#L1-L1"])
        await until(indexes, indexed.project, "风雪", ["a.md#L1-L1"])


async def test_a_damaged_index_is_made_anew(indexed: IndexedProject):
    indexed.write("a.md", "风雪")
    async with indexed.indexes() as indexes:
        await until(indexes, indexed.project, "风雪", ["a.md#L1-L1"])
    indexed.file.write_bytes(b"\xff" * 20_000)

    async with indexed.indexes() as indexes:
        await until(indexes, indexed.project, "风雪", ["a.md#L1-L1"])


async def test_an_index_that_is_damaged_while_in_use_is_made_anew(indexed: IndexedProject):
    indexed.write("a.md", "风雪")

    async with indexed.indexes() as indexes:
        await until(indexes, indexed.project, "风雪", ["a.md#L1-L1"])
        damage(indexed.file)

        await until(indexes, indexed.project, "风雪", ["a.md#L1-L1"])


def damage(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("DROP TABLE passages")
    connection.close()


async def test_an_index_that_cannot_be_kept_says_so_and_recovers(indexed: IndexedProject):
    indexed.write("a.md", "风雪")
    indexed.user_data.mkdir()
    (indexed.user_data / "retrieval").write_text("in the way", encoding="utf-8")

    async with indexed.indexes() as indexes:
        index = indexes.of(indexed.project)
        await index.step(after=0)
        assert indexes.problems().keys() == {"prj_test"}
        (indexed.user_data / "retrieval").unlink()

        await until(indexes, indexed.project, "风雪", ["a.md#L1-L1"])
        with anyio.fail_after(PATIENCE):
            while indexes.problems():
                await index.step(after=index.steps)


async def test_a_project_that_is_forgotten_leaves_nothing_behind(indexed: IndexedProject):
    indexed.write("a.md", "风雪")

    async with indexed.indexes() as indexes:
        await until(indexes, indexed.project, "风雪", ["a.md#L1-L1"])
        await indexes.forget("prj_test")
        await indexes.forget("prj_never")

        assert list(indexed.file.parent.iterdir()) == []


async def test_nobody_waits_for_many_documents(indexed: IndexedProject):
    for number in range(200):
        indexed.write(f"{number}.md", "风雪夜归人。\n" * 200)

    async with indexed.indexes() as indexes:
        index = indexes.of(indexed.project)
        with anyio.fail_after(PATIENCE):
            caught_up = await index.catch_up(PATIENCE)

        assert not caught_up
        assert index.progress.documents == 200
        with anyio.fail_after(PATIENCE):
            await index.complete(lambda _progress: None)
        assert len(await refs(index, "归人")) == 20


async def test_nobody_waits_for_a_change_that_is_not_new(indexed: IndexedProject):
    indexed.write("novel.md", "".join(f"第{n}回 风雪夜归人，江船夜泊。\n" for n in range(50_000)))

    async with indexed.indexes() as indexes:
        index = indexes.of(indexed.project)
        await index.step(after=0)
        with anyio.fail_after(PATIENCE):
            caught_up = await index.catch_up(0)

        assert not caught_up
        assert index.progress.documents == 1


async def test_ending_does_not_wait_for_a_long_round(indexed: IndexedProject):
    indexed.write("novel.md", "".join(f"第{n}回 风雪夜归人，江船夜泊。\n" for n in range(100_000)))

    with anyio.fail_after(PATIENCE):
        async with indexed.indexes() as indexes:
            index = indexes.of(indexed.project)
            await index.step(after=0)

    assert index.progress.done == 0
