"""The documents of a project: as they are open in an editor, else as they are on disk.

There is one buffer per connection and document; it is dropped with either. A buffer is a text in
pieces and an immutable value: edits return a new one that shares the pieces which they did not
touch, so an edit in a novel costs as little as one in a note, and a reader in another thread keeps
its own. Positions are in code points or in UTF-16 units.
"""

import os
import sys
from collections.abc import Callable, Container, Iterable, Sequence
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from typing import Annotated, NamedTuple

import anyio
from anyio import to_thread
from msgspec import Meta
from msgspec.structs import replace

from creonowd.clock import Clock
from creonowd.errors import DaemonError, ErrorCode
from creonowd.memo import Memo
from creonowd.model import Model
from creonowd.redaction import PLACEHOLDER, Redactor
from creonowd.rpc.channel import Role
from creonowd.rpc.connection import Peer
from creonowd.storage.safe_folder import LinkedFolder, problem_with
from creonowd.storage.unchanged_files import FileCache
from creonowd.text import decode_text, well_formed
from creonowd.workspace.creonow_tree import is_document, is_hidden_name
from creonowd.workspace.projects import Project

PIECE = 4096
SMALL = PIECE // 4


class Edit(Model, rename={"start": "from", "end": "to"}):
    """Replace the text between two positions, as the edits before this one have left it."""

    start: int
    """Where the replaced text begins, in the connection's position encoding."""
    end: int
    """Where it ends; equal to `start` to insert."""
    text: str
    """What stands there from now on; empty to delete."""


class _BufferPiece:
    __slots__ = ("memory", "text", "units")

    def __init__(self, text: str) -> None:
        self.text = text
        self.units = utf16_length(text)
        self.memory = memory_of(text)


class Buffer:
    """A text that is cheap to edit; the whole is joined when it is first needed."""

    def __init__(
        self, pieces: Sequence[_BufferPiece], length: int, utf16_length: int, memory: int
    ) -> None:
        self._pieces = pieces
        self.length = length
        self.utf16_length = utf16_length
        self.memory = memory

    @classmethod
    def of(cls, text: str) -> "Buffer":
        """Make a buffer of a whole text."""
        pieces = _cut(text)
        units = sum(piece.units for piece in pieces)
        return cls(pieces, len(text), units, sum(piece.memory for piece in pieces))

    @cached_property
    def text(self) -> str:
        """The whole text."""
        return "".join(piece.text for piece in self._pieces)

    @property
    def pieces(self) -> int:
        """How many pieces the text has."""
        return len(self._pieces)

    def size(self, *, utf16: bool) -> int:
        """Return the length in the units in which a client counts."""
        return self.utf16_length if utf16 else self.length

    def from_utf16(self, position: int) -> int:
        """Convert a position from UTF-16 units to code points."""
        return _Editor(self, self._pieces, utf16=True).code_point(position)

    def apply(self, edits: Iterable[Edit], *, utf16: bool = False) -> "Buffer":
        """Return the text after all edits, in order; INVALID_ARGUMENT if one of them does not fit."""
        editor = _Editor(self, self._pieces, utf16=utf16)
        for edit in edits:
            editor.replace(edit)
        return Buffer(editor.pieces, editor.length, editor.utf16_length, editor.memory)


def memory_of(text: str) -> int:
    """Return how many bytes a text takes in memory."""
    return sys.getsizeof(text)


