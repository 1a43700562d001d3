"""The loopback WebSocket and the viewer beside it, opened when first asked for.

After a crash they open again at the same port, so that a page that was left behind finds back.
"""

import contextlib
from pathlib import Path

import anyio
import structlog
from anyio import to_thread

from creonowd.daemon import tickets
from creonowd.errors import DaemonError
from creonowd.rpc.access import Grant
from creonowd.rpc.channel import Role
from creonowd.rpc.server import Server

log = structlog.stdlib.get_logger(__name__)


class Pages:
    """One listener for the life of the daemon. The web server is loaded only here."""

    def __init__(self, server: Server, opened: contextlib.AsyncExitStack, user_data: Path) -> None:
        self._server = server
        self._opened = opened
        self._user_data = user_data
        self._lock = anyio.Lock()
        self._socket = ""

    async def listen(self, port: int) -> str:
        """Open the listener if it is not open; tell the WebSocket's address."""
        async with self._lock:
            if not self._socket:
                from creonowd.transports import websocket
                from creonowd.viewer.pages import load, page

                await to_thread.run_sync(load)
                listener = websocket.listen(self._server, port, page)
                self._socket = await self._opened.enter_async_context(listener)
        return self._socket

    async def address(self) -> str:
        """Tell where a browser finds the viewer."""
        socket = await self.listen(0)
        return socket.replace("ws://", "http://").removesuffix("/rpc")

    async def keep(self) -> None:
        """Write down which pages may come back, should this daemon be killed."""
        port = int(self._socket.removesuffix("/rpc").rpartition(":")[2])
        async with self._lock:
            held = [tickets.Ticket(*one) for one in self._server.grants.one_time()]
            try:
                await to_thread.run_sync(tickets.write, self._user_data, port, held)
            except DaemonError as error:
                log.warning("viewer_not_kept", code=error.code)

    async def resume(self) -> None:
        """Let the pages of a daemon that was killed come back; a port that is taken ends that."""
        found = await to_thread.run_sync(tickets.read, self._user_data)
        now = self._server.clock.now_ms()
        held = [] if found is None else [one for one in found.tickets if one.expires_at_ms > now]
        if found is None or not held:
            return
        try:
            await self.listen(found.port)
        except OSError:
            log.warning("viewer_not_resumed", port=found.port)
            return
        for one in held:
            grant = Grant(Role.OWNER, None, one.expires_at_ms, single_use=True, inspects=True)
            self._server.grants.restore(one.digest, grant)
