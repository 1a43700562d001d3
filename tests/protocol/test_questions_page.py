"""The page of questions names commands, buttons and codes that there are."""

import re
from pathlib import Path

import pytest

from creonowd.cli import COMMANDS
from creonowd.errors import ErrorCode, WarningCode

ROOT = Path(__file__).resolve().parents[2]
STRINGS = ROOT / "creonowd" / "viewer" / "static" / "strings.js"


@pytest.mark.parametrize(
    ("page", "quoted"), [("questions.md", r"\*([^*\n]+)\*"), ("questions.zh.md", r"「([^」]+)」")]
)
def test_every_command_button_and_code_exists(page: str, quoted: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8").partition("\n## ")[2]
    plain = text.replace("**", "\0")

    commands = set(re.findall(r"creonowd (\w+)", text))
    codes = set(re.findall(r"\b[A-Z]+_[A-Z_]+\b", text))
    words = STRINGS.read_text(encoding="utf-8")
    shown = re.findall(quoted, plain)

    assert commands <= COMMANDS.keys()
    assert codes <= {*ErrorCode, *WarningCode}
    assert len(shown) > 15
    assert [one for one in shown if not all(part in words for part in one.split(" … "))] == []
