"""Story: a newcomer types what the README shows, and sees what it shows."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from testing.clients import environment

ROOT = Path(__file__).resolve().parents[1]
CHANGES = re.compile(r'("(?:pid|nowMs)": ?)\d+')


def session() -> Iterator[tuple[str, str]]:
    """Read the commands of the first terminal session, each with what it prints."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for step in text.partition("```console\n")[2].partition("```")[0].split("$ ")[1:]:
        command, _, printed = step.partition("\n")
        yield command, printed


def test_the_session_stands_by_line_12() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")

    assert any(line.startswith("$ ") for line in text.splitlines()[:12])


@pytest.mark.skipif(sys.platform == "win32", reason="the session is one of a POSIX shell")
def test_the_session_runs_as_printed(tmp_path: Path) -> None:
    shown = {command: printed for command, printed in session() if printed}
    for command, printed in shown.items():
        ran = subprocess.run(
            command.replace("./scripts/", f"{sys.executable} scripts/"),
            shell=True,
            cwd=ROOT,
            env=environment(CREONOW_USER_DATA_DIR=str(tmp_path)),
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=True,
            timeout=120,
        )

        assert CHANGES.sub(r"\1#", ran.stdout) == CHANGES.sub(r"\1#", printed)

    assert len(shown) >= 2
