"""An index in memory is that of the database, however it came to be there."""

import gc
import weakref
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from creonowd.retrieval import loaded_index
from creonowd.retrieval.bm25 import TermSegment, search
from creonowd.retrieval.loaded_index import IndexLoader, LoadedIndex
from creonowd.retrieval.passages import DamagedIndexError, Database, remove_document
from creonowd.retrieval.ranking import SearchScope, make_query
from testing.retrieval_questions import chapters
from tests.retrieval.text_indexes import index_of, load, write

QUESTIONS = ("风雪", "船到江心", "snow", "雪", "风雪 snow 江心")
LINES = st.sampled_from(["# 雪", "风雪夜归人。", "船到江心。" * 40, "", "Snow fell on the boat."])
TEXTS = st.lists(LINES, max_size=5).map("\n".join)
STEPS = st.lists(st.tuples(st.sampled_from("abc"), st.none() | TEXTS), max_size=10)


def answers(loaded: LoadedIndex) -> list[list[tuple[str, str, float]]]:
    """What each question finds: path, lines and score."""
    answers: list[list[tuple[str, str, float]]] = []
    for question in QUESTIONS:
        found = search(loaded.terms, make_query("", question).weights, 20)
        rows: list[int] = found.rows.tolist()
        scores: list[float] = found.scores.tolist()
        places = [(loaded.path(row), loaded.rows[row].lines) for row in rows]
        answers.append([(*place, score) for place, score in zip(places, scores, strict=True)])
    return answers


@settings(max_examples=40)
@given(STEPS, st.sampled_from([0, 1, 256]))
def test_what_is_read_step_by_step_is_what_is_read_at_once(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str | None]], few: int
):
    database = index_of(tmp_path_factory.mktemp("steps"), z="风雪 snow")
    loader = IndexLoader()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loaded_index, "LEAST_TO_MERGE", few)

        for name, text in steps:
            if text is None:
                with database.write() as connection:
                    remove_document(connection, f"{name}.md")
            else:
                write(database, name, text)
            with database.read() as connection:
                assert answers(loader.load(connection)) == answers(load(database))
    database.close()


def test_what_is_saved_is_read_in_one_piece_after_a_restart(tmp_path: Path):
    database = index_of(tmp_path, a="风雪", b="船到江心。")
    loader = saved(database)

    with database.write() as connection:
        connection.execute("UPDATE passages SET terms = x'00'")

    assert answers(load(database)) == answers(loader)


def test_what_was_saved_and_is_damaged_is_read_one_by_one(tmp_path: Path):
    database = index_of(tmp_path, a="风雪", b="船到江心。")
    loader = saved(database)

    with database.write() as connection:
        (data,) = connection.execute("SELECT data FROM segments").fetchone()
        connection.execute("UPDATE segments SET data = ?", (data[:-1] + b"\xff",))

    assert answers(load(database)) == answers(loader)


def test_terms_that_are_damaged_are_reported(tmp_path: Path):
    database = index_of(tmp_path, a="风雪")

    with database.write() as connection:
        connection.execute("UPDATE passages SET terms = x'00'")

    with pytest.raises(DamagedIndexError):
        load(database)


def saved(database: Database) -> LoadedIndex:
    """Load an index of which all terms are in the large segment, and save that."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loaded_index, "LEAST_TO_MERGE", 0)
        loader = IndexLoader()
        with database.read() as connection:
            loaded = loader.load(connection)
    assert not loader.is_saved
    with database.write() as connection:
        loader.save(connection)
    return loaded


def test_what_is_out_of_scope_counts_for_nothing(tmp_path: Path):
    """Not even for how rare a term is: scores are those of an index without it."""
    texts = {"a": "风雪 长夜", "b": "风雪夜归人", "c": "风雪 风雪"}
    later = {"x": "风雪 长夜 长夜", "y": "长夜"}
    weights = {"风雪": 1.0, "长夜": 2.0}
    everything = load(index_of(tmp_path / "all", **texts, **later))
    scope = SearchScope(documents=frozenset({"a.md", "b.md", "c.md", "gone.md"}))

    found = search(everything.terms_in(scope), weights, 20)
    alone = load(index_of(tmp_path / "some", **texts))
    expected = search(alone.terms, weights, 20)

    paths = [everything.path(row) for row in found.rows.tolist()]
    assert paths == [alone.path(row) for row in expected.rows.tolist()]
    assert found.scores.tolist() == expected.scores.tolist()


def test_one_document_may_be_searched_up_to_an_offset(tmp_path: Path):
    loaded = load(index_of(tmp_path, a="风雪"))

    def found(end: int) -> list[int]:
        scope = SearchScope(documents=frozenset(), own="a.md", own_end=end)
        return search(loaded.terms_in(scope), {"风雪": 1.0}, 20).rows.tolist()

    assert (found(1), found(2)) == ([], [0])


def test_arrays_take_little_more_than_the_text(tmp_path: Path):
    """64 MB for 25 MB of text: every novel fits."""
    texts = {f"d{number:03}": text for number, text in enumerate(chapters())}
    loaded = load(index_of(tmp_path, **texts))

    size = sum(segment.size for segment, _ in loaded.terms.parts)

    assert size <= 64 / 25 * sum(len(text.encode()) for text in texts.values())


def test_a_segment_of_another_length_is_refused():
    with pytest.raises(ValueError, match="damaged"):
        TermSegment.from_bytes(b"short")


def test_a_segment_with_places_of_another_width_is_refused(tmp_path: Path):
    database = index_of(tmp_path, a="风雪", b="船到江心。")
    *_, (segment, _) = load(database).terms.parts
    wide = segment._replace(places=segment.places.astype(np.uint32))

    assert TermSegment.from_bytes(segment.to_bytes()).places.tolist() == segment.places.tolist()
    with pytest.raises(ValueError, match="another version"):
        TermSegment.from_bytes(wide.to_bytes())


def test_an_index_that_was_replaced_is_freed_at_once(tmp_path: Path):
    """Its arrays are as large as the text: they must not wait for a collection of garbage."""
    loaded = load(index_of(tmp_path, a="风雪夜归人。", b="船到江心。"))
    scope = SearchScope(documents=frozenset(loaded.paths))
    loaded.allusions_after(scope, ("船到江心。",))
    index, terms = weakref.ref(loaded), weakref.ref(loaded.terms)
    gc.disable()
    try:
        del loaded

        assert (index(), terms()) == (None, None)
    finally:
        gc.enable()
