"""The documents of a project: as they are open in an editor, else as they are on disk.

There is one buffer per connection and document; it is dropped with either.
"""

import os
from collections.abc import Callable, Container, Sequence
from functools import partial
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
from creonowd.rpc.peer import Peer
from creonowd.storage.file_cache import FileCache
from creonowd.storage.safe_folder import LinkedFolder, problem_with
from creonowd.text import decode_text, well_formed
from creonowd.workspace.buffer import Buffer, Edit, memory_of
from creonowd.workspace.creonow_tree import is_document
from creonowd.workspace.projects import Project

LIMIT_BYTES = 64 * 1024 * 1024
CACHED_CHARACTERS = 8_000_000
MAX_OPEN = 1000
MAX_CODE_POINTS = 32 * 1024 * 1024
MAX_RENDERER_BYTES = 16 * 1024 * 1024
MAX_EDITS = 10_000
QUICK_EDITS = 64
QUICK_CODE_POINTS = 64 * 1024
LONGEST_MARK = 4

DocumentKey = tuple[str, str]

DocumentId = Annotated[str, Meta(max_length=4096)]

IsExcluded = Callable[[Path, str], bool]


def is_hidden(_root: Path, path: str) -> bool:
    """Return whether a path is hidden; what is ignored besides, a catalogue knows."""
    return any(name.startswith(".") for name in path.split("/"))


class OpenDocument(Model):
    """A buffer at one version; of two, the one with the greater `turn` was synced last."""

    version: int
    buffer: Buffer
    turn: int


class _OpenDocuments:
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
        self._connections: dict[str, _OpenDocuments] = {}
        self._turn = 0

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
        return max(found, key=lambda document: document.turn, default=None)

    async def find_synced(self, peer: Peer | None, key: DocumentKey) -> OpenDocument | None:
        """Return what `find` does after all that the same connection synced before."""
        await self._settle(peer)
        return self.find(peer, key)

    async def _settle(self, peer: Peer | None) -> None:
        """Wait for all that a connection synced before."""
        if peer is not None and (connection := self._connections.get(peer.id)) is not None:
            async with connection.order:
                pass

    async def synced(self, peer: Peer | None, project_id: str) -> dict[str, Buffer]:
        """Return what `find_synced` does for every open document of a project, by id."""
        await self._settle(peer)
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
        return dict(sorted(mine, key=lambda pair: pair[1].turn))

    async def read(self, project: Project, document_id: str, peer: Peer | None = None) -> Buffer:
        """Return a document as it is in the editor, else as it is on disk.

        NOT_FOUND, UNSUPPORTED or IO_ERROR if it is in neither; then an assembly degrades.
        """
        found = await self.find_synced(peer, (project.project_id, document_id))
        if found is not None:
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
            return error

    def _read_file(self, project: Project, document_id: str) -> Buffer:
        """Read a document on disk by its name, be that as it is listed: without a secret."""
        if PLACEHOLDER in document_id:
            document_id = spell_out(project.root, document_id, self._redactor)
        return self.files.read(project.root, document_id)

    def __len__(self) -> int:
        return sum(len(connection.open) for connection in self._connections.values())

    def _connection(self, peer: Peer) -> _OpenDocuments:
        connection = self._connections.get(peer.id)
        if connection is None:
            connection = self._connections[peer.id] = _OpenDocuments(peer.role)
            peer.when_closed(lambda: self._drop(peer.id))
        return connection

    def _keep(
        self, connection: _OpenDocuments, key: DocumentKey, version: int, buffer: Buffer
    ) -> OpenDocument:
        if buffer.length > self._max_code_points:
            raise _invalid(
                f"A document may have {self._max_code_points} characters at most; split it."
            )
        self._check_room(connection, key, buffer.memory)
        if key not in connection.open and len(connection.open) >= self._max_open:
            raise _invalid(f"{self._max_open} documents are open; close some first.")
        self._turn += 1
        connection.open[key] = OpenDocument(version=version, buffer=buffer, turn=self._turn)
        return connection.open[key]

    def _check_room(self, connection: _OpenDocuments, key: DocumentKey, size: int) -> None:
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


def spell_out(root: Path, document_id: str, redactor: Redactor) -> str:
    """Return the document whose name was listed with its secret hidden; the id itself if none."""
    folder = root
    for part in document_id.split("/"):
        names: list[str] = []
        if PLACEHOLDER in part and folder.is_dir() and not folder.is_symlink():
            names = sorted(entry.name for entry in folder.iterdir())
        folder /= next((name for name in names if redactor.hide_secrets(name) == part), part)
    return folder.relative_to(root).as_posix() if folder.is_relative_to(root) else document_id


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
    """Return the revision of a text; how its file spells it does not matter."""
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
        """Read a document that was found in the project a moment ago, likewise."""
        data = self._read_bytes(root, path)
        cached = self._buffers.peek((root, path))
        if cached is None or cached.data is not data:
            cached = _CachedDocument(data=data, buffer=Buffer.of(decode_text(data).text))
            self._buffers.put((root, path), cached)
        return cached.buffer

    def edited(self, data: bytes, revision: str, edits: Sequence[Edit], *, utf16: bool) -> bytes:
        """Return the bytes of a file after edits to its text; encoding, mark and line ends stay.

        CONFLICT if the text is another, UNSUPPORTED if its bytes cannot be told from its text.
        """
        decoded = decode_text(data)
        if text_revision(decoded.text) != revision:
            raise DaemonError(ErrorCode.CONFLICT, "The document has changed; read it again.")
        plain = decoded.text.encode(decoded.encoding, "replace")
        mark = data[: max(0, len(data) - len(plain))]
        if mark + plain != data or len(mark) > LONGEST_MARK:
            raise DaemonError(ErrorCode.UNSUPPORTED, "The file has damaged text; save it as UTF-8.")
        if "\r\n" in decoded.text and "\n" not in decoded.text.replace("\r\n", ""):
            edits = [replace(one, text=_crlf(one.text)) for one in edits]
        text = Buffer.of(decoded.text).apply(edits, utf16=utf16).text
        try:
            return mark + well_formed(text).encode(decoded.encoding)
        except UnicodeEncodeError:
            raise _unsupported_encoding() from None

    def check(self, root: Path, path: str) -> None:
        """Fail unless a path can name a document that is read."""
        if not is_document_path(path) or self._is_excluded(root, path) or not is_document(path):
            raise _absent()

    @property
    def reads(self) -> int:
        """How many files were read from the disk, not from the cache."""
        return self._files.reads

    def _read_bytes(self, root: Path, path: str) -> bytes:
        try:
            return self._files.fetch(LinkedFolder(root), path, limit=LIMIT_BYTES).data
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