class _Editor:
    """The pieces while they are edited.

    It remembers the piece of the last edit and where it starts: edits are often near each other.
    """

    def __init__(self, buffer: Buffer, pieces: Sequence[_BufferPiece], *, utf16: bool) -> None:
        self.pieces = list(pieces)
        self.length = buffer.length
        self.utf16_length = buffer.utf16_length
        self.memory = buffer.memory
        self._utf16 = utf16
        self._index = 0
        self._start = 0

    def replace(self, edit: Edit) -> None:
        """Apply an edit."""
        if edit.end < edit.start:
            raise _inverted_edit(edit)
        first, head = self._find(edit.start)
        start = self._start
        last, tail = self._find(edit.end)
        joined = self.pieces[first].text[:head] + edit.text + self.pieces[last].text[tail:]
        self._index, self._start = first, start
        self._put(first, last, joined)

    def code_point(self, position: int) -> int:
        """Count the code points before a position."""
        index, offset = self._find(position)
        return sum(len(piece.text) for piece in self.pieces[:index]) + offset

    def _put(self, first: int, last: int, text: str) -> None:
        """Replace some pieces by a text; a small one is joined with the piece after it."""
        if len(text) < SMALL and last + 1 < len(self.pieces):
            last += 1
            text += self.pieces[last].text
        old, new = self.pieces[first : last + 1], _cut(text)
        self.pieces[first : last + 1] = new
        self.length += sum(len(p.text) for p in new) - sum(len(p.text) for p in old)
        self.utf16_length += sum(p.units for p in new) - sum(p.units for p in old)
        self.memory += sum(p.memory for p in new) - sum(p.memory for p in old)

    def _find(self, position: int) -> tuple[int, int]:
        """Return the index of the piece at a position, and the code points before it in there."""
        check_position(position, self.utf16_length if self._utf16 else self.length)
        while position < self._start:
            self._index -= 1
            self._start -= self._size(self.pieces[self._index])
        while position > self._start + self._size(self.pieces[self._index]):
            self._start += self._size(self.pieces[self._index])
            self._index += 1
        offset = position - self._start
        if self._utf16:
            found = code_points(self.pieces[self._index].text, offset)
            if found is None:
                raise inside_a_pair(position)
            return self._index, found
        return self._index, offset

    def _size(self, piece: _BufferPiece) -> int:
        return piece.units if self._utf16 else len(piece.text)


def _inverted_edit(edit: Edit) -> DaemonError:
    return DaemonError(
        ErrorCode.INVALID_ARGUMENT,
        f"An edit goes from {edit.start} back to {edit.end}; `from` must not be greater than `to`.",
        field="edits",
    )


def _cut(text: str) -> list[_BufferPiece]:
    if len(text) <= 2 * PIECE:
        return [_BufferPiece(text)]
    return [_BufferPiece(text[start : start + PIECE]) for start in range(0, len(text), PIECE)]


