"""`context:creonow:watch:*` — be told when files of a project change."""

from functools import partial
from typing import Annotated

import structlog
from msgspec import UNSET, Meta, UnsetType

from creonowd.channels.project import ProjectId
from creonowd.channels.session import Session
from creonowd.model import Model, Result
from creonowd.rpc.channel import Channel, Notification
from creonowd.rpc.peer import Peer
from creonowd.workspace.creonow_tree import Layer, layers_of
from creonowd.workspace.watcher import ProjectChange

log = structlog.get_logger(__name__)

CHANGED = "context:creonow:changed"


class Watching(Result):
    """Whether this connection watches the project now."""

    watching: bool


class CreonowChanged(Model):
    """Files of a watched project came, went or changed; `layers` are those of a prompt they touch.

    With `watching: false` the watcher has died, and changes go unnoticed until it is started again.
    """

    project_id: str
    paths: list[str]
    layers: list[Layer]
    at_ms: Annotated[int, Meta(description="milliseconds since the epoch")]
    watching: bool | UnsetType = UNSET


async def start_watching(session: Session, params: ProjectId) -> Watching:
    """Tell this connection of every change from now on; starting twice is starting once."""
    project = await session.projects.find(params.project_id)
    peer, watcher = session.peer, session.watcher
    if watcher.meets(peer.id):
        peer.when_closed(lambda: watcher.drop(peer.id))
    hear = partial(_tell, peer)
    if await watcher.subscribe(project, peer.id, hear, client=True):
        log.info("context_watch_started", project_id=project.project_id, peer=peer.id)
    if not peer.connected:
        watcher.drop(peer.id)
    return Watching(watching=True)


async def stop_watching(session: Session, params: ProjectId) -> Watching:
    """Tell this connection nothing more; stopping what does not run is fine."""
    project = await session.projects.find(params.project_id)
    if await session.watcher.unsubscribe(project.project_id, session.peer.id):
        log.info("context_watch_stopped", project_id=project.project_id, peer=session.peer.id)
    return Watching(watching=False)


def _tell(peer: Peer, change: ProjectChange) -> None:
    event = CreonowChanged(
        project_id=change.project_id,
        paths=list(change.paths),
        layers=list(change.layers),
        at_ms=change.at_ms,
        watching=UNSET if change.watching else False,
    )
    peer.notify(CHANGED, event, key=change.project_id, merge=joined)


def joined(waiting: CreonowChanged, newer: CreonowChanged) -> CreonowChanged:
    """Make one event of two, for a client that could not keep up."""
    paths = {*waiting.paths, *newer.paths}
    return CreonowChanged(
        project_id=newer.project_id,
        paths=sorted(paths),
        layers=list(layers_of(paths)),
        at_ms=newer.at_ms,
        watching=newer.watching,
    )


CHANNELS = (
    Channel("context:creonow:watch:start", start_watching),
    Channel("context:creonow:watch:stop", stop_watching),
)
NOTIFICATIONS = (Notification(CHANGED, CreonowChanged),)
