import os
import stat
from pathlib import Path

import pytest

from creonowd.daemon import endpoint
from creonowd.daemon.endpoint import Endpoint
from creonowd.errors import DaemonError, ErrorCode

ADDRESSES = (
    Endpoint(transport="unix", address="/run/x.sock"),
    Endpoint(transport="tcp", address="127.0.0.1:1", token="t"),
)
ON_POSIX = pytest.mark.skipif(os.name == "nt", reason="Windows has no permission bits")


def test_addresses_are_read_while_the_daemon_that_wrote_them_has_the_lock(tmp_path: Path) -> None:
    lock = endpoint.take_lock(tmp_path)
    endpoint.write(tmp_path, ADDRESSES)

    found = endpoint.read(tmp_path)
    os.close(lock)

    assert found is not None
    assert (found.pid, found.endpoints) == (os.getpid(), ADDRESSES)
    assert endpoint.read(tmp_path) is None


def test_addresses_of_a_daemon_before_are_removed_by_the_next(tmp_path: Path) -> None:
    os.close(endpoint.take_lock(tmp_path))
    endpoint.write(tmp_path, ADDRESSES)

    lock = endpoint.take_lock(tmp_path)
    found = endpoint.read(tmp_path)
    os.close(lock)

    assert found is None
    assert not (tmp_path / endpoint.RUN / endpoint.FILE).exists()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"version": 1}', b"\xff"])
def test_a_damaged_file_has_no_addresses(tmp_path: Path, content: bytes) -> None:
    lock = endpoint.take_lock(tmp_path)
    (tmp_path / endpoint.RUN / endpoint.FILE).write_bytes(content)

    found = endpoint.read(tmp_path)
    os.close(lock)

    assert found is None


def test_a_second_daemon_is_refused_with_the_pid_of_the_first(tmp_path: Path) -> None:
    lock = endpoint.take_lock(tmp_path)

    with pytest.raises(DaemonError) as caught:
        endpoint.take_lock(tmp_path)
    was_running = endpoint.is_running(tmp_path)
    os.close(lock)

    assert caught.value.code is ErrorCode.CONFLICT
    assert caught.value.details["pid"] == os.getpid()
    assert was_running
    assert not endpoint.is_running(tmp_path)


def test_a_folder_without_a_daemon_has_no_pid(tmp_path: Path) -> None:
    assert endpoint.running_pid(tmp_path) is None
    assert not endpoint.is_running(tmp_path)


@ON_POSIX
def test_addresses_and_their_tokens_are_for_this_user_only(tmp_path: Path) -> None:
    endpoint.write(tmp_path, ADDRESSES)

    run = tmp_path / endpoint.RUN
    assert stat.S_IMODE(run.stat().st_mode) == 0o700
    assert stat.S_IMODE((run / endpoint.FILE).stat().st_mode) == 0o600


@ON_POSIX
@pytest.mark.parametrize("content", [None, endpoint.RUN])
def test_user_data_that_others_may_open_is_closed_to_them(
    tmp_path: Path, content: str | None
) -> None:
    user_data = tmp_path / "data"
    user_data.mkdir(mode=0o755)
    if content:
        (user_data / content).mkdir()

    endpoint.make_user_data(user_data)

    assert stat.S_IMODE(user_data.stat().st_mode) == 0o700


@ON_POSIX
def test_a_folder_of_other_things_that_others_may_open_is_refused(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    (home / "letter.txt").touch()

    with pytest.raises(DaemonError) as caught:
        endpoint.make_user_data(home)

    assert caught.value.details["reason"] == "open_to_others"
    assert stat.S_IMODE(home.stat().st_mode) == 0o755


def test_a_socket_whose_path_is_too_long_lies_in_the_temporary_folder() -> None:
    short, long = Path("/data"), Path("/data") / ("a" * 120)

    assert endpoint.socket_path(short).parent == short / endpoint.RUN
    assert len(os.fsencode(endpoint.socket_path(long))) <= endpoint.LONGEST_SOCKET_PATH
    assert endpoint.socket_path(long) != endpoint.socket_path(long / "b")
