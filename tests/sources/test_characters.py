"""Characters: entities with names, aliases and priority."""

import pytest

from creonowd.context.fragment import FragmentKind, Layer, Reason
from creonowd.sources.characters import Entity, Inject, characters, describe, names_of, waiting
from tests.sources.folders import folder

PATH = ".creonow/characters/林远.md"


def test_a_plain_file_is_called_as_its_name_says() -> None:
    (fragment,) = characters(folder({PATH: "冷静的侦探。"})).fragments

    assert fragment.names == ("林远",)
    assert fragment.kind is FragmentKind.ENTITY
    assert fragment.text == "冷静的侦探。"


def test_front_matter_names_it_and_stays_part_of_the_text() -> None:
    text = "---\nname: 林远\naliases: [阿远, Lin Yuan]\npriority: 200\n---\n冷静的侦探。"

    (fragment,) = characters(folder({PATH: text})).fragments

    assert fragment.names == ("林远", "阿远", "Lin Yuan")
    assert fragment.priority == 200
    assert fragment.text == text


def test_json_is_spelled_canonically() -> None:
    text = '{"name": "苏晴", "attributes": {"b": 1, "a": 2}, "aliases": ["小晴"]}'

    (fragment,) = characters(folder({".creonow/characters/s.json": text})).fragments

    assert fragment.text == '{"aliases":["小晴"],"attributes":{"a":2,"b":1},"name":"苏晴"}'
    assert fragment.names == ("苏晴", "小晴")
    assert fragment.whole


@pytest.mark.parametrize("inject", ["mentioned", "manual", "never"])
def test_only_what_is_always_injected_is_part_of_the_rules(inject: str) -> None:
    fetched = characters(folder({PATH: f"---\ninject: {inject}\n---\n冷静。"}))

    assert not fetched.fragments
    assert not fetched.left_out


@pytest.mark.parametrize(
    "said",
    [
        "inject: sometimes",
        "inject: [always]",
        "priority: high",
        "aliases: 7",
        "name: 7",
        "aliases: [1]",
        "a: [",
        "priority: true",
    ],
)
def test_what_makes_no_sense_is_left_out(said: str) -> None:
    fetched = characters(folder({PATH: f"---\n{said}\n---\n冷静。"}))

    assert [item.reason for item in fetched.left_out] == [Reason.INVALID_FORMAT]
    assert fetched.warnings == (f"CHARACTERS_UNAVAILABLE: {PATH}",)


@pytest.mark.parametrize(
    ("path", "text", "names"),
    [
        ("x/linyuan.md", "# 林远 #\r\n\r\n木匠", ("linyuan", "林远")),
        ("x/林远.md", "---\nname: 阿远\n---\n# 林远", ("阿远",)),
        (
            "x/a.md",
            "---\n姓名: 林远\n别名: 阿远、老林，远哥\n---\n",
            ("林远", "阿远", "老林", "远哥"),
        ),
        ("x/b.json", '{"名称": "北城", "aliases": "旧都"}', ("北城", "旧都")),
        ("x/c.md", "# " + "很长的标题" * 10, ("c",)),
    ],
)
def test_an_entity_is_known_by_what_its_file_calls_it(
    path: str, text: str, names: tuple[str, ...]
) -> None:
    assert describe(path, text) == Entity(names=names)


def test_those_that_wait_to_be_mentioned_are_retrieved_text() -> None:
    texts: dict[str, str | bytes] = {
        PATH: "---\ninject: mentioned\npriority: 7\n---\n冷静。",
        ".creonow/characters/b.md": "---\ninject: manual\n---\n",
        ".creonow/characters/c.md": "---\ninject: never\n---\n",
        ".creonow/characters/d.md": "---\ninject: sometimes\n---\n",
        ".creonow/characters/e.md": "木匠",
    }

    (fragment,) = waiting(folder(texts), Inject.MENTIONED)

    assert fragment.layer is Layer.RETRIEVED
    assert (fragment.score, fragment.priority) == (0.9, 7)
    assert set(names_of(folder(texts))) == {("林远",), ("b",), ("e",)}


def test_an_entity_is_described_by_its_file() -> None:
    assert describe("x/老陈.md", "木匠") == Entity(names=("老陈",))
    assert describe("x/a.json", "[1]") == Entity(names=("a",))
    told = describe("x/a.json", '{"inject":"mentioned","name":"老陈"}')
    assert told == Entity(names=("老陈",), inject=Inject.MENTIONED)
