"""The record of a context file: its fields, its id, its name in the conversation's folder.

An `Index` holds the records of one conversation in memory, `StatsCounter` counts what a search
needs to know of a file. Nothing here touches the disk.
"""

import codecs
import re
from bisect import insort
from collections.abc import Container, Iterable, Sequence
from enum import StrEnum
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from creonowd.clock import Clock
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model
from creonowd.rpc.channel import Role

VERSION = 1
BLOCK = 1024 * 1024
MAX_HINT_LENGTH = 500
MAX_KEY_LENGTH = 256

_REF_ID = re.compile(r"ctx_[a-z0-9]{16,26}")

REFS = "refs"

_CONVERSATION_ID = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+", re.ASCII)
_DEVICE_NAME = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|\Z)", re.IGNORECASE)
_MAX_STEM_LENGTH = 80
_DIGEST_LENGTH = 12


class Kind(StrEnum):
    """What a context file holds: a tool's or terminal's output, a piece of history, a catalogue."""

    ARTIFACT = "artifact"
    """A tool's or terminal's output."""
    HISTORY = "history"
    """A piece of a conversation's history."""
    CATALOG = "catalog"
    """A catalogue, such as a list of tools."""


class Origin(StrEnum):
    """Where a context file came from; it decides the folder and the form of its name."""

    TOOL = "tool"
    """A tool's output."""
    TERMINAL = "terminal"
    """A terminal's output."""
    ARCHIVE = "archive"
    """Rounds of the conversation."""
    SUMMARY = "summary"
    """A summary of rounds."""
    CATALOG = "catalog"
    """A catalogue."""


class Retention(StrEnum):
    """How a file expires: an eager one by age, a lazy one by its last use, to be made again."""

    EAGER = "eager"
    LAZY = "lazy"


class ContextRef(Model):
    """All that a model needs to remember of a context file."""

    id: str
    """Names the file in later calls; it reveals nothing of a path."""
    kind: Kind
    """What it holds."""
    mime_type: str | UnsetType = UNSET
    """Its media type; absent if it is not known."""
    byte_size: int | UnsetType = UNSET
    """Its size in bytes; absent while a lazy file has not been made."""
    created_at: int
    """When it was put or registered, in milliseconds since 1970 (UTC)."""
    hint: str
    """A line that says what it is."""


class FileStats(Model):
    """What one pass over a file's bytes finds; `newlines` counts them in every `BLOCK` of bytes.

    No line is longer than `longest_line`, which may be too large by a `BLOCK`.
    """

    byte_size: int
    sha256: str
    utf8: bool
    longest_line: int
    newlines: tuple[int, ...]


class StatsCounter:
    """Counts the statistics of one file from its bytes, in any number of pieces."""

    def __init__(self) -> None:
        self._hash = sha256()
        self._decoder: codecs.IncrementalDecoder | None = codecs.getincrementaldecoder("utf-8")()
        self._size = 0
        self._line = 0
        self._longest_line = 0
        self._newlines: list[int] = []

    def add(self, data: bytes) -> None:
        """Count the next bytes."""
        self._hash.update(data)
        self._decode(data, final=False)
        while data:
            room = BLOCK - self._size % BLOCK
            self._add_within_block(data[:room])
            data = data[room:]

    def stats(self) -> FileStats:
        """Return the statistics of the whole file; nothing may be added after."""
        self._decode(b"", final=True)
        return FileStats(
            byte_size=self._size,
            sha256=self._hash.hexdigest(),
            utf8=self._decoder is not None,
            longest_line=max(self._longest_line, self._line),
            newlines=tuple(self._newlines),
        )

    def _add_within_block(self, data: bytes) -> None:
        if self._size % BLOCK == 0:
            self._newlines.append(0)
        first, last = data.find(b"\n"), data.rfind(b"\n")
        if first >= 0:
            # To measure every line would take longer than reading the file.
            self._longest_line = max(self._longest_line, self._line + first, last - first)
            self._line = 0
        self._line += len(data) - last - 1
        self._newlines[-1] += data.count(b"\n")
        self._size += len(data)

    def _decode(self, data: bytes, *, final: bool) -> None:
        if self._decoder is None:
            return
        try:
            self._decoder.decode(data, final)
        except UnicodeDecodeError:
            self._decoder = None


