"""Names in text: Chinese ones without boundaries, Latin ones with, the longest counts."""

import pytest

from creonowd.context.mentions import Mentions

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
