"""What goes through a pipe arrives whole and in order, however little of it fits at a time."""

import os
import socket
import sys
from collections.abc import Generator

import anyio
import pytest

from creonowd.transports.stdio import PipeReader, PipeWriter

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes cannot be watched there")
MIB = 1024 * 1024
PATIENCE = 60


class Listener:
    """Keeps what a pipe brings, and what became of it; the first bytes have a place of their own."""

    def __init__(self, first: int = 0) -> None:
        self.place = bytearray(first)
        self.placed = 0
        self.other = bytearray()
        self.news: list[str] = []
        self.moved = anyio.Event()

    def room(self) -> memoryview | None:
        return memoryview(self.place)[self.placed :] if self.placed < len(self.place) else None

    def filled(self, size: int) -> None:
        self.placed += size
        self._wake()

    def data_received(self, data: bytes | memoryview) -> None:
        self.other += data
        self._wake()

    def eof_received(self) -> bool:
        self._tell("ended")
        return True

    def input_broke(self) -> None:
        self._tell("broke")

    def output_full(self) -> None:
        self._tell("full")

    def output_free(self) -> None:
        self._tell("free")

    def output_lost(self) -> None:
        self._tell("lost")

    async def until(self, news: str) -> None:
        with anyio.fail_after(PATIENCE):
            while news not in self.news:
                await self.moved.wait()

    def _tell(self, news: str) -> None:
        self.news.append(news)
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
    listener = Listener(first=5)
    PipeReader(pipe[0], listener)

    os.write(pipe[1], b"12345rest")
    os.close(pipe[1])
    await listener.until("ended")

    assert listener.place == b"12345"
    assert listener.other == b"rest"
    assert listener.news == ["ended"]


async def test_a_paused_reader_leaves_everything_in_the_pipe(pipe: tuple[int, int]) -> None:
    listener = Listener()
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
    told, heard = Listener(), Listener()
    writer = PipeWriter(pipe[1], told, limit=2 * MIB)
    messages = [bytes([number]) * (100 + number * 60_000) for number in range(20)]

    for message in messages:
        writer.write(message)
    full, waiting = list(told.news), writer.get_write_buffer_size()
    PipeReader(pipe[0], heard)
    await told.until("free")
    with anyio.fail_after(PATIENCE):
        while len(heard.other) < sum(map(len, messages)):
            await heard.moved.wait()

    assert full == ["full"]
    assert waiting > 2 * MIB
    assert told.news == ["full", "free"]
    assert writer.get_write_buffer_size() == 0
    assert bytes(heard.other) == b"".join(messages)


async def test_a_reader_that_leaves_is_noticed_at_once(pipe: tuple[int, int]) -> None:
    listener = Listener()
    writer = PipeWriter(pipe[1], listener, limit=MIB)

    os.close(pipe[0])
    await listener.until("lost")
    writer.write(b"nobody hears this")

    assert listener.news == ["lost"]
    assert writer.get_write_buffer_size() == 0


async def test_a_reader_that_leaves_while_much_waits_is_told_once(pipe: tuple[int, int]) -> None:
    listener = Listener()
    writer = PipeWriter(pipe[1], listener, limit=MIB)
    writer.write(b"x" * 4 * MIB)

    os.close(pipe[0])
    await listener.until("lost")
    await anyio.wait_all_tasks_blocked()

    assert listener.news == ["full", "lost"]
    assert writer.get_write_buffer_size() == 0


async def test_a_pipe_that_breaks_is_not_taken_for_its_end() -> None:
    here, there = socket.socketpair()
    listener = Listener()
    with here:
        here.sendall(b"unread")
        there.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        reader = PipeReader(here.fileno(), listener)
        there.close()
        await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(PATIENCE):
            while not listener.news:
                await listener.moved.wait()

        assert listener.news == ["broke"]
        assert reader.is_closing()
