"""Saving and finding the conversations of a project, one writer at a time.

Knows what a save keeps of what was there; how files and index look stands in
`conversation_folder`.
"""

import contextlib
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
from anyio import to_thread

from creonowd.clock import Clock, iso
from creonowd.errors import DaemonError, ErrorCode
from creonowd.redaction import Redactor
from creonowd.workspace import atomic, stored
from creonowd.workspace.conversation_file import (
    VERSION,
    ConversationEntry,
    Document,
    check,
    check_analysis,
    check_id,
    saved,
)
from creonowd.workspace.conversation_folder import (
    FOLDER,
    Listing,
    find_all,
    path_of,
    read_document,
    write_document,
    write_index,
)
from creonowd.workspace.conversation_texts import restored
from creonowd.workspace.locks import locked
from creonowd.workspace.paths import TREE
from creonowd.workspace.registry import Project
from creonowd.workspace.tree import make_folder

CACHE = f"{TREE}/cache"
LOCK = "conversations.lock"
LEFTOVER_MS = 60_000

T = TypeVar("T")


class Conversations:
    """The conversations of all projects; a save is on the disk before it is acknowledged."""

    def __init__(self, clock: Clock, redactor: Redactor) -> None:
        self._clock = clock
        self._redactor = redactor
        self._turns: defaultdict[Path, anyio.Lock] = defaultdict(anyio.Lock)

    async def list(self, project: Project) -> Listing:
        """List all conversations, newest first; the index is rebuilt if it does not fit."""
        listing = await to_thread.run_sync(find_all, project.root, self._clock.now_ms())
        if not listing.fresh:
            # Where nothing can be written, the list is only slower.
            with contextlib.suppress(DaemonError):
                await self._in_turn(project, partial(self._reindex, project.root))
        return listing

    async def read(self, project: Project, conversation_id: str) -> Document:
        """Read a conversation as it was saved."""
        check_id(conversation_id)
        return await to_thread.run_sync(read_document, project.root, conversation_id)

    async def save(self, project: Project, conversation: Document) -> ConversationEntry:
        """Save a conversation under its id, or a new one; what was there keeps its beginning."""
        known = check(conversation, "conversation")
        minted = self._clock.new_id("cnv")
        given = minted if known.id is None else check_id(known.id, "conversation.id")
        return await self._in_turn(project, partial(self._save, project.root, given, conversation))

    async def analyse(
        self, project: Project, conversation_id: str, analysis: Document
    ) -> ConversationEntry:
        """Supply the analysis of a conversation; its place in the list stays."""
        check_id(conversation_id)
        check_analysis(analysis)
        work = partial(self._analyse, project.root, conversation_id, analysis)
        return await self._in_turn(project, work)

    async def _in_turn(self, project: Project, work: Callable[[], T]) -> T:
        async with self._turns[project.root]:
            return await to_thread.run_sync(self._locked, project.root, work)

    def _locked(self, root: Path, work: Callable[[], T]) -> T:
        for folder in (TREE, FOLDER, CACHE):
            make_folder(root, folder)
        with locked(root / CACHE / LOCK):
            atomic.sweep(root / FOLDER, self._clock.now_ms() - LEFTOVER_MS)
            return work()

    def _save(self, root: Path, conversation_id: str, sent: Document) -> ConversationEntry:
        _refuse_other_case(root, conversation_id)
        before = _before(root, conversation_id)
        document = saved(before, sent, iso(self._clock.now_ms()), self._shown)
        write_document(
            root, conversation_id, {"version": VERSION, "id": conversation_id} | document
        )
        return self._indexed(root, conversation_id)

    def _analyse(self, root: Path, conversation_id: str, analysis: Document) -> ConversationEntry:
        document = read_document(root, conversation_id)
        found = restored(analysis, document, self._shown)
        write_document(root, conversation_id, document | {"analysis": found})
        return self._indexed(root, conversation_id)

    def _indexed(self, root: Path, conversation_id: str) -> ConversationEntry:
        listing = self._reindex(root)
        return next(e.entry for e in listing.known if e.entry.id == conversation_id)

    def _reindex(self, root: Path) -> Listing:
        listing = find_all(root, self._clock.now_ms())
        write_index(root, listing)
        return listing

    def _shown(self, text: str) -> str:
        return self._redactor.redact(text).text


def _before(root: Path, conversation_id: str) -> Document:
    """Read what a save replaces; a damaged file is set aside, not lost."""
    try:
        return read_document(root, conversation_id)
    except DaemonError as error:
        if error.details.get("reason") == "invalid_format":
            stored.set_aside(root / path_of(conversation_id))
        elif error.code is not ErrorCode.NOT_FOUND:
            raise
    return {}


def _refuse_other_case(root: Path, conversation_id: str) -> None:
    """Refuse an id that on many disks would be the file of another."""
    name = f"{conversation_id}.json"
    for known in (entry.name for entry in (root / FOLDER).iterdir()):
        if known != name and known.lower() == name.lower():
            raise DaemonError(
                ErrorCode.CONFLICT,
                "There is a conversation whose id differs only in case; choose another id.",
                field="conversation.id",
            )
