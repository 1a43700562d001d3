"""Sources that clients offer: who registered what, asked over their own connection.

Knows registrations, deadlines and who keeps failing; what an answer means is `host_answer`'s
business. A host that hangs up is forgotten.
"""

from typing import Annotated

import structlog
from anyio import to_thread
from msgspec import UNSET, Meta, UnsetType

from creonowd.clock import Clock
from creonowd.context.fragment import STABLE, Layer
from creonowd.context.plan import Ask, Fetched, Need
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model
from creonowd.rpc.peer import Peer
from creonowd.sources.breaker import Breaker
from creonowd.sources.host_answer import HostKind, LooseAnswer, Origins, read_answer
from creonowd.workspace.projects import Project

FETCH = "context:source:fetch"
TIMEOUT_MS = 1500
LONGEST_TIMEOUT_MS = 30_000
MOST_PER_CLIENT = 64
MANY_CHUNKS = 500

# The host's own deadline must pass first, so that it is told that nobody waits any more.
_MARGIN_MS = 250

log = structlog.get_logger(__name__)


class Offer(Model):
    """What a host offers: text of one layer, for one project or for all."""

    layer: Layer
    name: Annotated[str, Meta(min_length=1, max_length=100)]
    kind: HostKind
    timeout_ms: Annotated[int, Meta(ge=1, le=LONGEST_TIMEOUT_MS)] = TIMEOUT_MS
    project_id: str | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """What one client may offer only once."""
        return (self.layer, self.name, self.project_id or "")


class FetchSource(Model):
    """What a host is asked for; rules and settings are asked for without document and query."""

    layer: Layer
    name: str
    project_id: str
    skill_id: str
    limit: int
    document_id: str | UnsetType = UNSET
    query: str | UnsetType = UNSET


class HostSource:
    """One registered source, as the engine sees it."""

    def __init__(self, offer: Offer, peer: Peer, clock: Clock) -> None:
        self.offer, self.peer = offer, peer
        self.layer, self.name = offer.layer, offer.name
        self.timeout_ms: int | None = offer.timeout_ms + _MARGIN_MS
        self.need = _need(offer)
        self.breaker = Breaker()
        self._clock = clock

    @property
    def unavailable(self) -> str:
        """The warning for a prompt without this source."""
        return self._origins("").unavailable

    async def fetch(self, ask: Ask) -> Fetched:
        """Ask the host, unless it has failed too often of late."""
        if not self.breaker.allows(self._clock.monotonic()):
            raise DaemonError(ErrorCode.HOST_ERROR, f"The source {self.name} is left alone.")
        try:
            answer = await self.peer.call(
                FETCH, _question(self.offer, ask), LooseAnswer, self.offer.timeout_ms
            )
        except DaemonError as error:
            self._failed(error.code)
            raise
        return await self._read(answer, ask)

    async def _read(self, answer: LooseAnswer, ask: Ask) -> Fetched:
        origins = self._origins(ask.project_id)
        if len(answer.chunks) < MANY_CHUNKS:
            fetched = read_answer(answer, origins)
        else:
            fetched = await to_thread.run_sync(read_answer, answer, origins)
        if fetched.left_out and not fetched.fragments:
            self._failed("malformed")
        else:
            self.breaker.succeeded()
        return fetched

    def _failed(self, reason: str) -> None:
        if self.breaker.failed(self._clock.monotonic(), reason):
            log.warning("context_source_skipped", source=self.name, reason=reason)

    def _origins(self, project_id: str) -> Origins:
        offer = self.offer
        return Origins(kind=offer.kind, layer=offer.layer, name=offer.name, project_id=project_id)


class Hosts:
    """Everything that connected clients offer."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sources: dict[str, dict[tuple[str, str, str], HostSource]] = {}

    def register(self, peer: Peer, offer: Offer) -> None:
        """Take an offer; the same one again replaces it and starts with a clean slate."""
        mine = self._sources.get(peer.id)
        if mine is None:
            mine = self._sources[peer.id] = {}
            peer.when_closed(lambda: self._forget(peer.id))
        if offer.key not in mine and len(mine) >= MOST_PER_CLIENT:
            raise DaemonError(
                ErrorCode.INVALID_ARGUMENT,
                f"{MOST_PER_CLIENT} sources are registered here; unregister some first.",
            )
        mine[offer.key] = HostSource(offer, peer, self._clock)
        log.info("context_source_registered", source=offer.name, layer=offer.layer)

    def unregister(self, peer: Peer, name: str, layer: Layer | None, project_id: str | None) -> int:
        """Forget a client's offers of this name; tell how many there were."""
        mine = self._sources.get(peer.id, {})
        gone = [
            key
            for key, source in mine.items()
            if source.name == name
            and layer in {None, source.layer}
            and project_id in {None, source.offer.project_id}
        ]
        for key in gone:
            del mine[key]
        return len(gone)

    def of(self, project: Project) -> list[HostSource]:
        """Give the sources that serve a project, in an order that does not depend on arrival."""
        offered = (source for mine in self._sources.values() for source in mine.values())
        serving = [s for s in offered if s.offer.project_id in {None, project.project_id}]
        return sorted(serving, key=lambda s: (s.name, s.offer.kind, s.peer.id))

    def resting(self) -> dict[str, str]:
        """Tell which sources are left alone for a while, and why."""
        offered = (source for mine in self._sources.values() for source in mine.values())
        return {s.name: s.breaker.reason for s in offered if s.breaker.is_open}

    def _forget(self, owner: str) -> None:
        for source in self._sources.pop(owner, {}).values():
            log.info("context_source_forgotten", source=source.name, layer=source.layer)


def _need(offer: Offer) -> Need:
    if offer.kind is HostKind.KG:
        return Need.KNOWLEDGE_GRAPH
    if offer.kind is HostKind.MEMORY:
        return Need.USER_PREFERENCES
    return Need.RETRIEVAL


def _question(offer: Offer, ask: Ask) -> FetchSource:
    dynamic = offer.layer not in STABLE
    return FetchSource(
        layer=offer.layer,
        name=offer.name,
        project_id=ask.project_id,
        skill_id=ask.skill_id,
        limit=ask.limit,
        document_id=ask.document_id if dynamic and ask.document_id is not None else UNSET,
        query="\n".join(filter(None, (ask.query, ask.wish))) if dynamic else UNSET,
    )
