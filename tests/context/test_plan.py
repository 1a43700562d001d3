"""What a skill's task says, and what retrieval searches with."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.context.language import CHINESE
from creonowd.context.plan import LONGEST_QUERY, Task, last_sentences, query, query_ends

PARAGRAPHS = "".join(f"第{n:02}段。".ljust(19, "字") + "\n" for n in range(20))
VALUES = {"text": "夜色", "selection": "夜色", "instruction": "更短", "title": "第一章"}


@pytest.mark.requirement("SK-008")
def test_the_selection_stands_where_the_text_is_wanted() -> None:
    assert Task(template="改写：{{text}}。").fill(VALUES) == "改写：夜色。"
    assert Task(template="{{ selection }}|{{instruction}}|{{title}}").fill(VALUES) == (
        "夜色|更短|第一章"
    )


def test_a_selection_is_rendered_once() -> None:
    filled = Task(template="{{text}} {{selection}} {{text}} {{title}} {{title}}").fill(VALUES)

    assert filled == f"夜色 {CHINESE.before} {CHINESE.before} 第一章 第一章"


def test_a_missing_value_is_named_and_never_left_blank() -> None:
    filled = Task(template="{{text}}|{{instruction}}").fill({"text": "", "instruction": ""})

    assert filled == f"{CHINESE.elsewhere}|{CHINESE.nothing}"


def test_a_value_is_not_read_as_a_template() -> None:
    assert Task(template="{{text}}").fill({"text": "{{instruction}}"}) == "{{instruction}}"


@pytest.mark.parametrize(
    ("cursor", "ends"),
    [
        (0, (0,)),
        (45, (40,)),
        (50, (50,)),
        (99, (50,)),
        (100, (100,)),
        (199, (100,)),
        (200, (200,)),
        (399, (200,)),
        (400, (200, 400)),
        (999, (200, 400, 600, 800)),
        (1000, (1000,)),
        (1399, (1000, 1200)),
    ],
)
def test_the_query_moves_in_its_own_coarser_steps(cursor: int, ends: tuple[int, ...]) -> None:
    """First whole paragraphs, then steps that grow; every fourth of them begins anew."""
    assert query_ends(PARAGRAPHS * 4, cursor, 50) == ends


@pytest.mark.parametrize("step", [1, 3, 5000])
def test_a_tiny_or_a_huge_window_has_a_query_all_the_same(step: int) -> None:
    text = PARAGRAPHS * 30

    for cursor in range(0, len(text), 97):
        ends = query_ends(text, cursor, step)
        assert list(ends) == sorted(set(ends))
        assert 0 <= ends[0] <= ends[-1] <= cursor
        assert cursor - ends[-1] < max(step, LONGEST_QUERY)


def test_retrieval_asks_with_what_stands_before_the_end_of_its_step() -> None:
    assert query(PARAGRAPHS, 100) == PARAGRAPHS[:100]
    assert query(PARAGRAPHS * 30, 3000) == (PARAGRAPHS * 30)[1000:3000]
    assert query(PARAGRAPHS, 0) == ""


def test_every_whole_sentence_since_then_asks_by_itself() -> None:
    text = "雨停了。灯灭了。他站起来。他没有说"

    assert last_sentences(text, 8, len(text)) == (("雨停了。", "灯灭了。"), ("他站起来。",))


@given(
    tails=st.lists(st.sampled_from(["。", "！”", "?\n", "\n \n", "，", " ", "」\n", "……"])),
    ends=st.tuples(st.integers(0, 900), st.integers(0, 900)),
)
def test_sentences_do_not_depend_on_where_the_query_ends(
    tails: list[str], ends: tuple[int, int]
) -> None:
    """What ends up to a place is kept, and places lie in steps behind the end of the query."""
    text = "".join(f"{'雨停了a'[: n % 5]}{tail}" for n, tail in enumerate(tails * 9))[:1500]

    one, other = (last_sentences(text, min(end, len(text)), len(text)) for end in ends)

    assert [*dict.fromkeys((*one[0], *one[1]))] == [*dict.fromkeys((*other[0], *other[1]))]
