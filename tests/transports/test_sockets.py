"""The socket is for its own user: whoever else gets hold of it is turned away unheard."""

import gc
import os
import socket
import sys
import tempfile
import weakref
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from creonowd.errors import DaemonError, ErrorCode
from creonowd.rpc.server import Server

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no Unix sockets")
NOBODY = 65534
PING = b'{"jsonrpc":"2.0","id":1,"method":"app:ping"}\n'


def test_the_other_end_of_a_socket_has_a_user() -> None:
    from creonowd.transports.sockets import peer_uid

    here, there = socket.socketpair()
    with here, there:
        assert peer_uid(here) == os.getuid()


@pytest.mark.parametrize(("user", "answers"), [(0, 1), (NOBODY, 0)])
async def test_another_user_is_turned_away(server: Server, user: int, answers: int) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can be somebody else")
    from creonowd.transports import sockets

    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        path = Path(place) / "s"
        listener = await sockets.listen_unix(server, path)
        path.chmod(0o666)
        with socket.socket(socket.AF_UNIX) as client, anyio.fail_after(60):
            with acting_as(user):
                client.connect(str(path))
            answer = await anyio.to_thread.run_sync(exchanged, client)
        listener.close()

    assert answer.count(b"pong") == answers


async def test_a_connection_that_has_ended_is_gone_at_once(server: Server) -> None:
    """Strangers may come by the thousand; what they leave to the garbage collector stops everybody."""
    from creonowd.transports import sockets

    gc.disable()
    try:
        async with sockets.listen_tcp(server) as port:
            with socket.create_connection(("127.0.0.1", port)) as client, anyio.fail_after(60):
                guess = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"token":"no"}}\n'
                client.sendall(PING + guess)
                assert await anyio.to_thread.run_sync(client.recv, 4096)
                left = weakref.ref(next(iter(server.connections)))
            with anyio.fail_after(60):
                while left() is not None:  # noqa: ASYNC110 - no event says that an object is gone
                    await anyio.sleep(0.01)
    finally:
        gc.enable()


async def test_a_path_too_long_for_a_socket_is_reported(server: Server, tmp_path: Path) -> None:
    from creonowd.transports import sockets

    with pytest.raises(DaemonError) as caught:
        await sockets.listen_unix(server, tmp_path / ("x" * 120) / "s")

    assert caught.value.code is ErrorCode.IO_ERROR
    assert "too long" in caught.value.message


@contextmanager
def acting_as(user: int) -> Generator[None]:
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(0)


def exchanged(client: socket.socket) -> bytes:
    try:
        client.sendall(PING)
        return client.recv(1000)
    except (BrokenPipeError, ConnectionResetError):
        return b""
