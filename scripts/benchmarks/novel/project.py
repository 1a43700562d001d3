"""A project of 120 chapters, 200 settings files and 500 constraints, about 60k tokens of candidates.

Made of ../shared/corpus if that is there, and else of made-up prose of the same size.
"""

import json
import os
import random
import re
from pathlib import Path

CORPUS = Path(__file__).resolve().parents[4] / "shared" / "corpus"
CHAPTERS = 120
SETTINGS = 200
CONSTRAINTS = 500
SETTLED = 1_700_000_000

_HEADING = re.compile(r"^\s*第[一二三四五六七八九十百零〇○]+回", re.MULTILINE)
_WORDS = "雨门灯人影风夜花酒书路桥山水船马剑声泪梦雪月窗帘石阶檐钟茶琴"


def novel() -> str:
    """Give the text of a novel."""
    path = CORPUS / "hongloumeng.txt"
    if path.is_file():
        return path.read_bytes().decode("utf-8").replace("\r\n", "\n")
    rolls = random.Random(7)
    lines = ("".join(rolls.choices(_WORDS, k=rolls.randint(20, 300))) + "。" for _ in range(5200))
    return "\n".join(lines)


def chapters(text: str) -> list[str]:
    """Take a novel apart at its chapters, or evenly if it has none."""
    starts = [match.start() for match in _HEADING.finditer(text)]
    if len(starts) < CHAPTERS:
        starts = [len(text) * n // CHAPTERS for n in range(CHAPTERS)]
    ends = [*starts[1:], len(text)]
    return [text[a:b] for a, b in zip(starts, ends, strict=True)][:CHAPTERS]


def make_project(root: Path, text: str) -> list[str]:
    """Write the project; give its chapters."""
    parts = chapters(text)
    for number, chapter in enumerate(parts, start=1):
        _write(root / f"chapters/{number:03}.md", chapter)
    for number in range(SETTINGS):
        body = text[number * 4000 : number * 4000 + 200]
        front = "" if number % 4 else f"---\nconfidence: {(number % 10 + 1) / 10}\n---\n"
        _write(root / f".creonow/settings/设定{number:03}.md", f"{front}{body}\n")
    _write(root / ".creonow/rules/style.md", "短句为主，少用成语，不用感叹号。\n")
    _write(root / ".creonow/rules/constraints.json", constraints_file())
    return parts


def constraints_file() -> str:
    """Spell 500 constraints."""
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
        for number in range(CONSTRAINTS)
    ]
    return json.dumps({"version": 2, "items": items}, ensure_ascii=False)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    # A file of this very moment is read again each time: its mark could still hide a change.
    os.utime(path, (SETTLED, SETTLED))
