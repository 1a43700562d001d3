"""`context:source:*` and `context:retrieve` — sources of the host, and the passages found for a place."""

from typing import Annotated

from msgspec import Meta

from creonowd.context.fragment import Layer
from creonowd.engine.passage_search import retrieve_context
from creonowd.engine.services import Session
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Params, Result
from creonowd.rpc.channel import Channel, HostCall, Role
from creonowd.sources.hosts import (
    FETCH,
    LONGEST_TIMEOUT_MS,
    TIMEOUT_MS,
    FetchSource,
    HostAnswer,
    HostKind,
    Offer,
)

USUAL_LIMIT = 20


class RegisterSource(Params):
    """A source that this client offers until it unregisters or disconnects."""

    layer: Layer
    """The layer of the prompt that its text goes into."""
    name: Annotated[str, Meta(max_length=100)]
    """What it is called; unique within the layer on this connection, and shown in evidence."""
    kind: HostKind
    """What it is; a skill's `knowledge_graph` asks for `kg`, and so on."""
    timeout_ms: Annotated[int, Meta(ge=1, le=LONGEST_TIMEOUT_MS)] = TIMEOUT_MS
    """How long an assembly waits for it, in milliseconds; then it goes on without, with a warning.
    After repeated failures it is not asked for a while."""
    project_id: str | None = None
    """Asked for this project only; without it, for every project."""


class RegisteredSource(Result):
    """The source as it is registered now."""

    registered: bool
    """Always true."""
    layer: Layer
    """The layer of the prompt that its text goes into."""
    name: str
    """What it is called."""
    kind: HostKind
    """What it is."""
    timeout_ms: int
    """How long an assembly waits for it, in milliseconds."""


class UnregisterSource(Params):
    """The source that this client no longer offers; in every layer if none is named."""

    name: str
    """The name that it was registered by."""
    layer: Layer | None = None
    """The layer; without one, in every layer."""
    project_id: str | None = None
    """The project that it was registered for, if any."""


class UnregisteredSource(Result):
    """Whether there was such a source on this connection, or one whose client hung up."""

    unregistered: bool
    """False if this connection had no such source."""


async def register_source(session: Session, params: RegisterSource) -> RegisteredSource:
    """Ask this client for text from now on; the same name and layer replace an earlier offer."""
    if not params.name.strip():
        raise DaemonError(ErrorCode.INVALID_ARGUMENT, "name must not be blank.", field="name")
    if params.project_id is not None:
        await session.projects.find(params.project_id)
    offer = Offer(
        layer=params.layer,
        name=params.name.strip(),
        kind=params.kind,
        timeout_ms=params.timeout_ms,
        project_id=params.project_id,
    )
    session.hosts.register(session.peer, offer)
    return RegisteredSource(
        registered=True,
        layer=offer.layer,
        name=offer.name,
        kind=offer.kind,
        timeout_ms=offer.timeout_ms,
    )


def unregister_source(session: Session, params: UnregisterSource) -> UnregisteredSource:
    """Stop asking this client."""
    gone = session.hosts.unregister(
        session.peer, params.name.strip(), params.layer, params.project_id
    )
    return UnregisteredSource(unregistered=gone > 0)


CHANNELS = (
    Channel("context:source:register", register_source, role=Role.OWNER),
    Channel("context:source:unregister", unregister_source, role=Role.OWNER),
    Channel("context:retrieve", retrieve_context),
)
HOST_CALLS = (HostCall(FETCH, FetchSource, HostAnswer),)
