"""What a text is searched by, and the way from what was found to what is offered."""

import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from creonowd.retrieval.passages import sketch
from creonowd.retrieval.ranking import (
    MOST_TERMS,
    CurrentDocument,
    Duplicates,
    contains_term,
    fold,
    is_single_character,
    is_word,
    make_query,
    search_terms,
    source_ref,
)
from tests.retrieval.text_indexes import index_of, ranked

SNOW = "林远站在城门口，望着雪里的灯火，一句话也没有说。风从河上来，吹灭了两盏。"
BOAT = "船过了三道湾，水声忽然大起来，林远把灯举高，照见岸上一排空空的马桩。"


STORY = "林远走进雪里的驿站，驿站的灯还亮着。他想起了那枚玉佩。"


def test_names_weigh_most_then_wishes_then_the_text():
    query = make_query("驿站亮着", "那枚玉佩", names=["林远"])

    assert query.weights["林远"] > query.weights["玉佩"] > query.weights["驿站"] > 0
    assert query.names == ("林远",)


def test_function_words_of_the_text_are_left_out():
    query = make_query("他在那里说了，and the boat")

    assert set(query.weights) == {"boat"}


def test_what_the_author_asks_for_is_taken_as_it_is():
    assert set(make_query("", "他在这里").weights) == {"他在", "在这", "这里"}


def test_what_is_repeated_weighs_more():
    weights = make_query(STORY).weights

    assert weights["驿站"] > weights["玉佩"]


def test_single_characters_serve_only_where_there_is_nothing_else():
    assert set(make_query("", "剑").weights) == {"剑"}
    assert set(make_query("", "拔剑").weights) == {"拔剑"}


def test_a_long_text_asks_with_its_last_words():
    text = "".join(f"{chr(0x4E00 + n)}{chr(0x5E00 + n)}。" for n in range(500))

    query = make_query(text, names=["林黛玉"])

    assert len(query.weights) == MOST_TERMS
    assert f"{chr(0x4E00 + 499)}{chr(0x5E00 + 499)}" in query.weights
    assert {"林黛", "黛玉"} <= set(query.weights)


def test_nothing_asks_for_nothing():
    assert make_query("", "").weights == {}


def test_the_order_of_names_does_not_matter():
    assert make_query(STORY, names=["林远", "阿青"]) == make_query(STORY, names=["阿青", "林远"])


def test_chinese_is_cut_into_bigrams_and_the_last_character_of_each_run():
    assert search_terms("林黛玉，剑。") == ["林黛", "黛玉", "玉", "剑"]


def test_words_are_folded():
    assert search_terms("Elizabeth BENNET's 2nd") == ["elizabeth", "bennet", "s", "2nd"]


def test_both_stand_in_one_text():
    assert search_terms("用iPhone拍照") == ["用", "拍照", "照", "iphone"]


@pytest.mark.parametrize("rare", ["𠀀𠀁", "㐀㐁", "\U00030000\U00030001", "\U0002b740\U0002ceb0"])
def test_rare_ideographs_of_every_plane_are_found(rare: str):
    assert search_terms(f"他叫{rare}。")[2] == rare


def test_spellings_that_mean_the_same_are_one():
    assert search_terms("ＡＢＣ ﾊﾝｶｸ 豈\uf900") == search_terms("abc ハンカク 豈豈")


@pytest.mark.parametrize("text", ["สวัสดี", "ខ្មែរ", "မြန်မာ", "한국어", "ひらがな"])
def test_scripts_without_spaces_have_bigrams(text: str):
    assert all(len(term) <= 2 and not is_word(term) for term in search_terms(text))


def test_marks_do_not_tear_words():
    assert search_terms("हिन्दी שָׁלוֹם") == ["हिन्दी", fold("שָׁלוֹם")]


def test_a_word_without_end_is_cut():
    assert [len(term) for term in search_terms("a" * 1000)] == [64]


def test_a_single_character_is_distinguished_from_a_letter():
    assert is_single_character("剑")
    assert not is_single_character("a")
    assert not is_single_character("剑客")


@pytest.mark.parametrize(
    ("term", "text", "stands"),
    [
        ("anna", "他叫Anna吗", True),
        ("anna", "Joanna, Annabel", False),
        ("anna", "Joanna met Anna", True),
        ("anna", "anna_lisa", True),
        ("城门", "进了城门口", True),
        ("城门", "城 门", False),
    ],
)
def test_a_text_has_its_terms_and_no_parts_of_words(term: str, text: str, *, stands: bool):
    assert contains_term(text, term) is stands
    assert (term in search_terms(text)) is stands


