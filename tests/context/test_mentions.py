"""Names in text: Chinese ones without boundaries, Latin ones with, the longest counts."""

import pytest

from creonowd.context.fragment import Fragment, FragmentKind, Layer
from creonowd.context.mentions import Mentions
from creonowd.context.rules_layer import mentioned_entities, rank

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


def entity(name: str, text: str, *aliases: str) -> Fragment:
    return Fragment(
        layer=Layer.RULES,
        source="characters",
        source_ref=name,
        text=text,
        kind=FragmentKind.ENTITY,
        names=(name, *aliases),
    )


def test_an_entity_is_mentioned_by_any_of_its_names() -> None:
    entities = [entity("林远", "侦探", "阿远"), entity("苏晴", "医生")]

    assert mentioned_entities(entities, "阿远来了。", Mentions()) == {"林远"}


def test_shared_terms_are_mentioned_entities_named_in_the_text() -> None:
    entities = [entity("林远", "侦探"), entity("苏晴", "林远的姐姐"), entity("老陈", "木匠")]

    ranking = rank(entities, frozenset({"林远"}), Mentions())

    assert ranking.shared == {"林远": 0, "苏晴": 1, "老陈": 0}
