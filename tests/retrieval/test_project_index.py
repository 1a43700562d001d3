"""Bringing an index in line with a project."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest

from creonowd.redaction import Redactor
from creonowd.retrieval.database import Database
from creonowd.retrieval.index_writer import indexed_documents
from creonowd.retrieval.project_index import EditorDocument, IndexScope, refresh
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


@contextmanager
def no_descriptors() -> Generator[None]:
    """Let nothing more be opened."""
    import resource

    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(each.name) for each in Path("/dev/fd").iterdir())
    taken = [os.open(os.devnull, os.O_RDONLY)]
    while taken[-1] <= highest:
        taken.append(os.open(os.devnull, os.O_RDONLY))
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken[-1] + 1, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for descriptor in taken:
            os.close(descriptor)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no limit on descriptors to set")
def test_what_could_not_be_read_for_a_moment_is_found_later(root: Path, database: Database):
    write(root, "a.md", "风雪")
    run(database, root)
    with no_descriptors():
        run(database, root)

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
