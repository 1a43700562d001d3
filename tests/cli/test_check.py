"""`creonowd check`: what an assembly makes of each file, in the words of the assembly itself."""

import json
from pathlib import Path
from typing import Any

import pytest

from creonowd.cli import main
from creonowd.cli.check import file_uses
from creonowd.cli.client import width
from testing.clients import Client, daemon
from testing.novels import SECRET, make_novel, write_files

CARD = "---\nname: {}\ninject: {}\n---\n{} is here.\n"
GOOD = {
    "01.md": "# One\n\nAnna met Ben.\n",
    ".creonow/rules/style.md": f"Short. Key {SECRET}\n",
    ".creonow/rules/constraints.json": '{"version": 1, "items": ["No magic", "No rain"]}',
    ".creonow/characters/安娜.md": CARD.format("Anna", "always", "Anna"),
    ".creonow/characters/ben.md": CARD.format("Ben", "mentioned", "Ben"),
    ".creonow/characters/cat.md": CARD.format("Cat", "manual", "Cat"),
    ".creonow/characters/dog.md": CARD.format("Dog", "never", "Dog"),
    ".creonow/characters/notes.txt": "not a card",
    ".creonow/settings/quay.md": "---\nfrom: 1\nuntil: 9\n---\nA quay.\n",
    ".creonow/settings/tide.md": CARD.format("Tide", "mentioned", "The tide"),
    ".creonow/settings/end.md": CARD.format("End", "never", "The end"),
    ".creonow/settings/outline.md": "One: they meet.\n",
    ".creonow/skills/dusk/SKILL.md": "---\nname: Dusk\nprompt:\n  user: '{{text}}'\n---\n",
}
BROKEN = {
    ".creonow/rules/constraints.json": '{"version": 1, "items": [',
    ".creonow/rules/terminology.json": '{\n  "terms": 5\n}\n',
    ".creonow/rules/bytes.md": b"\xff\xfe\x00",
    ".creonow/characters/anna.md": "---\nname: Anna\ninject: sometimes\n---\nAnna.\n",
    ".creonow/settings/quay.md": "---\nconfidence: 7\n---\nA quay.\n",
    ".creonow/skills/dusk/SKILL.md": "---\nname: Dusk\nprompt: 5\n---\n",
    ".creonow/project.json": '{"version": 1, "language": "tlh"}',
    ".creonow/story.json": "[]",
}


@pytest.fixture(autouse=True)
def english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C")


def check(root: Path, capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    status = main(["check", str(root), "--user-data", str(root.parent / "data"), *words])
    return status, capfd.readouterr().out


def by_path(shown: str) -> dict[str, Any]:
    return {file["path"].removeprefix(".creonow/"): file for file in json.loads(shown)["files"]}


def test_each_file_has_its_layer_its_time_and_its_place(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_files(tmp_path / "novel", GOOD)

    status, shown = check(tmp_path / "novel", capfd, "--json")

    files = by_path(shown)
    assert status == 0
    assert {name: (file["layer"], file["when"]) for name, file in files.items()} == {
        "rules/style.md": ("rules", "always"),
        "rules/constraints.json": ("rules", "always"),
        "characters/安娜.md": ("rules", "always"),
        "characters/ben.md": ("retrieved", "mentioned"),
        "characters/cat.md": ("retrieved", "manual"),
        "characters/dog.md": (None, "never"),
        "characters/notes.txt": (None, "unread"),
        "settings/quay.md": ("settings", "room"),
        "settings/outline.md": ("settings", "asked"),
        "settings/tide.md": ("retrieved", "mentioned"),
        "settings/end.md": (None, "never"),
        "skills/dusk/SKILL.md": (None, "chosen"),
    }
    assert (files["settings/quay.md"]["since"], files["settings/quay.md"]["until"]) == ("1", "9")
    assert files["rules/constraints.json"]["pieces"] == 2
    assert files["rules/style.md"]["secrets"] == 1
    assert SECRET not in shown


def test_every_file_that_cannot_be_used_is_named_with_its_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_files(tmp_path / "novel", BROKEN)

    status, shown = check(tmp_path / "novel", capfd, "--json")

    files = by_path(shown)
    lines = {name: [one["line"] for one in file["problems"]] for name, file in files.items()}
    general = " ".join(one["found"] for one in json.loads(shown)["problems"])
    assert status == 1
    assert lines == {
        "rules/constraints.json": [None],
        "rules/terminology.json": [2],
        "rules/bytes.md": [None],
        "characters/anna.md": [3],
        "settings/quay.md": [2],
        "skills/dusk/SKILL.md": [3],
        "project.json": [None],
        "story.json": [],
    }
    assert "story.json" in general


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_no_name_of_a_file_shows_a_secret(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    novel = {
        f".creonow/characters/{SECRET}.md": f"---\nname: Anna\nfrom: {SECRET}\n---\nAnna.\n",
        f".creonow/settings/{SECRET}.md": f"---\nfrom: {SECRET}\n---\nA quay.\n",
        f".creonow/characters/bad {SECRET}.json": "{",
        ".creonow/story.json": json.dumps({"version": 1, "order": [SECRET]}),
    }
    write_files(tmp_path / "novel", novel)

    status, shown = check(tmp_path / "novel", capfd, *words)
    main(["doctor", "--project", str(tmp_path / "novel"), "--user-data", f"{tmp_path}/d", *words])

    assert status == 1
    assert "***REDACTED***" in shown
    assert SECRET not in shown + capfd.readouterr().out


def test_the_table_lines_up_also_with_chinese_names(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_files(
        tmp_path / "novel", GOOD | {".creonow/settings/坏.md": "---\nconfidence: 7\n---\n坏\n"}
    )

    status, shown = check(tmp_path / "novel", capfd)

    rows = [line for line in shown.splitlines() if line.startswith(("✓ .c", "✗ .c"))]
    columns = {
        width(line.partition(layer)[0])
        for line in rows
        for layer in ("  rules  ",)
        if layer in line
    }
    assert status == 1
    assert len(rows) == len(GOOD)
    assert len(columns) == 1
    assert "✗ .creonow/settings/坏.md" in shown
    assert shown.splitlines()[-1] == f"{len(GOOD)} files, 1 problems."


def test_a_folder_without_a_tree_is_no_fault_and_one_that_is_not_there_is(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "novel").mkdir()

    status, shown = check(tmp_path / "novel", capfd)
    missing, _ = check(tmp_path / "nowhere", capfd)

    assert (status, missing) == (0, 1)
    assert "creonowd init" in shown


async def test_its_tokens_are_those_of_an_assembly(tmp_path: Path) -> None:
    """There is no second opinion: the same readers, redaction, rendering and count."""
    root = tmp_path / "novel"
    async with daemon(tmp_path / "data") as client:
        evidence = await evidence_of(client, root)

    uses = {use.path: use.tokens for use in file_uses(root, tmp_path / "data") if use.tokens}
    shared = uses.keys() & evidence.keys()
    assert {path: uses[path] for path in shared} == {path: evidence[path] for path in shared}
    assert {path.rpartition("/")[2] for path in shared} >= {"style.md", "ben.md", "quay.md"}


async def evidence_of(client: Client, root: Path) -> dict[str, int]:
    novel = await make_novel(client, root, GOOD, documentId="01.md", cursorPosition=20)
    tokens: dict[str, int] = {}
    for entry in (await novel.assemble(skillId=None))["trimEvidence"]:
        path = entry["sourceRef"].partition("#")[0]
        tokens[path] = tokens.get(path, 0) + entry["beforeTokens"]
    return {path: count for path, count in tokens.items() if "constraints" not in path}
