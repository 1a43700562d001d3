"""Bringing an index in line with a project."""

import os
import sqlite3
from pathlib import Path
from threading import Event

import anyio
import pytest

from creonowd.redaction import Redactor
from creonowd.retrieval import project_index
from creonowd.retrieval.passages import Database, indexed_documents
from creonowd.retrieval.project_index import (
    EditorDocument,
    Indexes,
    IndexScope,
    ProjectIndex,
    refresh,
)
from creonowd.retrieval.ranking import make_query
from creonowd.workspace import watcher
from creonowd.workspace.projects import Project
from testing.privileges import no_descriptors
from tests.retrieval.indexed_project import PATIENCE, IndexedProject
from tests.retrieval.text_indexes import index_of, is_whole, refs

OLD = 1_000_000_000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    return root


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return index_of(tmp_path)


def write(root: Path, path: str, text: str | bytes, at: int = OLD) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(text if isinstance(text, bytes) else text.encode())
    os.utime(root / path, (at, at))


def run(
    database: Database, root: Path, now: int = 2 * OLD, **open_texts: tuple[str, str]
) -> list[tuple[int, int]]:
    """Refresh, and return the progress that was reported."""
    progress: list[tuple[int, int]] = []
    buffers = {
        f"{k}.md": EditorDocument(mark=m, text=lambda t=t: t) for k, (m, t) in open_texts.items()
    }
    scope = IndexScope(root=root, now_ms=now * 1000, open_documents=buffers, finder=Redactor())
    assert refresh(database, scope, lambda done, all_: progress.append((done, all_)), Event())
    return progress


def test_a_project_is_indexed_and_progress_reported(root: Path, database: Database):
    write(root, "a.md", "风雪")
    write(root, "卷一/b.txt", "江船")

    assert run(database, root) == [(0, 2), (1, 2), (2, 2)]
    assert refs(database, "江船") == ["卷一/b.txt#L1-L1"]


def test_what_has_not_changed_is_not_read(root: Path, database: Database):
    write(root, "a.md", "风雪")
    run(database, root)
    generation = database.generation

    assert run(database, root) == [(0, 0)]
    assert database.generation == generation


def test_changes_made_while_nobody_looked_are_noticed(root: Path, database: Database):
    write(root, "a.md", "风雪")
    write(root, "b.md", "江船")
    run(database, root)

    write(root, "a.md", "月色", at=OLD + 5)
    (root / "b.md").unlink()
    write(root, "c.md", "新雨")
    run(database, root)

    assert refs(database, "风雪 江船") == []
    assert refs(database, "月色 新雨") == ["a.md#L1-L1", "c.md#L1-L1"]
    is_whole(database)


def test_a_file_that_was_only_touched_is_not_indexed_again(root: Path, database: Database):
    write(root, "a.md", "风雪")
    run(database, root)
    with database.read() as connection:
        before = connection.execute("SELECT id FROM passages").fetchall()

    write(root, "a.md", "风雪", at=OLD + 5)
    run(database, root)

    with database.read() as connection:
        assert connection.execute("SELECT id FROM passages").fetchall() == before


def test_a_young_file_is_looked_at_again(root: Path, database: Database):
    """Two writes in one tick of the disk's clock look the same; later they differ."""
    write(root, "a.md", "风雪", at=OLD)
    run(database, root, now=OLD)
    write(root, "a.md", "月色", at=OLD)

    run(database, root, now=OLD + 60)

    assert refs(database, "月色") == ["a.md#L1-L1"]


def test_an_open_document_wins_over_its_file(root: Path, database: Database):
    write(root, "a.md", "风雪")

    run(database, root, a=("1", "月色"), b=("1", "未存"))
    assert refs(database, "风雪 月色 未存") == ["a.md#L1-L1", "b.md#L1-L1"]
    assert refs(database, "风雪") == []

    run(database, root)
    assert refs(database, "风雪 月色 未存") == ["a.md#L1-L1"]
    assert refs(database, "风雪") == ["a.md#L1-L1"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "gb18030"])
def test_common_encodings_and_line_ends_are_read(root: Path, database: Database, encoding: str):
    write(root, "a.txt", "风雪夜归人\r\n\r\n# 江上\r\n一叶扁舟，渔火两三点\r\n".encode(encoding))

    run(database, root)

    assert refs(database, "渔火") == ["a.txt#L3-L4"]


