"""The right chapter for questions about a novel of 120.

The novel and what is measured are those of `../shared/corpus`; without it a stand-in is asked.
"""

from pathlib import Path

import pytest

from creonowd.retrieval.passages import Database
from testing.retrieval_questions import CORPUS, QUESTIONS, chapters, measure
from tests.retrieval.text_indexes import index_of, ranked


@pytest.fixture(scope="module")
def novel(tmp_path_factory: pytest.TempPathFactory) -> Database:
    texts = {f"{number:03}": text for number, text in enumerate(chapters(), start=1)}
    return index_of(tmp_path_factory.mktemp("novel"), **texts)


def answered(novel: Database, query: str) -> list[int]:
    return [int(Path(one.found.path).stem) for one in ranked(novel, query)]


@pytest.mark.parametrize(
    ("kinds", "recall"),
    [
        (("name", "place"), 0.95),
        (("word",), 0.9),
        (("event",), 0.8),
        (("paraphrase",), 0.7),
    ],
)
def test_the_right_chapter_is_among_twenty_passages(
    novel: Database, kinds: tuple[str, ...], recall: float
):
    asked = [question for question in QUESTIONS if question.kind in kinds]

    measured = measure(asked, lambda query: answered(novel, query))

    print(kinds, measured)
    assert measured.recall_at_20 >= recall


def test_the_questions_are_many_and_about_this_edition():
    novel = chapters()

    literal = [q for q in QUESTIONS if q.kind in {"name", "place", "word"}]

    assert len(QUESTIONS) >= 60
    assert not CORPUS.is_file() or all(q.query in novel[q.chapter - 1] for q in literal)
