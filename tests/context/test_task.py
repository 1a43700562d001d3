import pytest

from creonowd.context.plan import BEFORE, ELSEWHERE, NOTHING, Task

VALUES = {"text": "夜色", "selection": "夜色", "instruction": "更短", "title": "第一章"}


@pytest.mark.requirement("SK-008")
def test_the_selection_stands_where_the_text_is_wanted() -> None:
    assert Task(template="改写：{{text}}。").fill(VALUES) == "改写：夜色。"
    assert Task(template="{{ selection }}|{{instruction}}|{{title}}").fill(VALUES) == (
        "夜色|更短|第一章"
    )


def test_a_selection_is_rendered_once() -> None:
    filled = Task(template="{{text}} {{selection}} {{text}} {{title}} {{title}}").fill(VALUES)

    assert filled == f"夜色 {BEFORE} {BEFORE} 第一章 第一章"


def test_what_is_missing_is_said_and_never_left_blank() -> None:
    filled = Task(template="{{text}}|{{instruction}}").fill({"text": "", "instruction": ""})

    assert filled == f"{ELSEWHERE}|{NOTHING}"


def test_a_value_is_not_read_as_a_template() -> None:
    assert Task(template="{{text}}").fill({"text": "{{instruction}}"}) == "{{instruction}}"
