"""`creonowd view` — see in a browser what the model gets."""

import argparse
import contextlib
import hashlib
import hmac
import html
import os
import secrets
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import Any

from creonowd.cli.client import (
    Client,
    ProgressLine,
    connect,
    start_daemon,
    start_error,
    work_of,
    write,
    write_wording,
)
from creonowd.daemon import endpoint
from creonowd.errors import DaemonError, Wording
from creonowd.settings import console_language, user_data_dir
from creonowd.storage import stored_files
from creonowd.workspace.projects import FOLDER as PROJECTS

START_SECONDS = 20.0
POLL_SECONDS = 0.02
OPEN_SECONDS = 60.0
OPEN_POLL_SECONDS = 0.2
LINE_BYTES = 4096
SAMPLES = Path(__file__).parents[1] / "sample"
SAMPLE_PLACES = {"en": "chapters/08-on-the-bank.md", "zh": "chapters/08-堤上.md"}
# Small enough that something must be left out and shortened.
SAMPLE_BUDGET = {
    "contextWindowTokens": 4650,
    "systemPromptTokens": 100,
    "outputReserveTokens": 400,
    "layers": {
        "rules": {"ratio": 0.12, "minimumTokens": 300},
        "settings": {"ratio": 0.1, "minimumTokens": 100},
        "retrieved": {"ratio": 0.4, "minimumTokens": 1750},
        "immediate": {"ratio": 0.38, "minimumTokens": 1100},
    },
}
_NO_BROWSER = Wording(
    "No browser could be opened; open the address by hand.", "无法打开浏览器，请自行打开该地址。"
)
REDIRECT = (
    '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
    '<title>creonowd</title><meta http-equiv="refresh" content="0; url={}">\n'
)


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "view",
        parents=[shared],
        description="Print the address of the context viewer. Uses the running daemon; "
        "without one, starts it and keeps it until Ctrl-C.",
    )
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--project", type=Path, metavar="DIR", help="the project to show")
    shown.add_argument(
        "--sample",
        nargs="?",
        const=console_language().value,
        choices=sorted(SAMPLE_PLACES),
        help="a novel to play with, in English or Chinese (default: the terminal's language)",
    )
    parser.add_argument("--open", action="store_true", help="open it in the default browser")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the address; if the daemon was started here, wait for its end."""
    user_data = user_data_dir(arguments.user_data)
    with _daemon(user_data) as own:
        with connect(user_data) as client:
            shown = _project_to_show(client, user_data, arguments)
            if sys.stdout.isatty():
                write_wording(_RUNNING_ALREADY if own is None else _WORKS_ONCE, sys.stderr)
            write(f"{client.request('viewer:open', shown)['url']}\n")
            if own is not None and sys.stdin.isatty() and sys.stdout.isatty():
                reader = partial(_show_more_addresses, user_data, shown)
                threading.Thread(target=reader, daemon=True).start()
            if arguments.open:
                _browse(client, endpoint.folder(user_data), client.request("viewer:open", shown))
        return 0 if own is None else own.wait()


def _show_more_addresses(user_data: Path, shown: dict[str, str]) -> None:
    """Print a new address for each line that is entered: an address works only once."""
    # Not `sys.stdin`: a thread that waits for a line holds its lock, and Python needs that lock to exit.
    while os.read(sys.stdin.fileno(), LINE_BYTES):
        try:
            with connect(user_data) as client:
                write(f"{client.request('viewer:open', shown)['url']}\n")
        except DaemonError as error:
            write_wording(error.wording, sys.stderr)


_WORKS_ONCE = Wording(
    "Open this address in a browser; it works once. Enter prints a new one, Ctrl-C ends the daemon.",
    "请在浏览器中打开此地址，它只能用一次。按回车给出新地址，按 Ctrl-C 结束守护进程。",
)
_RUNNING_ALREADY = Wording(
    "A daemon is running already; this is a new address to it, which works once:",
    "守护进程已在运行；这是一个新地址，只能用一次：",
)


def _project_to_show(
    client: Client, user_data: Path, arguments: argparse.Namespace
) -> dict[str, str]:
    """Make the folder or the sample a project; return what `viewer:open` needs to know of it."""
    if arguments.sample is not None:
        project_id = _open_sample(client, user_data, arguments.sample)
        return {"projectId": project_id, "documentId": SAMPLE_PLACES[arguments.sample]}
    if arguments.project is not None:
        return {"projectId": _create_project(client, arguments.project)}
    return {}


def _create_project(client: Client, folder: Path) -> str:
    return str(client.request("project:create", {"rootPath": str(folder.absolute())})["projectId"])


def _open_sample(client: Client, user_data: Path, language: str) -> str:
    """Copy the sample novel below the user data, unless it is there; return its project's id."""
    folder = user_data / PROJECTS / f"sample-{language}"
    fresh = not folder.exists()
    if fresh:
        unfinished = folder.with_name(f".{folder.name}-{secrets.token_hex(4)}")
        shutil.copytree(SAMPLES / language, unfinished)
        unfinished.rename(folder)
    project_id = _create_project(client, folder)
    if fresh:
        version = client.request("context:budget:get", {"projectId": project_id})["version"]
        budget = {"projectId": project_id, "version": version, **SAMPLE_BUDGET}
        client.request("context:budget:update", budget)
    return project_id


def _browse(client: Client, folder: Path, viewer: dict[str, str]) -> None:
    """Open the viewer in the default browser, through a file that only this user can read.

    Everyone on this computer sees the arguments of a process, so the address is in none; the file
    leads to it and is removed when the page has used its token.
    """
    import webbrowser

    page = folder / f"{endpoint.REDIRECT}{secrets.token_hex(8)}.html"
    stored_files.create(page, REDIRECT.format(html.escape(viewer["url"])).encode())
    try:
        if not webbrowser.open(page.as_uri()):
            write_wording(_NO_BROWSER, sys.stderr)
            return
        deadline = time.monotonic() + OPEN_SECONDS
        while _is_unused(client, viewer["token"]) and time.monotonic() < deadline:
            time.sleep(OPEN_POLL_SECONDS)
    finally:
        page.unlink(missing_ok=True)


def _is_unused(client: Client, token: str) -> bool:
    nonce = secrets.token_hex(32)
    digest = hashlib.sha256(token.encode()).digest()
    proof = hmac.digest(digest, nonce.encode(), "sha256").hex()
    return proof in client.request("viewer:prove", {"nonce": nonce})["proofs"]


@contextlib.contextmanager
def _daemon(user_data: Path) -> "Generator[subprocess.Popen[bytes] | None]":
    if endpoint.read(user_data) is not None:
        yield None
        return
    with (
        start_daemon(user_data, subprocess.DEVNULL) as process,
        contextlib.suppress(KeyboardInterrupt),
    ):
        with ProgressLine(work_of("initialize")):
            _wait(user_data, process)
        yield process


def _wait(user_data: Path, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + START_SECONDS
    while endpoint.read(user_data) is None:
        if process.poll() is not None or time.monotonic() > deadline:
            raise start_error()
        time.sleep(POLL_SECONDS)
