"""A sentence points to the passage whose words it shares with hardly any other document."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from creonowd.retrieval.allusions import (
    MAX_ALLUSIONS,
    Allusion,
    Allusions,
    CurrentAllusions,
    allusion_excerpt,
)
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

    assert [[index.path(one.row) for one in each] for each in found] == [["1.md"], ["4.md"]]
    assert [each[0].sentence for each in found] == asked


@pytest.mark.parametrize("sentence", ["", "……", "他来了。", "天边的云很低。", "🙂", "x" * 500])
def test_what_shares_nothing_points_nowhere(index: LoadedIndex, sentence: str) -> None:
    assert within(index).find([sentence, "众人散去。"], [])[0] == ()


def test_what_the_scene_is_full_of_is_no_allusion(index: LoadedIndex) -> None:
    sentence = "焦大又来了。"
    scene = [sentence, "焦大坐下。", "焦大不说话。", "焦大走了。"]

    (alone,) = within(index).by_rare_words([sentence], [])
    (inside,) = within(index).by_rare_words([sentence], scene)

    assert inside.strength < alone.strength / 2


def test_nothing_outside_of_the_scope_counts(index: LoadedIndex) -> None:
    """Not even for how rare a word is: it is asked as if the others did not exist."""
    asked = ["他想起焦大那日的醉骂，海棠又开了。"]

    ((narrow,),) = within(index, "2", "3").find(asked, asked)

    assert index.path(narrow.row) == "2.md"


def test_a_paraphrase_is_found_by_all_of_its_words(index: LoadedIndex) -> None:
    (found,) = within(index).by_all_words(["大家都到园子里看海棠花"])

    assert index.path(found.row) == "2.md"
    assert found.strength > 0


def test_many_sentences_at_once_find_what_each_finds_alone(tmp_path: Path) -> None:
    database = index_of(tmp_path, **TEXTS)
    asked = ["焦大醉了", "看海棠花", "吃了茶", "", "Fordyce yawned", "无关", "看海棠花"]

    together = within(load(database)).by_all_words(asked)

    assert together == [within(load(database)).by_all_words([one])[0] for one in asked]


def test_words_in_two_documents_lead_nowhere(index: LoadedIndex) -> None:
    (found,) = within(index, "2", "3").by_all_words(["众人"])

    assert found.strength == pytest.approx(0.0)


DOCUMENTS = tuple(range(20))


def meant(row: int, strength: float) -> tuple[Allusion, ...]:
    return (Allusion(row, strength, f"{row}"),)


def held_after(
    first: list[tuple[Allusion, ...]], *later: tuple[Allusion, ...], each: str = "他没有说话。"
) -> list[int]:
    held = CurrentAllusions(DOCUMENTS)
    held.start([each] * len(first), first)
    held.add_sentences([each] * len(later), later)
    return [one.row for one in held.all]


def test_what_is_alluded_to_stands_in_the_order_in_which_it_came() -> None:
    first = [meant(7, 2.0), meant(3, 4.0), (), meant(5, 3.0)]

    assert held_after(first) == [7, 3, 5]
    assert held_after(first, (), meant(1, 2.0)) == [7, 3, 5, 1]


def test_only_a_clearly_stronger_allusion_takes_a_place() -> None:
    full = [meant(row, 2.0) for row in range(MAX_ALLUSIONS)]

    assert held_after(full, meant(9, 2.1)) == list(range(MAX_ALLUSIONS))
    assert held_after(full, meant(9, 3.0)) == [*range(1, MAX_ALLUSIONS), 9]


def test_a_weak_allusion_is_none() -> None:
    assert held_after([meant(1, 1.0)], meant(2, 1.1)) == []


def test_an_allusion_fades_as_the_author_goes_on() -> None:
    full = [meant(row, 2.0) for row in range(MAX_ALLUSIONS)]
    long = "他没有说话，" * 200

    assert held_after(full, (), (), meant(9, 2.1), each=long) == [*range(1, MAX_ALLUSIONS), 9]


def test_a_document_is_alluded_to_once() -> None:
    held = CurrentAllusions([0, 0, 1])
    held.start(["一。", "二。"], [meant(0, 2.0), meant(1, 3.0)])
    held.add_sentences(["三。", "四。"], [meant(0, 2.5), meant(2, 2.0)])

    assert [one.row for one in held.all] == [1, 2]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 19), st.floats(0, 6)), max_size=30),
    st.lists(st.tuples(st.integers(0, 19), st.floats(0, 6)), max_size=30),
)
def test_writing_on_only_appends_and_takes_out(
    first: list[tuple[int, float]], later: list[tuple[int, float]]
) -> None:
    """What stays keeps its place, unless it is alluded to again and more clearly."""
    held = CurrentAllusions(DOCUMENTS)
    held.start(["一句话。"] * len(first), [meant(*one) for one in first])
    before = [one.row for one in held.all]
    for one in later:
        held.add_sentences(["又一句。"], [meant(*one)])
        after = [held.row for held in held.all]
        stayed = [row for row in before if row in after]
        assert [row for row in after if row in stayed][: len(stayed)] == stayed or one[0] in stayed
        assert len(after) == len(set(after)) <= MAX_ALLUSIONS
        before = after


def test_an_excerpt_has_the_sentence_that_is_meant() -> None:
    text = "第一句说天气。" * 20 + "焦大喝醉了，说爬灰的爬灰。" + "最后一句说茶。" * 20

    start, end = allusion_excerpt(text, "焦大醉后说了爬灰。", 40)

    assert "焦大喝醉了，说爬灰的爬灰。" in text[start:end]
    assert end - start < 80


@pytest.mark.parametrize("text", ["没有句号", "短。", "\n\n　　缩进的一段。\n\n"])
def test_an_excerpt_of_a_short_text_is_all_of_it(text: str) -> None:
    start, end = allusion_excerpt(text, "短", 40)

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
        answers = [one for each in allusions.find(asked, asked) for one in each]
        found.append(
            [
                (index.path(row) if row >= 0 else "", index.rows[row].start if row >= 0 else 0, one)
                for row, one, _ in answers
            ]
        )

    assert found[0] == found[1]


ADDED = [
    "焦大又骂了起来。",
    "海棠还开着。",
    "他走了。",
    "Fordyce yawned.",
    "众人捆起焦大，塞了一嘴马粪。",
]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(st.sampled_from(ADDED), unique=True, max_size=5), min_size=1, max_size=5))
def test_sentences_added_one_by_one_allude_to_what_they_do_together(
    states: list[list[str]],
) -> None:
    """However the author goes back and forth."""
    with tempfile.TemporaryDirectory() as folder:
        database = index_of(Path(folder), **TEXTS)
        index, fresh = load(database), load(database)
        database.close()
    text, scope = ("天边的云很低。",), SearchScope(documents=frozenset(index.paths))

    kept = [index.allusions_after(scope, text, tuple(added)) for added in states]

    for added, found in zip(states, kept, strict=True):
        held = CurrentAllusions(fresh.documents)
        held.start(text, fresh.allusions_in(scope).find(text, text))
        held.add_sentences(added, fresh.allusions_in(scope).find(added, text))
        assert found == held.all