@given(st.text())
def test_terms_hold_nothing_that_the_index_would_tear(text: str):
    for term in search_terms(text):
        assert term
        assert not any(c.isascii() and not c.isalnum() for c in term)
        assert not any("\ue000" <= c <= "\uf8ff" for c in term)


@given(st.text())
@example("，：！？；．（）…\u3000")
@example("，\u0301：\u0308！\u0338？\u0301；\u0301．\u0301（\u0301）\u0301…\u0301\u3000\u0301")
def test_spellings_are_folded_as_unicode_says(text: str):
    assert fold(text) == unicodedata.normalize("NFKC", text).casefold()


def test_the_best_one_scores_one_and_all_others_less(tmp_path: Path):
    database = index_of(tmp_path, a="林远，林远，林远。", b=SNOW)

    scores = [one.score for one in ranked(database, "林远")]

    assert scores[0] == 1.0
    assert 0 < scores[1] < 1


def test_near_duplicates_step_back_for_the_best(tmp_path: Path):
    copy = SNOW.replace("两盏", "三盏")
    database = index_of(tmp_path, draft=copy, chapter=SNOW, other=BOAT)

    found = {source_ref(one.found): one.duplicates for one in ranked(database, "林远")}

    assert found == {"chapter.md#L1-L1": ("draft.md#L1-L1",), "other.md#L1-L1": ()}


def test_a_copy_of_what_the_author_is_at_steps_back_for_it(tmp_path: Path):
    database = index_of(tmp_path, a_copy=SNOW, chapter=SNOW, other=BOAT)
    current = CurrentDocument(path="chapter.md", text=SNOW, query_start=0, query_end=len(SNOW))

    found = ranked(database, "林远 城门口", current=current)

    assert [one.found.path for one in found] == ["chapter.md", "other.md"]
    assert found[0].duplicates == ("a_copy.md#L1-L1",)


def test_what_the_query_was_made_of_does_not_set_the_measure(tmp_path: Path):
    database = index_of(tmp_path, chapter=SNOW, other=BOAT)
    current = CurrentDocument(path="chapter.md", text=SNOW, query_start=0, query_end=len(SNOW))

    found = ranked(database, SNOW, current=current)

    assert {one.found.path: one.score for one in found} == {"chapter.md": 1.0, "other.md": 1.0}


def test_passages_of_the_current_document_are_where_they_stand_now(tmp_path: Path):
    database = index_of(tmp_path, chapter=f"# 一\n{SNOW}\n# 二\n{BOAT}\n")
    now = f"# 零\n\n# 一\n改了。\n# 二\n{BOAT}\n"

    current = CurrentDocument(path="chapter.md", text=now)

    (found,) = ranked(database, "林远", current=current)

    assert source_ref(found.found) == "chapter.md#L5-L6"
    assert now[found.found.start : found.found.end] == found.found.text


def test_no_more_are_ranked_than_wanted(tmp_path: Path):
    database = index_of(tmp_path, **{f"d{n}": f"林远{chr(0x4E00 + n)}" for n in range(30)})

    assert len(ranked(database, "林远", limit=7)) == 7


SNOWFALL = "他站在城门口，望着雪里的灯火，一句话也没有说。风从河上来，吹灭了两盏。" * 2
RIVER = "船过了三道湾，水声忽然大起来，她把灯举高，照见岸上一排空空的马桩。" * 2


def fingerprint(text: str) -> bytes:
    return sketch(search_terms(text))


def test_the_same_text_is_recognised():
    duplicates = Duplicates()

    assert duplicates.find(fingerprint(SNOWFALL)) is None
    assert duplicates.find(fingerprint(RIVER)) is None
    assert duplicates.find(fingerprint(SNOWFALL)) == 0


def test_a_few_other_words_do_not_matter():
    duplicates = Duplicates()
    duplicates.find(fingerprint(RIVER))
    duplicates.find(fingerprint(SNOWFALL))

    assert duplicates.find(fingerprint(SNOWFALL.replace("两盏", "三盏") + "完。")) == 1


def test_common_words_make_no_likeness():
    duplicates = Duplicates()
    duplicates.find(fingerprint("宝玉道：这话很是。" + SNOWFALL))

    assert duplicates.find(fingerprint("宝玉道：这话很是。" + RIVER)) is None


def test_tiny_and_empty_passages_have_fingerprints_too():
    duplicates = Duplicates()

    found = [duplicates.find(fingerprint(text)) for text in ("剑", "", "剑", "！", "刀")]

    assert found == [None, None, 0, None, None]
