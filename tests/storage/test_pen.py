import threading
from pathlib import Path

import anyio
import pytest

from creonowd.errors import DaemonError, ErrorCode
from creonowd.storage.journal import LineWriter


async def test_what_was_added_is_there_once_it_is_acknowledged(tmp_path: Path) -> None:
    pen, path = LineWriter(), tmp_path / "lines"

    for number in range(3):
        await pen.add(path, b"%d\n" % number)

        assert path.read_bytes().endswith(b"%d\n" % number)


async def test_lines_added_at_once_keep_their_order(tmp_path: Path) -> None:
    pen, path = LineWriter(), tmp_path / "lines"

    async with anyio.create_task_group() as tasks:
        for number in range(50):
            tasks.start_soon(pen.add, path, b"%d\n" % number)

    assert path.read_bytes().split() == [b"%d" % number for number in range(50)]


async def test_what_the_disk_refuses_is_told_and_the_next_line_is_written(tmp_path: Path) -> None:
    pen = LineWriter()

    with pytest.raises(DaemonError) as caught:
        await pen.add(tmp_path / "missing" / "lines", b"a")
    await pen.add(tmp_path / "lines", b"b")

    assert caught.value.code is ErrorCode.IO_ERROR
    assert (tmp_path / "lines").read_bytes() == b"b"


async def test_a_line_under_way_is_waited_for_when_its_caller_is_cancelled(tmp_path: Path) -> None:
    pen, path = LineWriter(), tmp_path / "lines"

    with anyio.CancelScope() as scope:
        scope.cancel()
        await pen.add(path, b"a\n")

    assert path.read_bytes() == b"a\n"


async def test_its_thread_ends_with_it(tmp_path: Path) -> None:
    pen, before = LineWriter(), set(threading.enumerate())
    await pen.add(tmp_path / "lines", b"a")
    (thread,) = set(threading.enumerate()) - before

    del pen
    await anyio.to_thread.run_sync(thread.join, 5)

    assert not thread.is_alive()
