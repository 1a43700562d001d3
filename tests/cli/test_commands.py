"""The command line, as a person and as a script uses it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from creonowd import __version__
from testing.clients import environment
from tests.cli.commands import creonowd_process


def test_version_and_help_say_what_it_is(tmp_path: Path) -> None:
    version = creonowd_process(tmp_path, "--version")
    helped = creonowd_process(tmp_path, "--help")

    assert version.stdout.decode().strip() == f"creonowd {__version__}"
    assert helped.returncode == 0
    for command in (b"serve", b"call", b"doctor"):
        assert command in helped.stdout


@pytest.mark.parametrize("arguments", [(), ("nonsense",), ("call",), ("serve", "--nonsense")])
def test_wrong_usage_is_reported_on_stderr(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    ran = creonowd_process(tmp_path, *arguments)

    assert ran.returncode == 2
    assert ran.stdout == b""
    assert b"usage" in ran.stderr


def test_without_a_command_the_commands_are_listed(tmp_path: Path) -> None:
    ran = creonowd_process(tmp_path)

    assert b"find out what is wrong" in ran.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
def test_a_person_at_a_terminal_gets_a_readable_form(tmp_path: Path) -> None:
    called = at_a_terminal(tmp_path, "call", "e2e:echo", '{"value": "渡口"}')
    examined = at_a_terminal(tmp_path, "doctor")

    # On a slow machine the start of the daemon is shown first, and cleared again.
    *_, printed = called.split("\x1b[2K\r")
    assert printed.splitlines() == ["{", '  "value": "渡口"', "}"]
    assert "\x1b[32m✓\x1b[0m" in examined
    assert " parts are fine: python, " in examined


def at_a_terminal(user_data: Path, *arguments: str) -> str:
    import pty

    master, slave = pty.openpty()
    subprocess.run(
        [sys.executable, "-m", "creonowd", *arguments],
        stdout=slave,
        stderr=slave,
        check=True,
        timeout=60,
        env=environment(CREONOW_USER_DATA_DIR=str(user_data)),
    )
    seen = os.read(master, 65536)
    os.close(master)
    os.close(slave)
    return seen.decode()
