"""Entities: read from their files, and retrieved when they are mentioned."""

import tracemalloc
from pathlib import Path

import pytest

from creonowd.clock import SystemClock
from creonowd.context.fragment import FragmentKind, Layer, Reason, show
from creonowd.context.plan import Document
from creonowd.context.source import SourceQuery
from creonowd.sources.characters import (
    Entity,
    EntityCache,
    Inject,
    MentionedSource,
    ProjectEntities,
    characters,
    read_entity,
)
from creonowd.threads import SharedReads
from creonowd.workspace.creonow_tree import Folder, ReadPlace, Tree, make_tree
from creonowd.workspace.projects import Project
from testing.sources import result_of
from tests.sources.folders import folder

PATH = ".creonow/characters/林远.md"

FILLER = "众人说了一回闲话。"


def test_a_plain_file_is_called_as_its_name_says() -> None:
    (fragment,) = characters(folder({PATH: "冷静的侦探。"})).fragments

    assert fragment.names == ("林远",)
    assert fragment.kind is FragmentKind.ENTITY
    assert fragment.text == "冷静的侦探。"


def test_front_matter_names_it_and_is_no_part_of_the_text() -> None:
    text = "---\nname: 林远\naliases: [阿远, Lin Yuan]\npriority: 200\n---\n冷静的侦探。"

    (fragment,) = characters(folder({PATH: text})).fragments

    assert fragment.names == ("林远", "阿远", "Lin Yuan", "Lin", "Yuan")
    assert fragment.priority == 200
    assert fragment.text == "冷静的侦探。"
    assert fragment.title == ""


def test_folders_of_large_files_that_make_no_sense_are_not_kept_without_end() -> None:
    cache = EntityCache()

    tracemalloc.start()
    try:
        for number in range(40):
            broken = folder({".creonow/characters/a.json": b"%d{" % number + b" " * 2_000_000})
            cache.entities(broken, Folder())
            characters(broken)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert kept < 30_000_000


@pytest.mark.parametrize(
    ("path", "text", "title"),
    [
        ("x/linyuan.md", "---\nname: 林远\n---\n\n冷静的侦探。", "林远"),
        ("x/linyuan.md", "---\n姓名: 林远\n别名: 阿远\n---\n冷静的侦探。", "林远"),
        ("x/linyuan.md", "---\nname: 林远\n---\n# 林远\n冷静的侦探。", ""),
        ("x/林远.md", "---\nname: 林远\n---\n冷静的侦探。", ""),
        ("x/linyuan.md", '---\nname: "林远\\n## Settings"\n---\n冷静。', "林远 ## Settings"),
        ("x/linyuan.md", "冷静的侦探。", ""),
    ],
)
def test_a_name_that_neither_path_nor_text_shows_is_its_title(
    path: str, text: str, title: str
) -> None:
    (fragment,) = characters(folder({path: text})).fragments

    assert fragment.title == title


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
    "front_matter",
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
def test_what_makes_no_sense_is_left_out(front_matter: str) -> None:
    fetched = characters(folder({PATH: f"---\n{front_matter}\n---\n冷静。"}))

    assert [item.reason for item in fetched.left_out] == [Reason.INVALID_FORMAT]
    assert show(fetched.warnings).warnings[0].startswith(f"CHARACTERS_UNAVAILABLE: {PATH}")


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
    assert read_entity(path, text) == Entity(names=names)


def test_those_that_are_injected_when_mentioned_are_retrieved_text() -> None:
    texts: dict[str, str | bytes] = {
        PATH: "---\ninject: mentioned\npriority: 7\n---\n冷静。",
        ".creonow/characters/b.md": "---\ninject: manual\n---\n",
        ".creonow/characters/c.md": "---\ninject: never\n---\n",
        ".creonow/characters/d.md": "---\ninject: sometimes\n---\n",
        ".creonow/characters/e.md": "木匠",
    }

    entities = EntityCache().entities(folder(texts), Folder())
    (fragment,) = entities.mentioned

    assert fragment.layer is Layer.RETRIEVED
    assert (fragment.score, fragment.priority) == (0.9, 7)
    assert set(entities.names) == {("林远",), ("b",), ("e",)}


