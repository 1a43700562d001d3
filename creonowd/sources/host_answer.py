"""What a host answers, checked chunk by chunk and made into fragments.

A chunk that makes no sense costs itself and a warning; one of another project costs the request.
Pure. Knows no connection.
"""

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any, cast

import msgspec
from msgspec import Meta

from creonowd.context.fragment import (
    DEFAULT_PRIORITY,
    ConstraintOrigin,
    Fragment,
    FragmentKind,
    Layer,
    LeftOut,
    Place,
    Reason,
)
from creonowd.context.plan import Fetched
from creonowd.errors import DaemonError, ErrorCode, WarningCode, warning_text
from creonowd.model import Model
from creonowd.text import HOST_NOISE, canonical_json

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
        return canonical_json(content, without=HOST_NOISE), True
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