def file_stats(chunks: Iterable[bytes]) -> FileStats:
    """Return the statistics of a file given as chunks of bytes."""
    counter = StatsCounter()
    for chunk in chunks:
        counter.add(chunk)
    return counter.stats()


class Record(Model):
    """Everything known about one context file, as it is stored beside it.

    `stored_at` is when this disk got it, `created_at` when it came to be: an import keeps the
    latter. A record with a `recipe` is lazy: its file may be missing, and only hosts of the role
    that it was `registered_by` are asked for it, an owner where none is known. `deleted` marks a
    file that could not be removed at once because someone was reading it.
    """

    version: int = VERSION
    id: str
    kind: Kind
    origin: Origin
    retention: Retention
    path: str
    hint: str
    mime_type: str
    created_at: int
    stored_at: int
    sequence: int
    project_id: str
    key: str | None = None
    recipe: dict[str, Any] | None = None
    registered_by: Role | None = None
    stats: FileStats | None = msgspec.field(default=None, name="survey")
    deleted: bool = False

    @property
    def lazy(self) -> bool:
        """Whether the file can be made again."""
        return self.recipe is not None

    @property
    def order(self) -> tuple[int, int, str]:
        """The sort key among the records of its conversation, oldest first."""
        return (self.created_at, self.sequence, self.id)

    @property
    def ref(self) -> ContextRef:
        """What the model gets to see."""
        return ContextRef(
            id=self.id,
            kind=self.kind,
            mime_type=self.mime_type,
            byte_size=UNSET if self.stats is None else self.stats.byte_size,
            created_at=self.created_at,
            hint=self.hint,
        )


class NewFile(Model):
    """The fields of a record that are chosen by whoever puts or registers the file."""

    kind: Kind
    origin: Origin
    hint: str
    mime_type: str
    key: str | None = None
    recipe: dict[str, Any] | None = None
    registered_by: Role | None = None


