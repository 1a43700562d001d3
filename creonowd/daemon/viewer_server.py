"""The loopback WebSocket and the viewer's pages, served when first asked for.

`pages.json` keeps the port and the digests of one-time tokens, so that after a crash the next
daemon listens at the same port and an open page can connect again. New addresses get another port
then: whoever had the old one meanwhile may have left a script in the browser that reads what is
opened there.
"""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import anyio
import msgspec
import structlog
from anyio import to_thread
from msgspec import Meta

from creonowd.daemon import endpoint
from creonowd.errors import DaemonError
from creonowd.model import Model
from creonowd.rpc.access import Grant
from creonowd.rpc.channel import Role
from creonowd.rpc.server import Server
from creonowd.storage import stored_files

FILE = "pages.json"
VERSION = 1

log = structlog.stdlib.get_logger(__name__)


class PageToken(NamedTuple):
    """The digest of a one-time token, and when it expires."""

    digest: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    expires_at_ms: int


class PageTokenFile(Model):
    """What `pages.json` holds."""

    version: int
    port: Annotated[int, Meta(ge=1, le=65535)]
    tickets: tuple[PageToken, ...]


class ViewerServer:
    """The listener of the viewer; the web server is imported only when it is opened."""

    def __init__(self, server: Server, opened: contextlib.AsyncExitStack, user_data: Path) -> None:
        self._server = server
        self._opened = opened
        self._user_data = user_data
        self._lock = anyio.Lock()
        self._socket = ""

    async def listen(self, port: int) -> str:
        """Open the listener if it is not open, and return the address of the WebSocket."""
        async with self._lock:
            if not self._socket:
                self._socket = await self._open(port)
        return self._socket

    async def _open(self, port: int) -> str:
        from creonowd.transports import websocket
        from creonowd.viewer.pages import load, page

        await to_thread.run_sync(load)
        return await self._opened.enter_async_context(websocket.listen(self._server, port, page))

    async def address(self) -> str:
        """Return the address of the viewer, opening the listener if it is not open."""
        socket = await self.listen(0)
        return socket.replace("ws://", "http://").removesuffix("/rpc")

    async def save_tokens(self) -> None:
        """Store which pages may connect again after a crash."""
        port = _port(self._socket)
        async with self._lock:
            tokens = [PageToken(*one) for one in self._server.grants.one_time()]
            try:
                await to_thread.run_sync(write, self._user_data, port, tokens)
            except DaemonError as error:
                log.warning("viewer_tokens_not_stored", code=error.code)

    async def resume(self) -> None:
        """Serve again the pages of a daemon that crashed, if its port is free.

        At another port no page could come back; whoever has the old one would be asked by such a
        page for a proof, could have it from this daemon, and would then be sent the token.
        """
        file = await to_thread.run_sync(read, self._user_data)
        now = self._server.clock.now_ms()
        tokens = [] if file is None else [one for one in file.tickets if one.expires_at_ms > now]
        if file is None or not tokens:
            return
        try:
            await self._listen_again(file.port)
        except OSError:
            log.warning("viewer_not_resumed", port=file.port)
            return
        for token in tokens:
            grant = Grant(Role.OWNER, None, token.expires_at_ms, single_use=True, inspects=True)
            self._server.grants.restore(token.digest, grant)

    async def _listen_again(self, port: int) -> None:
        """Listen at the port of a daemon that crashed; OSError if somebody else has it."""
        async with self._lock:
            if self._socket and _port(self._socket) == port:
                self._socket = ""
            else:
                await self._open(port)


def _port(socket: str) -> int:
    return int(socket.removesuffix("/rpc").rpartition(":")[2])


def write(user_data: Path, port: int, tokens: Sequence[PageToken]) -> None:
    """Store the port and the tokens; only the user may read the file."""
    file = PageTokenFile(version=VERSION, port=port, tickets=tuple(tokens))
    path = endpoint.folder(user_data) / FILE
    stored_files.replace(path, msgspec.json.encode(file) + b"\n", mode=0o600)


def read(user_data: Path) -> PageTokenFile | None:
    """Read the file of a daemon that crashed; None if there is none or it is not valid."""
    try:
        data = endpoint.content(user_data / endpoint.RUN / FILE)
        file = msgspec.json.decode(data, type=PageTokenFile)
    except endpoint.NOT_JSON:
        return None
    return file if file.version == VERSION else None


def remove(user_data: Path) -> None:
    """Remove the file: this daemon ends in order."""
    (user_data / endpoint.RUN / FILE).unlink(missing_ok=True)
