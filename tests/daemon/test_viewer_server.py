"""`run/pages.json`: what lets a page come back to a daemon that was killed."""

import stat
import sys
from pathlib import Path

import pytest

from creonowd.clock import SteppingClock, SystemClock
from creonowd.daemon import viewer_server
from creonowd.rpc.access import Grant, Grants
from creonowd.rpc.channel import Role

FAR = 4_000_000_000_000
DIGEST = "ab" * 32


def one_time(expires_at_ms: int = FAR) -> Grant:
    return Grant(Role.OWNER, None, expires_at_ms, single_use=True, inspects=True)


def test_what_was_written_is_read_and_only_the_user_may(tmp_path: Path) -> None:
    viewer_server.write(tmp_path, 4711, [viewer_server.PageToken(DIGEST, FAR)])

    read = viewer_server.read(tmp_path)

    assert read is not None
    assert (read.port, read.tickets) == (4711, (viewer_server.PageToken(DIGEST, FAR),))
    if sys.platform != "win32":
        mode = (tmp_path / "run" / viewer_server.FILE).stat().st_mode
        assert stat.S_IMODE(mode) == 0o600


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"version":2,"port":4711,"tickets":[]}',
        '{"version":1,"port":70000,"tickets":[]}',
        '{"version":1,"port":4711,"tickets":[["no digest",1]]}',
    ],
)
def test_a_file_that_makes_no_sense_counts_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / viewer_server.FILE).write_text(text, encoding="utf-8")

    assert viewer_server.read(tmp_path) is None


def test_removing_leaves_nothing_and_may_be_repeated(tmp_path: Path) -> None:
    viewer_server.write(tmp_path, 4711, [])

    viewer_server.remove(tmp_path)
    viewer_server.remove(tmp_path)

    assert viewer_server.read(tmp_path) is None


def test_a_token_is_honoured_once_by_the_daemon_that_knows_its_digest() -> None:
    before, after = Grants(SystemClock()), Grants(SystemClock())
    token = before.mint(one_time())
    before.mint(Grant(Role.OWNER))

    for digest, until in before.one_time():
        after.restore(digest, one_time(until))

    assert len(before.one_time()) == 1
    assert token not in str(before.one_time())
    assert after.redeem(token) is not None
    assert after.redeem(token) is None
    assert after.one_time() == []


def test_a_token_that_was_shown_or_has_run_out_is_not_written_down() -> None:
    grants = Grants(SteppingClock())
    shown = grants.mint(one_time())
    grants.mint(one_time(expires_at_ms=1))

    grants.redeem(shown)

    assert grants.one_time() == []
