"""What a file's name, key or text says never commands the terminal that shows it."""

import contextlib
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from creonowd.cli import main
from creonowd.cli.assemble import view
from creonowd.cli.client import ProgressLine, pad, show, terminal_safe, width, work_of, write
from testing.novels import SECRET
from tests.cli.commands import at_terminal, creonowd_process

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\u202egnp\u2066\r"
COMMANDS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200e\u200f]")

CLEAR = "\x1b[2K\r"

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
    assert terminal_safe(["a\nok", {"k\x1b": 1}]) == ["a\\x0aok", {"k\\x1b": 1}]


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


@pytest.mark.parametrize(
    "arguments",
    [
        (SECRET,),
        ("doctor", SECRET),
        ("skill", "lint", SECRET),
        ("mcp", "--project", SECRET),
        ("call", SECRET, "--help"),
    ],
)
def test_a_secret_among_the_arguments_is_not_repeated(
    arguments: tuple[str, ...], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    with contextlib.suppress(SystemExit):
        main(arguments)

    shown = printed(capfdbinary)
    assert "***REDACTED***" in shown
    assert SECRET not in shown


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_skill_lint_shows_no_secret_of_a_key_or_a_placeholder(
    form: tuple[str, ...], tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    folder = tmp_path / SECRET
    folder.mkdir()
    text = f"---\nname: a\n{SECRET}: 1\n---\n{{{{ {SECRET} }}}}\n"
    (folder / "SKILL.md").write_text(text, encoding="utf-8")

    main(["skill", "lint", str(folder), *form])

    shown = printed(capfdbinary)
    assert shown.count("***REDACTED***") > 2
    assert SECRET not in shown


LAYERS = ("rules", "settings", "retrieved", "immediate")
BUDGET = {"layers": {name: {"minimumTokens": 0} for name in LAYERS}}


def assembly(*evidence: dict[str, Any], message: str = "", ref: str = "") -> dict[str, Any]:
    return {
        "layers": {name: {"tokens": 1, "truncated": False} for name in LAYERS},
        "budget": {
            "maxInputTokens": 10,
            "estimate": {f"{name}Tokens": 1 for name in LAYERS},
        },
        "fixedTokens": 1,
        "tokenCount": 5,
        "tokenizerId": "t",
        "tokenizerExact": True,
        "trimEvidence": list(evidence),
        "notices": [{"code": "SOURCE_WARNING", "message": message}],
        "redactionEvidence": [{"matchCount": 1, "patternId": "p", "sourceRef": ref}],
        "stablePrefixUnchanged": True,
        "stablePrefixHash": "h",
        "promptHash": "h",
    }


def entry(ref: str, action: str = "kept", **more: Any) -> dict[str, Any]:
    plain = {"layer": "rules", "rule": "fits", "reason": "", "beforeTokens": 1, "afterTokens": 1}
    return plain | {"sourceRef": ref, "action": action} | more


def test_an_assembly_is_shown_harmlessly() -> None:
    result = assembly(entry(f"a{HOSTILE}.md", reason=HOSTILE), message=HOSTILE, ref=HOSTILE)

    shown = view(terminal_safe(result), BUDGET, colour=False, chinese=False)

    assert "\\x1b" in shown
    assert not COMMANDS.search(shown)


@pytest.mark.parametrize("chinese", [False, True])
def test_the_columns_of_an_assembly_line_up_whatever_the_files_are_called(*, chinese: bool) -> None:
    rows = (
        entry("ben.md", "dropped", layer="retrieved", reason="over_budget", beforeTokens=12345),
        entry("人物/林远山 与 Anna.md", "dropped", reason="over_budget", rule="rules_line"),
        entry("e\u0301.md", "trimmed", layer="settings", reason="over_budget"),
    )

    shown = view(assembly(*rows), BUDGET, chinese=chinese).splitlines()

    reasons = {width(line.partition("over_budget")[0]) for line in shown if "over_budget" in line}
    bars = {width(re.split("[█░]", line)[0]) for line in shown if "░" in line}
    assert (len(reasons), len(bars)) == (1, 1)


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal of POSIX")
def test_long_work_shows_itself_at_a_terminal_and_leaves_nothing_on_the_line(
    tmp_path: Path,
) -> None:
    with at_terminal(tmp_path, "call", "e2e:sleep", '{"ms": 1600}', LC_ALL="zh_CN.UTF-8") as shown:
        status = shown.end()

    drawn = re.findall(r"正在等待 e2e:sleep █+░* +\d+% \d s", shown.shown)
    assert status == 0
    assert drawn
    assert shown.shown.rpartition(CLEAR)[2].startswith("{")


def test_in_a_pipe_long_work_is_quiet(tmp_path: Path) -> None:
    ran = creonowd_process(tmp_path, "call", "e2e:sleep", '{"ms": 1100}')

    assert (ran.stdout, ran.stderr) == (b'{"slept": 1100}\n', b"")


@pytest.mark.parametrize(
    ("value", "share"),
    [
        ({"done": 3, "documents": 12}, "25%"),
        ({"files": 1, "totalFiles": 9, "bytes": 50, "totalBytes": 100}, "50%"),
        ({"done": 99, "of": 10}, "100%"),
        ({"done": 0, "of": 0}, None),
        ("half", None),
    ],
)
def test_progress_is_shown_as_far_as_it_is_known(
    value: object, share: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    line = ProgressLine(work_of("story:summarise"))

    line.report(value)

    assert line.text(3).startswith("Summarising chapters")
    assert (share or "…") in line.text(3)


@pytest.mark.parametrize(
    ("text", "columns"), [("abc", 3), ("渡口", 4), ("é", 1), ("e\u0301", 1), ("ｶﾅ", 2), ("🖋", 1)]
)
def test_a_chinese_character_takes_two_columns(text: str, columns: int) -> None:
    assert width(text) == columns
    assert width(pad(text, 8)) == width(pad(text, 8, right=True)) == 8
