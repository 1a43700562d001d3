"""Which names a text mentions, and which parts of a name stand for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.context.names import Mentions, parts_of, unambiguous_parts

NOBODY: set[str] = set()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("那天林远来了。", {"林远"}),
        ("那天林远山来了。", {"林远山"}),
        ("林远山和林远", {"林远山", "林远"}),
        ("Anna waited", {"Anna"}),
        ("Annabel waited", NOBODY),
        ("Joanna", NOBODY),
        ("他叫Anna吗", {"Anna"}),
        ("", NOBODY),
    ],
)
def test_names_are_found_where_they_stand(text: str, found: set[str]) -> None:
    assert Mentions().find(["林远", "林远山", "Anna", "Ann", " ", ""], text) == found


def test_a_name_far_inside_a_novel_is_found() -> None:
    text = "雨还在下，檐水滴在石阶上，一下又一下地敲着，像旧钟，也像谁的脚步声，由远及近。\n" * 5000

    assert Mentions().find(["苏晴"], f"{text}苏晴{text}") == {"苏晴"}


ALL_NAMES = ("林远", "林远山", "远山", "山里", "Anna", "Ann", "Anna Lee")


@given(
    pieces=st.lists(
        st.sampled_from([*ALL_NAMES, "里", " ", "\n", "雨下了一夜，没有人来。\n" * 30])
    ),
    names=st.sets(st.sampled_from(ALL_NAMES)),
)
def test_one_search_for_all_names_answers_for_some(pieces: list[str], names: set[str]) -> None:
    text = "".join(pieces)

    spotted = Mentions().spot(ALL_NAMES, text)

    assert spotted.of(names) == Mentions().find(names, text)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("林黛玉", {"黛玉"}),
        ("上官婉儿", {"婉儿"}),
        ("司马相如", {"相如"}),
        ("司空摘星", {"摘星"}),
        ("万俟卓然", {"卓然"}),
        ("欧阳修", set[str]()),
        ("李白", set[str]()),
        ("刘姥姥", set[str]()),
        ("凤姐儿的丫头", set[str]()),
        ("Elizabeth Bennet", {"Elizabeth", "Bennet"}),
        ("Mr. Darcy", {"Darcy"}),
        ("Lady Catherine de Bourgh", {"Catherine", "Bourgh"}),
        ("William Collins Jr.", {"William", "Collins"}),
        ("Thomas Hale, Esq.", {"Thomas", "Hale"}),
        ("Henry Tudor VIII", {"Henry", "Tudor"}),
        ("伊丽莎白·班内特", {"伊丽莎白", "班内特"}),
        ("J. B.", set[str]()),
        ("Anna", set[str]()),
        ("", set[str]()),
        ("   ", set[str]()),
    ],
)
def test_a_full_name_has_parts(name: str, parts: set[str]) -> None:
    assert parts_of(name) == parts


def test_a_part_that_could_be_several_counts_for_nobody() -> None:
    names = {
        "jane": ("Jane Bennet",),
        "lizzy": ("Elizabeth Bennet", "Lizzy"),
        "林": ("林黛玉",),
        "甄": ("甄宝玉",),
        "贾": ("贾宝玉", "宝二爷"),
    }

    found = unambiguous_parts(names)

    assert found.own == {"jane": ("Jane",), "lizzy": ("Elizabeth",), "林": ("黛玉",)}
    assert found.ambiguous == {"Bennet": ("jane", "lizzy"), "宝玉": ("甄", "贾")}


def test_the_name_of_one_is_no_part_of_another() -> None:
    found = unambiguous_parts({"a": ("林黛玉",), "b": ("黛玉",)})

    assert found.own == {}
    assert found.ambiguous == {"黛玉": ("a", "b")}


def test_a_part_that_one_card_gives_as_an_alias_is_ambiguous_no_more() -> None:
    found = unambiguous_parts({"李": ("李小明",), "王": ("王小明", "小明")})

    assert found.ambiguous == {}
    assert "李" not in found.own