def test_an_entity_is_described_by_its_file() -> None:
    assert read_entity("x/老陈.md", "木匠") == Entity(names=("老陈",))
    assert read_entity("x/a.json", "[1]") == Entity(names=("a",))
    described = read_entity("x/a.json", '{"inject":"mentioned","name":"老陈"}')
    assert described == Entity(names=("老陈",), inject=Inject.MENTIONED)


@pytest.fixture
def source(tmp_path: Path) -> MentionedSource:
    make_tree(tmp_path)
    for name, inject, more in (
        ("林远", "mentioned", "aliases: [老更夫]"),
        ("林远山", "mentioned", ""),
        ("Ann", "mentioned", ""),
        ("阿青", "manual", ""),
        ("鬼", "never", ""),
        ("主角", "always", ""),
    ):
        path = tmp_path / f".creonow/characters/{name}.md"
        path.write_text(f"---\ninject: {inject}\n{more}\n---\n{name}的事。", encoding="utf-8")
    project = Project(project_id="prj", name="x", root=tmp_path)
    return MentionedSource(
        ProjectEntities(ReadPlace(Tree(SystemClock()), project, SharedReads()), EntityCache())
    )


async def mentioned(
    source: MentionedSource, text: str = "", wish: str = "", cursor: int | None = None
) -> list[str]:
    at = len(text) if cursor is None else cursor
    document = Document(source_ref="a.md", text=text, cursor=at) if text else None
    fetched = await result_of(
        source, SourceQuery(project_id="prj", skill_id="s", limit=200, document=document, wish=wish)
    )
    return [Path(fragment.source_ref).stem for fragment in fetched.fragments]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("林远来了。", ["林远"]),
        ("那老更夫又来了。", ["林远"]),
        ("林远山来了。", ["林远山"]),
        ("林远山与林远。", ["林远", "林远山"]),
        ("Annabel and Anne", []),
        ("Ann走了", ["Ann"]),
        ("主角、阿青和鬼都在。", []),
    ],
)
async def test_whoever_the_text_names_comes(
    source: MentionedSource, text: str, found: list[str]
) -> None:
    assert await mentioned(source, text) == found


async def test_what_the_author_says_counts_too(source: MentionedSource) -> None:
    assert await mentioned(source, wish="让林远和阿青见面") == ["林远", "阿青"]


async def test_whoever_is_far_away_does_not_come(source: MentionedSource) -> None:
    text = f"林远。{FILLER * 1000}Ann。{FILLER * 200}林远山。"

    assert await mentioned(source, text, cursor=len(FILLER) * 1000 + 10) == ["Ann"]


async def test_names_are_lost_in_steps_and_not_with_every_letter(source: MentionedSource) -> None:
    text = f"林远。{FILLER * 1000}"

    found = [bool(await mentioned(source, text, cursor=at)) for at in range(0, 8000, 250)]

    assert found == [at < 6000 for at in range(0, 8000, 250)]


async def test_without_a_document_nobody_comes(source: MentionedSource) -> None:
    assert await mentioned(source) == []


def characters_folder(text: str) -> Folder:
    content = f"---\nname: 林远\ninject: mentioned\n---\n{text}"
    return folder({".creonow/characters/林远.md": content})


def test_what_has_not_changed_is_the_very_same_value() -> None:
    cache = EntityCache()

    assert cache.entities(characters_folder("冷静。"), Folder()) is cache.entities(
        characters_folder("冷静。"), Folder()
    )


def test_large_characters_that_were_changed_are_let_go() -> None:
    cache = EntityCache()
    before = cache.entities(characters_folder("冷静。"), Folder())

    for version in range(10):
        cache.entities(characters_folder(f"{version}" * 1_500_000), Folder())

    assert cache.entities(characters_folder("冷静。"), Folder()) is not before
