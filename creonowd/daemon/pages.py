"""The loopback WebSocket and the viewer beside it, opened when first asked for."""

import contextlib

import anyio

from creonowd.rpc.server import Server


class Pages:
    """One listener for the life of the daemon. The web server is loaded only here."""

    def __init__(self, server: Server, opened: contextlib.AsyncExitStack) -> None:
        self._server = server
        self._opened = opened
        self._lock = anyio.Lock()
        self._socket = ""

    async def listen(self, port: int) -> str:
        """Open the listener if it is not open; tell the WebSocket's address."""
        async with self._lock:
            if not self._socket:
                from creonowd.transports import websocket
                from creonowd.viewer.pages import page

                listener = websocket.listen(self._server, port, page)
                self._socket = await self._opened.enter_async_context(listener)
        return self._socket

    async def address(self) -> str:
        """Tell where a browser finds the viewer."""
        socket = await self.listen(0)
        return socket.replace("ws://", "http://").removesuffix("/rpc")
