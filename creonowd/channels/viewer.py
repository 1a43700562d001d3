"""`viewer:open` — the address of the context viewer, with a token that works once."""

from urllib.parse import quote

from creonowd.channels.session import Session
from creonowd.model import Params, Result
from creonowd.rpc.channel import Channel, Role
from creonowd.rpc.grants import Grant

TOKEN_MS = 24 * 3600 * 1000


class OpenViewer(Params):
    """The project to show first; the page can show any."""

    project_id: str | None = None


class ViewerAddress(Result):
    """Open `url` in a browser of this machine; `token` is the one in it."""

    url: str
    token: str


async def open_viewer(session: Session, params: OpenViewer) -> ViewerAddress:
    """Serve the viewer on loopback and mint a one-time token that may inspect."""
    if params.project_id is not None:
        await session.projects.find(params.project_id)
    address = await session.server.open_page()
    expires = session.clock.now_ms() + TOKEN_MS
    grant = Grant(Role.OWNER, expires_at_ms=expires, single_use=True, inspects=True)
    token = session.server.grants.mint(grant)
    project = f"&project={quote(params.project_id)}" if params.project_id else ""
    return ViewerAddress(url=f"{address}/#token={token}{project}", token=token)


CHANNELS = (Channel("viewer:open", open_viewer, role=Role.OWNER),)
