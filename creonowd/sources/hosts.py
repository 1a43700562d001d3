"""Sources that clients offer: who registered what, asked over their own connection.

Knows registrations, deadlines and who keeps failing; what an answer means is `host_answer`'s
business. A host that hangs up is forgotten.
"""

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Annotated, Any, cast

import msgspec
import structlog
from anyio import to_thread
from msgspec import UNSET, Meta, UnsetType

from creonowd.clock import Clock
from creonowd.context.fragment import (
    DEFAULT_PRIORITY,
    STABLE,
    ConstraintOrigin,
    Fragment,
    FragmentKind,
    Layer,
    LeftOut,
    Place,
    Reason,
)
from creonowd.context.plan import Ask, ContextRules, Fetched, Need, Summary, wants
from creonowd.errors import DaemonError, ErrorCode, WarningCode, warning_text
from creonowd.model import Model
from creonowd.rpc.peer import Peer
from creonowd.text import VOLATILE_KEYS, canonical_json
from creonowd.workspace.projects import Project

GROUP = 4
MOST_CHUNKS = 10_000
MOST_WARNINGS = 20
LONGEST_WARNING = 300

_LINES = re.compile(r"#L(\d+)(?:-L\d+)?$")
_NAME = re.compile(r"[^:/#]+$")

Share = Annotated[float, Meta(ge=0, le=1)]
Ref = Annotated[str, Meta(min_length=1, max_length=1024)]
Name = Annotated[str, Meta(min_length=1, max_length=200)]


class HostKind(StrEnum):
    """What a host keeps: a knowledge graph, a memory, a vector index, or something of its own."""

    KG = "kg"
    MEMORY = "memory"
    RAG = "rag"
    CUSTOM = "custom"


class Chunk(Model):
    """A piece of text from a host.

    `source` says where it comes from and is shown; `content` may be text or JSON in a string.
    `score` ranks retrieved text, `confidence` settings, `priority` rules. `tokenCount` is checked
    and otherwise ignored. Over the Rules line a `kg` chunk is an entity called by its `names`
    (else by the end of its `source`), unless it is a `constraint`.
    """

    source: Ref
    content: str
    project_id: str | None = None
    score: Share | None = None
    confidence: Share | None = None
    priority: Annotated[int, Meta(ge=-1_000_000, le=1_000_000)] | None = None
    token_count: Annotated[int, Meta(ge=0)] | None = None
    constraint: bool = False
    names: tuple[Name, ...] = ()


class HostAnswer(Model):
    """What a host answers to `context:source:fetch`."""

    chunks: Annotated[list[Chunk], Meta(max_length=MOST_CHUNKS)]
    warnings: tuple[str, ...] = ()


class LooseAnswer(Model):
    """The same, with each chunk still to be checked by itself; too many make no answer."""

    chunks: Annotated[list[msgspec.Raw], Meta(max_length=MOST_CHUNKS)]
    warnings: Any = None


class _Scoped(Model):
    project_id: Any = None
    source: Any = None


class Origins(Model):
    """Who answers, and for which project and layer."""

    kind: HostKind
    layer: Layer
    name: str
    project_id: str

    @property
    def unavailable(self) -> str:
        """The warning for a prompt without this host's text."""
        if self.kind is HostKind.CUSTOM:
            return f"{WarningCode.SOURCE_UNAVAILABLE}: {self.name}"
        return warning_text(_UNAVAILABLE[self.kind])


_UNAVAILABLE = {
    HostKind.KG: WarningCode.KG_UNAVAILABLE,
    HostKind.MEMORY: WarningCode.MEMORY_UNAVAILABLE,
    HostKind.RAG: WarningCode.RAG_UNAVAILABLE,
}


def read_answer(answer: LooseAnswer, origins: Origins) -> Fetched:
    """Make fragments of a host's chunks, in an order that does not depend on theirs."""
    read = [_read(raw, number, origins) for number, raw in enumerate(answer.chunks, start=1)]
    left_out = tuple(item for item in read if isinstance(item, LeftOut))
    warnings = tuple(_warnings(answer.warnings, origins))
    return Fetched(
        fragments=tuple(sorted((f for f in read if isinstance(f, Fragment)), key=_order)),
        left_out=left_out,
        warnings=(*warnings, origins.unavailable) if left_out else warnings,
    )


def _read(raw: msgspec.Raw, number: int, origins: Origins) -> Fragment | LeftOut:
    _refuse_foreign(raw, origins)
    try:
        chunk = msgspec.json.decode(raw, type=Chunk)
    except (msgspec.DecodeError, RecursionError):
        return _left_out(f"{origins.name}#{number}", origins)
    if not chunk.source.strip() or _is_absurd(chunk):
        return _left_out(chunk.source.strip() or f"{origins.name}#{number}", origins)
    return _fragment(chunk, origins)


def _refuse_foreign(raw: msgspec.Raw, origins: Origins) -> None:
    """Look at the project first: what is malformed besides may still be someone else's text."""
    try:
        named = msgspec.json.decode(raw, type=_Scoped).project_id
    except (msgspec.DecodeError, RecursionError):
        return
    if isinstance(named, str) and named != origins.project_id:
        raise DaemonError(
            ErrorCode.CONTEXT_SCOPE_VIOLATION,
            f"The source {origins.name} gave text of another project; mend that source.",
            source=origins.name,
            layer=origins.layer,
        )


