"""Sources that clients offer: registered by name and layer, asked over the client's connection.

When a client disconnects, its sources are reported as missing until a client offers or unregisters
them. A host that keeps failing is not asked for a while. Every chunk of an answer is checked by
itself, so that a malformed one costs only itself.
"""

import re
from collections.abc import Iterator, Sequence
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
    Caution,
    ConstraintOrigin,
    Fragment,
    FragmentKind,
    Layer,
    Omission,
    Place,
    Reason,
    caution,
)
from creonowd.context.plan import Need, Summary
from creonowd.context.source import Source, SourceQuery, SourceResult
from creonowd.errors import DaemonError, ErrorCode, WarningCode, Wording, same_wording
from creonowd.model import Model
from creonowd.rpc.connection import Peer
from creonowd.text import VOLATILE_KEYS, canonical_json
from creonowd.workspace.projects import Project

FETCH = "context:source:fetch"
TIMEOUT_MS = 1500
LONGEST_TIMEOUT_MS = 30_000
MOST_PER_CLIENT = 64
MOST_CHUNKS = 10_000
MOST_WARNINGS = 20
MOST_ABSENT = 64
MOST_NAMED = 5
LONGEST_REF = 200
LONGEST_WARNING = 300
MOST_FAILURES = 3
PAUSE_SECONDS = 30.0

# An answer with this many chunks is read in a thread.
MANY_CHUNKS = 500

# Within its layer, what hosts offer stands after everything of the project itself.
HOST_GROUP = 4

# The deadline of the call must pass first, so that the host gets a cancellation.
_MARGIN_MS = 250

_LINES = re.compile(r"#L(\d+)(?:-L\d+)?$")
_NAME = re.compile(r"[^:/#]+$")

log = structlog.get_logger(__name__)

Share = Annotated[float, Meta(ge=0, le=1)]
Ref = Annotated[str, Meta(min_length=1, max_length=1024)]
EntityName = Annotated[str, Meta(min_length=1, max_length=200)]


class HostKind(StrEnum):
    """What a host keeps: a knowledge graph, a memory, a vector index, or something of its own."""

    KG = "kg"
    """A knowledge graph; skills ask for it with `knowledge_graph`."""
    MEMORY = "memory"
    """What the author wants remembered; skills ask for it with `user_preferences`."""
    RAG = "rag"
    """A vector index; skills ask for it with `retrieval`."""
    CUSTOM = "custom"
    """Something of its own; always asked."""


_NEEDS = {
    HostKind.KG: Need.KNOWLEDGE_GRAPH,
    HostKind.MEMORY: Need.USER_PREFERENCES,
    HostKind.RAG: Need.RETRIEVAL,
    HostKind.CUSTOM: Need.RETRIEVAL,
}
_UNAVAILABLE = {
    HostKind.KG: WarningCode.KG_UNAVAILABLE,
    HostKind.MEMORY: WarningCode.MEMORY_UNAVAILABLE,
    HostKind.RAG: WarningCode.RAG_UNAVAILABLE,
}
_SUMMARIES = {
    HostKind.KG: (Summary.RELATIONS,),
    HostKind.RAG: (Summary.FULL_TEXT,),
    HostKind.CUSTOM: (Summary.FULL_TEXT,),
}


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

    @property
    def unavailable(self) -> Caution:
        """The warning for a prompt without this host's text."""
        if self.kind is HostKind.CUSTOM:
            return Caution(
                code=WarningCode.SOURCE_UNAVAILABLE,
                wording=same_wording(self.name),
                source_ref=self.name,
            )
        return caution(_UNAVAILABLE[self.kind], self.name)


class FetchSource(Model):
    """What a host is asked for; rules and settings are asked for without document and query."""

    layer: Layer
    """The layer of the prompt that the text is for."""
    name: str
    """The source's name as it was registered."""
    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""
    skill_id: str
    """The skill that will run; empty if the request names none."""
    limit: int
    """How many chunks are of use at most; further ones are not read."""
    document_id: str | UnsetType = UNSET
    """The document at hand; absent for rules and settings."""
    query: str | UnsetType = UNSET
    """The text before the cursor, to search by; absent for rules and settings."""


