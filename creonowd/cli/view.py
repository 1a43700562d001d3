"""`creonowd view` — see in a browser what the model gets."""

import argparse
import contextlib
import subprocess
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

from creonowd.cli.client import connect, start_daemon, start_error, write
from creonowd.daemon import endpoint
from creonowd.settings import user_data_dir

START_SECONDS = 20.0
POLL_SECONDS = 0.02


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
    """Print the address; if the daemon was started here, wait for its end."""
    user_data = user_data_dir(arguments.user_data)
    with _daemon(user_data) as own:
        write(f"{_address(user_data, arguments.project)}\n")
        if arguments.open:
            import webbrowser

            webbrowser.open(_address(user_data, arguments.project))
        return 0 if own is None else own.wait()


def _address(user_data: Path, project: Path | None) -> str:
    with connect(user_data) as client:
        payload: dict[str, Any] = {}
        if project is not None:
            made = client.request("project:create", {"rootPath": str(project.absolute())})
            payload = {"projectId": made["projectId"]}
        return client.request("viewer:open", payload)["url"]


@contextlib.contextmanager
def _daemon(user_data: Path) -> "Generator[subprocess.Popen[bytes] | None]":
    if endpoint.read(user_data) is not None:
        yield None
        return
    with (
        start_daemon(user_data, subprocess.DEVNULL) as process,
        contextlib.suppress(KeyboardInterrupt),
    ):
        _wait(user_data, process)
        yield process


def _wait(user_data: Path, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + START_SECONDS
    while endpoint.read(user_data) is None:
        if process.poll() is not None or time.monotonic() > deadline:
            raise start_error()
        time.sleep(POLL_SECONDS)
