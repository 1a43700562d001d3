"""What is printed on a machine that lacks something: what is missing, and how to get it."""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """A copy of what set-up reads, on which nothing was set up yet."""
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "protocol").mkdir()
    shutil.copy(ROOT / "protocol" / "package.json", tmp_path / "protocol")
    return tmp_path


def ask(place: Path, step: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", f"import environment; environment.{step}()"],
        cwd=place / "scripts",
        env={"SYSTEMROOT": os.environ.get("SYSTEMROOT", ""), "HOME": str(place)} | environ,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )


def test_half_an_environment_is_not_left_behind(fresh: Path) -> None:
    (fresh / ".venv").write_text("in the way", encoding="utf-8")

    ran = ask(fresh, "ensure_python")

    assert ran.returncode == 1
    assert "python3 -m venv failed" in ran.stderr
    assert "apt-get install python3-venv" in ran.stderr
    assert not (fresh / ".stamps").exists()


def test_packages_that_cannot_be_installed_are_reported_each_time(fresh: Path) -> None:
    venv.create(fresh / ".venv", with_pip=False)

    outputs = [ask(fresh, "ensure_python") for _ in range(2)]

    for ran in outputs:
        assert ran.returncode == 1
        assert "scripts/requirements.lock could not be installed" in ran.stderr
        assert "package index" in ran.stderr


@pytest.mark.parametrize(
    ("step", "missing"), [("ensure_node", "npm"), ("ensure_chromium", "Chromium")]
)
def test_a_program_that_is_missing_is_named_with_its_remedy(
    fresh: Path, step: str, missing: str
) -> None:
    ran = ask(fresh, step, PATH=str(fresh))

    assert ran.returncode == 1
    assert f"{missing} is not installed" in ran.stderr
    assert "n Debian: apt-get install" in ran.stderr
    assert "Traceback" not in ran.stderr