def test_what_is_no_text_is_in_the_index_without_text(root: Path, database: Database):
    write(root, "a.md", bytes(range(256)) * 4)
    write(root, "b.md", "风雪")

    run(database, root)

    with database.read() as connection:
        assert indexed_documents(connection)["a.md"].digest == b""
    assert run(database, root) == [(0, 0)]
    assert refs(database, "风雪") == ["b.md#L1-L1"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no limit on descriptors to set")
def test_what_could_not_be_read_for_a_moment_stays_in_the_index(root: Path, database: Database):
    write(root, "a.md", "风雪")
    run(database, root)

    with no_descriptors(), pytest.raises(OSError, match="Too many open files"):
        run(database, root)

    assert refs(database, "风雪") == ["a.md#L1-L1"]


def test_a_round_that_is_stopped_keeps_whole_documents_only(root: Path, database: Database):
    for number in range(5):
        write(root, f"{number}.md", "风雪")
    stop = Event()
    scope = IndexScope(root=root, now_ms=2 * OLD * 1000, open_documents={}, finder=Redactor())

    finished = refresh(database, scope, lambda done, _: stop.set() if done == 2 else None, stop)

    assert not finished
    with database.read() as connection:
        assert sorted(indexed_documents(connection)) == ["0.md", "1.md"]


def test_a_folder_that_vanished_empties_the_index(root: Path, database: Database):
    write(root, "a.md", "风雪")
    run(database, root)

    (root / "a.md").unlink()
    root.rmdir()
    run(database, root)

    assert refs(database, "风雪") == []


async def found_refs(index: ProjectIndex, query: str) -> list[str]:
    loaded, found = index.search(make_query("", query).weights, 20)
    if loaded is None:
        return []
    rows = [loaded.rows[row] for row, _ in found]
    texts = await index.texts([row.id for row in rows])
    return [
        f"{loaded.path(number)}#{row.lines}"
        for (number, _), row in zip(found, rows, strict=True)
        if row.id in texts
    ]


async def until(indexes: Indexes, project: Project, query: str, wanted: list[str]) -> None:
    """Ask again after each step of the index until the answer is right."""
    with anyio.fail_after(PATIENCE):
        while True:
            index = indexes.of(project)
            steps = index.steps
            if await found_refs(index, query) == wanted:
                return
            await index.step(after=steps)


async def test_a_project_is_indexed_in_the_background(indexed: IndexedProject):
    indexed.write("a.md", "风雪")

    async with indexed.indexes() as indexes:
        index = indexes.of(indexed.project)

        assert not index.is_current
        assert await found_refs(index, "风雪") == []
        assert await index.catch_up(PATIENCE)
        assert await found_refs(index, "风雪") == ["a.md#L1-L1"]


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


async def test_beyond_the_watched_folders_every_question_looks_at_the_disk(
    indexed: IndexedProject, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(watcher, "MAX_FOLDERS", 2)
    indexed.write("卷一/深/a.md", "风雪")

    async with indexed.indexes() as indexes:
        await until(indexes, indexed.project, "风雪", ["卷一/深/a.md#L1-L1"])
        with anyio.fail_after(PATIENCE):
            while not indexed.watcher.projects_over_limit():
                await anyio.lowlevel.checkpoint()
        await indexes.of(indexed.project).catch_up(PATIENCE)
        indexed.write("卷一/深/a.md", "江船")

        await until(indexes, indexed.project, "江船", ["卷一/深/a.md#L1-L1"])


async def test_of_many_projects_the_latest_are_watched_and_all_are_found(
    indexed: IndexedProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """One that rests looks at the disk when it is asked, and is watched again from then on."""
    monkeypatch.setattr(project_index, "MOST_WATCHED", 2)
    names = ("prj_a", "prj_b", "prj_c", "prj_d")
    projects = [Project(project_id=name, name=name, root=tmp_path / name) for name in names]
    for project in projects:
        write(project.root, "a.md", "风雪")

    async def until_watched(*wanted: str) -> None:
        with anyio.fail_after(PATIENCE):
            while set(indexed.watcher._watches) != set(wanted):  # pyright: ignore[reportPrivateUsage]
                await anyio.lowlevel.checkpoint()

    async with indexed.indexes() as indexes:
        for project in projects:
            await until(indexes, project, "风雪", ["a.md#L1-L1"])
        await until_watched("prj_c", "prj_d")
        write(projects[0].root, "a.md", "江船")

        await until(indexes, projects[0], "江船", ["a.md#L1-L1"])
        await until_watched("prj_a", "prj_d")


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
        indexed.write("b.md", "风雪")

        await until(indexes, indexed.project, "风雪", ["a.md#L1-L1", "b.md#L1-L1"])


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
        assert len(await found_refs(index, "归人")) == 20


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


def test_a_refresh_stops_between_documents_without_passages(root: Path, database: Database) -> None:
    for number in range(20):
        write(root, f"{number}.md", "")
    stop, done = Event(), list[int]()

    def report(count: int, _documents: int) -> None:
        done.append(count)
        if count == 3:
            stop.set()

    scope = IndexScope(root=root, now_ms=2 * OLD, open_documents={}, finder=Redactor())

    assert not refresh(database, scope, report, stop)
    assert done == [0, 1, 2, 3]
