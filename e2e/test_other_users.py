"""Story: another user of the same machine looks for what the daemon keeps."""

import os
import stat
from pathlib import Path

import pytest

from creonowd.daemon import endpoint
from creonowd.errors import DaemonError
from testing.harness import Harness
from testing.writes import write_all_kinds

OTHERS = stat.S_IRWXG | stat.S_IRWXO
pytestmark = pytest.mark.skipif(os.name == "nt", reason="the modes of POSIX")


def test_nobody_else_can_reach_a_file_even_if_user_data_lies_open(tmp_path: Path) -> None:
    """An app may have made the folder for everyone; what we make in it is ours alone."""
    home = tmp_path / "home"
    user_data = home / "user data 用户"
    user_data.mkdir(parents=True, mode=0o755)

    with Harness(home) as harness:
        write_all_kinds(harness)
        kept = [path for path in user_data.rglob("*") if not path.is_dir()]
        reachable = [path for path in kept if _open_to_others(path, user_data)]

    assert {path.name for path in kept} >= {"endpoint.json", "main.log"}
    assert reachable == []


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be others"
)
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
