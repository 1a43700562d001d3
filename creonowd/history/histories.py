"""The history of every conversation: `<userData>/histories/<project>/<conversation>.jsonl`."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from weakref import WeakValueDictionary

import anyio
import msgspec
import structlog
from anyio import to_thread
from msgspec import field
from msgspec.structs import replace

from creonowd.context.notice import Caution, caution
from creonowd.errors import WarningCode, same_wording
from creonowd.history import rounds
from creonowd.history.rounds import Message, Round
from creonowd.history.summary import HistorySummary
from creonowd.memo import Memo
from creonowd.model import Model
from creonowd.storage import journal

FOLDER = journal.FOLDER
REMEMBERED = 64

HistoryKey = tuple[str, str]

log = structlog.stdlib.get_logger(__name__)


class StoredSummary(Model):
    """A summary of the first `covers` rounds, and who wrote it."""

    covers: int
    summary: HistorySummary
    by_model: bool = False


class _HistoryEntry(Model):
    """One line of a history's file."""

    messages: tuple[Message, ...] = ()
    written: StoredSummary | None = None


class History(Model):
    """The rounds and summaries of a conversation; a changed history is a new value.

    `summaries` are keyed by the number of rounds that they cover. `size` is where the file ends;
    `torn` if a crash cut its last line, `damaged` counts its unreadable lines.
    """

    rounds: tuple[Round, ...] = ()
    summaries: dict[int, StoredSummary] = field(default_factory=dict[int, StoredSummary])
    size: int = 0
    torn: bool = False
    damaged: int = 0

    @property
    def open_messages(self) -> tuple[Message, ...]:
        """The messages of the last round, to which results may still come."""
        return self.rounds[-1].messages if self.rounds else ()

    @property
    def warnings(self) -> list[Caution]:
        """Warnings of lines that were lost."""
        damaged = Caution(
            code=WarningCode.HISTORY_DAMAGED_LINE,
            said=same_wording(str(self.damaged)),
            details=(("lines", self.damaged),),
        )
        return [
            *([caution(WarningCode.HISTORY_TORN_LINE)] if self.torn else []),
            *([damaged] if self.damaged else []),
        ]

    def with_summary(self, summary: StoredSummary) -> "History":
        """Return the same history with one more summary."""
        return replace(self, summaries={**self.summaries, summary.covers: summary})


class Histories:
    """All histories of this user; a change that returns is on the disk."""

    def __init__(self, user_data: Path) -> None:
        self._user_data = user_data
        self._locks: WeakValueDictionary[HistoryKey, anyio.Lock] = WeakValueDictionary()
        self._summary_locks: WeakValueDictionary[HistoryKey, anyio.Lock] = WeakValueDictionary()
        self._histories: Memo[HistoryKey, History] = Memo(REMEMBERED)

    async def read(self, key: HistoryKey) -> History:
        """Return the history of a conversation; one that never began is empty."""
        async with self.lock(key):
            return await self.current(key)

    def lock(self, key: HistoryKey) -> anyio.Lock:
        """Return the lock that who changes a history holds."""
        return self._locks.setdefault(key, anyio.Lock())

    def summary_lock(self, key: HistoryKey) -> anyio.Lock:
        """Return the lock that who summarises rounds holds; the history may change meanwhile."""
        return self._summary_locks.setdefault(key, anyio.Lock())

    async def append(self, key: HistoryKey, messages: Sequence[Message]) -> History:
        """Append checked messages, all or none; the caller holds `lock`."""
        before = await self.current(key)
        size = await self._write(key, before, _HistoryEntry(messages=tuple(messages)))
        longer = tuple(rounds.group_rounds(before.rounds, messages))
        history = replace(before, rounds=longer, size=size, torn=False)
        self._histories.put(key, history)
        return replace(history, torn=before.torn)

    async def summary_of(self, key: HistoryKey, first: Sequence[Round]) -> StoredSummary | None:
        """Return the stored summary of these first rounds, if there is one."""
        history = await self.read(key)
        return history.summaries.get(len(first)) if _begins_with(history.rounds, first) else None

    async def store_summary(
        self, key: HistoryKey, summary: StoredSummary, first: Sequence[Round]
    ) -> None:
        """Store a summary beside the rounds that it covers, unless these were cleared meanwhile."""
        async with self.lock(key):
            before = await self.current(key)
            if summary.covers in before.summaries or not _begins_with(before.rounds, first):
                return
            size = await self._write(key, before, _HistoryEntry(written=summary))
            history = replace(before.with_summary(summary), size=size, torn=False)
            self._histories.put(key, history)

    async def clear(self, key: HistoryKey) -> int:
        """Erase a history; return how many rounds it had."""
        async with self.lock(key):
            before = await self.current(key)
            await to_thread.run_sync(journal.erase, self._path(key))
            self._histories.forget(key)
            return len(before.rounds)

    async def current(self, key: HistoryKey) -> History:
        """Return the history; the caller holds `lock`."""
        history = self._histories.peek(key)
        size = await to_thread.run_sync(journal.size_of, self._path(key))
        if history is None or (history.size != size and not history.torn):
            history = await to_thread.run_sync(_load, self._path(key))
            self._histories.put(key, history)
        return history

    def forget(self, key: HistoryKey) -> None:
        """Read a history from the disk at its next use; the caller holds `lock`."""
        self._histories.forget(key)

    async def _write(self, key: HistoryKey, before: History, entry: _HistoryEntry) -> int:
        data = msgspec.json.encode(entry)
        return await to_thread.run_sync(journal.append, self._path(key), before.size, data)

    def _path(self, key: HistoryKey) -> Path:
        return journal.path_of(self._user_data, *key)


def encode_messages(messages: Sequence[Message]) -> bytes:
    """Return the line of a history's file that adds these messages."""
    return journal.encode(msgspec.json.encode(_HistoryEntry(messages=tuple(messages))))


def encode_summaries(summaries: Iterable[StoredSummary]) -> bytes:
    """Return the lines of a history's file that add these summaries."""
    entries = (_HistoryEntry(written=summary) for summary in summaries)
    return b"".join(journal.encode(msgspec.json.encode(entry)) for entry in entries)


def _begins_with(rounds: Sequence[Round], first: Sequence[Round]) -> bool:
    pairs = zip(rounds, first, strict=False)
    return len(rounds) >= len(first) and all(a is b or a.messages == b.messages for a, b in pairs)


def _load(path: Path) -> History:
    found = journal.replay(path)
    entries: list[_HistoryEntry] = []
    unreadable = 0
    for data in found.entries:
        try:
            entries.append(msgspec.json.decode(data, type=_HistoryEntry))
        except msgspec.DecodeError:
            unreadable += 1
    damaged = found.damaged + unreadable
    if found.torn or damaged:
        log.warning("history_damaged", torn=found.torn, lines=damaged)
    messages = [message for entry in entries for message in entry.messages]
    summaries = [entry.written for entry in entries if entry.written is not None]
    return History(
        rounds=tuple(rounds.group_rounds((), messages)),
        summaries={summary.covers: summary for summary in summaries},
        size=found.size,
        torn=found.torn,
        damaged=damaged,
    )