def utf16_length(text: str) -> int:
    """Count the UTF-16 units of a text."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def to_utf16(text: str, positions: Iterable[int]) -> dict[int, int]:
    """Convert positions from code points to UTF-16 units, in one pass over the text."""
    units: dict[int, int] = {}
    before = count = 0
    for position in sorted(set(positions)):
        count += utf16_length(text[before:position])
        units[position] = count
        before = position
    return units


def from_utf16(text: str, position: int) -> int:
    """Convert a position from UTF-16 units to code points.

    INVALID_ARGUMENT if it lies outside the text or inside a surrogate pair.
    """
    check_position(position, utf16_length(text))
    found = code_points(text, position)
    if found is None:
        raise inside_a_pair(position)
    return found


def code_points(text: str, units: int) -> int | None:
    """Count the code points in the first UTF-16 units of a text; None if they end inside a pair."""
    if text.isascii():
        return units
    encoded = text.encode("utf-16-le", "surrogatepass")
    if _is_high(encoded, units - 1) and _is_low(encoded, units):
        return None
    return len(encoded[: 2 * units].decode("utf-16-le", "surrogatepass"))


def check_position(position: int, length: int) -> None:
    """Refuse a position outside a text of this length with INVALID_ARGUMENT."""
    if not 0 <= position <= length:
        raise DaemonError(
            ErrorCode.INVALID_ARGUMENT,
            f"Position {position} lies outside the text, which ends at {length}.",
            position=position,
            length=length,
        )


def inside_a_pair(position: int) -> DaemonError:
    """Report that a position lies in the middle of a character."""
    return DaemonError(
        ErrorCode.INVALID_ARGUMENT,
        f"Position {position} lies inside a surrogate pair.",
        position=position,
    )


def _is_high(encoded: bytes, unit: int) -> bool:
    return 0 <= 2 * unit < len(encoded) and 0xD8 <= encoded[2 * unit + 1] <= 0xDB


def _is_low(encoded: bytes, unit: int) -> bool:
    return 0 <= 2 * unit < len(encoded) and 0xDC <= encoded[2 * unit + 1] <= 0xDF


LIMIT_BYTES = 64 * 1024 * 1024
CACHED_CHARACTERS = 8_000_000
MAX_OPEN = 1000
MAX_CODE_POINTS = 32 * 1024 * 1024
MAX_RENDERER_BYTES = 16 * 1024 * 1024
MAX_EDITS = 10_000
QUICK_EDITS = 64
QUICK_CODE_POINTS = 64 * 1024
LONGEST_BOM = 4

DocumentKey = tuple[str, str]

DocumentId = Annotated[str, Meta(max_length=4096)]

IsExcluded = Callable[[Path, str], bool]


def is_hidden(_root: Path, path: str) -> bool:
    """Return whether a path is hidden; ignore files are not considered."""
    return any(map(is_hidden_name, path.split("/")))


class OpenDocument(Model):
    """A buffer at one version; of two, the one with the greater `sync_number` was synced last."""

    version: int
    buffer: Buffer
    sync_number: int


class _ConnectionDocuments:
    """The open documents of one connection; `order` keeps its syncs in the order of arrival."""

    def __init__(self, role: Role) -> None:
        self.role = role
        self.order = anyio.Lock(fast_acquire=True)
        self.open: dict[DocumentKey, OpenDocument] = {}


class Documents:
    """The open documents of all connections."""

    def __init__(
        self,
        clock: Clock,
        redactor: Redactor | None = None,
        *,
        max_open: int = MAX_OPEN,
        max_code_points: int = MAX_CODE_POINTS,
        max_renderer_bytes: int = MAX_RENDERER_BYTES,
        is_excluded: IsExcluded = is_hidden,
    ) -> None:
        self.files = DocumentFiles(clock, is_excluded)
        self._redactor = redactor or Redactor()
        self._max_open = max_open
        self._max_code_points = max_code_points
        self._max_renderer_bytes = max_renderer_bytes
        self._connections: dict[str, _ConnectionDocuments] = {}
        self._sync_count = 0

    async def replace(self, peer: Peer, key: DocumentKey, version: int, text: str) -> OpenDocument:
        """Replace a document's whole text."""
        connection = self._connection(peer)
        async with connection.order:
            self._check_room(connection, key, memory_of(text))
            quick = len(text) <= QUICK_CODE_POINTS
            buffer = await _make_buffer(partial(Buffer.of, text), quick=quick)
            return self._keep(connection, key, version, buffer)

    async def edit(
        self, peer: Peer, key: DocumentKey, base_version: int, version: int, edits: Sequence[Edit]
    ) -> OpenDocument:
        """Apply all edits to the version that they were made for, or none.

        CONFLICT if we have another version: then the client sends the whole text.
        """
        connection = self._connection(peer)
        async with connection.order:
            current = connection.open.get(key)
            if current is None or current.version != base_version:
                raise _version_conflict(base_version, None if current is None else current.version)
            if version <= base_version:
                raise _invalid("`version` must be greater than `baseVersion`.")
            if len(edits) > MAX_EDITS:
                raise _invalid(f"More than {MAX_EDITS} edits; send the whole text.")
            edited = partial(current.buffer.apply, edits, utf16=peer.utf16)
            added = sum(len(edit.text) for edit in edits)
            quick = len(edits) <= QUICK_EDITS and added <= QUICK_CODE_POINTS
            buffer = await _make_buffer(edited, quick=quick)
            return self._keep(connection, key, version, buffer)

    async def edit_from(
        self, peer: Peer, project: Project, document_id: str, edited: "EditedDocument"
    ) -> OpenDocument:
        """Apply edits to a document as it is read, and keep the result as the connection's own.

        CONFLICT if it is not the one that the edits were made for.
        """
        buffer = await self.read(project, document_id, peer)
        connection = self._connection(peer)
        async with connection.order:
            if text_revision(buffer.text) != edited.revision:
                raise DaemonError(ErrorCode.CONFLICT, "The document has changed; read it again.")
            if len(edited.edits) > MAX_EDITS:
                raise _invalid(f"More than {MAX_EDITS} edits; send the whole text.")
            applied = partial(buffer.apply, edited.edits, utf16=peer.utf16)
            made = await _make_buffer(applied, quick=len(edited.edits) <= QUICK_EDITS)
            return self._keep(connection, (project.project_id, document_id), edited.version, made)

    async def close(self, peer: Peer, key: DocumentKey) -> bool:
        """Drop a connection's buffer; return whether there was one."""
        connection = self._connection(peer)
        async with connection.order:
            return connection.open.pop(key, None) is not None

    def find(self, peer: Peer | None, key: DocumentKey) -> OpenDocument | None:
        """Return the connection's own buffer, else the one that any connection synced last."""
        if peer is not None and peer.id in self._connections:
            own = self._connections[peer.id].open.get(key)
            if own is not None:
                return own
        found = (
            connection.open[key]
            for connection in self._connections.values()
            if key in connection.open
        )
        return max(found, key=lambda document: document.sync_number, default=None)

    async def find_synced(self, peer: Peer | None, key: DocumentKey) -> OpenDocument | None:
        """Return what `find` does, once the earlier syncs of the connection are done."""
        await self._wait_for_syncs(peer)
        return self.find(peer, key)

    async def _wait_for_syncs(self, peer: Peer | None) -> None:
        """Wait until the earlier syncs of a connection are done."""
        if peer is not None and (connection := self._connections.get(peer.id)) is not None:
            async with connection.order:
                pass

    async def find_all_synced(self, peer: Peer | None, project_id: str) -> dict[str, Buffer]:
        """Return what `find_synced` does for every open document of a project, by id."""
        await self._wait_for_syncs(peer)
        found = {path: one.buffer for path, one in self.open_documents(project_id).items()}
        if peer is not None and (own := self._connections.get(peer.id)) is not None:
            mine = own.open.items()
            found |= {path: one.buffer for (owner, path), one in mine if owner == project_id}
        return found

    def open_documents(self, project_id: str) -> dict[str, OpenDocument]:
        """Return a project's open documents by id, of each the one that was synced last."""
        every = (
            item for connection in self._connections.values() for item in connection.open.items()
        )
        mine = [(key[1], document) for key, document in every if key[0] == project_id]
        return dict(sorted(mine, key=lambda pair: pair[1].sync_number))

    async def read(
        self,
        project: Project,
        document_id: str,
        peer: Peer | None = None,
        *,
        on_disk: bool = False,
    ) -> Buffer:
        """Return a document as it is in the editor, else, or if that is wished, as it is on disk.

        NOT_FOUND, UNSUPPORTED or IO_ERROR if it is in neither; then an assembly degrades.
        """
        found = await self.find_synced(peer, (project.project_id, document_id))
        if found is not None and not on_disk:
            return found.buffer
        return await to_thread.run_sync(
            self._read_file, project, document_id, abandon_on_cancel=True
        )

    def read_now(
        self, project: Project, document_id: str, listed: Container[str] = ()
    ) -> Buffer | DaemonError:
        """Return a document as it is on disk, or what `read` would fail with; blocks its thread.

        `listed` are documents that were found a moment ago: no rule excludes them.
        """
        try:
            if document_id in listed:
                return self.files.read_listed(project.root, document_id)
            return self._read_file(project, document_id)
        except DaemonError as error:
            # Whoever keeps it must not keep the frames in which it was raised.
            return error.with_traceback(None)

    def _read_file(self, project: Project, document_id: str) -> Buffer:
        """Read a document on disk by its name, which may be the redacted one of a list."""
        path = unredacted_path(project.root, document_id, self._redactor)
        return self.files.read(project.root, path)

    def __len__(self) -> int:
        return sum(len(connection.open) for connection in self._connections.values())

    def _connection(self, peer: Peer) -> _ConnectionDocuments:
        connection = self._connections.get(peer.id)
        if connection is None:
            connection = self._connections[peer.id] = _ConnectionDocuments(peer.role)
            peer.when_closed(lambda: self._drop(peer.id))
        return connection

    def _keep(
        self, connection: _ConnectionDocuments, key: DocumentKey, version: int, buffer: Buffer
    ) -> OpenDocument:
        if buffer.length > self._max_code_points:
            raise _invalid(
                f"A document may have {self._max_code_points} characters at most; split it."
            )
        self._check_room(connection, key, buffer.memory)
        if key not in connection.open and len(connection.open) >= self._max_open:
            raise _invalid(f"{self._max_open} documents are open; close some first.")
        self._sync_count += 1
        connection.open[key] = OpenDocument(
            version=version, buffer=buffer, sync_number=self._sync_count
        )
        return connection.open[key]

    def _check_room(self, connection: _ConnectionDocuments, key: DocumentKey, size: int) -> None:
        """Check that pages, which may be anyone's, do not fill the memory."""
        if connection.role is Role.OWNER:
            return
        others = sum(
            document.buffer.memory
            for each in self._connections.values()
            if each.role is not Role.OWNER
            for name, document in each.open.items()
            if each is not connection or name != key
        )
        if others + size > self._max_renderer_bytes:
            raise DaemonError(
                ErrorCode.IPC_PAYLOAD_TOO_LARGE,
                "The documents that pages have open are too large together; close some first.",
                limitBytes=self._max_renderer_bytes,
                sizeBytes=others + size,
            )

    def _drop(self, peer_id: str) -> None:
        self._connections.pop(peer_id, None)


