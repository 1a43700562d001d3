"""Story: what a daemon keeps open after work, each descriptor accounted for and given back."""

import os
import select
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from creonowd.testing.harness import Harness
from testing.clients import PATIENCE, daemon_command, environment

INDEX = ".sqlite3"
# A queue of changes ends when something is mounted.
MOUNTS = "/mountinfo"
WATCH = ("anon_inode:inotify", "anon_inode:[eventpoll]", "anon_inode:[eventfd]")


def descriptors(pid: int) -> "Counter[str]":
    """Count what the descriptors of a process lead to; one that was just closed is left out."""
    found: Counter[str] = Counter()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found[os.readlink(entry)] += 1  # noqa: PTH115 - what it leads to need not be a path
        except OSError:
            continue
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="lists descriptors in /proc")
def test_after_work_only_the_index_and_the_watch_of_a_project_stay_open(tmp_path: Path) -> None:
    with Harness(tmp_path) as daemon:
        pid: int = daemon.call("app:ping")["pid"]
        daemon.call("app:health")
        before = descriptors(pid)
        project = daemon.call("project:create", {"rootPath": str(_novel(tmp_path))})["projectId"]
        place = {"projectId": project, "documentId": "1.md", "cursorPosition": 0}
        file = {"projectId": project, "conversationId": "c", "kind": "artifact", "hint": "h"}
        for _ in range(20):
            daemon.call("context:retrieve", {**place, "query": "雨", "limit": 3, "wait": True})
            daemon.call("context:assemble", {**place, "skillId": "builtin:continue"})
            put = daemon.call("context:files:put", {**file, "content": "x" * 5000})
            daemon.call("context.read", {**file, "id": put["ref"]["id"]})

        # What was put off, such as a save, has a file open for a moment.
        deadline = time.monotonic() + PATIENCE
        while _strange(kept := descriptors(pid) - before) and time.monotonic() < deadline:
            daemon.call("app:ping")
        daemon.call("project:delete", {"projectId": project})
        deadline = time.monotonic() + PATIENCE
        while (left := descriptors(pid) - before) and time.monotonic() < deadline:
            daemon.call("app:ping")

    assert _strange(kept) == []
    # An index with its watch, and the queues of changes of the project and of user data.
    assert kept.total() <= 12
    assert left == Counter()


def _strange(kept: "Counter[str]") -> list[str]:
    known = (INDEX, MOUNTS)
    return [n for n in kept if n not in WATCH and not any(one in n for one in known)]


def _novel(tmp_path: Path) -> Path:
    root = tmp_path / "novel"
    root.mkdir()
    (root / "1.md").write_text("雨下了一夜。", encoding="utf-8")
    return root


@pytest.mark.skipif(os.name == "nt", reason="Windows passes no numbered descriptors on")
def test_a_daemon_on_stdio_keeps_nothing_open_of_the_app_that_spawned_it(tmp_path: Path) -> None:
    """Chromium leaves some twenty files and sockets open to its children."""
    ours, inherited = os.pipe()
    command = daemon_command(tmp_path / "user data")
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        command, stdin=pipe, stdout=pipe, env=environment(), pass_fds=[inherited]
    )
    os.close(inherited)
    with process, os.fdopen(ours, "rb") as reader:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"app:ping"}\n')
        process.stdin.flush()
        pong = process.stdout.readline()

        readable, _, _ = select.select([reader], [], [], 0)
        ended = bool(readable) and reader.read() == b""
        process.stdin.close()

    assert b'"pong":true' in pong
    assert ended
