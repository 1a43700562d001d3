"""Count the files of the package that one request enters: `scripts/files_entered`."""

import argparse
import json
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.connection import Listener
from pathlib import Path
from typing import Any, Protocol

from websockets import Origin
from websockets.sync.client import connect

from scripts.checkouts.daemon import Daemon
from scripts.checkouts.novels import SECRET, folder_files, write
from scripts.environment import ROOT

QUIET_SECONDS = 1.5  # longer than the second that passes between two looks for changed files
LONGEST_SECONDS = 8.0
LOOK_SECONDS = 0.1
REST_SECONDS = 4.0

Functions = list[tuple[str, str]]


class Marks(Protocol):
    """The other end of the traced process: a mark goes in, what was entered comes out."""

    def send(self, obj: str, /) -> None:
        """Send a mark."""
        ...

    def recv(self) -> Functions:
        """Receive what was entered since the mark `start`."""
        ...


@dataclass(frozen=True)
class Entries:
    """What one request entered, in the order of first entry."""

    request: str
    functions: Functions

    @property
    def files(self) -> dict[str, str]:
        """The files, each with the function that was entered first."""
        first: dict[str, str] = {}
        for file, function in self.functions:
            first.setdefault(file, function)
        return first


def main(argv: list[str]) -> int:
    """Measure this checkout, and beside it another one if asked to; print a table."""
    arguments = _arguments(argv)
    checkouts = [ROOT, *([arguments.against] if arguments.against else [])]
    measured = [measure(checkout) for checkout in checkouts]
    if arguments.list:
        return _list(measured[0], arguments.list)
    heads = ("here", "there")[: len(measured)]
    columns = "".join(f"  {f'files {head}':>12}  {f'functions {head}':>16}" for head in heads)
    print(f"{'request':42}{columns}")
    for row in zip(*measured, strict=True):
        counts = "".join(f"  {len(one.files):12}  {len(one.functions):16}" for one in row)
        print(f"{row[0].request:42}{counts}")
    return 0


def measure(checkout: Path) -> list[Entries]:
    """Run the checkout's daemon under a profiler and send it the requests, one after the other."""
    with tempfile.TemporaryDirectory(prefix="creonowd-") as made, Listener() as listener:
        home = Path(made)
        root = home / "novel"
        write(root, folder_files(ROOT / "e2e" / "sample"))
        address = str(listener.address)
        daemon = Daemon(checkout, home / "user-data", over=home / "socket", trace=address)
        with daemon, listener.accept() as marks:
            return [
                Entries(name, record_request(marks, request))
                for name, request in _requests(daemon, root)
            ]


def _requests(daemon: Daemon, root: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Give the requests; what each needs is prepared before it is its turn."""
    document = "chapters/01-渡口.md"
    own = {"projectId": daemon.call("project:create", {"rootPath": str(root)})["projectId"]}
    daemon.call("tokens:count", {"text": "text"})
    daemon.call(
        "context:retrieve", own | {"documentId": document, "cursorPosition": 0, "wait": True}
    )
    yield "nothing, while the daemon is at rest", lambda: time.sleep(REST_SECONDS)
    yield "app:ping", lambda: daemon.call("app:ping")
    chat = own | {"conversationId": "chat"}
    text = f"key={SECRET}\n" + "夜色很深。\n" * 3000
    kept = chat | {"kind": "artifact", "hint": "a log", "content": text}
    found = chat | {"id": daemon.call("context:files:put", kept)["ref"]["id"], "pattern": "key|深"}
    yield "context.grep", lambda: daemon.call("context.grep", found)
    at = own | {"documentId": document, "cursorPosition": 150}
    everything = at | {"skillId": "general"}
    yield "context:assemble, all sources, cold", lambda: daemon.call("context:assemble", everything)
    yield (
        "context:assemble, all sources, again",
        lambda: daemon.call("context:assemble", everything),
    )
    elsewhere = everything | {"documentId": "chapters/02-旧信.md"}
    yield "context:assemble, another document", lambda: daemon.call("context:assemble", elsewhere)
    run = at | {"skillId": "builtin:continue", "stream": True}
    yield "ai:skill:run", lambda: daemon.call("ai:skill:run", run)
    constraint = own | {"constraint": {"text": "不许下雨。"}}
    yield "constraints:create", lambda: daemon.call("constraints:create", constraint)
    opened = daemon.call("viewer:open", own)
    page = opened["url"].partition("#")[0]
    yield "viewer's page", lambda: urllib.request.urlopen(page).read()
    with ExitStack() as stack:
        yield (
            "viewer's page, connection and first calls",
            lambda: _open_page(stack, page, opened["token"], at),
        )


def _open_page(stack: ExitStack, page: str, token: str, at: dict[str, Any]) -> None:
    """Do what the page does when it is opened: connect, show the token, and ask what to show."""
    address = page.replace("http://", "ws://").rstrip("/")
    socket = stack.enter_context(connect(f"{address}/rpc", origin=Origin(page.rstrip("/"))))
    own = {"projectId": at["projectId"]}
    calls: list[tuple[str, dict[str, Any]]] = [
        ("initialize", {"token": token}),
        ("viewer:projects", {}),
        ("viewer:skills", own),
        ("ai:config:get", own),
        ("context:document:list", own),
        ("context:creonow:watch:start", own),
        ("context:budget:get", own),
        ("constraints:list", own),
        ("context:inspect", at | {"skillId": "builtin:continue", "debugMode": True}),
    ]
    for method, params in calls:
        socket.send(
            json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params})
        )
        while (reply := json.loads(socket.recv(60))).get("id") != method:
            pass
        if "error" in reply:
            raise RuntimeError(f"{method}: {reply['error']}")


def record_request(marks: Marks, request: Callable[[], Any]) -> Functions:
    """Record one request and the work that goes on behind it, beginning when nothing goes on."""
    _mark(marks, "start")
    _settle(marks)
    _mark(marks, "start")
    request()
    _settle(marks)
    return _mark(marks, "stop")


def _settle(marks: Marks) -> None:
    """Wait until no function is entered that was not entered before."""
    end = time.monotonic() + LONGEST_SECONDS
    known, since = -1, time.monotonic()
    while time.monotonic() < min(end, since + QUIET_SECONDS):
        time.sleep(LOOK_SECONDS)
        now = len(_mark(marks, "look"))
        if now != known:
            known, since = now, time.monotonic()


def _mark(marks: Marks, mark: str) -> Functions:
    marks.send(mark)
    return marks.recv()


def _list(measured: list[Entries], request: str) -> int:
    chosen = [one for one in measured if one.request.startswith(request)]
    if not chosen:
        print(
            f"There is no request {request}; there are: {', '.join(m.request for m in measured)}."
        )
        return 2
    for one in chosen:
        print(f"{one.request}: {len(one.files)} files, {len(one.functions)} functions")
        for number, (file, function) in enumerate(one.files.items(), start=1):
            print(f"{number:4}. {file} · {function}")
    return 0


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/files_entered", description=__doc__)
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="measure this one beside it")
    parser.add_argument("--list", metavar="REQUEST", help="print its files in order of first entry")
    return parser.parse_args(argv)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
