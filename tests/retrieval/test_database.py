"""The file of an index: found, checked, made anew."""

import sqlite3
import threading
from pathlib import Path

import pytest

from creonowd.retrieval.database import DamagedIndexError, Database
from tests.retrieval.text_indexes import index_of, refs, write


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
