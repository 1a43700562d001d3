"""What is printed on a machine that lacks something: what is missing, and how to get it."""

import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from scripts import locks

ROOT = Path(__file__).resolve().parents[2]
OFFLINE = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}


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


@pytest.mark.parametrize(
    ("step", "lock"),
    [("ensure_python", "requirements.lock"), ("ensure_running", "requirements-run.lock")],
)
def test_packages_that_cannot_be_installed_are_reported_each_time(
    fresh: Path, step: str, lock: str
) -> None:
    venv.create(fresh / ".venv", with_pip=False)
    programs = fresh / ".venv" / ("Scripts" if os.name == "nt" else "bin")
    (programs / ("pip.exe" if os.name == "nt" else "pip")).touch()  # what is left of a pip

    outputs = [ask(fresh, step, **OFFLINE) for _ in range(2)]

    for ran in outputs:
        assert ran.returncode == 1
        assert f"scripts/{lock} could not be installed" in ran.stderr
        assert "package index" in ran.stderr


def test_running_says_which_step_it_is_at(fresh: Path) -> None:
    ran = ask(fresh, "ensure_running", **OFFLINE)

    assert re.findall(r"^\[(./.)\]", ran.stderr, re.MULTILINE) == ["1/3", "2/3"]
    assert not (fresh / ".stamps").exists()


@pytest.mark.parametrize("stamp", ["python", "run"])
def test_what_was_installed_before_is_not_installed_again(fresh: Path, stamp: str) -> None:
    """A complete environment serves for running; one for running only is not complete."""
    venv.create(fresh / ".venv", with_pip=False)
    inputs = {"python": "DEVELOPING", "run": "RUNNING"}[stamp]
    stamped = ask(fresh, f"_stamp('{stamp}', environment.{inputs}) or print", **OFFLINE)

    running = ask(fresh, "ensure_running", **OFFLINE)
    with_ai = ask(fresh, "ensure_running(ai=True) or print", **OFFLINE)

    assert (stamped.returncode, running.returncode, running.stderr) == (0, 0, "")
    assert ("AI providers" in with_ai.stderr) == (stamp == "run")


def test_the_locks_of_running_are_parts_of_the_whole() -> None:
    for path, text in locks.generate().items():
        assert path.read_text(encoding="utf-8") == text, "run scripts/gen_locks"
        names = set(re.findall(r"^([\w.-]+)==", text, re.MULTILINE))
        assert names.isdisjoint({"pytest", "playwright", "basedpyright", "ruff"})
        assert text.count("--hash=sha256:") > len(names)
        assert "://" not in text


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
