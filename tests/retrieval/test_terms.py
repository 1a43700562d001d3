"""What a text is searched by."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.retrieval.query import fold, is_lone, is_word, stands_in, terms_of


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


def test_a_single_character_is_told_from_a_letter():
    assert is_lone("剑")
    assert not is_lone("a")
    assert not is_lone("剑客")


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
    assert stands_in(term, text) is stands
    assert (term in terms_of(text)) is stands


@given(st.text())
def test_terms_hold_nothing_that_the_index_would_tear(text: str):
    for term in terms_of(text):
        assert term
        assert not any(c.isascii() and not c.isalnum() for c in term)
        assert not any("\ue000" <= c <= "\uf8ff" for c in term)
