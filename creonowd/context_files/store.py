"""`<userData>/context/`: which conversations there are and to which project each is bound.

Knows folders of conversations; knows nothing of what a file means. Everything here blocks.
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
from creonowd.errors import DaemonError, ErrorCode
from creonowd.storage import atomic

MOST_CONVERSATIONS = 1024
MOST_RECORDS = 100_000


class Recent:
    """Not guarded: its owner holds a lock."""

    def __init__(
        self, conversations: int = MOST_CONVERSATIONS, records: int = MOST_RECORDS
    ) -> None:
        self._most = conversations
        self._most_records = records
        self._kept: OrderedDict[int, tuple[ConversationFolder, int]] = OrderedDict()
        self._records = 0

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, conversation: ConversationFolder) -> None:
        """Keep a conversation as the newest; the oldest make room, but never this one."""
        self.forget(conversation)
        records = conversation.count()
        self._kept[id(conversation)] = (conversation, records)
        self._records += records
        while len(self._kept) > 1 and self._too_much():
            _, (_, fewer) = self._kept.popitem(last=False)
            self._records -= fewer

    def forget(self, conversation: ConversationFolder) -> None:
        """Keep a conversation no longer."""
        _, records = self._kept.pop(id(conversation), (None, 0))
        self._records -= records

    def _too_much(self) -> bool:
        return len(self._kept) > self._most or self._records > self._most_records


FOLDER = "context"

_WHAT = "the context files"

log = structlog.stdlib.get_logger(__name__)


class Store:
    """All conversations of this user; one object for each that is in use."""

    def __init__(self, user_data: Path, clock: Clock) -> None:
        self.root = user_data / FOLDER
        self.clock = clock
        self._lock = threading.Lock()
        self._in_use: WeakValueDictionary[str, ConversationFolder] = WeakValueDictionary()
        self._recent = Recent()
        self._recovered = False

    def find(self, project_id: str, conversation_id: str) -> ConversationFolder | None:
        """Find a conversation of a project; None if it was never used."""
        records.check_conversation_id(conversation_id)
        with self._ready():
            folder = self._folder(conversation_id)
            return None if folder is None else self._open(folder, project_id)

    def bound(self, project_id: str, conversation_id: str) -> ConversationFolder:
        """Find a conversation, or bind a new one to the project."""
        records.check_conversation_id(conversation_id)
        with self._ready():
            folder = self._folder(conversation_id)
            if folder is None:
                folder = self._create(project_id, conversation_id)
            return self._open(folder, project_id)

    def of_project(self, project_id: str) -> Iterator[ConversationFolder]:
        """Go through the conversations of a project; one that cannot be read is left out."""
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
        """Tell which projects have conversations here."""
        found: set[str] = set()
        for folder in self._folders():
            with contextlib.suppress(DaemonError, OSError):
                found |= {record_store.project_of(folder) or ""}
        return found - {""}

    def delete(self, conversation: ConversationFolder) -> list[Record]:
        """Forget a conversation and every file in it."""
        removed = conversation.remove_all()
        with self._lock, atomic.disk_errors(_WHAT):
            # Someone else may have deleted it first, and a third begun a new one of that name.
            if self._in_use.get(conversation.id.lower()) is conversation:
                del self._in_use[conversation.id.lower()]
                self._recent.forget(conversation)
                record_store.unbind(conversation.folder)
        return removed

    def behind(self) -> list[ConversationFolder]:
        """List the conversations whose index on the disk is not up to date."""
        return [one for one in list(self._in_use.values()) if one.is_behind]

    @contextlib.contextmanager
    def _ready(self) -> Generator[None]:
        """Hold the lock, after what a killed daemon left undone is done."""
        with self._lock, atomic.disk_errors(_WHAT):
            if not self._recovered:
                record_store.recover(self.root)
                self._recovered = True
            yield

    def _folders(self) -> list[Path]:
        found = record_store.plain_folder(self.root).entries(wanted=records.is_conversation_id)
        return [self.root / name for name, status in found if stat.S_ISDIR(status.st_mode)]

    def _folder(self, conversation_id: str) -> Path | None:
        """Find the folder; another spelling of the same letters is a conflict on every system."""
        lowered = conversation_id.lower()
        known = self._in_use.get(lowered)
        spelled = known.id if known is not None else self._spelled(lowered)
        if spelled is None or spelled == conversation_id:
            return None if spelled is None else self.root / spelled
        raise DaemonError(
            ErrorCode.CONFLICT,
            "Another conversation's id differs only in case; choose a different id.",
            field="conversationId",
        )

    def _spelled(self, lowered: str) -> str | None:
        """Find how a folder's name is written; the others are not looked at, there may be many."""
        files = record_store.plain_folder(self.root)
        found = files.entries(wanted=lambda name: name.lower() == lowered)
        spellings = (name for name, status in found if stat.S_ISDIR(status.st_mode))
        return next(filter(records.is_conversation_id, spellings), None)

    def _create(self, project_id: str, conversation_id: str) -> Path:
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = record_store.plain_folder(self.root).make_folder(conversation_id)
        record_store.bind(folder, project_id)
        return folder

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
