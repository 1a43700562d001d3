"""The file of an index: found, checked, made anew; it holds what the documents say."""

import sqlite3
import threading
from pathlib import Path

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from creonowd.retrieval.database import (
    DamagedIndexError,
    Database,
    indexed_documents,
    remove_document,
    set_mark,
)
from tests.retrieval.text_indexes import find, index_of, is_whole, refs, write

LINES = st.sampled_from(
    [
        "# 雪",
        "风雪夜归人。",
        "他在雪里站着，" * 30 + "。",
        "船到江心。",
        "",
        "Snow fell on the boat.",
    ]
)
TEXTS = st.lists(LINES, max_size=6).map("\n".join)
STEPS = st.lists(st.tuples(st.sampled_from("abc"), st.none() | TEXTS), max_size=12)
QUESTIONS = ("风雪", "船到江心", "snow", "雪")


def test_an_index_is_there_again_after_a_restart(tmp_path: Path):
    index_of(tmp_path, a="风雪").close()
    database = Database(tmp_path / "index.sqlite3")

    assert database.open()
    assert refs(database, "风雪") == ["a.md#L1-L1"]


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + bytes(5000)])
def test_a_file_that_is_no_index_is_replaced(tmp_path: Path, content: bytes):
    (tmp_path / "index.sqlite3").write_bytes(content)
    database = Database(tmp_path / "index.sqlite3")

    assert not database.open()
    write(database, "a", "风雪")
    assert refs(database, "风雪") == ["a.md#L1-L1"]


def test_a_damaged_file_is_not_kept_open(tmp_path: Path):
    """Windows removes no file that is open, so it could never be replaced."""
    path = tmp_path / "index.sqlite3"
    path.write_bytes(b"no database, and long enough to be looked into" * 100)

    with pytest.raises(DamagedIndexError) as caught, Database(path).read():
        pass

    assert caught.value.__cause__ is not None
    assert str(path) not in [file.path for file in psutil.Process().open_files()]


def test_another_version_is_replaced(tmp_path: Path):
    index_of(tmp_path, a="风雪").close()
    other = sqlite3.connect(tmp_path / "index.sqlite3")
    other.execute("PRAGMA user_version = 999")
    other.close()

    assert not Database(tmp_path / "index.sqlite3").open()


def test_pages_that_were_overwritten_are_noticed(tmp_path: Path):
    index_of(tmp_path, **{f"d{n}": f"第{n}回风雪" * 200 for n in range(20)}).close()
    path = tmp_path / "index.sqlite3"
    whole = path.read_bytes()
    path.write_bytes(whole[:8192] + b"\xff" * (len(whole) - 8192))

    assert not Database(path).open()


def test_damage_that_comes_later_is_reported(tmp_path: Path):
    database = index_of(tmp_path, a="风雪")
    with database.write() as connection:
        connection.execute("DROP TABLE passages")

    with pytest.raises(DamagedIndexError):
        refs(database, "风雪")

    database.start_over()
    write(database, "a", "风雪")
    assert refs(database, "风雪") == ["a.md#L1-L1"]


def test_readers_see_the_last_finished_state_and_do_not_wait(tmp_path: Path):
    database = index_of(tmp_path, a="风雪")
    found: list[str] = []

    with database.write() as connection:
        connection.execute("DELETE FROM passages")
        reader = threading.Thread(target=lambda: found.extend(refs(database, "风雪")))
        reader.start()
        reader.join(10)

        assert found == ["a.md#L1-L1"]


def test_what_fails_half_way_leaves_nothing(tmp_path: Path):
    database = index_of(tmp_path, a="风雪")
    before = database.generation

    with pytest.raises(ZeroDivisionError):
        fail_half_way(database)

    assert refs(database, "风雪") == ["a.md#L1-L1"]
    assert database.generation == before


def fail_half_way(database: Database) -> None:
    with database.write() as connection:
        connection.execute("DELETE FROM documents")
        raise ZeroDivisionError


def test_a_document_that_is_put_again_replaces_itself(tmp_path: Path):
    database = index_of(tmp_path, a="风雪")

    write(database, "a", "江船")

    assert refs(database, "风雪") == []
    assert refs(database, "江船") == ["a.md#L1-L1"]


def test_passages_that_only_moved_know_their_new_lines(tmp_path: Path):
    database = index_of(tmp_path, a="# 一\n风雪\n# 二\n江船\n")

    write(database, "a", "# 零\n\n新的\n# 一\n风雪\n# 二\n江船\n")

    assert refs(database, "江船") == ["a.md#L6-L7"]
    is_whole(database)


def test_a_passage_that_stands_twice_is_kept_twice(tmp_path: Path):
    database = index_of(tmp_path, a="# 一\n风雪\n# 一\n风雪\n")

    assert refs(database, "风雪") == ["a.md#L1-L2", "a.md#L3-L4"]


def test_what_is_removed_is_not_found(tmp_path: Path):
    database = index_of(tmp_path, a="风雪", b="风雪")

    with database.write() as connection:
        remove_document(connection, "a.md")
        remove_document(connection, "never there.md")

    assert refs(database, "风雪") == ["b.md#L1-L1"]
    is_whole(database)


def test_marks_are_noted_without_touching_the_text(tmp_path: Path):
    database = index_of(tmp_path, a="风雪")

    with database.write() as connection:
        set_mark(connection, "a.md", "newer")

    with database.read() as connection:
        assert indexed_documents(connection)["a.md"].mark == "newer"
    assert refs(database, "风雪") == ["a.md#L1-L1"]


@settings(max_examples=40)
@given(STEPS)
def test_any_history_gives_the_index_of_its_last_state(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str | None]]
):
    folder = tmp_path_factory.mktemp("history")
    database = index_of(folder)
    state: dict[str, str] = {}

    for name, text in steps:
        if text is None:
            state.pop(name, None)
            with database.write() as connection:
                remove_document(connection, f"{name}.md")
        else:
            state[name] = text
            write(database, name, text)

    fresh = Database(folder / "fresh.sqlite3")
    fresh.open()
    for name in sorted(state):
        write(fresh, name, state[name])
    is_whole(database)
    for question in QUESTIONS:
        assert find(database, question) == find(fresh, question)
    database.close()
    fresh.close()
