"""`run/pages.json`: what lets a page come back to a daemon that was killed."""

import contextlib
import os
import socket
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from creonowd.clock import SteppingClock, SystemClock
from creonowd.daemon import endpoint, viewer_server
from creonowd.rpc.access import Grant, Grants
from creonowd.rpc.channel import Role
from creonowd.rpc.server import Server

FAR = 4_000_000_000_000
DIGEST = "ab" * 32

needs_special_files = pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")


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
        pytest.param('{"a":' + "[" * 200_000, id="deep"),
        pytest.param('{"\udcff":1}', id="no UTF-8"),
    ],
)
def test_a_file_that_makes_no_sense_counts_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "run").mkdir()
    for name in (viewer_server.FILE, endpoint.FILE, endpoint.PID):
        (tmp_path / "run" / name).write_bytes(text.encode("utf-8", "surrogateescape"))

    assert viewer_server.read(tmp_path) is None
    assert endpoint.read(tmp_path) is None
    assert endpoint.running_pid(tmp_path) is None


def make_pipe(path: Path) -> None:
    os.mkfifo(path, 0o600)


def make_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@needs_special_files
@pytest.mark.parametrize("make", [make_pipe, make_device])
def test_no_pipe_and_no_device_in_the_place_of_a_file_is_read(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    (tmp_path / "run").mkdir()
    for name in (viewer_server.FILE, endpoint.FILE, endpoint.PID):
        make(tmp_path / "run" / name)

    assert viewer_server.read(tmp_path) is None
    assert endpoint.read(tmp_path) is None
    assert endpoint.running_pid(tmp_path) is None


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


async def test_a_page_whose_port_somebody_else_has_cannot_come_back(
    server: Server, tmp_path: Path
) -> None:
    """Whoever has that port now would be asked for a proof, and could have it from this daemon."""
    async with contextlib.AsyncExitStack() as opened:
        stranger = opened.enter_context(socket.create_server(("127.0.0.1", 0)))
        port = stranger.getsockname()[1]
        viewer_server.write(tmp_path, port, [viewer_server.PageToken(DIGEST, FAR)])
        pages = viewer_server.ViewerServer(server, opened, tmp_path)

        await pages.resume()

    assert server.grants.digests() == []


@pytest.mark.parametrize("is_open", [False, True], ids=["", "a port that was asked for"])
async def test_after_a_crash_pages_come_back_and_new_addresses_have_another_port(
    server: Server, tmp_path: Path, *, is_open: bool
) -> None:
    """Whoever had the port meanwhile may have left a script that reads what is opened there."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    viewer_server.write(tmp_path, port, [viewer_server.PageToken(DIGEST, FAR)])
    async with contextlib.AsyncExitStack() as opened:
        pages = viewer_server.ViewerServer(server, opened, tmp_path)
        if is_open:
            await pages.listen(port)

        await pages.resume()

        assert server.grants.digests() == [bytes.fromhex(DIGEST)]
        async with await anyio.connect_tcp("127.0.0.1", port):
            address = await pages.address()
        assert not address.endswith(f":{port}")
        assert await pages.address() == address
