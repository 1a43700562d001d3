"""Questions asked at a place of a story: answered by the right passage, in three kinds of prose."""

from pathlib import Path

import pytest

from testing.story_questions import ALLUSION, MODERN, StoryNovel, holds, modern, novels
from tests.retrieval.text_indexes import index_of, ranked

NOVELS = pytest.mark.parametrize("novel", novels(), ids=lambda novel: novel.name)


@NOVELS
def test_each_question_is_about_an_earlier_passage(novel: StoryNovel) -> None:
    for _, at, _, chapter, quote in (*novel.questions, *novel.further, *novel.held_out):
        assert chapter < at <= len(novel.chapters)
        assert holds(novel.chapters[chapter - 1], quote)


@NOVELS
def test_the_right_passage_is_among_twenty(novel: StoryNovel, tmp_path: Path) -> None:
    texts = {f"{number:03}": text for number, text in enumerate(novel.chapters, start=1)}
    index = index_of(tmp_path, **texts)

    missed = [
        query
        for _, _, query, chapter, quote in novel.questions
        if not any(
            one.found.path == f"{chapter:03}.md" and holds(one.found.text, quote)
            for one in ranked(index, query)
        )
    ]

    assert len(missed) <= len(novel.questions) // 10


def test_the_modern_novel_is_always_there() -> None:
    assert len(modern()) == 16
    assert sum(question.kind == ALLUSION for question in MODERN) == 6
