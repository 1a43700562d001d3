"""The command line: called, as a process in a pipe, and at a terminal."""

import io
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from creonowd.cli import main
from testing.clients import PATIENCE, environment


def creonowd(
    user_data: Path, *arguments: str, stdin: bytes = b"", **environ: str
) -> "subprocess.CompletedProcess[bytes]":
    """Call a command in this process, with an environment and streams of its own.

    A process for each would load all of the package again, which is nearly all of its time.
    """
    given, out, err = (
        io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", errors="surrogateescape")
        for data in (stdin, b"", b"")
    )
    whole = environment(CREONOW_USER_DATA_DIR=str(user_data), **environ)
    with pytest.MonkeyPatch.context() as meanwhile:
        for name in os.environ.keys() - whole.keys():
            meanwhile.delenv(name)
        for name, value in whole.items():
            meanwhile.setenv(name, value)
        for name, stream in {"stdin": given, "stdout": out, "stderr": err}.items():
            meanwhile.setattr(sys, name, stream)
        try:
            status = main(arguments)
        except SystemExit as ended:  # of argparse
            status = int(ended.code or 0)
    for stream in (out, err):
        stream.flush()
    said, complained = out.detach(), err.detach()
    assert isinstance(said, io.BytesIO)
    assert isinstance(complained, io.BytesIO)
    return subprocess.CompletedProcess(arguments, status, said.getvalue(), complained.getvalue())


def creonowd_process(
    user_data: Path, *arguments: str, stdin: bytes = b"", **environ: str
) -> "subprocess.CompletedProcess[bytes]":
    """Run a command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "creonowd", *arguments],
        input=stdin,
        capture_output=True,
        check=False,
        timeout=300,  # under Wine on a busy machine a start takes a minute
        env=environment(CREONOW_USER_DATA_DIR=str(user_data), **environ),
    )


class Terminal:
    """A command at a pseudo-terminal, and everything that it has shown there; not on Windows."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        import pty

        self.shown = ""
        self._raw = b""
        self._line, inner = pty.openpty()
        self.process = subprocess.Popen(
            command,
            stdin=inner,
            stdout=inner,
            stderr=inner,
            env={**environ, "TERM": "xterm"},
            start_new_session=True,
        )
        os.close(inner)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)
        os.close(self._line)

    def until(self, pattern: str, times: int = 1) -> list[str]:
        """Wait until a pattern was shown so many times, and return what matched."""
        deadline = time.monotonic() + PATIENCE
        while len(found := re.findall(pattern, self.shown)) < times:
            left = deadline - time.monotonic()
            assert left > 0, self.shown
            assert self._read(left), self.shown
        return found

    def enter(self, text: str = "") -> None:
        """Type a line."""
        os.write(self._line, f"{text}\n".encode())

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self) -> int:
        """Wait for the end of the command and return its exit status."""
        while self._read(PATIENCE):
            pass
        return self.process.wait(PATIENCE)

    def _read(self, seconds: float) -> bool:
        """Take in what is shown next; False at the end."""
        if not select.select([self._line], [], [], seconds)[0]:
            return False
        try:
            more = os.read(self._line, 65536)
        except OSError:  # Linux reports the end of a terminal as an error
            return False
        self._raw += more
        self.shown = self._raw.decode("utf-8", "ignore").replace("\r\n", "\n")
        return bool(more)


def at_terminal(user_data: Path, *arguments: str, **environ: str) -> Terminal:
    """Run a command of the command line at a terminal."""
    command = [sys.executable, "-m", "creonowd", *arguments]
    whole = environment(CREONOW_USER_DATA_DIR=str(user_data), **environ)
    return Terminal(command, whole)
