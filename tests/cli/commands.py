"""The command line as a process."""

import subprocess
import sys
from pathlib import Path

from testing.clients import environment


def creonowd(
    user_data: Path, *arguments: str, stdin: bytes = b"", **environ: str
) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        [sys.executable, "-m", "creonowd", *arguments],
        input=stdin,
        capture_output=True,
        check=False,
        timeout=60,
        env=environment(CREONOW_USER_DATA_DIR=str(user_data), **environ),
    )
