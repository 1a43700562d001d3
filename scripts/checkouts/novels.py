"""Projects to ask about: the sample, and both novels of the corpus with a made-up `.creonow`."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

SETTLED = 1_700_000_000
SECRET = "sk-" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2Yz3"

Files = dict[str, str]

_NOVELS = {
    "hongloumeng.txt": re.compile(r"^第\d+章", re.MULTILINE),
    "pride-and-prejudice.txt": re.compile(r"^Chapter \d+", re.MULTILINE),
}
_PEOPLE = (
    ("林黛玉", "黛玉", "林妹妹"),
    ("贾宝玉", "宝玉", "宝二爷"),
    ("薛宝钗", "宝钗", "宝姐姐"),
    ("王熙凤", "凤姐", "琏二奶奶"),
    ("贾母", "老太太", "老祖宗"),
    ("刘老老", "老老", "村老妪"),
    ("袭人", "花袭人", "花大姐姐"),
    ("Elizabeth Bennet", "Elizabeth", "Lizzy"),
    ("Fitzwilliam Darcy", "Mr. Darcy", "Darcy"),
    ("Jane Bennet", "Jane", "Miss Bennet"),
    ("Mr. Collins", "Collins", "the cousin"),
    ("Lydia Bennet", "Lydia", "Mrs. Wickham"),
)
_PLACES = (
    "大观园",
    "荣国府",
    "宁国府",
    "潇湘馆",
    "怡红院",
    "Longbourn",
    "Netherfield",
    "Pemberley",
)


def folder_files(folder: Path) -> Files:
    """Read every file of a folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes().decode()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def corpus_files(corpus: Path) -> Files:
    """Cut both novels into chapters and make up what an author would have written beside them."""
    chapters = {
        f"{name.removesuffix('.txt')}/{number:03}.md": f"# {text}"
        for name, heading in _NOVELS.items()
        for number, text in enumerate(_chapters((corpus / name).read_bytes(), heading), start=1)
    }
    return chapters | _people() | _settings(list(chapters.values())) | _rules()


def write(root: Path, files: Mapping[str, str]) -> None:
    """Write a project whose files have not changed for long: a fresh one is read again each time."""
    for path, text in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode("utf-8", "surrogatepass"))
        os.utime(place, (SETTLED, SETTLED))


def constraint(
    number: int, text: str, source: str, priority: int, *, degradable: bool
) -> dict[str, object]:
    """Make one item of `constraints.json`."""
    return {
        "id": f"con_{number:016}",
        "text": text,
        "type": "plot",
        "source": source,
        "priority": priority,
        "degradable": degradable,
        "updatedAt": "2026-01-01T00:00:00Z",
    }


def constraints_file(items: list[dict[str, object]]) -> str:
    """Spell `constraints.json`."""
    return json.dumps({"version": 2, "items": items}, ensure_ascii=False)


def _chapters(novel: bytes, heading: re.Pattern[str]) -> list[str]:
    text = novel.decode().replace("\r\n", "\n")
    starts = [match.start() for match in heading.finditer(text)]
    return [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True)]


def _people() -> Files:
    return {
        f".creonow/characters/{number:02}.md": f"---\nname: {name}\naliases: [{first}, {second}]\n"
        f"type: character\npriority: {50 + number}\n---\n"
        f"{name} is number {number} of the cast. " + f"{name}：说话直率，心思细。\n" * (number + 1)
        for number, (name, first, second) in enumerate(_PEOPLE)
    }


def _settings(chapters: list[str]) -> Files:
    places = {
        f".creonow/settings/{name}.md": f"---\nconfidence: {(number % 10 + 1) / 10}\n---\n"
        f"# {name}\n\n{chapters[number * 20][100:700]}\n\n密钥 {SECRET}\n"
        for number, name in enumerate(_PLACES)
    }
    many = {
        f".creonow/settings/设定{number:03}.md": text[200:500]
        for number, text in enumerate(chapters[::3])
    }
    outline = {".creonow/settings/outline.md": "# 大纲\n\n- 一：相见\n- 二：误会\n- 三：和解\n"}
    memory = [
        {"id": f"m{number}", "text": f"偏好第 {number} 条：短句。", "confidence": number / 10}
        for number in range(10)
    ]
    return (
        places
        | many
        | outline
        | {".creonow/settings/memory.json": json.dumps({"version": 1, "rules": memory})}
    )


def _rules() -> Files:
    items = [
        constraint(
            number,
            f"第{number}条：主角在第{number % 120 + 1}回之前不知道真相。",
            "user" if number % 5 else "kg",
            number % 100,
            degradable=number % 20 != 0,
        )
        for number in range(150)
    ]
    terms = [{"term": name, "preferred": name, "avoid": [f"{name}处"]} for name in _PLACES]
    return {
        ".creonow/rules/style.md": "短句为主，少用成语，不用感叹号。\n",
        ".creonow/rules/voice.md": "Third person, past tense.\n" * 20,
        ".creonow/rules/constraints.json": constraints_file(items),
        ".creonow/rules/terminology.json": json.dumps({"terms": terms}, ensure_ascii=False),
    }
