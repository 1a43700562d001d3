import threading
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.errors import DaemonError, ErrorCode
from creonowd.storage import journal
from creonowd.storage.journal import LineWriter


@given(st.lists(st.binary(min_size=1, max_size=20), min_size=1, max_size=5), st.data())
def test_a_log_cut_anywhere_gives_every_whole_line_before(
    tmp_path_factory: pytest.TempPathFactory, entries: list[bytes], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("log") / "a.jsonl"
    lines = [journal.encode(b'{"x":"%s"}' % entry.hex().encode()) for entry in entries]
    whole = b"".join(lines)
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    complete = sum(len(b"".join(lines[: n + 1])) <= cut for n in range(len(lines)))

    found = journal.replay(path)

    assert len(found.entries) == complete
    assert found.size == len(b"".join(lines[:complete]))
    assert found.torn == (cut > found.size)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journals" / "chat.jsonl"


def test_entries_are_read_in_the_order_in_which_they_were_added(path: Path) -> None:
    size = 0
    for entry in (b"1", b'{"n": 2}', '"「三」"'.encode()):
        size = journal.append(path, size, entry)

    found = journal.replay(path)

    assert found.entries == [b"1", b'{"n": 2}', '"「三」"'.encode()]
    assert (found.size, found.torn, found.damaged) == (size, False, 0)
    assert journal.size_of(path) == size


def test_an_entry_replaces_what_a_kill_left_of_the_last_one(path: Path) -> None:
    size = journal.append(path, 0, b"1")
    journal.append(path, size, b"2")
    path.write_bytes(path.read_bytes()[:-5])
    torn = journal.replay(path)

    journal.append(path, torn.size, b"3")

    assert (torn.entries, torn.size, torn.torn) == ([b"1"], size, True)
    assert journal.replay(path).entries == [b"1", b"3"]
    assert not journal.replay(path).torn


@pytest.mark.parametrize(
    "damage", [b"not JSON", b"{}", journal.encode(b"2").replace(b'"entry":2', b'"entry":3').strip()]
)
def test_a_damaged_entry_is_counted_and_those_around_it_are_read(path: Path, damage: bytes) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(journal.encode(b"1") + damage + b"\n" + journal.encode(b"4"))

    found = journal.replay(path)

    assert (found.entries, found.damaged, found.torn) == ([b"1", b"4"], 1, False)


def test_a_journal_of_a_newer_daemon_is_refused(path: Path) -> None:
    newer = journal.encode(b"1").replace(b'"version":1', b'"version":2')
    path.parent.mkdir(parents=True)
    path.write_bytes(newer)

    with pytest.raises(DaemonError) as caught:
        journal.replay(path)

    assert caught.value.code is ErrorCode.VERSION_TOO_NEW
    assert path.read_bytes() == newer


def test_what_stands_behind_a_size_is_cut_off(path: Path) -> None:
    size = journal.append(path, 0, b"1")
    journal.append(path, size, b"2")

    journal.cut(path, size)
    assert journal.replay(path).entries == [b"1"]
    journal.cut(path, 0)

    assert not path.exists()


def test_a_journal_that_is_not_there_has_no_entry_and_no_byte(path: Path) -> None:
    journal.erase(path)

    assert journal.replay(path) == journal.Replay([], 0)
    assert journal.size_of(path) == 0
    assert not journal.has_other_entries(path, 0, b"")


@pytest.mark.parametrize(
    ("behind", "expected"),
    [
        (b"", False),
        (journal.encode(b"2"), False),
        (journal.encode(b"2")[:-4], False),
        (b"not JSON\n", False),
        (journal.encode(b"3"), True),
        (journal.encode(b"2") + journal.encode(b"3"), True),
        (journal.encode(b"3").replace(b'"version":1', b'"version":2'), True),
    ],
)
def test_entries_of_others_are_distinguished_from_our_own(
    path: Path, behind: bytes, *, expected: bool
) -> None:
    size = journal.append(path, 0, b"1")
    with path.open("ab") as file:
        file.write(behind)

    assert journal.has_other_entries(path, size, journal.encode(b"2")) is expected


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