def _is_absurd(chunk: Chunk) -> bool:
    """Recognise a count that no tokenizer gives: a token has a byte at least."""
    return chunk.token_count is not None and chunk.token_count > len(chunk.content.encode())


def _fragment(chunk: Chunk, origins: Origins) -> Fragment:
    text, is_json = _spelled(chunk.content)
    kind = _kind(chunk, origins)
    return Fragment(
        layer=origins.layer,
        source=origins.name,
        source_ref=chunk.source,
        text=" ".join(text.split()) if kind is FragmentKind.CONSTRAINT else text,
        kind=kind,
        whole=is_json,
        place=_place(chunk.source),
        score=chunk.score,
        confidence=chunk.confidence,
        priority=DEFAULT_PRIORITY if chunk.priority is None else chunk.priority,
        origin=ConstraintOrigin.KG if origins.kind is HostKind.KG else ConstraintOrigin.USER,
        names=_names(chunk) if kind is FragmentKind.ENTITY else (),
        hosted=True,
        project_id=chunk.project_id,
        token_count=chunk.token_count,
    )


def _spelled(content: str) -> tuple[str, bool]:
    if not content.lstrip().startswith(("{", "[")):
        return content, False
    try:
        return canonical_json(content, without=VOLATILE_KEYS), True
    except ValueError:
        return content, False


def _kind(chunk: Chunk, origins: Origins) -> FragmentKind:
    if origins.layer is not Layer.RULES or origins.kind is not HostKind.KG:
        return FragmentKind.TEXT
    return FragmentKind.CONSTRAINT if chunk.constraint else FragmentKind.ENTITY


def _names(chunk: Chunk) -> tuple[str, ...]:
    own = _NAME.search(chunk.source.strip())
    names = chunk.names or ((own[0],) if own else ())
    return tuple(dict.fromkeys(name.strip() for name in names if name.strip()))


def _place(source: str) -> Place:
    lines = _LINES.search(source)
    if lines is None:
        return Place(GROUP, source, 0)
    return Place(GROUP, source[: lines.start()], int(lines[1]))


def _order(fragment: Fragment) -> tuple[object, ...]:
    return (fragment.place, fragment.source_ref, fragment.text)


def _left_out(ref: str, origins: Origins) -> LeftOut:
    return LeftOut(
        layer=origins.layer,
        source=origins.name,
        source_ref=ref,
        reason=Reason.INVALID_FORMAT,
        place=Place(GROUP, ref, 0),
    )


def _warnings(said: Any, origins: Origins) -> Iterator[str]:
    """Pass on what a host warns of, under a code of the catalogue and its own name."""
    given = cast("list[Any]", said) if isinstance(said, list) else []
    for text in given[:MOST_WARNINGS]:
        line = " ".join(str(text).split())[:LONGEST_WARNING]
        if line:
            yield f"{WarningCode.SOURCE_WARNING}: {origins.name}: {line}"


MOST_FAILURES = 3
REST_SECONDS = 30.0


class Breaker:
    """Counts failures in a row; after too many it rests, then lets one question through."""

    def __init__(
        self, most_failures: int = MOST_FAILURES, rest_seconds: float = REST_SECONDS
    ) -> None:
        self._most_failures = most_failures
        self._rest_seconds = rest_seconds
        self._failures = 0
        self._rests_until = 0.0
        self.reason = ""

    def allows(self, now: float) -> bool:
        """Tell whether to ask; the first who may after a rest asks for all."""
        if not self.is_open:
            return True
        if now < self._rests_until:
            return False
        self._rests_until = now + self._rest_seconds
        return True

    @property
    def is_open(self) -> bool:
        """Whether there were too many failures since the last success."""
        return self._failures >= self._most_failures

    def succeeded(self) -> None:
        """Note an answer."""
        self._failures = 0

    def failed(self, now: float, reason: str) -> bool:
        """Note a failure; tell whether it was the one too many."""
        self._failures += 1
        self.reason = reason
        if self.is_open:
            self._rests_until = now + self._rest_seconds
        return self._failures == self._most_failures


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


GIVEN_BY = {
    Summary.FULL_TEXT: {HostKind.RAG, HostKind.CUSTOM},
    Summary.RELATIONS: {HostKind.KG},
}

_SAID = {Summary.FULL_TEXT: "全文摘要未注入", Summary.RELATIONS: "人物关系摘要未注入"}


def absent(
    summaries: Iterable[Summary], rules: ContextRules | None, offered: Iterable[HostSource]
) -> tuple[str, ...]:
    """Warn of every summary that a skill relies on and no host that it asks offers."""
    kinds = {source.offer.kind for source in offered if wants(rules, source.need)}
    missing = (summary for summary in summaries if not kinds & GIVEN_BY[summary])
    return tuple(f"{WarningCode.SKILL_SOURCE_ABSENT}: {_SAID[summary]}" for summary in missing)
