import os
import threading
from pathlib import Path

import pytest

from creonowd.errors import DaemonError, ErrorCode
from creonowd.storage import locks


def test_a_lock_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "write.lock"

    with locks.hold(path), pytest.raises(DaemonError) as caught, locks.hold(path, timeout_s=0):
        pass

    assert caught.value.code is ErrorCode.TIMEOUT


def test_a_lock_is_free_after_its_block_even_if_that_failed(tmp_path: Path) -> None:
    path = tmp_path / "write.lock"

    with pytest.raises(KeyError), locks.hold(path):
        raise KeyError

    with locks.hold(path, timeout_s=0):
        assert locks.try_lock(path) is None


def test_a_waiting_thread_gets_the_lock_when_it_is_let_go(tmp_path: Path) -> None:
    path = tmp_path / "write.lock"
    got = threading.Event()

    def wait() -> None:
        with locks.hold(path):
            got.set()

    waiter = threading.Thread(target=wait)
    with locks.hold(path):
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


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
def test_a_lock_file_that_is_a_dangling_link_makes_nothing_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "write.lock"
    path.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(DaemonError) as caught, locks.hold(path):
        pass
    with pytest.raises(DaemonError):
        locks.try_lock(path)

    assert caught.value.code is ErrorCode.IO_ERROR
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no named pipes in folders")
def test_a_lock_file_that_is_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "write.lock")

    with pytest.raises(DaemonError) as caught, locks.hold(tmp_path / "write.lock"):
        pass

    assert caught.value.details["reason"] == "not_a_file"