class Index:
    """The records of one conversation. Not guarded: its owner holds a lock."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._records: dict[str, Record] = {}
        self._ids_by_key: dict[str, str] = {}
        self._ordered: list[tuple[int, int, str]] = []
        self.paths: set[str] = set()
        self.next_sequence = 0
        for record in records:
            self.add(record)

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, ref_id: object) -> bool:
        return ref_id in self._records

    def get(self, ref_id: str) -> Record | None:
        """Find a record by its id."""
        return self._records.get(ref_id)

    def by_key(self, key: str) -> Record | None:
        """Find a record by the key that its host gave it."""
        return self._records.get(self._ids_by_key.get(key, ""))

    def add(self, record: Record) -> None:
        """Add a record that is new."""
        self._records[record.id] = record
        self.paths.add(record.path.lower())
        self.next_sequence = max(self.next_sequence, record.sequence + 1)
        insort(self._ordered, record.order)
        if record.key is not None:
            self._ids_by_key[record.key] = record.id

    def replace(self, record: Record) -> None:
        """Replace the record of the same id; its key, path and order must be the same."""
        self._records[record.id] = record

    def remove(self, record: Record) -> None:
        """Remove a record."""
        del self._records[record.id]
        self.paths.discard(record.path.lower())
        self._ordered.remove(record.order)
        if record.key is not None:
            self._ids_by_key.pop(record.key, None)

    def all(self) -> list[Record]:
        """List every record, oldest first."""
        return [self._records[ref_id] for _, _, ref_id in self._ordered]

    def newest(self, kind: Kind | None, limit: int) -> list[Record]:
        """List the newest `limit` records of a kind, oldest first."""
        found: list[Record] = []
        for _, _, ref_id in reversed(self._ordered):
            record = self._records[ref_id]
            if kind is None or record.kind is kind:
                found.append(record)
                if len(found) == limit:
                    break
        return found[::-1]


def make_record(new: NewFile, index: Index, project_id: str, clock: Clock) -> Record:
    """Make the record of a new file, with an id and a path that the index does not have."""
    now = clock.now_ms()
    ref_id = clock.new_id("ctx")
    while ref_id in index:
        ref_id = clock.new_id("ctx")
    return Record(
        id=ref_id,
        retention=Retention.EAGER if new.recipe is None else Retention.LAZY,
        path=choose_path(new.origin, new.key or ref_id, now, new.mime_type, index.paths),
        created_at=now,
        stored_at=now,
        sequence=index.next_sequence,
        project_id=project_id,
        **msgspec.structs.asdict(new),
    )


def record_of_file(
    path: str, stats: FileStats, clock: Clock, *, created_at: int, sequence: int
) -> Record:
    """Make the record of a file that has none: its folder gives the kind, its bytes the type.

    It belongs to no project and is not stored yet.
    """
    origin = origin_of(path)
    return Record(
        id=clock.new_id("ctx"),
        kind=kind_of(origin),
        origin=origin,
        retention=Retention.EAGER,
        path=path,
        hint=path.rpartition("/")[2],
        mime_type="text/plain" if stats.utf8 else "application/octet-stream",
        created_at=created_at,
        stored_at=0,
        sequence=sequence,
        project_id="",
        stats=stats,
    )


def key_conflict(owner: Record) -> DaemonError:
    """Return the error of a key that already names another file, its `owner`."""
    return DaemonError(
        ErrorCode.CONFLICT,
        "The key names another file already; choose another key or delete that file.",
        field="key",
        id=owner.id,
    )


def records_to_import(
    index: Index, arriving: Sequence[Record], project_id: str, now_ms: int
) -> list[Record]:
    """List the records that the index lacks, in order; CONFLICT if one contradicts the index.

    They get this project's id and, where a path is taken, another path.
    """
    additions: list[Record] = []
    paths = set(index.paths)
    for record in sorted(arriving, key=lambda record: record.order):
        if _is_in_index(index, record):
            continue
        path = record.path
        if path.lower() in paths:
            label = record.key or record.id
            path = choose_path(record.origin, label, record.created_at, record.mime_type, paths)
        paths.add(path.lower())
        additions.append(
            msgspec.structs.replace(
                record,
                path=path,
                project_id=project_id,
                stored_at=now_ms,
                sequence=index.next_sequence + len(additions),
            )
        )
    return additions


def _is_in_index(index: Index, record: Record) -> bool:
    old = index.get(record.id)
    namesake = None if record.key is None else index.by_key(record.key)
    if old is None and namesake is None:
        return False
    if old is not None and _same_content(old, record) and namesake in (None, old):
        return True
    raise DaemonError(
        ErrorCode.CONFLICT,
        "The conversation has another file under the same id or key; import into a new one.",
        field="conversationId",
        id=record.id,
    )


def _same_content(old: Record, new: Record) -> bool:
    if old.lazy or new.lazy:
        return old.recipe == new.recipe
    return (
        old.stats is not None and new.stats is not None and (old.stats.sha256 == new.stats.sha256)
    )


FOLDERS = {Kind.ARTIFACT: "artifacts", Kind.HISTORY: "history", Kind.CATALOG: "catalog"}
ORIGIN_FOLDERS = {
    Origin.TOOL: "artifacts/tool",
    Origin.TERMINAL: "artifacts/terminal",
    Origin.ARCHIVE: "history/archive",
    Origin.SUMMARY: "history/summary",
    Origin.CATALOG: "catalog/tools",
}

_KIND_OF = {
    Origin.TOOL: Kind.ARTIFACT,
    Origin.TERMINAL: Kind.ARTIFACT,
    Origin.ARCHIVE: Kind.HISTORY,
    Origin.SUMMARY: Kind.HISTORY,
    Origin.CATALOG: Kind.CATALOG,
}
_DEFAULT_ORIGIN = {
    Kind.ARTIFACT: Origin.TOOL,
    Kind.HISTORY: Origin.ARCHIVE,
    Kind.CATALOG: Origin.CATALOG,
}
_PATH = re.compile(
    f"(?:{'|'.join(ORIGIN_FOLDERS.values())})/" + r"[A-Za-z0-9_][A-Za-z0-9._-]{0,119}", re.ASCII
)


def is_ref_id(text: str) -> bool:
    """Return whether a text has the form of a ref's id."""
    return _REF_ID.fullmatch(text) is not None


