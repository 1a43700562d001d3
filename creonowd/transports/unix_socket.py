"""A Unix domain socket that only this user can reach. Knows no method."""

import asyncio
import os
import socket
import struct
import sys
from pathlib import Path

from creonowd.errors import DaemonError, ErrorCode
from creonowd.rpc.channel import Role
from creonowd.rpc.grants import Grant
from creonowd.rpc.server import Server
from creonowd.transports.stream import protocol

PROBE_SECONDS = 1.0
BACKLOG = 1024


async def listen(server: Server, path: Path) -> asyncio.Server:
    """Open the socket, mode 0600; a live one is never taken away from its owner.

    A folder that is missing is made for this user only; one that is there is left as it is.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _remove_stale(path)
    listener = _bind(path)
    loop = asyncio.get_running_loop()
    return await loop.create_unix_server(
        protocol(server, "socket", _admit), sock=listener, backlog=BACKLOG
    )


def _bind(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
    except OSError as error:
        listener.close()
        raise DaemonError(
            ErrorCode.IO_ERROR, f"The socket could not be opened: {error.strerror or error}."
        ) from None
    finally:
        os.umask(before)
    return listener


def _remove_stale(path: Path) -> None:
    if not path.is_socket():
        if path.exists():
            raise DaemonError(ErrorCode.CONFLICT, "Something that is not a socket is in the way.")
        return
    if is_live(path):
        raise DaemonError(ErrorCode.CONFLICT, "Another process is listening on the socket.")
    path.unlink(missing_ok=True)


def remove(path: Path) -> None:
    """Take the socket away when its listener has ended."""
    if path.is_socket():
        path.unlink(missing_ok=True)


def is_live(path: Path) -> bool:
    """Whether anyone answers on the socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(PROBE_SECONDS)
        try:
            probe.connect(str(path))
        except TimeoutError:
            return True
        except OSError:
            return False
        return True


def _admit(transport: asyncio.Transport) -> Grant:
    uid = peer_uid(transport.get_extra_info("socket"))
    if uid is not None and uid != os.getuid():
        raise PermissionError
    return Grant(Role.OWNER)


def peer_uid(connection: socket.socket) -> int | None:
    """Tell which user is at the other end; None where the platform does not say."""
    if sys.platform == "linux":
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        return struct.unpack("3i", credentials)[1]
    if sys.platform == "darwin":
        local_level, peer_credentials = 0, 1
        credentials = connection.getsockopt(local_level, peer_credentials, 76)
        return struct.unpack_from("2I", credentials)[1]
    return None
