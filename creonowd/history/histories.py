"""The history of every conversation: `<userData>/histories/<project>/<conversation>.jsonl`.

Knows entries, rounds and summaries; what a message says is settled before it comes here.
"""

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from weakref import WeakValueDictionary

import anyio
import msgspec
import structlog
from anyio import to_thread
from msgspec import field
from msgspec.structs import replace

from creonowd.errors import WarningCode, warning_text
from creonowd.history import rounds
from creonowd.history.rounds import Message, Round
from creonowd.history.summary import HistorySummary
from creonowd.model import Model
from creonowd.storage import journal

FOLDER = "histories"
REMEMBERED = 32

Key = tuple[str, str]

logger = structlog.stdlib.get_logger(__name__)


class Written(Model):
    """A summary of the first `covers` rounds, and who wrote it."""

    covers: int
    summary: HistorySummary
    by_model: bool = False


class _HistoryEntry(Model):
    messages: tuple[Message, ...] = ()
    written: Written | None = None


class History(Model):
    """What a conversation holds now; a changed one is a new value.

    `size` is where its log ends, `torn` and `damaged` what a crash or a bad disk has cost.
    """

    rounds: tuple[Round, ...] = ()
    written: dict[int, Written] = field(default_factory=dict[int, Written])
    size: int = 0
    torn: bool = False
    damaged: int = 0

    @property
    def open_messages(self) -> tuple[Message, ...]:
        """The messages of the last round, to which results may still come."""
        return self.rounds[-1].messages if self.rounds else ()

    @property
    def warnings(self) -> list[str]:
        """What was lost."""
        damaged = f"{WarningCode.HISTORY_DAMAGED_LINE}: {self.damaged}"
        return [
            *([warning_text(WarningCode.HISTORY_TORN_LINE)] if self.torn else []),
            *([damaged] if self.damaged else []),
        ]

    def with_summary(self, written: Written) -> "History":
        """Give the same history with one more summary."""
        return replace(self, written={**self.written, written.covers: written})


class Histories:
    """All histories of this user; what is acknowledged is on the disk."""

    def __init__(self, user_data: Path) -> None:
        self._folder = user_data / FOLDER
        self._locks: WeakValueDictionary[Key, anyio.Lock] = WeakValueDictionary()
        self._pens: WeakValueDictionary[Key, anyio.Lock] = WeakValueDictionary()
        self._known: OrderedDict[Key, History] = OrderedDict()

    async def read(self, key: Key) -> History:
        """Give the history of a conversation; one that never began is empty."""
        async with self.changing(key):
            return await self.current(key)

    def changing(self, key: Key) -> anyio.Lock:
        """Keep others from changing a history while the block runs."""
        return self._locks.setdefault(key, anyio.Lock())

    def summarising(self, key: Key) -> anyio.Lock:
        """Keep others from having the same rounds summarised; the history may change meanwhile."""
        return self._pens.setdefault(key, anyio.Lock())

    async def append(self, key: Key, messages: Sequence[Message]) -> History:
        """Add checked messages, all or none; the caller holds `changing`."""
        before = await self.current(key)
        size = await self._write(key, before, _HistoryEntry(messages=tuple(messages)))
        grown = tuple(rounds.grouped(before.rounds, messages))
        self._keep(key, replace(before, rounds=grown, size=size, torn=False))
        return replace(self._known[key], torn=before.torn)

    async def summary_of(self, key: Key, told: Sequence[Round]) -> Written | None:
        """Give the summary that is kept of these first rounds, if there is one."""
        history = await self.read(key)
        return history.written.get(len(told)) if _begins_with(history.rounds, told) else None

    async def keep_summary(self, key: Key, written: Written, told: Sequence[Round]) -> None:
        """Keep a summary beside the rounds that it tells, unless these were cleared meanwhile."""
        async with self.changing(key):
            before = await self.current(key)
            if written.covers in before.written or not _begins_with(before.rounds, told):
                return
            size = await self._write(key, before, _HistoryEntry(written=written))
            known = {**before.written, written.covers: written}
            self._keep(key, replace(before, written=known, size=size, torn=False))

    async def clear(self, key: Key) -> int:
        """Forget a history; tells how many rounds it had."""
        async with self.changing(key):
            before = await self.current(key)
            await to_thread.run_sync(journal.erase, self._path(key))
            self._known.pop(key, None)
            return len(before.rounds)

    async def current(self, key: Key) -> History:
        """Give the history to someone who holds `changing`."""
        known = self._known.get(key)
        size = await to_thread.run_sync(journal.size_of, self._path(key))
        if known is None or (known.size != size and not known.torn):
            known = await to_thread.run_sync(_load, self._path(key))
        self._keep(key, known)
        return known

    async def _write(self, key: Key, before: History, entry: _HistoryEntry) -> int:
        data = msgspec.json.encode(entry)
        return await to_thread.run_sync(journal.append, self._path(key), before.size, data)

    def _keep(self, key: Key, history: History) -> None:
        self._known[key] = history
        self._known.move_to_end(key)
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)

    def _path(self, key: Key) -> Path:
        return self._folder / key[0] / f"{key[1]}.jsonl"


def _begins_with(rounds: Sequence[Round], told: Sequence[Round]) -> bool:
    pairs = zip(rounds, told, strict=False)
    return len(rounds) >= len(told) and all(a is b or a.messages == b.messages for a, b in pairs)


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
        logger.warning("history_damaged", torn=found.torn, lines=damaged)
    messages = [message for entry in entries for message in entry.messages]
    written = [entry.written for entry in entries if entry.written is not None]
    return History(
        rounds=tuple(rounds.grouped((), messages)),
        written={each.covers: each for each in written},
        size=found.size,
        torn=found.torn,
        damaged=damaged,
    )