class Chunk(Model):
    """A piece of text from a host."""

    source: Ref
    """Where it comes from, such as the id of a node; shown in evidence as a part of
    `sourceRef`."""
    content: str
    """The text, or JSON in a string."""
    project_id: str | None = None
    """The project that it belongs to; if it is another one, the request fails with
    CONTEXT_SCOPE_VIOLATION."""
    score: Share | None = None
    """How well it fits, from 0 to 1; ranks retrieved text."""
    confidence: Share | None = None
    """How sure it is, from 0 to 1; ranks settings."""
    priority: Annotated[int, Meta(ge=-1_000_000, le=1_000_000)] | None = None
    """Ranks rules; greater ones stay longer."""
    token_count: Annotated[int, Meta(ge=0)] | None = None
    """The host's own count; checked, and otherwise ignored."""
    constraint: bool = False
    """Whether it is a rule that no output may break; then it is never left out as unmentioned."""
    names: tuple[EntityName, ...] = ()
    """What an entity of a `kg` source is called; over the Rules line it stays if the document
    mentions one of them. Without them, the end of `source` serves."""


class HostAnswer(Model):
    """What a host answers to `context:source:fetch`."""

    chunks: Annotated[list[Chunk], Meta(max_length=MOST_CHUNKS)]
    """The pieces, the most important first."""
    warnings: tuple[str, ...] = ()
    """What the person should know, as sentences; shown behind SOURCE_WARNING."""


class UncheckedAnswer(Model):
    """A `HostAnswer` whose chunks are not checked yet, except for their number."""

    chunks: Annotated[list[msgspec.Raw], Meta(max_length=MOST_CHUNKS)]
    warnings: Any = None


