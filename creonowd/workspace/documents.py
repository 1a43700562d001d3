"""Documents open in an editor: one buffer per connection and document, gone with either.

Knows buffers, versions and owners; what lies on disk is the business of `document_files`.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Annotated

import anyio
from anyio import to_thread
from msgspec import Meta

from creonowd.clock import Clock
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model
from creonowd.rpc.peer import Peer
from creonowd.storage.encodings import decode_text
from creonowd.storage.file_cache import FileCache
from creonowd.storage.relative_paths import problem_with
from creonowd.storage.safe_folder import FileSnapshot, LinkedFolder
from creonowd.workspace.buffer import Buffer, Edit
from creonowd.workspace.projects import Project

LIMIT_BYTES = 64 * 1024 * 1024
KEPT = 16


class _CachedDocument(Model):
    data: bytes
    buffer: Buffer


class DocumentFiles:
    """The documents on disk of all projects; safe to use from any thread."""

    def __init__(self, clock: Clock) -> None:
        self._files = FileCache(clock)
        self._kept: OrderedDict[tuple[Path, str], _CachedDocument] = OrderedDict()
        self._lock = Lock()

    def read(self, root: Path, path: str) -> Buffer:
        """Read a document; line ends and positions are those on disk.

        NOT_FOUND if there is no such file or the path leads out of the project, UNSUPPORTED if
        it is no text, IO_ERROR if it is too big or cannot be read. Blocks its thread.
        """
        if not is_document_path(path):
            raise _absent()
        opened = self._opened(root, path)
        with self._lock:
            kept = self._kept.get((root, path))
        if kept is None or kept.data is not opened.data:
            kept = _CachedDocument(
                data=opened.data, buffer=Buffer.of(decode_text(opened.data).text)
            )
            self._keep((root, path), kept)
        return kept.buffer

    @property
    def reads(self) -> int:
        """How many files were really read."""
        return self._files.reads

    def _opened(self, root: Path, path: str) -> FileSnapshot:
        try:
            return self._files.fetch(LinkedFolder(root), path, limit=LIMIT_BYTES)
        except DaemonError as error:
            raise _absent() if error.code is ErrorCode.INVALID_ARGUMENT else error from None

    def _keep(self, key: tuple[Path, str], read: _CachedDocument) -> None:
        with self._lock:
            self._kept[key] = read
            self._kept.move_to_end(key)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)


def is_document_path(path: str) -> bool:
    """Tell whether an id can name a file of the user: relative, plain, and nothing hidden."""
    hidden = any(name.startswith(".") for name in path.split("/"))
    return not hidden and problem_with(path) is None


def _absent() -> DaemonError:
    return DaemonError(
        ErrorCode.NOT_FOUND, "The document is neither open nor a file of the project."
    )


MAX_OPEN = 1000
MAX_CODE_POINTS = 32 * 1024 * 1024
MAX_EDITS = 10_000
QUICK_EDITS = 64
QUICK_CODE_POINTS = 64 * 1024

Key = tuple[str, str]

DocumentId = Annotated[str, Meta(max_length=4096)]


class OpenDocument(Model):
    """A buffer at one version; `turn` tells which of two was synced last."""

    version: int
    buffer: Buffer
    turn: int


class _Desk:
    """What one connection has open; its syncs take effect in the order in which they came."""

    def __init__(self) -> None:
        self.order = anyio.Lock(fast_acquire=True)
        self.open: dict[Key, OpenDocument] = {}


class Documents:
    """The open documents of all connections."""

    def __init__(
        self,
        clock: Clock,
        *,
        max_open: int = MAX_OPEN,
        max_code_points: int = MAX_CODE_POINTS,
    ) -> None:
        self.files = DocumentFiles(clock)
        self._max_open = max_open
        self._max_code_points = max_code_points
        self._desks: dict[str, _Desk] = {}
        self._turn = 0

    async def replace(self, peer: Peer, key: Key, version: int, text: str) -> OpenDocument:
        """Take a document's whole text."""
        desk = self._desk(peer)
        async with desk.order:
            quick = len(text) <= QUICK_CODE_POINTS
            buffer = await _made(partial(Buffer.of, text), quick=quick)
            return self._keep(desk, key, version, buffer)

    async def edit(
        self, peer: Peer, key: Key, base_version: int, version: int, edits: Sequence[Edit]
    ) -> OpenDocument:
        """Apply edits to the version they were made for, all or none.

        CONFLICT if that is not the version we have: the client sends the whole text then.
        """
        desk = self._desk(peer)
        async with desk.order:
            known = desk.open.get(key)
            if known is None or known.version != base_version:
                raise _gap(base_version, None if known is None else known.version)
            if version <= base_version:
                raise _refused("`version` must be greater than `baseVersion`.")
            if len(edits) > MAX_EDITS:
                raise _refused(f"More than {MAX_EDITS} edits; send the whole text.")
            edited = partial(known.buffer.edited, edits, utf16=peer.utf16)
            quick = len(edits) <= QUICK_EDITS and _added(edits) <= QUICK_CODE_POINTS
            buffer = await _made(edited, quick=quick)
            return self._keep(desk, key, version, buffer)

    async def close(self, peer: Peer, key: Key) -> bool:
        """Forget a connection's buffer; tell whether there was one."""
        desk = self._desk(peer)
        async with desk.order:
            return desk.open.pop(key, None) is not None

    def find(self, peer: Peer | None, key: Key) -> OpenDocument | None:
        """Find the connection's own buffer, else the one that anyone synced last."""
        if peer is not None and peer.id in self._desks:
            own = self._desks[peer.id].open.get(key)
            if own is not None:
                return own
        found = (desk.open[key] for desk in self._desks.values() if key in desk.open)
        return max(found, key=lambda document: document.turn, default=None)

    def opened(self, project_id: str) -> dict[str, OpenDocument]:
        """Give a project's open documents by id, of each the one that was synced last."""
        every = (item for desk in self._desks.values() for item in desk.open.items())
        mine = [(key[1], document) for key, document in every if key[0] == project_id]
        return dict(sorted(mine, key=lambda pair: pair[1].turn))

    async def read(self, project: Project, document_id: str, peer: Peer | None = None) -> Buffer:
        """Give a document's text as it is in the editor, else as it is on disk.

        What the same connection synced before it asked is waited for. NOT_FOUND, UNSUPPORTED or
        IO_ERROR if it is neither; an assembly degrades then.
        """
        if peer is not None and peer.id in self._desks:
            async with self._desks[peer.id].order:
                pass
        found = self.find(peer, (project.project_id, document_id))
        if found is not None:
            return found.buffer
        return await to_thread.run_sync(
            self.files.read, project.root, document_id, abandon_on_cancel=True
        )

    def __len__(self) -> int:
        return sum(len(desk.open) for desk in self._desks.values())

    def _desk(self, peer: Peer) -> _Desk:
        desk = self._desks.get(peer.id)
        if desk is None:
            desk = self._desks[peer.id] = _Desk()
            peer.when_closed(lambda: self._drop(peer.id))
        return desk

    def _keep(self, desk: _Desk, key: Key, version: int, buffer: Buffer) -> OpenDocument:
        most, documents = self._max_code_points, self._max_open
        if buffer.length > most:
            raise _refused(f"A document may have {most} characters at most; split it.")
        if key not in desk.open and len(desk.open) >= documents:
            raise _refused(f"{documents} documents are open; close some first.")
        self._turn += 1
        desk.open[key] = OpenDocument(version=version, buffer=buffer, turn=self._turn)
        return desk.open[key]

    def _drop(self, owner: str) -> None:
        self._desks.pop(owner, None)


def _added(edits: Sequence[Edit]) -> int:
    return sum(len(edit.text) for edit in edits)


async def _made(make: Callable[[], Buffer], *, quick: bool) -> Buffer:
    """Make a buffer; what takes longer than a blink is made in a thread."""
    return make() if quick else await to_thread.run_sync(make, abandon_on_cancel=True)


def _gap(base_version: int, version: int | None) -> DaemonError:
    return DaemonError(
        ErrorCode.CONFLICT,
        "The edits are for another version than the daemon has; send the whole text.",
        baseVersion=base_version,
        currentVersion=version,
    )


def _refused(message: str) -> DaemonError:
    return DaemonError(ErrorCode.INVALID_ARGUMENT, message)
