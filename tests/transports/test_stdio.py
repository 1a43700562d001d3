"""The standard streams: whatever they are, bytes arrive whole and in order."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from creonowd.transports.stdio import PipeReader, PipeWriter
from testing.clients import PATIENCE, daemon_command, environment

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="streams are pipes there")
LARGE = "春江潮水连海平。" * 40_000

MIB = 1024 * 1024


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
    source, stdout = (mine, stdin) if shared else socket.socketpair()
    with subprocess.Popen(
        daemon_command(tmp_path / "data"),
        env=environment(),
        stdin=stdin.fileno(),
        stdout=stdout.fileno(),
    ) as process:
        stdin.close()
        stdout.close()

        answers = talk(mine, source, ["春", LARGE, "江"])

        assert answers == ["春", LARGE, "江"]
        assert process.wait(PATIENCE) == 0
    mine.close()
    source.close()


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


class PipeHandler:
    """Keeps what a pipe brings, and what became of it; the first bytes have a place of their own."""

    def __init__(self, first: int = 0) -> None:
        self.place = bytearray(first)
        self.placed = 0
        self.other = bytearray()
        self.events: list[str] = []
        self.moved = anyio.Event()

    def get_buffer(self) -> memoryview | None:
        return memoryview(self.place)[self.placed :] if self.placed < len(self.place) else None

    def buffer_updated(self, size: int) -> None:
        self.placed += size
        self._wake()

    def data_received(self, data: bytes | memoryview) -> None:
        self.other += data
        self._wake()

    def eof_received(self) -> bool:
        self._record("ended")
        return True

    def input_broke(self) -> None:
        self._record("broke")

    def output_full(self) -> None:
        self._record("full")

    def output_free(self) -> None:
        self._record("free")

    def output_lost(self) -> None:
        self._record("lost")

    async def until(self, event: str) -> None:
        with anyio.fail_after(PATIENCE):
            while event not in self.events:
                await self.moved.wait()

    def _record(self, event: str) -> None:
        self.events.append(event)
        self._wake()

    def _wake(self) -> None:
        moved, self.moved = self.moved, anyio.Event()
        moved.set()


@pytest.fixture
def pipe() -> Generator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:
            continue


async def test_bytes_go_to_their_place_first_and_then_on(pipe: tuple[int, int]) -> None:
    listener = PipeHandler(first=5)
    PipeReader(pipe[0], listener)

    os.write(pipe[1], b"12345rest")
    os.close(pipe[1])
    await listener.until("ended")

    assert listener.place == b"12345"
    assert listener.other == b"rest"
    assert listener.events == ["ended"]


async def test_a_paused_reader_leaves_everything_in_the_pipe(pipe: tuple[int, int]) -> None:
    listener = PipeHandler()
    reader = PipeReader(pipe[0], listener)
    reader.pause_reading()
    os.write(pipe[1], b"later")
    os.close(pipe[1])
    await anyio.wait_all_tasks_blocked()

    assert not reader.is_reading()
    assert listener.other == b""

    reader.resume_reading()
    await listener.until("ended")
    assert listener.other == b"later"
    assert reader.is_closing()


async def test_more_than_fits_waits_and_arrives_in_order(pipe: tuple[int, int]) -> None:
    output, source = PipeHandler(), PipeHandler()
    writer = PipeWriter(pipe[1], output, limit=2 * MIB)
    messages = [bytes([number]) * (100 + number * 60_000) for number in range(20)]

    for message in messages:
        writer.write(message)
    full, waiting = list(output.events), writer.get_write_buffer_size()
    PipeReader(pipe[0], source)
    await output.until("free")
    with anyio.fail_after(PATIENCE):
        while len(source.other) < sum(map(len, messages)):
            await source.moved.wait()

    assert full == ["full"]
    assert waiting > 2 * MIB
    assert output.events == ["full", "free"]
    assert writer.get_write_buffer_size() == 0
    assert bytes(source.other) == b"".join(messages)


async def test_a_reader_that_leaves_is_noticed_at_once(pipe: tuple[int, int]) -> None:
    listener = PipeHandler()
    writer = PipeWriter(pipe[1], listener, limit=MIB)

    os.close(pipe[0])
    await listener.until("lost")
    writer.write(b"nobody hears this")

    assert listener.events == ["lost"]
    assert writer.get_write_buffer_size() == 0


async def test_a_reader_that_leaves_while_much_waits_is_reported_once(
    pipe: tuple[int, int],
) -> None:
    listener = PipeHandler()
    writer = PipeWriter(pipe[1], listener, limit=MIB)
    writer.write(b"x" * 4 * MIB)

    os.close(pipe[0])
    await listener.until("lost")
    await anyio.wait_all_tasks_blocked()

    assert listener.events == ["full", "lost"]
    assert writer.get_write_buffer_size() == 0


async def test_a_pipe_that_breaks_is_not_taken_for_its_end() -> None:
    here, there = socket.socketpair()
    listener = PipeHandler()
    with here:
        here.sendall(b"unread")
        there.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        reader = PipeReader(here.fileno(), listener)
        there.close()
        await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(PATIENCE):
            while not listener.events:
                await listener.moved.wait()

        assert listener.events == ["broke"]
        assert reader.is_closing()