class Hosts:
    """All sources that connected clients offer."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sources: dict[str, dict[tuple[str, str, str], HostSource]] = {}
        self._absent: dict[tuple[str, str, str], HostSource] = {}

    def register(self, peer: Peer, offer: Offer) -> None:
        """Register an offer; it replaces one of the same key, whose failures are forgotten."""
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
        self._absent.pop(offer.key, None)
        log.info("context_source_registered", source=offer.name, layer=offer.layer)

    def unregister(self, peer: Peer, name: str, layer: Layer | None, project_id: str | None) -> int:
        """Drop a client's offers of this name and return how many there were.

        Those of clients that hung up are anyone's to drop.
        """
        dropped = 0
        for offers in (self._sources.get(peer.id, {}), self._absent):
            keys = [
                key
                for key, source in offers.items()
                if source.name == name
                and layer in {None, source.layer}
                and project_id in {None, source.offer.project_id}
            ]
            for key in keys:
                del offers[key]
            dropped += len(keys)
        return dropped

    def of(self, project: Project) -> list["HostSource"]:
        """Return the sources for a project, in an order that does not depend on arrival."""
        sources = [s for s in self._all() if s.offer.project_id in {None, project.project_id}]
        return sorted(sources, key=lambda s: (s.name, s.offer.kind, s.peer.id if s.peer else ""))

    def paused_sources(self) -> dict[str, str]:
        """Return the names of the sources that are not asked for a while, and why."""
        return {s.name: s.breaker.reason for s in self._all() if s.breaker.is_open}

    def _all(self) -> Iterator["HostSource"]:
        return (
            source
            for offers in (*self._sources.values(), self._absent)
            for source in offers.values()
        )

    def _forget(self, peer_id: str) -> None:
        for key, source in self._sources.pop(peer_id, {}).items():
            log.info("context_source_forgotten", source=source.name, layer=source.layer)
            source.peer = None
            if not any(key in offers for offers in self._sources.values()):
                self._absent[key] = source
        while len(self._absent) > MOST_ABSENT:
            del self._absent[next(iter(self._absent))]


class HostSource(Source):
    """One registered source, as the engine sees it; its `peer` is None once the client hung up."""

    def __init__(self, offer: Offer, peer: Peer, clock: Clock) -> None:
        self.offer = offer
        self.peer: Peer | None = peer
        self.layer, self.name, self.need = offer.layer, offer.name, _NEEDS[offer.kind]
        self.unavailable = offer.unavailable
        self.timeout_ms: int | None = offer.timeout_ms + _MARGIN_MS
        self.breaker = Breaker()
        self._clock = clock

    async def fetch(self, ask: SourceQuery) -> SourceResult:
        """Ask the host, unless it has failed too often of late."""
        if self.peer is None:
            self._count_failure(ErrorCode.DISCONNECTED)
            raise DaemonError(ErrorCode.DISCONNECTED, f"The host of {self.name} hung up.")
        if not self.breaker.allows(self._clock.monotonic()):
            raise DaemonError(
                ErrorCode.HOST_ERROR, f"The source {self.name} is not asked for a while."
            )
        question = _question(self.offer, ask)
        try:
            answer = await self.peer.call(FETCH, question, UncheckedAnswer, self.offer.timeout_ms)
        except DaemonError as error:
            self._count_failure(error.code)
            raise
        if len(answer.chunks) < MANY_CHUNKS:
            fetched = read_answer(answer, self.offer, ask.project_id)
        else:
            fetched = await to_thread.run_sync(read_answer, answer, self.offer, ask.project_id)
        if fetched.left_out:
            log.warning(
                "context_chunks_malformed",
                project_id=ask.project_id,
                source=self.name,
                layer=self.layer,
                chunks=[item.source_ref for item in fetched.left_out[:MOST_NAMED]],
                left_out=len(fetched.left_out),
                of=len(answer.chunks),
            )
        if fetched.left_out and not fetched.fragments:
            self._count_failure("malformed")
        else:
            self.breaker.count_success()
        return fetched

    def _count_failure(self, reason: str) -> None:
        if self.breaker.count_failure(self._clock.monotonic(), reason):
            log.warning("context_source_skipped", source=self.name, reason=reason)


class Breaker:
    """Counts failures in a row; after too many it allows one question per pause."""

    def __init__(
        self, most_failures: int = MOST_FAILURES, pause_seconds: float = PAUSE_SECONDS
    ) -> None:
        self._most_failures = most_failures
        self._pause_seconds = pause_seconds
        self._failures = 0
        self._pause_end = 0.0
        self.reason = ""

    def allows(self, now: float) -> bool:
        """Return whether to ask; the first question after a pause begins another."""
        if not self.is_open:
            return True
        if now < self._pause_end:
            return False
        self._pause_end = now + self._pause_seconds
        return True

    @property
    def is_open(self) -> bool:
        """Whether there were too many failures since the last success."""
        return self._failures >= self._most_failures

    def count_success(self) -> None:
        """Count an answer."""
        self._failures = 0

    def count_failure(self, now: float, reason: str) -> bool:
        """Count a failure and return whether it begins the pause."""
        self._failures += 1
        self.reason = reason
        if self.is_open:
            self._pause_end = now + self._pause_seconds
        return self._failures == self._most_failures


def _question(offer: Offer, ask: SourceQuery) -> FetchSource:
    is_dynamic = offer.layer not in STABLE
    return FetchSource(
        layer=offer.layer,
        name=offer.name,
        project_id=ask.project_id,
        skill_id=ask.skill_id,
        limit=ask.limit,
        document_id=ask.document_id if is_dynamic and ask.document_id is not None else UNSET,
        query="\n".join(filter(None, (ask.query, ask.wish))) if is_dynamic else UNSET,
    )


def read_answer(answer: UncheckedAnswer, offer: Offer, project_id: str) -> SourceResult:
    """Make fragments of a host's chunks, in an order that does not depend on theirs.

    A chunk of another project raises CONTEXT_SCOPE_VIOLATION.
    """
    fragments: list[Fragment] = []
    left_out: list[Omission] = []
    for number, raw in enumerate(answer.chunks, start=1):
        _refuse_foreign(raw, offer, project_id)
        item = _read_chunk(raw, number, offer)
        if isinstance(item, Fragment):
            fragments.append(item)
        else:
            left_out.append(item)
    fragments.sort(key=lambda fragment: (fragment.place, fragment.source_ref, fragment.text))
    left_out.sort(key=lambda item: item.source_ref)
    warnings = _warnings(answer.warnings, offer)
    if left_out:
        of = len(answer.chunks)
        warnings.append(_partly(offer, left_out, of) if fragments else offer.unavailable)
    came = any(fragment.text.strip() for fragment in fragments)
    return SourceResult(
        fragments=tuple(fragments),
        left_out=tuple(left_out),
        warnings=tuple(warnings),
        summaries=_SUMMARIES.get(offer.kind, ()) if came else (),
    )


def _partly(offer: Offer, left_out: Sequence[Omission], of: int) -> Caution:
    """Warn that some chunks of a host make no sense and are not in the prompt."""
    named = ", ".join(item.source_ref for item in left_out[:MOST_NAMED])
    count = len(left_out)
    return Caution(
        code=offer.unavailable.code,
        wording=Wording(
            f"{offer.name}: {count} of {of} chunks make no sense and are left out ({named})",
            f"{offer.name}：{of} 块数据中有 {count} 块不合格式，未注入（{named}）",
        ),
        source_ref=offer.name,
        details=(("chunks", of), ("leftOut", count)),
    )


class _ChunkScope(Model):
    project_id: Any = None
    source: Any = None


def _refuse_foreign(raw: msgspec.Raw, offer: Offer, project_id: str) -> None:
    """Check the project first: a chunk that is malformed besides may still be another's text."""
    try:
        found = msgspec.json.decode(raw, type=_ChunkScope).project_id
    except (msgspec.DecodeError, RecursionError):
        return
    if isinstance(found, str) and found != project_id:
        raise DaemonError(
            ErrorCode.CONTEXT_SCOPE_VIOLATION,
            f"The source {offer.name} gave text of another project; fix that source.",
            source=offer.name,
            layer=offer.layer,
        )


