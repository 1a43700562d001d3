"""Story: another user of the same machine looks for what the daemon keeps."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from creonowd.daemon import endpoint
from creonowd.errors import DaemonError
from creonowd.testing.harness import Harness
from testing.clients import environment
from testing.privileges import without_privileges
from testing.writes import write_all_kinds

OTHERS = stat.S_IRWXG | stat.S_IRWXO
pytestmark = pytest.mark.skipif(os.name == "nt", reason="the modes of POSIX")
only_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be others"
)


def test_nobody_else_can_reach_a_file_even_if_user_data_lies_open(tmp_path: Path) -> None:
    """An app may have made the folder for everyone; what we make in it is ours alone."""
    home = tmp_path / "home"
    user_data = home / "user data 用户"
    user_data.mkdir(parents=True, mode=0o755)

    with Harness(home) as daemon:
        write_all_kinds(daemon)
        kept = [path for path in user_data.rglob("*") if not path.is_dir()]
        reachable = [path for path in kept if _open_to_others(path, user_data)]

    assert {path.name for path in kept} >= {"endpoint.json", "main.log"}
    assert reachable == []


def test_a_user_data_folder_that_lay_open_is_closed(tmp_path: Path) -> None:
    user_data = tmp_path / "user data 用户"
    (user_data / "run").mkdir(parents=True)
    user_data.chmod(0o777)

    with Harness(tmp_path):
        assert stat.S_IMODE(user_data.stat().st_mode) == 0o700


def test_an_open_folder_that_holds_other_things_is_refused_with_the_remedy(tmp_path: Path) -> None:
    """Closing it might lock others out of what is theirs."""
    (tmp_path / "somebody's letter.txt").touch()
    tmp_path.chmod(0o755)

    with pytest.raises(DaemonError, match="chmod 700") as caught:
        endpoint.make_user_data(tmp_path)

    assert caught.value.details == {"reason": "open_to_others"}
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


@only_root
@pytest.mark.parametrize("planted", ["settings.json", "run/pages.json", "skills/x/SKILL.md"])
def test_what_somebody_else_put_into_an_open_folder_is_not_used(planted: str) -> None:
    with without_privileges() as user_data:
        (user_data / "run").mkdir()
        place = user_data / planted
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("{}", encoding="utf-8")
        give_to_another_user(place)
        user_data.chmod(0o777)

        with pytest.raises(DaemonError, match="another user") as caught:
            endpoint.make_user_data(user_data)

    assert caught.value.details == {"reason": "open_to_others"}
    assert planted in str(caught.value)


@only_root
def test_addresses_that_somebody_else_wrote_are_not_believed() -> None:
    """A command would send them the texts that it is given."""
    address = endpoint.Endpoint(transport="tcp", address="127.0.0.1:1")
    with without_privileges() as user_data:
        lock = endpoint.take_lock(user_data)
        try:
            endpoint.write(user_data, (address,))
            own = endpoint.read(user_data)
            give_to_another_user(user_data / "run" / endpoint.FILE, mode=0o644)
            foreign = endpoint.read(user_data)
        finally:
            os.close(lock)

    assert own is not None
    assert foreign is None


def give_to_another_user(place: Path, *, mode: int = 0o600) -> None:
    me = os.geteuid()
    os.seteuid(0)
    place.chmod(mode)
    os.chown(place, 1, 1)
    os.seteuid(me)


UMASKS = pytest.mark.parametrize(
    ("umask", "writable"), [(0o000, 0o022), (0o022, 0o022), (0o002, 0o002)]
)


@UMASKS
def test_nobody_else_may_write_what_a_command_makes(
    tmp_path: Path, umask: int, writable: int
) -> None:
    """`init` and the sample of `view` write themselves, without a daemon."""
    novel = tmp_path / "novel"

    made = subprocess.run(
        [sys.executable, "-m", "creonowd", "init", str(novel)],
        env=environment(CREONOW_USER_DATA_DIR=str(tmp_path / "data")),
        umask=umask,
        capture_output=True,
        check=False,
    )

    assert made.returncode == 0, made.stderr
    modes = {path: path.stat().st_mode for path in (novel, *novel.rglob("*"))}
    assert len(modes) > 1
    assert {path: oct(mode) for path, mode in modes.items() if mode & writable} == {}


@UMASKS
def test_nobody_else_may_write_what_we_make_whatever_the_umask(
    tmp_path: Path, umask: int, writable: int
) -> None:
    before = os.umask(umask)
    try:
        with Harness(tmp_path) as daemon:
            write_all_kinds(daemon)
            made = [path for path in tmp_path.rglob("*") if not path.is_symlink()]
            modes = {path: path.stat().st_mode for path in made}
    finally:
        os.umask(before)

    ours = {path: mode for path, mode in modes.items() if ".creonow" in path.parts}
    assert ours
    assert {path: oct(mode) for path, mode in ours.items() if mode & writable} == {}


@only_root
def test_a_folder_that_somebody_else_made_in_advance_is_not_used(tmp_path: Path) -> None:
    """Where the path of user data is too long for a socket, a folder for all to write in is near."""
    user_data = tmp_path / ("x" * 100)
    folder = endpoint.socket_path(user_data).parent
    folder.mkdir()
    try:
        os.chown(folder, 65534, 65534)
        with pytest.raises(DaemonError, match="belongs to another user"):
            endpoint.own_socket(user_data)
    finally:
        folder.rmdir()


def _open_to_others(path: Path, top: Path) -> bool:
    """Whether no step on the way down keeps others out."""
    way = [path, *path.parents]
    return all(step.stat().st_mode & OTHERS for step in way[: way.index(top)])
