"""The index holds what the documents say; passages that say nearly the same are recognised."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from creonowd.retrieval.database import Database
from creonowd.retrieval.index_writer import (
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
