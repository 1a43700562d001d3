"""The standard streams may be what a parent makes of them: two sockets, or one for both."""

import json
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from testing.clients import PATIENCE, daemon_command, environment

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="streams are pipes there")
LARGE = "春江潮水连海平。" * 40_000


def echo(number: int, value: str) -> bytes:
    asked = {"jsonrpc": "2.0", "id": number, "method": "e2e:echo", "params": {"value": value}}
    return json.dumps(asked).encode() + b"\n"


def talk(into: socket.socket, out_of: socket.socket, asked: Sequence[str]) -> list[Any]:
    for end in (into, out_of):
        end.settimeout(PATIENCE)
    with out_of.makefile("rb") as replies:
        answers: list[Any] = []
        for number, value in enumerate(asked):
            into.sendall(echo(number, value))
            answers.append(json.loads(replies.readline())["result"]["value"])
        into.shutdown(socket.SHUT_WR)
        assert replies.read() == b""
    return answers


@pytest.mark.parametrize("shared", [True, False], ids=["one socket", "two sockets"])
def test_streams_that_are_sockets_answer_and_end_with_the_parent(
    tmp_path: Path, *, shared: bool
) -> None:
    mine, stdin = socket.socketpair()
    heard, stdout = (mine, stdin) if shared else socket.socketpair()
    with subprocess.Popen(
        daemon_command(tmp_path / "data"),
        env=environment(),
        stdin=stdin.fileno(),
        stdout=stdout.fileno(),
    ) as process:
        stdin.close()
        stdout.close()

        answers = talk(mine, heard, ["春", LARGE, "江"])

        assert answers == ["春", LARGE, "江"]
        assert process.wait(PATIENCE) == 0
    mine.close()
    heard.close()


def test_answers_that_a_pipe_cannot_hold_arrive_in_order(tmp_path: Path) -> None:
    asked = [LARGE, *map(str, range(100)), LARGE]
    ran = subprocess.run(
        daemon_command(tmp_path / "data"),
        input=b"".join(echo(number, value) for number, value in enumerate(asked)),
        env=environment(),
        capture_output=True,
        check=True,
        timeout=PATIENCE,
    )

    replies = [json.loads(line) for line in ran.stdout.splitlines()]

    assert [reply["id"] for reply in replies] == list(range(len(asked)))
    assert [reply["result"]["value"] for reply in replies] == asked
