"""Which lines are headings."""

import pytest

from creonowd.retrieval.passages import Headings, heading_of


@pytest.mark.parametrize(
    ("line", "level", "title"),
    [
        ("# 第一卷", 1, "第一卷"),
        ("### 雪夜 ###", 3, "雪夜"),
        ("第1章 甄士隐梦幻识通灵", 2, "第1章 甄士隐梦幻识通灵"),
        ("　　第一百二十回", 2, "第一百二十回"),
        ("第二卷：归来", 1, "第二卷：归来"),
        ("第三节", 3, "第三节"),
        ("Chapter 12", 2, "Chapter 12"),
        ("CHAPTER IV. A Ball", 2, "CHAPTER IV. A Ball"),
        ("Part Two", 1, "Part Two"),
        ("Scene 3", 3, "Scene 3"),
    ],
)
def test_a_heading_is_recognised(line: str, level: int, title: str):
    assert heading_of(line) == (level, title)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "#hashtag",
        "第四回中既将薛家母子在荣府中寄居等事略已表明。",
        "第一章里他说过。",
        "Part of the reason was money.",
        "chapter and verse",
        "第三章 " + "很长" * 60,
    ],
)
def test_prose_is_no_heading(line: str):
    assert heading_of(line) is None


def test_a_deeper_heading_stands_below_and_an_equal_one_instead():
    headings = Headings()

    for line in ("# 卷一", "## 第一章", "### 雪", "## 第二章"):
        headings.read(line)

    assert headings.path == ("卷一", "第二章")


def test_fenced_lines_are_no_headings():
    headings = Headings()

    for line in ("# 卷一", "```", "# not one", "~~~", "```"):
        headings.read(line)

    assert headings.path == ("卷一",)
    assert headings.read("## 第一章")
