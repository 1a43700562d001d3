"""The page about skills: its examples are valid, and its tables have every key and placeholder."""

import re
from pathlib import Path

import pytest

from creonowd.context.plan import PLACES
from creonowd.skills.skill import KEYS, RULE_KEYS, parse

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLE = re.compile(r"^```markdown\n(.*?)^```$", re.MULTILINE | re.DOTALL)
STANDARD = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"`([^`]+)`")

pages = pytest.mark.parametrize("page", ["skills.md", "skills.zh.md"])


@pages
def test_every_example_is_a_valid_skill(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    examples = [*EXAMPLE.findall(text), *(f"---\n{yaml}---\n" for yaml in STANDARD.findall(text))]

    parsed = [parse(example.encode()) for example in examples]

    assert [one.faults for one in parsed] == [(), (), ()]
    smallest, larger, standard = (one.skill for one in parsed)
    assert smallest.prompt.system
    assert larger.prompts
    assert larger.context_rules.synopsis == 5
    assert standard.context_rules.surrounding == 600


@pages
def test_the_tables_have_every_key_and_placeholder(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    first_cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    named = {name.partition(".")[0] for cell in first_cells for name in NAMED.findall(cell)}
    described = named | set(re.findall(r"`((?:name|description)_\w\w)`", text))

    assert set(KEYS) <= described
    assert set(RULE_KEYS) <= named
    assert {"{{" + place + "}}" for place in PLACES} <= named