def _read_chunk(raw: msgspec.Raw, number: int, offer: Offer) -> Fragment | Omission:
    ref = f"{offer.name}#{number}"
    try:
        chunk = msgspec.json.decode(raw, type=Chunk)
    except (msgspec.DecodeError, RecursionError):
        return _left_out(_source_of(raw) or ref, offer)
    # A token has a byte at least, so no tokenizer counts more tokens than bytes.
    is_absurd = chunk.token_count is not None and chunk.token_count > len(chunk.content.encode())
    if not chunk.source.strip() or is_absurd:
        return _left_out(chunk.source.strip() or ref, offer)
    return _fragment(chunk, offer)


def _source_of(raw: msgspec.Raw) -> str:
    """Return where a malformed chunk says that it comes from, if it does."""
    try:
        source = msgspec.json.decode(raw, type=_ChunkScope).source
    except (msgspec.DecodeError, RecursionError):
        return ""
    return source.strip()[:LONGEST_REF] if isinstance(source, str) else ""


def _left_out(ref: str, offer: Offer) -> Omission:
    return Omission(
        layer=offer.layer,
        source=offer.name,
        source_ref=ref,
        reason=Reason.INVALID_FORMAT,
        place=Place(HOST_GROUP, ref, 0),
    )


def _fragment(chunk: Chunk, offer: Offer) -> Fragment:
    text, is_json = _canonical(chunk.content)
    kind = _fragment_kind(chunk, offer)
    return Fragment(
        layer=offer.layer,
        source=offer.name,
        source_ref=chunk.source,
        text=" ".join(text.split()) if kind is FragmentKind.CONSTRAINT else text,
        kind=kind,
        whole=is_json,
        place=_place(chunk.source),
        score=chunk.score,
        confidence=chunk.confidence,
        priority=DEFAULT_PRIORITY if chunk.priority is None else chunk.priority,
        origin=ConstraintOrigin.KG if offer.kind is HostKind.KG else ConstraintOrigin.USER,
        names=_names(chunk) if kind is FragmentKind.ENTITY else (),
        hosted=True,
        project_id=chunk.project_id,
        token_count=chunk.token_count,
    )


def _canonical(content: str) -> tuple[str, bool]:
    """Return the text in its canonical spelling, and whether it is JSON."""
    if not content.lstrip().startswith(("{", "[")):
        return content, False
    try:
        return canonical_json(content, without=VOLATILE_KEYS), True
    except ValueError:
        return content, False


def _fragment_kind(chunk: Chunk, offer: Offer) -> FragmentKind:
    if offer.layer is not Layer.RULES or offer.kind is not HostKind.KG:
        return FragmentKind.TEXT
    return FragmentKind.CONSTRAINT if chunk.constraint else FragmentKind.ENTITY


def _names(chunk: Chunk) -> tuple[str, ...]:
    own = _NAME.search(chunk.source.strip())
    names = chunk.names or ((own[0],) if own else ())
    return tuple(dict.fromkeys(name.strip() for name in names if name.strip()))


def _place(source: str) -> Place:
    lines = _LINES.search(source)
    if lines is None:
        return Place(HOST_GROUP, source, 0)
    return Place(HOST_GROUP, source[: lines.start()], int(lines[1]))


def _warnings(given: Any, offer: Offer) -> list[Caution]:
    """Return a host's warnings under a code of the catalogue and the host's name."""
    texts = cast("list[Any]", given) if isinstance(given, list) else []
    lines = (" ".join(str(text).split())[:LONGEST_WARNING] for text in texts[:MOST_WARNINGS])
    return [
        Caution(
            code=WarningCode.SOURCE_WARNING,
            wording=same_wording(f"{offer.name}: {line}"),
            source_ref=offer.name,
        )
        for line in lines
        if line
    ]
