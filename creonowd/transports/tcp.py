"""Loopback TCP, where there are no Unix sockets. A token has to be shown first. Knows no method."""

import asyncio

from creonowd.rpc.server import Server
from creonowd.transports.stream import protocol

LOOPBACK = "127.0.0.1"


async def listen(server: Server, port: int = 0) -> asyncio.Server:
    """Listen on loopback only; port 0 picks a free one."""
    loop = asyncio.get_running_loop()
    return await loop.create_server(protocol(server, "tcp", lambda _: None), LOOPBACK, port)


def port_of(listener: asyncio.Server) -> int:
    """Tell which port was picked."""
    return listener.sockets[0].getsockname()[1]
