"""What a file's name, key or text says never commands the terminal that shows it."""

import json
import os
import re
from pathlib import Path

import pytest

from creonowd.cli import main
from creonowd.cli.assemble import view
from creonowd.cli.client import harmless, show, write

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\u202egnp\u2066\r"
COMMANDS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200e\u200f]")

names = pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")


def printed(capfdbinary: pytest.CaptureFixture[bytes]) -> str:
    out, err = capfdbinary.readouterr()
    return (out + err).decode()


def test_text_is_printed_with_its_controls_made_visible(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    write(f"a\tb\r\n{HOSTILE}.\n")

    shown = printed(capfdbinary)
    assert not COMMANDS.search(shown.replace("\r\n", "\n"))
    assert shown.startswith(
        "a\tb\r\n\\x1b]0;owned\\x07\\x1b[2J\\x9b31m\\x7f\\u202egnp\\u2066\\x0d.\n"
    )


def test_json_stays_json(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    show({HOSTILE: [HOSTILE, "雨\n夜"]})

    shown = printed(capfdbinary)
    assert not COMMANDS.search(shown)
    assert json.loads(shown) == {HOSTILE: [HOSTILE, "雨\n夜"]}


def test_a_name_with_a_line_break_makes_no_line_of_its_own() -> None:
    assert harmless(["a\nok", {"k\x1b": 1}]) == ["a\\x0aok", {"k\\x1b": 1}]


@names
def test_skill_lint_shows_names_keys_and_texts_harmlessly(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    folder = tmp_path / f"skills{HOSTILE}"
    folder.mkdir()
    (folder / "SKILL.md").write_text(
        '---\nname: a\n"\\e[2J\\u202e": 1\ncontext_rules:\n  "x\\e[1m": 5\n---\n', encoding="utf-8"
    )

    status = main(["skill", "lint", str(folder)])

    shown = printed(capfdbinary)
    assert status == 1
    assert "\\x1b" in shown
    assert not COMMANDS.search(shown)


@names
def test_doctor_shows_names_and_texts_harmlessly(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    skills = tmp_path / "novel" / ".creonow" / "skills" / f"a{HOSTILE}"
    skills.mkdir(parents=True)
    (skills / "SKILL.md").write_text('---\n"\\e[2J": 1\n---\n', encoding="utf-8")

    main(["doctor", "--user-data", str(tmp_path / "data"), "--project", str(tmp_path / "novel")])

    shown = printed(capfdbinary)
    assert "\\x1b" in shown
    assert not COMMANDS.search(shown)


def test_an_error_is_shown_harmlessly(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    status = main(["skill", "lint", str(tmp_path / "\x1b[2J\u202e")])

    shown = printed(capfdbinary)
    assert status == 1
    assert "\\x1b[2J\\u202e" in shown
    assert not COMMANDS.search(shown)


def test_an_argument_too_many_is_shown_harmlessly(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    with pytest.raises(SystemExit):
        main(["doctor", "\x1b[2J\u202e"])

    shown = printed(capfdbinary)
    assert "\\x1b[2J\\u202e" in shown
    assert not COMMANDS.search(shown)


def test_an_assembly_is_shown_harmlessly() -> None:
    layer = {"tokens": 1, "truncated": False}
    layers = ("rules", "settings", "retrieved", "immediate")
    entry = {
        "layer": "rules",
        "sourceRef": f"a{HOSTILE}.md",
        "action": "kept",
        "rule": "fits",
        "reason": HOSTILE,
        "beforeTokens": 1,
        "afterTokens": 1,
    }
    result = {
        "layers": dict.fromkeys(layers, layer),
        "budget": {
            "maxInputTokens": 10,
            "estimate": {f"{name}Tokens": 1 for name in layers},
        },
        "fixedTokens": 1,
        "tokenCount": 5,
        "tokenizerId": "t",
        "tokenizerExact": True,
        "trimEvidence": [entry],
        "notices": [{"code": "SOURCE_WARNING", "message": HOSTILE}],
        "redactionEvidence": [{"matchCount": 1, "patternId": "p", "sourceRef": HOSTILE}],
        "stablePrefixUnchanged": True,
        "stablePrefixHash": "h",
        "promptHash": "h",
    }
    budget = {"layers": {name: {"minimumTokens": 0} for name in layers}}

    shown = view(harmless(result), budget, colour=False, chinese=False)

    assert "\\x1b" in shown
    assert not COMMANDS.search(shown)