def unredacted_path(root: Path, path: str, redactor: Redactor) -> str:
    """Return the real path of a file that is listed under a redacted one; blocks its thread.

    A path without the placeholder, or that no file is listed under, is returned as it is.
    """
    if PLACEHOLDER not in path:
        return path
    folder = root
    for part in path.split("/"):
        names: list[str] = []
        if PLACEHOLDER in part and folder.is_dir() and not folder.is_symlink():
            names = sorted(entry.name for entry in folder.iterdir())
        folder /= next((name for name in names if redactor.hide_secrets(name) == part), part)
    return folder.relative_to(root).as_posix() if folder.is_relative_to(root) else path


async def _make_buffer(make: Callable[[], Buffer], *, quick: bool) -> Buffer:
    """Make a buffer here if that is quick, else in a thread."""
    return make() if quick else await to_thread.run_sync(make, abandon_on_cancel=True)


def _version_conflict(base_version: int, version: int | None) -> DaemonError:
    return DaemonError(
        ErrorCode.CONFLICT,
        "The edits are for another version than the daemon has; send the whole text.",
        baseVersion=base_version,
        currentVersion=version,
    )


def _invalid(message: str) -> DaemonError:
    return DaemonError(ErrorCode.INVALID_ARGUMENT, message)


class EditedDocument(NamedTuple):
    """Edits to the document with this revision, and the version that they make."""

    revision: str
    version: int
    edits: Sequence[Edit]


