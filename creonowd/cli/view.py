"""`creonowd view` — look into what the model gets to see, in a browser."""

import argparse
import contextlib
import subprocess
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

from creonowd.cli.client import connect, not_started, started, write
from creonowd.daemon import endpoint
from creonowd.settings import user_data_dir

START_SECONDS = 20.0
STEP_SECONDS = 0.02


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "view",
        parents=[shared],
        description="Print the address of the context viewer. Uses the running daemon; "
        "without one, starts it and keeps it until Ctrl-C.",
    )
    parser.add_argument("--project", type=Path, metavar="DIR", help="the project to show")
    parser.add_argument("--open", action="store_true", help="open it in the default browser")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the address; stay while the daemon is ours."""
    user_data = user_data_dir(arguments.user_data)
    with _daemon(user_data) as ours:
        write(f"{_address(user_data, arguments.project)}\n")
        if arguments.open:
            import webbrowser

            webbrowser.open(_address(user_data, arguments.project))
        return 0 if ours is None else ours.wait()


def _address(user_data: Path, project: Path | None) -> str:
    with connect(user_data) as client:
        chosen: dict[str, Any] = {}
        if project is not None:
            made = client.request("project:create", {"rootPath": str(project.absolute())})
            chosen = {"projectId": made["projectId"]}
        return client.request("viewer:open", chosen)["url"]


@contextlib.contextmanager
def _daemon(user_data: Path) -> "Generator[subprocess.Popen[bytes] | None]":
    if endpoint.read(user_data) is not None:
        yield None
        return
    with (
        started(user_data, subprocess.DEVNULL) as process,
        contextlib.suppress(KeyboardInterrupt),
    ):
        _wait(user_data, process)
        yield process


def _wait(user_data: Path, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + START_SECONDS
    while endpoint.read(user_data) is None:
        if process.poll() is not None or time.monotonic() > deadline:
            raise not_started()
        time.sleep(STEP_SECONDS)
