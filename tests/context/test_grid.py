"""The window begins on a coarse grid, at a paragraph if there is one."""

from creonowd.context.plan import query, snap

PARAGRAPHS = "".join(f"第{n:02}段。".ljust(19, "字") + "\n" for n in range(20))


def test_the_start_of_a_document_is_on_the_grid() -> None:
    assert snap(PARAGRAPHS, 0, 50, 400) == 0


def test_a_multiple_moves_on_to_the_next_paragraph() -> None:
    assert snap(PARAGRAPHS, 50, 50, 400) == 60
    assert snap(PARAGRAPHS, 60, 50, 400) == 60


def test_what_lies_behind_the_cursor_does_not_move_it() -> None:
    assert snap(PARAGRAPHS, 50, 50, 60) == 50
    assert snap(PARAGRAPHS, 50, 50, 61) == 60


def test_without_a_paragraph_within_a_step_a_sentence_will_do() -> None:
    text = "他走了。她没有回头。雨还在下。" * 20

    assert snap(text, 50, 20, 400) == 55


def test_without_either_it_is_the_multiple_itself_but_never_inside_a_grapheme() -> None:
    assert snap("字" * 200, 50, 20, 400) == 50
    assert snap("e\u0301" * 100, 51, 20, 400) == 52


def test_retrieval_asks_with_what_stands_before_the_last_multiple() -> None:
    assert query(PARAGRAPHS, 137, 50) == PARAGRAPHS[:100]
    assert query(PARAGRAPHS, 149, 50) == query(PARAGRAPHS, 101, 50)


def test_in_the_first_step_it_asks_with_whole_paragraphs() -> None:
    assert query(PARAGRAPHS, 45, 50) == PARAGRAPHS[:40]
    assert query(PARAGRAPHS, 15, 50) == ""