def is_conversation_id(text: str) -> bool:
    """Return whether a text can be the name of a conversation's folder on every system."""
    return _CONVERSATION_ID.fullmatch(text) is not None and _DEVICE_NAME.match(text) is None


def check_conversation_id(conversation_id: str) -> None:
    """Raise INVALID_ARGUMENT for what cannot be a conversation's id."""
    if not is_conversation_id(conversation_id):
        raise DaemonError(
            ErrorCode.INVALID_ARGUMENT,
            "conversationId must be 1 to 64 of A-Z, a-z, 0-9, _ and -, and no device's name.",
            field="conversationId",
        )


def kind_of(origin: Origin) -> Kind:
    """Return the kind that an origin belongs to."""
    return _KIND_OF[origin]


def default_origin(kind: Kind) -> Origin:
    """Return the origin of a file of a kind for which none is given."""
    return _DEFAULT_ORIGIN[kind]


def record_path(kind: Kind, ref_id: str) -> str:
    """Return the path of a record in its conversation's folder."""
    return f"{FOLDERS[kind]}/{REFS}/{ref_id}.json"


def is_path(path: str) -> bool:
    """Return whether a path is one that a context file may have in its conversation's folder."""
    return (
        _PATH.fullmatch(path) is not None
        and not path.endswith(".")
        and _DEVICE_NAME.match(path.rpartition("/")[2]) is None
    )


def origin_of(path: str) -> Origin:
    """Return the origin in whose folder a file lies."""
    return next(
        origin for origin, folder in ORIGIN_FOLDERS.items() if path.startswith(f"{folder}/")
    )


def choose_path(
    origin: Origin, label: str, created_at: int, mime_type: str, taken: Container[str]
) -> str:
    """Name a new file after its `label`, a key or an id, avoiding the lower-case paths in `taken`."""
    stem = f"{ORIGIN_FOLDERS[origin]}/{_stem(origin, label, created_at)}"
    extension = _extension(origin, mime_type)
    path = f"{stem}{extension}"
    number = 2
    while path.lower() in taken or not is_path(path):
        path = f"{stem}-{number}{extension}"
        number += 1
    return path


def _stem(origin: Origin, label: str, created_at: int) -> str:
    name = _UNSAFE.sub("_", label)[:_MAX_STEM_LENGTH].lstrip("-") or "file"
    name = f"_{name}" if _DEVICE_NAME.match(name) else name
    if name != label:
        # Keys that differ only in what a name cannot hold, such as Chinese ones, stay apart.
        name = f"{name}-{sha256(label.encode('utf-8', 'replace')).hexdigest()[:_DIGEST_LENGTH]}"
    if origin is Origin.ARCHIVE:
        return f"{created_at}-{name}"
    return str(created_at) if origin is Origin.SUMMARY else name


def _extension(origin: Origin, mime_type: str) -> str:
    if origin in {Origin.ARCHIVE, Origin.SUMMARY}:
        return ".md"
    if origin is Origin.TERMINAL:
        return ".log"
    bare = mime_type.partition(";")[0].strip().lower()
    if bare == "application/json" or bare.endswith("+json"):
        return ".json"
    return ".txt" if bare.startswith("text/") else ".bin"
