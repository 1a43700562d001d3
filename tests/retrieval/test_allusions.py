"""A sentence points to the passage whose words it shares with hardly any other document."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from creonowd.retrieval.allusions import NOTHING, Allusions, excerpt
from creonowd.retrieval.loaded_index import LoadedIndex
from creonowd.retrieval.ranking import SearchScope
from tests.retrieval.text_indexes import index_of, load

TEXTS = {
    "1": "焦大喝醉了，满口混骂，说什么爬灰的爬灰。\n\n众人把焦大捆起来，塞了一嘴马粪。\n",
    "2": "园子里的海棠开了，众人都来看花。\n",
    "3": "众人吃了茶，看了一回花，各自散去。\n",
    "4": "Fordyce's Sermons lay upon the table. Everybody yawned.\n",
}


@pytest.fixture
def index(tmp_path: Path) -> LoadedIndex:
    return load(index_of(tmp_path, **TEXTS))


def within(index: LoadedIndex, *names: str) -> Allusions:
    documents = frozenset(f"{name}.md" for name in names or TEXTS)
    return index.allusions_in(SearchScope(documents=documents))


def test_an_allusion_points_to_its_document(index: LoadedIndex) -> None:
    asked = ["他想起焦大那日的醉骂。", "Somebody had left Fordyce's Sermons behind."]

    found = within(index).find(asked, asked)

    assert [index.path(one.row) for one in found] == ["1.md", "4.md"]
    assert [one.sentence for one in found] == asked


@pytest.mark.parametrize("sentence", ["", "……", "他来了。", "天边的云很低。", "🙂", "x" * 500])
def test_what_shares_nothing_points_nowhere(index: LoadedIndex, sentence: str) -> None:
    (found,) = within(index).find([sentence], [])

    assert (found.row, found.strength) == NOTHING[:2]
    assert within(index).lead(sentence).strength == pytest.approx(0.0, abs=1e-9) or sentence


def test_what_the_scene_is_full_of_is_no_allusion(index: LoadedIndex) -> None:
    sentence = "焦大又来了。"
    scene = [sentence, "焦大坐下。", "焦大不说话。", "焦大走了。"]

    (alone,) = within(index).find([sentence], [])
    (inside,) = within(index).find([sentence], scene)

    assert inside.strength < alone.strength / 2


def test_nothing_outside_of_the_scope_counts(index: LoadedIndex) -> None:
    """Not even for how rare a word is: it is asked as if the others did not exist."""
    asked = ["他想起焦大那日的醉骂，海棠又开了。"]

    narrow = within(index, "2", "3").find(asked, asked)

    assert index.path(narrow[0].row) == "2.md"


def test_a_paraphrase_is_found_by_all_of_its_words(index: LoadedIndex) -> None:
    found = within(index).lead("大家都到园子里看海棠花")

    assert index.path(found.row) == "2.md"
    assert found.strength > 0


def test_an_excerpt_has_the_sentence_that_is_meant() -> None:
    text = "第一句说天气。" * 20 + "焦大喝醉了，说爬灰的爬灰。" + "最后一句说茶。" * 20

    start, end = excerpt(text, "焦大醉后说了爬灰。", 40)

    assert "焦大喝醉了，说爬灰的爬灰。" in text[start:end]
    assert end - start < 80


@pytest.mark.parametrize("text", ["没有句号", "短。", "\n\n　　缩进的一段。\n\n"])
def test_an_excerpt_of_a_short_text_is_all_of_it(text: str) -> None:
    start, end = excerpt(text, "短", 40)

    assert text[start:end] == text.strip()


SENTENCES = st.text("焦大爬灰海棠花茶雨灯宝玉鉴风月。\n", min_size=2, max_size=30)


@settings(max_examples=25, deadline=None)
@given(
    past=st.lists(SENTENCES, min_size=1, max_size=4),
    future=st.lists(SENTENCES, max_size=4),
    asked=st.lists(SENTENCES, min_size=1, max_size=4, unique=True),
)
def test_no_text_of_the_future_changes_what_a_sentence_alludes_to(
    past: list[str], future: list[str], asked: list[str]
) -> None:
    """Not by its passages, and not by how rare it makes a word."""
    texts = {f"{number}": text for number, text in enumerate(past, start=1)}
    names = tuple(texts)
    later = {f"{number}": text for number, text in enumerate(future, start=5)}
    found: list[object] = []
    for every in (texts, texts | later):
        with tempfile.TemporaryDirectory() as folder:
            database = index_of(Path(folder), **every)
            index = load(database)
            database.close()
        allusions = within(index, *names)
        answers = [*allusions.find(asked, asked), *map(allusions.lead, asked)]
        found.append(
            [
                (index.path(row) if row >= 0 else "", index.rows[row].start if row >= 0 else 0, one)
                for row, one, _ in answers
            ]
        )

    assert found[0] == found[1]
