"""The page about decisions: its pictures are drawn anew, and its table has every rule."""

import re
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from xml.etree import ElementTree

from creonowd.context.fragment import Rule

ROOT = Path(__file__).parents[2]


def test_the_pictures_are_what_the_script_draws() -> None:
    loader = SourceFileLoader("pictures", str(ROOT / "scripts" / "pictures"))
    spec = spec_from_loader("pictures", loader)
    assert spec is not None
    script = module_from_spec(spec)
    loader.exec_module(script)

    drawn = {f"{name}.svg": draw().svg() for name, draw in script.PICTURES.items()}

    there = {
        path.name: path.read_text(encoding="utf-8")
        for path in (ROOT / "docs" / "pictures").iterdir()
    }
    assert there == drawn
    assert all(ElementTree.fromstring(svg).tag.endswith("svg") for svg in drawn.values())


def test_the_page_explains_every_rule_and_shows_every_picture() -> None:
    page = (ROOT / "docs" / "how-it-decides.md").read_text(encoding="utf-8")

    assert set(Rule) <= set(re.findall(r"`(\w+)`", page))
    shown = set(re.findall(r"\(pictures/([^)]+)\)", page))
    assert shown == {path.name for path in (ROOT / "docs" / "pictures").iterdir()}
