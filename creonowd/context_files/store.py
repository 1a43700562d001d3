"""`<userData>/context/`: the conversations on this disk, each bound to one project.

Everything here blocks.
"""

import contextlib
import stat
import threading
from collections import OrderedDict
from collections.abc import Generator, Iterator
from pathlib import Path
from weakref import WeakValueDictionary

import structlog

from creonowd.clock import Clock
from creonowd.context_files import record_store, records
from creonowd.context_files.folder import ConversationFolder
from creonowd.context_files.records import Record
from creonowd.errors import DaemonError, ErrorCode, disk_errors
from creonowd.storage import atomic

FOLDER = "context"
MAX_RECENT_CONVERSATIONS = 1024
MAX_RECENT_RECORDS = 100_000

_WHAT = "the context files"

log = structlog.stdlib.get_logger(__name__)


class Store:
    """All conversations of this user; one `ConversationFolder` for each that is in use."""

    def __init__(self, user_data: Path, clock: Clock) -> None:
        self.root = user_data / FOLDER
        self.clock = clock
        self._lock = threading.Lock()
        self._in_use: WeakValueDictionary[str, ConversationFolder] = WeakValueDictionary()
        self._recent = RecentConversations()
        self._recovered = False

    def recover(self) -> None:
        """Finish or undo what a killed daemon left, if nobody has used the store yet."""
        with self._ready():
            pass

    def find(self, project_id: str, conversation_id: str) -> ConversationFolder | None:
        """Find a conversation of a project; None if it was never used."""
        records.check_conversation_id(conversation_id)
        with self._ready():
            folder = self._folder(conversation_id)
            return None if folder is None else self._open(folder, project_id)

    def find_or_create(self, project_id: str, conversation_id: str) -> ConversationFolder:
        """Find a conversation, or bind a new one to the project."""
        records.check_conversation_id(conversation_id)
        with self._ready():
            folder = self._folder(conversation_id)
            if folder is None:
                atomic.make_folders(self.root)
                folder = record_store.plain_folder(self.root).make_folder(conversation_id)
                record_store.bind(folder, project_id)
            return self._open(folder, project_id)

    def of_project(self, project_id: str) -> Iterator[ConversationFolder]:
        """Yield the conversations of a project; skip and log one that cannot be read."""
        for folder in self._folders():
            with self._ready():
                try:
                    if record_store.project_of(folder) != project_id:
                        continue
                    conversation = self._open(folder, project_id)
                except (DaemonError, OSError) as error:
                    log.warning("context_files_unreadable", reason=type(error).__name__)
                    continue
            yield conversation

    def projects(self) -> set[str]:
        """Return the ids of the projects that have conversations here."""
        found: set[str] = set()
        for folder in self._folders():
            with contextlib.suppress(DaemonError, OSError):
                found |= {record_store.project_of(folder) or ""}
        return found - {""}

    def delete(self, conversation: ConversationFolder) -> list[Record]:
        """Delete a conversation and every file in it; return their records."""
        removed = conversation.remove_all()
        with self._lock, disk_errors(_WHAT):
            # Someone else may have deleted it first, and another caller may have created a new one.
            if self._in_use.get(conversation.id.lower()) is conversation:
                del self._in_use[conversation.id.lower()]
                self._recent.forget(conversation)
                record_store.unbind(conversation.folder)
        return removed

    def with_stale_manifest(self) -> list[ConversationFolder]:
        """List the conversations whose index on the disk is not up to date."""
        return [one for one in list(self._in_use.values()) if one.manifest_is_stale]

    @contextlib.contextmanager
    def _ready(self) -> Generator[None]:
        """Hold the lock; the first time, recover from what a killed daemon left."""
        with self._lock, disk_errors(_WHAT):
            if not self._recovered:
                record_store.recover(self.root)
                self._recovered = True
            yield

    def _folders(self) -> list[Path]:
        found = record_store.plain_folder(self.root).entries(wanted=records.is_conversation_id)
        return [self.root / name for name, status in found if stat.S_ISDIR(status.st_mode)]

    def _folder(self, conversation_id: str) -> Path | None:
        """Find the folder; CONFLICT on every system if an id differs from it only in case."""
        lowered = conversation_id.lower()
        in_use = self._in_use.get(lowered)
        name = in_use.id if in_use is not None else self._folder_name(lowered)
        if name is None:
            return None
        if name == conversation_id:
            return self.root / name
        raise DaemonError(
            ErrorCode.CONFLICT,
            "Another conversation's id differs only in case; choose a different id.",
            field="conversationId",
        )

    def _folder_name(self, lowered: str) -> str | None:
        files = record_store.plain_folder(self.root)
        found = files.entries(wanted=lambda name: name.lower() == lowered)
        names = (name for name, status in found if stat.S_ISDIR(status.st_mode))
        return next(filter(records.is_conversation_id, names), None)

    def _open(self, folder: Path, project_id: str) -> ConversationFolder:
        conversation = self._in_use.get(folder.name.lower())
        owner = conversation.project_id if conversation else record_store.project_of(folder)
        if owner is None:
            record_store.bind(folder, project_id)
        elif owner != project_id:
            log.warning("context_scope_violation", what="conversation")
            raise DaemonError(
                ErrorCode.CONTEXT_SCOPE_VIOLATION,
                "The conversation belongs to another project; use an id of its own for each.",
                field="conversationId",
            )
        if conversation is None:
            conversation = ConversationFolder(folder, project_id, self.clock)
            self._in_use[folder.name.lower()] = conversation
        self._recent.keep(conversation)
        return conversation


class RecentConversations:
    """The conversations that were last used, within limits on them and on their records.

    Not guarded: its owner holds a lock. `Memo` would not do: a conversation grows while it is
    kept, and the one in use stays however big it is.
    """

    def __init__(
        self,
        max_conversations: int = MAX_RECENT_CONVERSATIONS,
        max_records: int = MAX_RECENT_RECORDS,
    ) -> None:
        self._max_conversations = max_conversations
        self._max_records = max_records
        self._entries: OrderedDict[int, tuple[ConversationFolder, int]] = OrderedDict()
        self._record_count = 0

    def __len__(self) -> int:
        return len(self._entries)

    def keep(self, conversation: ConversationFolder) -> None:
        """Keep a conversation as the newest; drop the oldest until the limits hold, but never it."""
        self.forget(conversation)
        count = conversation.count()
        self._entries[id(conversation)] = (conversation, count)
        self._record_count += count
        while len(self._entries) > 1 and (
            len(self._entries) > self._max_conversations or self._record_count > self._max_records
        ):
            _, (_, count) = self._entries.popitem(last=False)
            self._record_count -= count

    def forget(self, conversation: ConversationFolder) -> None:
        """Drop a conversation."""
        _, count = self._entries.pop(id(conversation), (None, 0))
        self._record_count -= count
