"""The order of the story, and what an author calls a place in it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.context.story_order import (
    DoubtKind,
    OrderReason,
    Story,
    StoryDocument,
    StoryFile,
    StoryHeading,
    StoryPlace,
    arrange,
    chapter_of,
    fits,
    name_key,
    value_of,
    volume_of,
    whole_number,
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
