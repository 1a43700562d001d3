"""Numbers in names, in all the ways that authors write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.context.numerals import chapter_of, name_key, value_of, volume_of, whole_number


@pytest.mark.parametrize(
    ("numeral", "value"),
    [
        ("12", 12),
        ("0012", 12),
        ("十", 10),
        ("十二", 12),
        ("二十", 20),
        ("一百零五", 105),
        ("一百十", 110),
        ("一百二十", 120),
        ("一二〇", 120),
        ("廿三", 23),
        ("两千零一", 2001),
        ("一万", 10_000),
        ("叁拾", 30),
        ("ix", 9),
        ("XL", 40),
        ("MCMXCIX", 1999),
        ("twelve", 12),
        ("forty-two", 42),
    ],
)
def test_a_numeral_has_its_value(numeral: str, value: int) -> None:
    assert value_of(numeral) == value


@pytest.mark.parametrize("numeral", ["iiii", "ic", "vx", "9999999999999"])
def test_what_only_looks_like_a_numeral_has_no_value(numeral: str) -> None:
    assert value_of(numeral) is None


@pytest.mark.parametrize(
    "names",
    [
        ["2", "10"],
        ["第二章 初遇", "第十章 别离", "第十二章"],
        ["第九回", "第一百二十回"],
        ["Chapter II", "chapter 3", "CHAPTER IX", "Chapter Ten"],
        ["chapter-9", "chapter-10"],
        ["红楼梦 2", "红楼梦 10"],
        ["第三章（上）", "第三章（中）", "第三章（下）"],
        ["3", "3.5", "4"],
        ["楔子", "第一章", "第二章", "尾声"],
        ["Prologue", "Chapter 1", "Epilogue"],
        ["卷一", "卷二", "卷十"],
        ["一、山雨", "二、夜渡", "十一、归人"],
        ["０１", "２", "１０"],
    ],
)
def test_names_sort_as_a_reader_would_put_them(names: list[str]) -> None:
    backwards = names[::-1]

    assert sorted(backwards, key=name_key) == names


@pytest.mark.parametrize(
    ("name", "chapter"),
    [
        ("第四十章 雪夜", 40),
        ("Chapter XL", 40),
        ("卷二 第三回", 3),
        ("02 第一章", 1),
        ("07", 7),
        ("novel-012", 12),
        ("第二卷", None),
        ("Part II", None),
        ("三国", None),
        ("一个人的夜", None),
        ("I am not a number", None),
        ("Mix", None),
    ],
)
def test_a_name_bears_the_number_of_its_chapter(name: str, chapter: int | None) -> None:
    found = chapter_of(name)

    assert (found and found.value) == chapter


def test_the_number_of_a_volume_is_not_taken_for_that_of_a_chapter() -> None:
    volume = volume_of("Book Two, Chapter 3")

    assert volume is not None
    assert volume.value == 2


@pytest.mark.parametrize(
    ("text", "value"),
    [("40", 40), ("第四十章", 40), (" Chapter XL ", 40), ("第四十章 雪夜", None), ("雪夜", None)],
)
def test_a_text_is_a_number_only_if_it_says_nothing_else(text: str, value: int | None) -> None:
    found = whole_number(text)

    assert (found and found.value) == value


@given(st.lists(st.text(max_size=30), max_size=5))
def test_any_names_can_be_sorted(names: list[str]) -> None:
    backwards = names[::-1]

    once = sorted(names, key=lambda name: (name_key(name), name))

    assert sorted(backwards, key=lambda name: (name_key(name), name)) == once
