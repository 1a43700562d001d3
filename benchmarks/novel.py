"""A project made of a novel for benchmarks, and the plan of an assembly in it.

The large project has 120 chapters, 200 settings files and 500 constraints, about 60 000 tokens of
candidates; the other has the size that the specification names.
"""

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from creonowd.context.budget import BudgetProfile, LayerBudget, LayerBudgets, allowances_of
from creonowd.context.plan import ContextRules, Plan, SkillNeeds, place
from creonowd.redaction import Redactor

CHAPTERS = 120
DOCUMENT = "chapters/042.md"
REDACTOR = Redactor()

_INJECT = ("always", "mentioned", "mentioned", "manual")
_OLD_TIME = 1_700_000_000
_HEADING = re.compile(r"^\s*第[一二三四五六七八九十百零〇○]+回", re.MULTILINE)


def chapters(text: str) -> list[str]:
    """Split a novel at its chapters, or evenly if it has none."""
    starts = [match.start() for match in _HEADING.finditer(text)]
    if len(starts) < CHAPTERS:
        starts = [len(text) * n // CHAPTERS for n in range(CHAPTERS)]
    ends = [*starts[1:], len(text)]
    return [text[a:b] for a, b in zip(starts, ends, strict=True)][:CHAPTERS]


class Size(NamedTuple):
    """How many files and constraints a project has beside its 120 chapters."""

    constraints: int
    characters: int
    settings: int


LARGE = Size(constraints=500, characters=0, settings=200)
SPECIFIED = Size(constraints=30, characters=100, settings=20)


def make_project(root: Path, text: str, size: Size = LARGE) -> list[str]:
    """Write the project and return its chapters."""
    parts = chapters(text)
    for number, chapter in enumerate(parts, start=1):
        write(root / f"chapters/{number:03}.md", chapter)
    for number in range(size.characters):
        start = 2000 + 7000 * number
        name, body = text[start : start + 2].strip() or "无名", text[start + 50 : start + 110]
        front = f"---\nname: {name}{number}\ninject: {_INJECT[number % 4]}\n---\n"
        write(root / f".creonow/characters/人物{number:03}.md", f"{front}{body.strip()}\n")
    for number in range(size.settings):
        body = text[number * 4000 : number * 4000 + 200]
        front = "" if number % 4 else f"---\nconfidence: {(number % 10 + 1) / 10}\n---\n"
        write(root / f".creonow/settings/设定{number:03}.md", f"{front}{body}\n")
    write(root / ".creonow/rules/style.md", "短句为主，少用成语，不用感叹号。\n")
    items = [
        {
            "id": f"con_{number:016}",
            "text": f"第{number}条：主角在第{number % 120 + 1}回之前不知道真相。",
            "type": "plot",
            "source": "user" if number % 5 else "kg",
            "priority": number % 100,
            "degradable": number % 20 != 0,
            "updatedAt": "2026-01-01T00:00:00Z",
        }
        for number in range(size.constraints)
    ]
    write(root / ".creonow/rules/constraints.json", to_json({"version": 2, "items": items}))
    return parts


def write(path: Path, text: str) -> None:
    """Write a file as if it had been there for long."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    # A file changed a moment ago is read again each time: its timestamp could hide another change.
    os.utime(path, (_OLD_TIME, _OLD_TIME))


def to_json(value: Any) -> str:
    """Return JSON as a person would write it."""
    return json.dumps(value, ensure_ascii=False)


def make_plan(
    text: str,
    cursor: int,
    total: int,
    surrounding: int | None = None,
    ratios: Sequence[float] = (0.15, 0.10, 0.25, 0.50),
) -> Plan:
    """Plan an assembly of a text at a cursor, with this total budget and the default minimums."""
    rules = None
    if surrounding is not None:
        rules = ContextRules(surrounding=surrounding, style_guide=True, characters=True)
    names, minimums = ("rules", "settings", "retrieved", "immediate"), (500, 200, 0, 2000)
    layers = {
        name: LayerBudget(ratio=ratio, minimum_tokens=minimum)
        for name, ratio, minimum in zip(names, ratios, minimums, strict=True)
    }
    profile = BudgetProfile(total_budget_tokens=total, layers=LayerBudgets(**layers))
    return Plan(
        project_id="prj_bench",
        document_id=DOCUMENT,
        skill=SkillNeeds(skill_id="bench", rules=rules),
        allowances=allowances_of(profile),
        document=place(DOCUMENT, text, cursor).document,
        source_timeout_ms=60_000,
    )
