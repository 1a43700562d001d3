"""What AI runs came to, the last few of each document: `<userData>/runs/<project>/`.

One line per run, appended; now and then a file is written anew without the old ones. Knows
records and files; what a summary says is decided where it is made.
"""

from collections import OrderedDict
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import anyio
import msgspec
import structlog
from anyio import to_thread
from msgspec.structs import replace

from creonowd.context.plan import MAX_RECENT_SUMMARY
from creonowd.errors import DaemonError
from creonowd.model import Model
from creonowd.storage import atomic, versioned_json
from creonowd.storage.journal import LineWriter

FOLDER = "runs"
VERSION = 1
REMEMBERED = 256
MOST_LINES = 64

log = structlog.stdlib.get_logger(__name__)


class RunRecord(Model):
    """One finished run: what was sent by hash, our count beside the provider's, and a summary.

    `number` counts the runs of its document from 1; it is given when the run is recorded.
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


class _Book(NamedTuple):
    """The last runs of a document, its file, and how many lines may still be added to that."""

    path: Path
    runs: tuple[RunRecord, ...] = ()
    room: int = 0


class Runs:
    """The runs of every document; a record is written before it is acknowledged.

    No kill loses one. A cut of the power may lose the last ones: they only tell of what the
    author has, and to wait for the disk would cost a run a tenth of its time.
    """

    def __init__(self, user_data: Path) -> None:
        self._folder = user_data / FOLDER
        self._lock = anyio.Lock(fast_acquire=True)
        self._pen = LineWriter()
        self._known: OrderedDict[tuple[str, str], _Book] = OrderedDict()

    async def record(self, project_id: str, document_id: str, run: RunRecord) -> None:
        """Add a run to its document's; the oldest makes room."""
        key = (project_id, document_id)
        async with self._lock:
            book = await self._book(key)
            numbered = replace(run, number=book.runs[-1].number + 1 if book.runs else 1)
            runs = (*book.runs, numbered)[-MAX_RECENT_SUMMARY:]
            try:
                room = await self._put(book, document_id, runs)
            except DaemonError:
                # Half a line may be there; the next record looks.
                del self._known[key]
                raise
            self._keep(key, _Book(book.path, runs, room))

    async def recent(self, project_id: str, document_id: str) -> tuple[RunRecord, ...]:
        """Give the last runs of a document, oldest first."""
        key = (project_id, document_id)
        if key in self._known:
            return self._known[key].runs
        async with self._lock:
            return (await self._book(key)).runs

    async def _put(self, book: _Book, document_id: str, runs: tuple[RunRecord, ...]) -> int:
        """Write the last of these runs down, or all of them anew; tell what room that leaves."""
        if book.room:
            await self._pen.add(book.path, _line(runs[-1]))
            return book.room - 1
        await to_thread.run_sync(_write, book.path, document_id, runs)
        return MOST_LINES - len(runs)

    async def _book(self, key: tuple[str, str]) -> _Book:
        if key not in self._known:
            self._keep(key, await to_thread.run_sync(_load, self._path(*key)))
        return self._known[key]

    def _keep(self, key: tuple[str, str], book: _Book) -> None:
        self._known[key] = book
        self._known.move_to_end(key)
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)

    def _path(self, project_id: str, document_id: str) -> Path:
        name = sha256(document_id.encode()).hexdigest()[:32]
        return self._folder / project_id / f"{name}.jsonl"


def _load(path: Path) -> _Book:
    with atomic.disk_errors(FOLDER):
        try:
            head, *lines = path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return _Book(path)
    try:
        versioned_json.decode(head, _Head, version=VERSION, name=path.name)
    except versioned_json.DamagedFileError as damage:
        log.warning("runs_set_aside", file=versioned_json.set_aside(path), damage=str(damage))
        return _Book(path)
    runs = [run for line in lines if (run := _read(line)) is not None]
    # A line that was torn by a kill makes the next record write the file anew.
    whole = len(runs) == len(lines) - 1 and lines[-1] == b""
    return _Book(path, tuple(runs[-MAX_RECENT_SUMMARY:]), max(0, MOST_LINES - len(runs)) * whole)


def is_whole(line: bytes) -> bool:
    """Tell whether a line holds a run."""
    return _read(line) is not None


def _read(line: bytes) -> RunRecord | None:
    try:
        return msgspec.json.decode(line, type=RunRecord)
    except (msgspec.DecodeError, RecursionError):
        return None


def _write(path: Path, document_id: str, runs: tuple[RunRecord, ...]) -> None:
    with atomic.disk_errors(FOLDER):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    head = _line(_Head(version=VERSION, document_id=document_id))
    atomic.replace(path, head + b"".join(map(_line, runs)))


def _line(value: Model) -> bytes:
    return msgspec.json.encode(value) + b"\n"
