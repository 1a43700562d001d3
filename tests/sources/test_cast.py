"""Who is known by name is read once per state of the folder, and old states are let go."""

from creonowd.sources.characters import EntityCache
from creonowd.workspace.creonow_tree import Folder
from tests.sources.folders import folder


def cast(text: str) -> Folder:
    said = f"---\nname: 林远\ninject: mentioned\n---\n{text}"
    return folder({".creonow/characters/林远.md": said})


def test_what_has_not_changed_is_the_very_same_value() -> None:
    known = EntityCache()

    assert known.entities(cast("冷静。")) is known.entities(cast("冷静。"))


def test_large_characters_that_were_changed_are_let_go() -> None:
    known = EntityCache()
    before = known.entities(cast("冷静。"))

    for version in range(10):
        known.entities(cast(f"{version}" * 1_500_000))

    assert known.entities(cast("冷静。")) is not before