def text_revision(text: str) -> str:
    """Return the revision of a text, whatever the encoding of its file."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class _CachedDocument(Model):
    data: bytes
    buffer: Buffer


class DocumentFiles:
    """The documents on disk of all projects, for use from any thread."""

    def __init__(self, clock: Clock, is_excluded: IsExcluded = is_hidden) -> None:
        self._is_excluded = is_excluded
        self._files = FileCache(clock)
        self._buffers: Memo[tuple[Path, str], _CachedDocument] = Memo(
            CACHED_CHARACTERS, lambda _key, cached: 500 + cached.buffer.length
        )

    def read(self, root: Path, path: str) -> Buffer:
        """Read a document; line ends and positions are those on disk.

        NOT_FOUND if there is no such file or the path leads out of the project, UNSUPPORTED if
        it is no text, IO_ERROR if it is too big or cannot be read. Blocks its thread.
        """
        if not is_document_path(path) or self._is_excluded(root, path):
            raise _absent()
        if not is_document(path):
            raise _unsupported_encoding() if os.path.lexists(root / path) else _absent()
        return self.read_listed(root, path)

    def read_listed(self, root: Path, path: str) -> Buffer:
        """Read a document that was found in the project a moment ago, as `read` does."""
        data = self._read_bytes(root, path)
        cached = self._buffers.peek((root, path))
        if cached is None or cached.data is not data:
            cached = _CachedDocument(data=data, buffer=Buffer.of(decode_text(data).text))
            self._buffers.put((root, path), cached)
        return cached.buffer

    def apply_edits(
        self, data: bytes, revision: str, edits: Sequence[Edit], *, utf16: bool
    ) -> bytes:
        """Return the bytes of a file after edits to its text; encoding, byte order mark and line ends stay.

        CONFLICT if the text is another, UNSUPPORTED if its bytes cannot be derived from its text.
        """
        decoded = decode_text(data)
        if text_revision(decoded.text) != revision:
            raise DaemonError(ErrorCode.CONFLICT, "The document has changed; read it again.")
        plain = decoded.text.encode(decoded.encoding, "replace")
        bom = data[: max(0, len(data) - len(plain))]
        if bom + plain != data or len(bom) > LONGEST_BOM:
            raise DaemonError(ErrorCode.UNSUPPORTED, "The file has damaged text; save it as UTF-8.")
        if "\r\n" in decoded.text and "\n" not in decoded.text.replace("\r\n", ""):
            edits = [replace(one, text=_crlf(one.text)) for one in edits]
        text = Buffer.of(decoded.text).apply(edits, utf16=utf16).text
        try:
            return bom + well_formed(text).encode(decoded.encoding)
        except UnicodeEncodeError:
            raise _unsupported_encoding() from None

    def check(self, root: Path, path: str) -> None:
        """Fail unless a path can name a document that is read."""
        if not self._is_readable(root, path):
            raise _absent()

    def _is_readable(self, root: Path, path: str) -> bool:
        if not is_document_path(path) or self._is_excluded(root, path):
            return False
        return is_document(path)

    @property
    def reads(self) -> int:
        """How many files were read from the disk, not from the cache."""
        return self._files.reads

    def _read_bytes(self, root: Path, path: str) -> bytes:
        try:
            folder = LinkedFolder(root, may_lead_to=partial(self._is_readable, root))
            return self._files.fetch(folder, path, limit=LIMIT_BYTES).data
        except DaemonError as error:
            raise _absent() if error.code is ErrorCode.INVALID_ARGUMENT else error from None


def _crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def is_document_path(path: str) -> bool:
    """Return whether an id can name a file of the user: a plain relative path, nothing hidden."""
    return not is_hidden(Path(), path) and problem_with(path) is None


def _absent() -> DaemonError:
    return DaemonError(
        ErrorCode.NOT_FOUND, "The document is neither open nor a file of the project."
    )


def _unsupported_encoding() -> DaemonError:
    return DaemonError(ErrorCode.UNSUPPORTED, "The file is no text of a kind that is read.")
