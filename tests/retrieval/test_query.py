"""What a text is searched by, and how much each term counts."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from creonowd.retrieval.query import (
    MOST_TERMS,
    contains_term,
    fold,
    is_single_character,
    is_word,
    make_query,
    terms_of,
)

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
    assert terms_of("林黛玉，剑。") == ["林黛", "黛玉", "玉", "剑"]


def test_words_are_folded():
    assert terms_of("Elizabeth BENNET's 2nd") == ["elizabeth", "bennet", "s", "2nd"]


def test_both_stand_in_one_text():
    assert terms_of("用iPhone拍照") == ["用", "拍照", "照", "iphone"]


@pytest.mark.parametrize("rare", ["𠀀𠀁", "㐀㐁", "\U00030000\U00030001", "\U0002b740\U0002ceb0"])
def test_rare_ideographs_of_every_plane_are_found(rare: str):
    assert terms_of(f"他叫{rare}。")[2] == rare


def test_spellings_that_mean_the_same_are_one():
    assert terms_of("ＡＢＣ ﾊﾝｶｸ 豈\uf900") == terms_of("abc ハンカク 豈豈")


@pytest.mark.parametrize("text", ["สวัสดี", "ខ្មែរ", "မြန်မာ", "한국어", "ひらがな"])
def test_scripts_without_spaces_have_bigrams(text: str):
    assert all(len(term) <= 2 and not is_word(term) for term in terms_of(text))


def test_marks_do_not_tear_words():
    assert terms_of("हिन्दी שָׁלוֹם") == ["हिन्दी", fold("שָׁלוֹם")]


def test_a_word_without_end_is_cut():
    assert [len(term) for term in terms_of("a" * 1000)] == [64]


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
    assert (term in terms_of(text)) is stands


@given(st.text())
def test_terms_hold_nothing_that_the_index_would_tear(text: str):
    for term in terms_of(text):
        assert term
        assert not any(c.isascii() and not c.isalnum() for c in term)
        assert not any("\ue000" <= c <= "\uf8ff" for c in term)


@given(st.text())
@example("，：！？；．（）…\u3000")
@example("，\u0301：\u0308！\u0338？\u0301；\u0301．\u0301（\u0301）\u0301…\u0301\u3000\u0301")
def test_spellings_are_folded_as_unicode_says(text: str):
    assert fold(text) == unicodedata.normalize("NFKC", text).casefold()
