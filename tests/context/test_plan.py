"""What a skill's task says, and what retrieval searches with."""

import pytest

from creonowd.context.language import CHINESE
from creonowd.context.plan import Task, query

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


def test_retrieval_asks_with_what_stands_before_the_last_multiple() -> None:
    assert query(PARAGRAPHS, 137, 50) == PARAGRAPHS[:100]
    assert query(PARAGRAPHS, 149, 50) == query(PARAGRAPHS, 101, 50)


def test_in_the_first_step_it_asks_with_whole_paragraphs() -> None:
    assert query(PARAGRAPHS, 45, 50) == PARAGRAPHS[:40]
    assert query(PARAGRAPHS, 15, 50) == ""
