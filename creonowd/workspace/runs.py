"""The last AI runs of each document: `<userData>/runs/<project>/`, a line per run.

Now and then a file is written anew without the old runs.
"""

import asyncio
import contextlib
import queue
import threading
import weakref
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import anyio
import msgspec
import structlog
from anyio import to_thread
from msgspec.structs import replace

from creonowd.context.plan import MAX_RECENT_SUMMARY
from creonowd.errors import disk_errors
from creonowd.memo import Memo
from creonowd.model import Model
from creonowd.storage import atomic, versioned_json

FOLDER = "runs"
VERSION = 1
CACHED_DOCUMENTS = 256
MAX_LINES = 64

log = structlog.stdlib.get_logger(__name__)


class RunRecord(Model):
    """One finished run: the hash of its prompt, our count and the provider's, and a summary.

    `number` counts the runs of its document from 1; `Runs.record` sets it.
    """

    run_id: str
    skill_id: str
    at_ms: int
    provider: str
    model: str
    prompt_hash: str
    stable_prefix_hash: str
    token_count: int
    summary: str
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    verdict: str = ""
    number: int = 0


class _Head(Model):
    version: int
    document_id: str


class _DocumentRuns(NamedTuple):
    """The last runs of a document, its file, and how many lines may still be added to that."""

    path: Path
    runs: tuple[RunRecord, ...] = ()
    room: int = 0


class Runs:
    """The runs of every document; a record is written before it is acknowledged.

    No kill loses a record. A cut of the power may lose the last ones: the author has their
    results, and to wait for the disk would cost a run a tenth of its time.
    """

    def __init__(self, user_data: Path) -> None:
        self._folder = user_data / FOLDER
        self._lock = anyio.Lock(fast_acquire=True)
        self._writer = LineWriter()
        self._documents: Memo[tuple[str, str], _DocumentRuns] = Memo(CACHED_DOCUMENTS)

    async def record(self, project_id: str, document_id: str, run: RunRecord) -> None:
        """Add a run to its document's; the oldest is dropped."""
        key = (project_id, document_id)
        async with self._lock:
            before = await self._load(key)
            number = before.runs[-1].number + 1 if before.runs else 1
            runs = (*before.runs, replace(run, number=number))[-MAX_RECENT_SUMMARY:]
            # If writing fails, half a line may be there; the next record reads the file again.
            self._documents.forget(key)
            if before.room:
                await self._writer.append(before.path, _line(runs[-1]))
                room = before.room - 1
            else:
                await to_thread.run_sync(_write, before.path, document_id, runs)
                room = MAX_LINES - len(runs)
            self._documents.put(key, _DocumentRuns(before.path, runs, room))

    async def recent(self, project_id: str, document_id: str) -> tuple[RunRecord, ...]:
        """Return the last runs of a document, oldest first."""
        key = (project_id, document_id)
        if (known := self._documents.peek(key)) is not None:
            return known.runs
        async with self._lock:
            return (await self._load(key)).runs

    async def _load(self, key: tuple[str, str]) -> _DocumentRuns:
        known = self._documents.peek(key)
        if known is None:
            known = await to_thread.run_sync(_read_file, self._path(*key))
            self._documents.put(key, known)
        return known

    def _path(self, project_id: str, document_id: str) -> Path:
        name = sha256(document_id.encode()).hexdigest()[:32]
        return self._folder / project_id / f"{name}.jsonl"


def is_whole(line: bytes) -> bool:
    """Return whether a line holds a run."""
    return _decode(line) is not None


def _read_file(path: Path) -> _DocumentRuns:
    with disk_errors(FOLDER):
        try:
            head, *lines = path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return _DocumentRuns(path)
    try:
        versioned_json.decode(head, _Head, version=VERSION, name=path.name)
    except versioned_json.DamagedFileError as damage:
        log.warning("runs_set_aside", file=versioned_json.set_aside(path), damage=str(damage))
        return _DocumentRuns(path)
    runs = [run for line in lines if (run := _decode(line)) is not None]
    # A line that was torn by a kill makes the next record write the file anew.
    whole = len(runs) == len(lines) - 1 and lines[-1] == b""
    room = max(0, MAX_LINES - len(runs)) if whole else 0
    return _DocumentRuns(path, tuple(runs[-MAX_RECENT_SUMMARY:]), room)


def _decode(line: bytes) -> RunRecord | None:
    try:
        return msgspec.json.decode(line, type=RunRecord)
    except (msgspec.DecodeError, RecursionError):
        return None


def _write(path: Path, document_id: str, runs: tuple[RunRecord, ...]) -> None:
    with disk_errors(FOLDER):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    head = _line(_Head(version=VERSION, document_id=document_id))
    atomic.replace(path, head + b"".join(map(_line, runs)))


def _line(value: Model) -> bytes:
    return msgspec.json.encode(value) + b"\n"


class _PendingLine(NamedTuple):
    path: Path
    data: bytes
    written: "asyncio.Future[None]"


_Lines = queue.SimpleQueue[_PendingLine | None]


class LineWriter:
    """Appends lines to files, one after the other, in a thread of its own.

    An append takes 43 to 94 µs so and 69 to 142 µs through `to_thread` with a limiter of its own
    (medians of 3000, three times). A run may take 1.2 times its assembly, of which the short ones
    have 1.20 already: 40 µs of 3 ms would break that.
    """

    def __init__(self) -> None:
        self._lines: _Lines | None = None

    async def append(self, path: Path, data: bytes) -> None:
        """Add `data` to the end of `path`: no kill of the process loses it, a cut of the power may.

        A line that is being written is waited for even if the caller is cancelled.
        """
        lines = self._lines or self._start()
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        lines.put(_PendingLine(path, data, written))
        with anyio.CancelScope(shield=True):
            await written

    def _start(self) -> _Lines:
        """Start the thread; it ends with this object."""
        self._lines = lines = queue.SimpleQueue[_PendingLine | None]()
        weakref.finalize(self, lines.put, None)
        threading.Thread(target=_write_lines, args=(lines,), name="runs", daemon=True).start()
        return lines


def _write_lines(lines: _Lines) -> None:
    while (line := lines.get()) is not None:
        failure: Exception | None = None
        try:
            atomic.append(line.path, line.data, synced=False)
        except Exception as error:  # noqa: BLE001 - who waits for the line gets the failure
            failure = error
        loop = line.written.get_loop()
        # If the loop is closed, nobody waits any more.
        with contextlib.suppress(RuntimeError):
            if failure is None:
                loop.call_soon_threadsafe(line.written.set_result, None)
            else:
                loop.call_soon_threadsafe(line.written.set_exception, failure)
