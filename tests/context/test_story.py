"""The order of the story, what an author calls a place in it, and what holds there."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.context.fragment import Fragment, Layer, Rule, Stage
from creonowd.context.story import (
    DoubtKind,
    OrderReason,
    Story,
    StoryDocument,
    StoryFile,
    StoryHeading,
    StoryPlace,
    TimelyFragments,
    arrange,
    at_place,
    bounds,
    declared_stages,
    fits,
    split_stages,
)

ONE_FILE = arrange(
    [
        StoryDocument(
            path="novel.md",
            length=1000,
            headings=(
                StoryHeading("第一章 初遇", 0),
                StoryHeading("第二章 雪夜", 400),
                StoryHeading("第三章 雪夜", 700),
            ),
        )
    ]
)


def story(*paths: str, file: StoryFile | None = None) -> Story:
    return arrange([StoryDocument(path=path, length=100) for path in paths], file)


def order(made: Story) -> list[str]:
    return [document.path for document in made.documents]


def doubts(made: Story) -> dict[DoubtKind, tuple[str, ...]]:
    return {doubt.kind: doubt.paths for doubt in made.doubts}


@pytest.mark.parametrize(
    "paths",
    [
        ["2.md", "10.md"],
        ["卷一/第一章.md", "卷一/第十章.md", "卷二/第一章.md"],
        ["Part I/Chapter 2.md", "Part I/Chapter 11.md", "Part II/Chapter 1.md"],
        ["楔子.md", "第一章.md", "第二章.md", "尾声.md"],
    ],
)
def test_documents_stand_in_the_order_of_their_names(paths: list[str]) -> None:
    assert order(story(*reversed(paths))) == paths


def test_the_story_file_overrides_names() -> None:
    file = StoryFile(order=("chapters/flashback.md", "chapters/*.md"), outside=("drafts/**",))

    made = story(
        "chapters/2.md", "chapters/1.md", "chapters/flashback.md", "drafts/9.md", file=file
    )

    assert order(made) == ["chapters/flashback.md", "chapters/1.md", "chapters/2.md"]
    assert [document.path for document in made.outside] == ["drafts/9.md"]
    assert {document.decided_by for document in made.documents} == {OrderReason.STORY_FILE}


def test_a_path_of_its_own_counts_before_a_glob_that_stands_first() -> None:
    file = StoryFile(order=("chapters/**", "chapters/0 last.md"))

    made = story("chapters/0 last.md", "chapters/1.md", file=file)

    assert order(made) == ["chapters/1.md", "chapters/0 last.md"]


def test_what_the_story_file_does_not_name_comes_last() -> None:
    made = story("a.md", "b.md", "c.md", file=StoryFile(order=("c.md",)))

    assert order(made) == ["c.md", "a.md", "b.md"]


def test_front_matter_puts_a_document_between_numbers() -> None:
    documents = [StoryDocument(path=f"第{n}章.md") for n in "一二三"]
    between = StoryDocument(path="插曲.md", order=1.5)

    made = arrange([*documents, between])

    assert order(made) == ["第一章.md", "插曲.md", "第二章.md", "第三章.md"]
    assert made.documents[1].decided_by is OrderReason.FRONT_MATTER
    assert made.doubts == ()


def test_front_matter_counts_on_the_scale_of_names_with_a_common_beginning() -> None:
    documents = [StoryDocument(path=f"novel-{n:03}.md") for n in (1, 2, 10)]

    made = arrange([*documents, StoryDocument(path="zwischenspiel.md", order=5)])

    assert order(made)[2] == "zwischenspiel.md"


@pytest.mark.parametrize("path", ["大纲.md", "notes/king.md", "README.md", "设定/地图.md"])
def test_notes_have_no_place_in_time(path: str) -> None:
    made = story("01.md", path)

    assert order(made) == ["01.md"]
    assert made.place_of(path) is None
    assert not made.is_future(path, StoryPlace(0))


def test_an_order_brings_notes_into_the_story() -> None:
    named = story("01.md", "notes/king.md", file=StoryFile(order=("01.md", "notes/king.md")))
    numbered = arrange([StoryDocument(path="01.md"), StoryDocument(path="大纲.md", order=2)])

    assert order(named) == ["01.md", "notes/king.md"]
    assert order(numbered) == ["01.md", "大纲.md"]


def test_front_matter_can_leave_a_document_out() -> None:
    made = arrange([StoryDocument(path="01.md"), StoryDocument(path="02.md", order="outside")])

    assert order(made) == ["01.md"]
    assert made.outside[0].decided_by is OrderReason.FRONT_MATTER


def test_what_is_unclear_is_reported() -> None:
    documents = [
        StoryDocument(path="第三章 旧.md"),
        StoryDocument(path="03 新.md"),
        StoryDocument(path="插曲.md"),
        StoryDocument(path="04.md", order="soon"),
    ]

    found = doubts(arrange(documents, StoryFile(outside=("nowhere/**",))))

    assert found == {
        DoubtKind.SAME_PLACE: ("03 新.md", "第三章 旧.md"),
        DoubtKind.NO_NUMBER: ("插曲.md",),
        DoubtKind.NO_MATCH: ("nowhere/**",),
        DoubtKind.INVALID_ORDER: ("04.md",),
    }


def test_a_plain_row_of_chapters_is_clear() -> None:
    assert story("序章.md", "第一章（上）.md", "第一章（下）.md", "第二章.md").doubts == ()


@pytest.mark.parametrize(
    ("entry", "path", "expected"),
    [
        ("notes", "notes/a.md", True),
        ("notes/", "notes/b/a.md", True),
        ("notes/*", "notes/a.md", True),
        ("*.md", "a.md", True),
        ("*.md", "b/a.md", False),
        ("**/*.md", "c/b/a.md", True),
        ("**", "a.md", True),
        ("a/**/z.md", "a/z.md", True),
        ("note", "notes/a.md", False),
        ("[", "[", True),
        ("", "a.md", False),
    ],
)
def test_an_entry_names_documents_and_folders(entry: str, path: str, expected: bool) -> None:  # noqa: FBT001 - a table
    assert fits(entry, path) is expected


def test_a_hostile_glob_is_matched_in_no_time() -> None:
    assert not fits("/".join(["**"] * 500) + "/" + "*a" * 200 + "b", "/".join(["a" * 200] * 50))


CHAPTERS = story(*(f"chapters/{number:02}.md" for number in (1, 2, 3, 5)))


@pytest.mark.parametrize(
    ("reference", "document", "known"),
    [
        ("chapters/03.md", 2, True),
        ("chapters/03", 2, True),
        ("3", 2, True),
        ("第三章", 2, True),
        ("Chapter III", 2, True),
        ("第4章", 3, True),
        ("第90章", 4, True),
        ("雪夜", 4, False),
        ("", 4, False),
    ],
)
def test_a_reference_means_a_document(reference: str, document: int, known: bool) -> None:  # noqa: FBT001 - a table
    found = CHAPTERS.find(reference)

    assert (found.place, found.known) == (StoryPlace(document), known)


@pytest.mark.parametrize(
    ("reference", "offset"),
    [
        ("第二章", 400),
        ("2", 400),
        ("第二章 雪夜", 400),
        ("初遇", 0),
        ("novel.md#第三章", 700),
        ("novel.md#雪夜", 400),
        ("novel.md", 0),
    ],
)
def test_a_reference_means_a_heading(reference: str, offset: int) -> None:
    assert ONE_FILE.find(reference).place == StoryPlace(0, offset)


def test_a_chapter_that_a_heading_names_counts_before_the_number_of_a_file() -> None:
    prologue = StoryDocument(path="01.md", headings=(StoryHeading("楔子", 0),))
    first = StoryDocument(path="02.md", headings=(StoryHeading("第一章", 0),))

    assert arrange([prologue, first]).find("第一章").place == StoryPlace(1)


def test_a_reference_that_fits_several_places_says_so() -> None:
    made = story("卷一/第一章.md", "卷二/第一章.md")

    found = made.find("第一章")

    assert found.place == StoryPlace(0)
    assert found.candidates == ("卷一/第一章.md", "卷二/第一章.md")
    assert made.find("第二卷").place == StoryPlace(1)
    assert made.find("卷二/第一章").place == StoryPlace(1)


def test_without_any_number_chapters_are_counted() -> None:
    made = story("arrival.md", "storm.md", file=StoryFile(order=("storm.md", "arrival.md")))

    assert made.find("2").place == StoryPlace(1)
    assert made.find("3") == made.find("no such heading")


def test_the_documents_before_one_come_in_order_with_their_lengths() -> None:
    made = story("3.md", "1.md", "2.md", "大纲.md")

    assert [(one.path, one.length) for one in made.before("3.md")] == [("1.md", 100), ("2.md", 100)]
    previous = made.previous("3.md")
    assert previous is not None
    assert previous.path == "2.md"
    assert made.before("大纲.md") == ()
    assert made.previous("1.md") is None


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["第一章", "2", "X", "notes", "尾声", "a/3", "插曲", "a/四"]),
            st.none() | st.floats() | st.integers() | st.text(max_size=3),
        ),
        unique_by=lambda pair: pair[0],
    )
)
def test_every_document_is_in_the_story_or_outside_of_it(
    documents: list[tuple[str, float | str | None]],
) -> None:
    made = arrange([StoryDocument(path=path, order=own) for path, own in documents])
    again = arrange([StoryDocument(path=path, order=own) for path, own in reversed(documents)])

    paths = [one.path for one in (*made.documents, *made.outside)]
    assert sorted(paths) == sorted(path for path, _ in documents)
    assert order(made) == order(again)


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
