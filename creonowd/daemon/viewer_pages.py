"""The loopback WebSocket and the viewer beside it, opened when first asked for.

After a crash they open again at the same port, so that a page that was left behind finds back.
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
from creonowd.storage import atomic

FILE = "pages.json"
VERSION = 1


class PageToken(NamedTuple):
    """The digest of a one-time token, and how long it is good."""

    digest: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    expires_at_ms: int


class PageTokenFile(Model):
    """What `pages.json` holds."""

    version: int
    port: Annotated[int, Meta(ge=1, le=65535)]
    tickets: tuple[PageToken, ...]


def write(user_data: Path, port: int, held: Sequence[PageToken]) -> None:
    """Put the tickets down; only the user may read them."""
    file = PageTokenFile(version=VERSION, port=port, tickets=tuple(held))
    path = endpoint.folder(user_data) / FILE
    atomic.replace(path, msgspec.json.encode(file) + b"\n", mode=0o600)


def read(user_data: Path) -> PageTokenFile | None:
    """Read what a killed daemon left; None if there is nothing that makes sense."""
    try:
        file = msgspec.json.decode(
            (user_data / endpoint.RUN / FILE).read_bytes(), type=PageTokenFile
        )
    except (OSError, msgspec.MsgspecError):
        return None
    return file if file.version == VERSION else None


def remove(user_data: Path) -> None:
    """Forget all tickets: this daemon ends because it was told to."""
    (user_data / endpoint.RUN / FILE).unlink(missing_ok=True)


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
            held = [PageToken(*one) for one in self._server.grants.one_time()]
            try:
                await to_thread.run_sync(write, self._user_data, port, held)
            except DaemonError as error:
                log.warning("viewer_not_kept", code=error.code)

    async def resume(self) -> None:
        """Let the pages of a daemon that was killed come back; a port that is taken ends that."""
        found = await to_thread.run_sync(read, self._user_data)
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
