import errno
import os
import stat
import threading
from pathlib import Path

import pytest

from creonowd.errors import DaemonError, ErrorCode
from creonowd.storage import atomic, locks


def test_replacing_a_file_leaves_only_the_new_content(tmp_path: Path) -> None:
    path = tmp_path / "设定.json"
    path.write_bytes(b"old")

    atomic.replace(path, "新\r\n".encode())

    assert path.read_bytes() == "新\r\n".encode()
    assert [entry.name for entry in tmp_path.iterdir()] == ["设定.json"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no permission bits")
def test_an_existing_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"old")
    path.chmod(0o640)

    atomic.replace(path, b"new")

    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.skipif(os.name == "nt", reason="Windows has no permission bits")
def test_a_new_file_is_private_unless_told_otherwise(tmp_path: Path) -> None:
    atomic.replace(tmp_path / "secret", b"x")

    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600


def test_a_missing_folder_is_an_io_error_without_a_path(tmp_path: Path) -> None:
    with pytest.raises(DaemonError) as caught:
        atomic.replace(tmp_path / "gone" / "a.json", b"x")

    assert caught.value.code is ErrorCode.IO_ERROR
    assert str(tmp_path) not in f"{caught.value} {caught.value.details}"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_storage_full_without_a_path(number: int, tmp_path: Path) -> None:
    with pytest.raises(DaemonError) as caught, atomic.disk_errors("a.json"):
        raise OSError(number, "No space left on device", str(tmp_path))

    assert caught.value.code is ErrorCode.STORAGE_FULL
    assert str(tmp_path) not in f"{caught.value} {caught.value.details}"


@pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="only Linux has a disk that is always full"
)
def test_appending_to_a_full_disk_is_storage_full() -> None:
    with pytest.raises(DaemonError) as caught:
        atomic.append(Path("/dev/full"), b"line\n")

    assert caught.value.code is ErrorCode.STORAGE_FULL


def test_appending_adds_to_the_end(tmp_path: Path) -> None:
    path = tmp_path / "log"

    atomic.append(path, b"one\n")
    atomic.append(path, b"two\n")

    assert path.read_bytes() == b"one\ntwo\n"


def test_a_sweep_removes_leftovers_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / ".creonow-1-0.tmp").write_bytes(b"half")
    (tmp_path / "notes.tmp").write_bytes(b"mine")

    (tmp_path / ".creonow-1-1.tmp").write_bytes(b"under way")
    os.utime(tmp_path / ".creonow-1-0.tmp", (1000, 1000))

    atomic.sweep(tmp_path, before_ms=2_000_000)

    assert {entry.name for entry in tmp_path.iterdir()} == {".creonow-1-1.tmp", "notes.tmp"}


def test_a_leftover_of_a_dead_process_does_not_stand_in_the_way(tmp_path: Path) -> None:
    temporary, descriptor = atomic.create_temporary(tmp_path, 0o600)
    os.close(descriptor)
    number = int(temporary.stem.rpartition("-")[2])
    for following in range(number + 1, number + 4):
        temporary.with_name(f".creonow-{os.getpid()}-{following}.tmp").write_bytes(b"left")

    atomic.replace(tmp_path / "a", b"x")

    assert (tmp_path / "a").read_bytes() == b"x"
    assert sum(path.read_bytes() == b"left" for path in tmp_path.iterdir()) == 3


def test_a_lock_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "write.lock"

    with locks.locked(path), pytest.raises(DaemonError) as caught, locks.locked(path, timeout_s=0):
        pass

    assert caught.value.code is ErrorCode.TIMEOUT


def test_a_lock_is_free_after_its_block_even_if_that_failed(tmp_path: Path) -> None:
    path = tmp_path / "write.lock"

    with pytest.raises(KeyError), locks.locked(path):
        raise KeyError

    with locks.locked(path, timeout_s=0):
        assert locks.try_lock(path) is None


def test_a_waiting_thread_gets_the_lock_when_it_is_let_go(tmp_path: Path) -> None:
    path = tmp_path / "write.lock"
    got = threading.Event()

    def wait() -> None:
        with locks.locked(path):
            got.set()

    waiter = threading.Thread(target=wait)
    with locks.locked(path):
        waiter.start()
        early = got.is_set()
    waiter.join(timeout=10)

    assert not early
    assert got.is_set()


def test_a_lock_for_life_is_taken_until_its_descriptor_closes(tmp_path: Path) -> None:
    first = locks.try_lock(tmp_path / "daemon.lock")
    second = locks.try_lock(tmp_path / "daemon.lock")

    assert first is not None
    assert second is None
    os.close(first)
    third = locks.try_lock(tmp_path / "daemon.lock")
    assert third is not None
    os.close(third)
