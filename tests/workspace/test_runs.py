import errno
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from creonowd.errors import DaemonError, ErrorCode
from creonowd.workspace.runs import FOLDER, MAX_LINES, LineWriter, RunRecord, Runs


def run(number: int, place: int = 0) -> RunRecord:
    return RunRecord(
        run_id=f"run_{number}",
        skill_id="builtin:continue",
        at_ms=number,
        provider="fake",
        model="m",
        prompt_hash="a",
        stable_prefix_hash="b",
        token_count=10,
        input_tokens=11,
        summary=f"第{number}次",
        number=place,
    )


async def test_runs_are_kept_per_document_over_a_restart(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    await runs.record("prj_1", "章/一.md", run(1))
    await runs.record("prj_1", "章/一.md", run(2))
    await runs.record("prj_1", "章/二.md", run(3))

    restarted = Runs(tmp_path)

    assert await restarted.recent("prj_1", "章/一.md") == (run(1, 1), run(2, 2))
    assert await restarted.recent("prj_1", "章/二.md") == (run(3, 1),)
    assert await restarted.recent("prj_2", "章/一.md") == ()


async def test_only_the_last_ten_are_kept(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    for number in range(15):
        await runs.record("prj_1", "a", run(number))

    kept = await Runs(tmp_path).recent("prj_1", "a")

    assert [record.at_ms for record in kept] == list(range(5, 15))


async def test_runs_recorded_at_once_are_all_kept(tmp_path: Path) -> None:
    runs = Runs(tmp_path)

    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(runs.record, "prj_1", "a", run(number))

    assert len(await Runs(tmp_path).recent("prj_1", "a")) == 8


async def test_nothing_is_read_again_while_it_is_remembered(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    await runs.record("prj_1", "a", run(1))
    first = await runs.recent("prj_1", "a")

    assert await runs.recent("prj_1", "a") is first


async def test_a_document_id_never_becomes_a_path(tmp_path: Path) -> None:
    runs = Runs(tmp_path)

    for document_id in ("../../x", "/etc/passwd", "a\0b", "x" * 5000):
        await runs.record("prj_1", document_id, run(1))

    assert {path.parent.name for path in tmp_path.rglob("*.jsonl")} == {"prj_1"}


async def test_a_damaged_file_is_kept_aside(tmp_path: Path) -> None:
    await Runs(tmp_path).record("prj_1", "a", run(1))
    (path,) = tmp_path.rglob("*.jsonl")
    path.write_bytes(b"{half")

    assert await Runs(tmp_path).recent("prj_1", "a") == ()
    assert [p.name for p in tmp_path.rglob("*.jsonl")] == [f"{path.stem}.damaged-1.jsonl"]


async def test_a_newer_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    await Runs(tmp_path).record("prj_1", "a", run(1))
    (path,) = tmp_path.rglob("*.jsonl")
    path.write_bytes(b'{"version": 9}\n')

    with pytest.raises(DaemonError) as caught:
        await Runs(tmp_path).record("prj_1", "a", run(2))

    assert caught.value.code is ErrorCode.VERSION_TOO_NEW
    assert path.read_bytes() == b'{"version": 9}\n'


async def test_a_record_torn_by_a_kill_costs_only_itself(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    for number in range(3):
        await runs.record("prj_1", "a", run(number))
    (path,) = tmp_path.rglob("*.jsonl")
    whole = path.read_bytes()

    for length in range(len(whole) - 2, len(whole) - 40, -1):
        path.write_bytes(whole[:length])
        killed = Runs(tmp_path)
        await killed.record("prj_1", "a", run(9))

        kept = await Runs(tmp_path).recent("prj_1", "a")
        assert [record.at_ms for record in kept] == [0, 1, 9]


async def test_a_record_that_the_disk_took_half_of_spoils_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk takes a part of a line; once there is room again, nothing is glued to that."""
    runs = Runs(tmp_path)
    await runs.record("prj_1", "a", run(1))
    with monkeypatch.context() as full:
        full.setattr(os, "write", _takes_a_little(os.write))
        with pytest.raises(DaemonError) as caught:
            await runs.record("prj_1", "a", run(2))

    await runs.record("prj_1", "a", run(3))

    assert caught.value.code is ErrorCode.STORAGE_FULL
    kept = await Runs(tmp_path).recent("prj_1", "a")
    assert [record.at_ms for record in kept] == [1, 3]


async def test_runs_are_recorded_again_once_their_folder_is_gone(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    await runs.record("prj_1", "a", run(1))
    shutil.rmtree(tmp_path / FOLDER)
    with pytest.raises(DaemonError):
        await runs.record("prj_1", "a", run(2))

    await runs.record("prj_1", "a", run(3))

    assert [record.at_ms for record in await Runs(tmp_path).recent("prj_1", "a")] == [3]


def _takes_a_little(write: Callable[[int, memoryview], int]) -> Callable[[int, memoryview], int]:
    taken: list[int] = []

    def limited(descriptor: int, data: memoryview) -> int:
        if taken:
            raise OSError(errno.ENOSPC, "full")
        taken.append(write(descriptor, data[:20]))
        return taken[0]

    return limited


async def test_a_file_does_not_grow_without_end(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    for number in range(200):
        await runs.record("prj_1", "a", run(number))

    (path,) = tmp_path.rglob("*.jsonl")
    assert path.read_bytes().count(b"\n") <= MAX_LINES + 1
    assert await Runs(tmp_path).recent("prj_1", "a") == tuple(
        run(n, n + 1) for n in range(190, 200)
    )


async def test_a_line_is_there_once_it_is_acknowledged(tmp_path: Path) -> None:
    writer, path = LineWriter(), tmp_path / "lines"

    for number in range(3):
        await writer.append(path, b"%d\n" % number)

        assert path.read_bytes().endswith(b"%d\n" % number)


async def test_lines_appended_at_once_keep_their_order(tmp_path: Path) -> None:
    writer, path = LineWriter(), tmp_path / "lines"

    async with anyio.create_task_group() as tasks:
        for number in range(50):
            tasks.start_soon(writer.append, path, b"%d\n" % number)

    assert path.read_bytes().split() == [b"%d" % number for number in range(50)]


async def test_after_an_error_of_the_disk_the_next_line_is_written(tmp_path: Path) -> None:
    writer = LineWriter()

    with pytest.raises(DaemonError) as caught:
        await writer.append(tmp_path / "missing" / "lines", b"a")
    await writer.append(tmp_path / "lines", b"b")

    assert caught.value.code is ErrorCode.IO_ERROR
    assert (tmp_path / "lines").read_bytes() == b"b"


async def test_a_line_under_way_is_waited_for_when_its_caller_is_cancelled(tmp_path: Path) -> None:
    writer, path = LineWriter(), tmp_path / "lines"

    with anyio.CancelScope() as scope:
        scope.cancel()
        await writer.append(path, b"a\n")

    assert path.read_bytes() == b"a\n"


async def test_the_thread_of_a_line_writer_ends_with_it(tmp_path: Path) -> None:
    writer, before = LineWriter(), set(threading.enumerate())
    await writer.append(tmp_path / "lines", b"a")
    (thread,) = set(threading.enumerate()) - before

    del writer
    await anyio.to_thread.run_sync(thread.join, 5)

    assert not thread.is_alive()
