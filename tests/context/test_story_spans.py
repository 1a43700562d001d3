"""What holds where in the story: from, until, progressions."""

import json

import pytest

from creonowd.context.fragment import Fragment, Layer, Rule, Stage
from creonowd.context.story_order import StoryDocument, StoryHeading, StoryPlace, arrange
from creonowd.context.story_spans import (
    TimelyFragments,
    at_place,
    bounds,
    declared_stages,
    split_stages,
)

STORY = arrange(
    StoryDocument(path=f"第{n}章.md", length=100, headings=(StoryHeading(f"第{n}章", 0),))
    for n in range(1, 61)
)

CARD = """# 林黛玉

初入贾府。

## 自第40章

病重。

### 药方

人参养荣丸。

## 从第50章起（替换）

已经离世。

## 外貌

似蹙非蹙。
"""


def piece(text: str = "真相", since: str = "", until: str = "", **more: object) -> Fragment:
    return Fragment(
        layer=Layer.RULES,
        source="characters",
        source_ref="a.md",
        text=text,
        since=since,
        until=until,
        **more,  # pyright: ignore[reportArgumentType]
    )


def at(chapter: int | None, *fragments: Fragment, offset: int = 0) -> TimelyFragments:
    here = None if chapter is None else StoryPlace(chapter - 1, offset)
    return at_place(fragments, STORY, here)


def texts(timely: TimelyFragments) -> list[str]:
    return [fragment.text for fragment in timely.fragments]


def rules(timely: TimelyFragments) -> list[tuple[str, Rule]]:
    return [(one.fragment.source_ref, one.rule) for one in timely.untimely]


@pytest.mark.parametrize(
    ("chapter", "rule"),
    [(4, Rule.NOT_YET), (5, None), (39, None), (40, Rule.NO_LONGER), (60, Rule.NO_LONGER)],
)
def test_a_piece_holds_from_its_beginning_until_before_its_end(
    chapter: int, rule: Rule | None
) -> None:
    timely = at(chapter, piece(since="第五章", until="40"))

    assert rules(timely) == ([] if rule is None else [("a.md", rule)])
    assert texts(timely) == (["真相"] if rule is None else [])


def test_a_place_may_be_a_heading_inside_a_document() -> None:
    one = StoryDocument(path="n.md", headings=(StoryHeading("初遇", 0), StoryHeading("雪夜", 50)))
    story = arrange([one])
    fragments = (piece(since="雪夜"),)

    before = at_place(fragments, story, StoryPlace(0, 49))
    after = at_place(fragments, story, StoryPlace(0, 50))

    assert (len(before.fragments), len(after.fragments)) == (0, 1)


def test_outside_of_the_story_everything_holds() -> None:
    stages = (Stage(since="50", text="老了"),)

    timely = at(None, piece(since="50"), piece(until="2"), piece(stages=stages))

    assert texts(timely) == ["真相", "真相", "真相\n\n老了\n"]
    assert timely.untimely == ()


def test_pieces_without_a_place_are_the_very_same() -> None:
    fragments = (piece(), piece("别的"))

    assert at(3, *fragments).fragments[0] is fragments[0]


def test_a_place_that_nothing_bears_lies_ahead_and_is_reported() -> None:
    timely = at(60, piece(since="大结局"), piece(until="大结局"))

    assert rules(timely) == [("a.md", Rule.NOT_YET)]
    (warning,) = timely.warnings
    assert warning.code == "STORY_PLACE_UNCLEAR"
    assert "大结局" in warning.text()


def test_a_chapter_that_is_not_written_yet_is_no_reason_to_warn() -> None:
    timely = at(60, piece(since="第九十章"))

    assert rules(timely) == [("a.md", Rule.NOT_YET)]
    assert timely.warnings == ()


def card() -> Fragment:
    base, stages = split_stages(CARD)
    return piece(base, stages=stages)


def test_sections_that_name_a_place_are_progressions() -> None:
    base, stages = split_stages(CARD)

    assert base == "# 林黛玉\n\n初入贾府。\n\n## 外貌\n\n似蹙非蹙。\n"
    assert [(stage.since, stage.replaces) for stage in stages] == [
        ("第40章", False),
        ("第50章", True),
    ]
    assert "人参养荣丸" in stages[0].text


def test_a_progression_is_added_where_it_begins() -> None:
    before, after = at(39, card()), at(40, card())

    assert "病重" not in texts(before)[0]
    assert texts(after)[0].endswith(
        "似蹙非蹙。\n\n## 自第40章\n\n病重。\n\n### 药方\n\n人参养荣丸。\n"
    )
    assert rules(before) == [
        ("a.md#自第40章", Rule.NOT_YET),
        ("a.md#从第50章起（替换）", Rule.NOT_YET),
    ]


def test_a_progression_may_replace_all_that_stood_before() -> None:
    timely = at(50, card())

    assert texts(timely) == ["# 林黛玉\n\n## 从第50章起（替换）\n\n已经离世。\n"]
    assert rules(timely) == [("a.md#base", Rule.NO_LONGER), ("a.md#自第40章", Rule.NO_LONGER)]


@pytest.mark.parametrize(
    ("heading", "since"),
    [
        ("From chapter 40", "chapter 40"),
        ("From Chapter XL on (replaces)", "Chapter XL"),
        ("from chapter 40: grief", "chapter 40"),
        ('From "The Storm"', "The Storm"),
        ("From chapters/40.md", "chapters/40.md"),
        ("自《雪夜》起", "雪夜"),
        ("从第四十回开始", "第四十回"),
    ],
)
def test_headings_name_a_place_in_either_language(heading: str, since: str) -> None:
    _, stages = split_stages(f"base\n\n## {heading}\nlater\n")

    assert [stage.since for stage in stages] == [since]


@pytest.mark.parametrize(
    "text",
    [
        "## From Suzhou\nx\n",
        "## 自述\nx\n",
        "## 从前\nx\n",
        "## From 40 to 50\nx\n",
        "```\n## 自第40章\n```\n",
        "自第40章\n",
        "",
    ],
)
def test_other_headings_are_plain_text(text: str) -> None:
    assert split_stages(text) == (text, ())


def test_a_json_card_changes_key_by_key() -> None:
    values = {
        "name": "黛玉",
        "progressions": [{"from": 40, "状态": "病"}, {"from": 50, "状态": "亡"}],
    }
    stages = declared_stages(values, as_json=True)
    fragment = piece('{"name":"黛玉","状态":"康健"}', whole=True, stages=stages)

    found = [json.loads(texts(at(chapter, fragment))[0])["状态"] for chapter in (1, 40, 50)]

    assert found == ["康健", "病", "亡"]


@pytest.mark.parametrize(
    "values",
    [
        {"from": ["5"]},
        {"until": 4.5},
        {"from": True},
        {"from": "x" * 1000},
    ],
)
def test_a_place_that_makes_no_sense_is_refused(values: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r".*"):
        bounds(values)


@pytest.mark.parametrize(
    "given", [5, ["x"], [{"text": "no place"}], [{"from": 4, "text": 5}], [{"from": 4}] * 1000]
)
def test_progressions_that_make_no_sense_are_refused(given: object) -> None:
    with pytest.raises(ValueError, match=r".*"):
        declared_stages({"progressions": given}, as_json=False)
