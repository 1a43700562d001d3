"""What lies in the current folder is never imported, however a process of ours is started."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from creonowd.cli import client
from creonowd.settings import process_environment
from testing.clients import environment

HOSTILE = ("anyio", "argparse", "logging", "regex", "structlog", "msgspec", "json", "sitecustomize")
COMMANDS = {
    "module": [sys.executable, "-m", "creonowd"],
    "program": client.program(),
    "script": [
        sys.executable,
        "-c",
        "from creonowd.__main__ import main; raise SystemExit(main())",
    ],
}


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder whose modules leave a trace when they are imported."""
    folder = tmp_path / "novel"
    folder.mkdir()
    for name in HOSTILE:
        trace = f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r} + ' ')\nraise ImportError\n"
        (folder / f"{name}.py").write_text(trace, encoding="utf-8")
    return folder


def run(
    command: list[str], hostile: Path, *arguments: str, **environ: str
) -> "subprocess.CompletedProcess[bytes]":
    data = str(hostile.with_name("data"))
    return subprocess.run(
        [*command, *arguments],
        cwd=hostile,
        env=environment(CREONOW_USER_DATA_DIR=data, **environ),
        input=b"",
        capture_output=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("arguments", [("call", "app:health"), ("doctor",), ("serve", "--stdio")])
@pytest.mark.parametrize("way", ["module", "program"])
def test_the_current_folder_is_not_imported_from(
    hostile: Path, way: str, arguments: tuple[str, ...]
) -> None:
    ran = run(COMMANDS[way], hostile, *arguments)

    assert not hostile.with_name("ran").exists(), ran.stderr.decode()
    assert ran.returncode == 0, ran.stderr.decode()


def test_a_daemon_is_started_without_what_an_empty_entry_of_the_path_would_add(
    hostile: Path,
) -> None:
    """`PYTHONPATH=$PYTHONPATH:/mine` in a profile puts the current folder on the path."""
    for name in ("argparse", "json", "logging", "sitecustomize"):
        (hostile / f"{name}.py").unlink()  # Python itself imports these before we have a say

    ran = run(COMMANDS["script"], hostile, "call", "app:health", PYTHONPATH=os.pathsep)

    assert not hostile.with_name("ran").exists(), ran.stderr.decode()
    assert ran.returncode == 0, ran.stderr.decode()


def test_a_process_of_ours_gets_only_absolute_entries() -> None:
    absolute = str(Path.cwd())
    path = os.pathsep.join(["", ".", "relative", absolute])

    assert process_environment({"PYTHONPATH": path}) == {
        "PYTHONPATH": absolute,
        "PYTHONSAFEPATH": "1",
    }
    assert process_environment({"PYTHONPATH": "."}) == {"PYTHONSAFEPATH": "1"}


def test_a_frozen_program_starts_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)

    assert client.program() == [sys.executable]


def test_a_start_loads_no_rich_though_it_is_installed(tmp_path: Path) -> None:
    """structlog would, for tracebacks that nobody sees."""
    ran = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "creonowd", "serve", "--stdio"],
        env=environment(CREONOW_USER_DATA_DIR=str(tmp_path)),
        input=b"",
        capture_output=True,
        timeout=60,
        check=True,
    )

    loaded = {line.rpartition(b"|")[2].strip() for line in ran.stderr.splitlines()}
    assert find_spec("rich")
    assert b"structlog.dev" in loaded
    assert not {name for name in loaded if name.startswith(b"rich.")}
