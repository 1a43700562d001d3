"""The best passages are found, in an order that depends on nothing else."""

from pathlib import Path

import pytest

from creonowd.retrieval.bm25 import COMMON
from tests.retrieval.text_indexes import find, index_of, refs

FILLER = "众人说了一回闲话，吃了茶，各自散去。"


def test_names_of_two_characters_are_found(tmp_path: Path):
    database = index_of(tmp_path, a="林远推开门。", b="阿青在门外。")

    assert refs(database, "林远") == ["a.md#L1-L1"]


def test_a_single_character_is_found_wherever_it_stands(tmp_path: Path):
    database = index_of(tmp_path, a="拔剑。", b="剑客来了。", c="好剑法", d="没有刀")

    assert refs(database, "剑") == ["a.md#L1-L1", "b.md#L1-L1", "c.md#L1-L1"]


def test_rare_ideographs_are_found(tmp_path: Path):
    database = index_of(tmp_path, a="他名叫𠀀𪚥，住在村口。", b="他名叫阿青。")

    assert refs(database, "𠀀𪚥") == ["a.md#L1-L1"]


def test_words_need_their_whole_length(tmp_path: Path):
    database = index_of(tmp_path, a="The cat sat.", b="A category error.")

    assert refs(database, "CAT") == ["a.md#L1-L1"]


def test_rare_terms_weigh_more_than_common_ones(tmp_path: Path):
    texts = {f"d{n}": f"宝玉来了。{FILLER}" for n in range(30)}
    database = index_of(tmp_path, **texts, z=f"玉佩碎了。{FILLER}", zz=f"宝玉又来。{FILLER}")

    assert refs(database, "宝玉 玉佩")[0] == "z.md#L1-L1"


def test_more_mentions_weigh_more(tmp_path: Path):
    database = index_of(tmp_path, a=f"林远。{FILLER}", b=f"林远，林远，林远。{FILLER}")

    assert refs(database, "林远") == ["b.md#L1-L1", "a.md#L1-L1"]


def test_a_mention_in_a_short_passage_weighs_more(tmp_path: Path):
    database = index_of(tmp_path, a=f"林远来了。{FILLER * 12}", b="林远来了。")

    assert refs(database, "林远") == ["b.md#L1-L1", "a.md#L1-L1"]


def test_a_heading_is_found_with_what_stands_below_it(tmp_path: Path):
    database = index_of(tmp_path, a=f"# 栊翠庵\n\n{FILLER}\n", b=FILLER)

    assert refs(database, "栊翠庵") == ["a.md#L1-L3"]


def test_ties_are_broken_by_path_and_offset(tmp_path: Path):
    database = index_of(tmp_path, b="# 一\n林远\n# 一\n林远", a="# 一\n林远")

    assert refs(database, "林远") == ["a.md#L1-L2", "b.md#L1-L2", "b.md#L3-L4"]


@pytest.mark.parametrize("order", ["forwards", "backwards"])
def test_where_more_tie_than_are_wanted_the_first_by_path_win(tmp_path: Path, order: str):
    names = [f"d{number:03}" for number in range(60)]
    database = index_of(
        tmp_path, **dict.fromkeys(names if order == "forwards" else names[::-1], "林远")
    )

    found = [one.path for one in find(database, "林远", most=3)]

    assert found == ["d000.md", "d001.md", "d002.md"]


@pytest.mark.parametrize("order", ["forwards", "backwards"])
@pytest.mark.parametrize("query", ["远", "林远", "林远 闲话"])
def test_what_stands_in_too_many_places_is_found_by_path_too(
    tmp_path: Path, order: str, query: str
):
    names = [f"d{number:03}" for number in range(COMMON + 60)]
    texts = {name: f"# {name}\n林远来了。{FILLER}" for name in names}
    database = index_of(
        tmp_path, **dict(texts.items() if order == "forwards" else reversed(texts.items()))
    )

    found = [one.path for one in find(database, query, most=3)]

    assert found == ["d000.md", "d001.md", "d002.md"]


def test_of_a_common_term_the_best_passages_are_found(tmp_path: Path):
    texts = {f"d{n:04}": f"# {n}\n林远来了。{FILLER}" for n in range(COMMON + 40)}
    database = index_of(tmp_path, **texts, best=f"林远，{'林远道，' * 9}{FILLER}")

    found = find(database, "林远", most=5)

    assert found[0].path == "best.md"
    assert len(found) == 5


def test_a_common_term_counts_for_passages_found_by_a_rare_one(tmp_path: Path):
    texts = {f"d{n:04}": f"# {n}\n林远，林远，林远。{FILLER}" for n in range(COMMON + 40)}
    both = f"玉佩在林远手里。{FILLER}"
    database = index_of(tmp_path, **texts, rare=f"玉佩在阿青手里。{FILLER}", both=both)

    found = find(database, "林远 玉佩", most=5)

    assert [one.path for one in found[:2]] == ["both.md", "rare.md"]
    assert set(found[0].shares) == {"林远", "玉佩"}


def test_a_common_word_is_not_found_inside_another(tmp_path: Path):
    texts = {f"d{n:04}": f"# {n}\nthe boat left" for n in range(COMMON + 40)}
    database = index_of(tmp_path, **texts, rare="Zeppelins lathered up.", both="The zeppelins.")

    shares = {one.path: set(one.shares) for one in find(database, "the zeppelins", most=2)}

    assert shares == {"both.md": {"the", "zeppelins"}, "rare.md": {"zeppelins"}}


def test_the_score_is_the_sum_of_its_shares(tmp_path: Path):
    database = index_of(tmp_path, a=f"林远与阿青。{FILLER}", b=FILLER)

    (found,) = find(database, "林远 阿青")

    assert found.score == pytest.approx(sum(found.shares.values()))


def test_nothing_is_found_in_nothing(tmp_path: Path):
    assert find(index_of(tmp_path), "林远") == []
    assert find(index_of(tmp_path), "！？") == []
