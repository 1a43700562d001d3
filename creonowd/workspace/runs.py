"""The last AI runs of each document and what the author decided on them.

They are kept in `<userData>/runs/<project>/`: a line per run, and once it is decided on, another
line with the same number. A file that is full is written anew without the old runs.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import anyio
import msgspec
import structlog
from anyio import to_thread
from msgspec.structs import replace

from creonowd.context.plan import MAX_RECENT_SUMMARY
from creonowd.errors import DaemonError, ErrorCode
from creonowd.memo import Memo
from creonowd.model import Model
from creonowd.storage import stored_files
from creonowd.storage.journal import LineWriter
from creonowd.storage.stored_files import disk_errors

FOLDER = "runs"
VERSION = 2
CACHED_DOCUMENTS = 256
LOCATED_RUNS = 4096
MAX_LINES = 64
MOST_NOT_ACCEPTED = 20

log = structlog.stdlib.get_logger(__name__)


class RunStatus(StrEnum):
    """What the author decided on a run; only an accepted one is remembered in prompts."""

    PENDING = "pending"
    """Not decided yet."""
    ACCEPTED = "accepted"
    """Taken over; remembered in later prompts."""
    DISCARDED = "discarded"
    """Not wanted."""


class RunSummary(Model):
    """A run in brief: the skill, its instruction, and how its text begins and ends.

    `excerpt` and `characters` are of the output or, if the author took over something else, of
    that.
    """

    skill_name: str = ""
    instruction: str = ""
    excerpt: str = ""
    characters: int = 0


class RunRecord(Model):
    """One finished run: the hash of its prompt, our count and the provider's, and a summary.

    `number` counts the runs of its document from 1; `Runs.record` sets it. `skill_id` is empty
    if there was no skill. Old files have the summary as a text.
    """

    run_id: str
    skill_id: str
    at_ms: int
    provider: str
    model: str
    prompt_hash: str
    stable_prefix_hash: str
    token_count: int
    summary: RunSummary | str
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    verdict: str = ""
    number: int = 0
    status: RunStatus = RunStatus.PENDING
    decided_at_ms: int | None = None


class AcceptedText(NamedTuple):
    """How the text that the author took over begins and ends, and its length."""

    excerpt: str
    characters: int


class DocumentRun(NamedTuple):
    """A run and the document that it was made in."""

    document_id: str
    run: RunRecord


class _Head(Model):
    version: int
    document_id: str


class _DocumentRuns(NamedTuple):
    """The last runs of a document, its file, and how many lines may still be added to that."""

    path: Path
    runs: tuple[RunRecord, ...] = ()
    room: int = 0

    @property
    def accepted(self) -> tuple[RunRecord, ...]:
        return tuple(run for run in self.runs if run.status is RunStatus.ACCEPTED)


class Runs:
    """The runs of every document; a record is written before it is acknowledged.

    No kill of the process loses a record. A power cut may lose the last ones: the author has their
    results, and waiting for the disk would add a tenth to the time of a run. A decision is synced.
    """

    def __init__(self, user_data: Path) -> None:
        self._folder = user_data / FOLDER
        self._lock = anyio.Lock(fast_acquire=True)
        self._writer = LineWriter()
        self._documents: Memo[tuple[str, str], _DocumentRuns] = Memo(CACHED_DOCUMENTS)
        # The document of a run, by project and run.
        self._located: Memo[tuple[str, str], str] = Memo(LOCATED_RUNS)
        # How often what is accepted has changed, of any document.
        self.revision = 0

    async def record(self, project_id: str, document_id: str, run: RunRecord) -> None:
        """Add a run to its document's; old ones are dropped."""
        key = (project_id, document_id)
        async with self._lock:
            before = await self._load(key)
            number = before.runs[-1].number + 1 if before.runs else 1
            new = replace(run, number=number)
            await self._write_run(
                key, before, new, _without_oldest((*before.runs, new)), synced=False
            )
            self._located.put((project_id, run.run_id), document_id)

    async def decide(
        self,
        project_id: str,
        run_id: str,
        status: RunStatus,
        at_ms: int,
        accepted: AcceptedText | None = None,
    ) -> DocumentRun:
        """Set what the author decided on a run; the last decision counts.

        `accepted` replaces the output in the summary. NOT_FOUND if there is no such run, or none
        any more.
        """
        document_id = self._located.peek((project_id, run_id))
        if document_id is None:
            document_id = await to_thread.run_sync(self._locate, project_id, run_id)
        key = (project_id, document_id)
        async with self._lock:
            before = await self._load(key)
            last = next((run for run in reversed(before.runs) if run.run_id == run_id), None)
            if last is None:
                raise _no_such_run(run_id)
            self._located.put((project_id, run_id), document_id)
            summary = _summary_with(last.summary, accepted)
            if (last.status, last.summary) == (status, summary):
                return DocumentRun(document_id, last)
            decided = replace(last, status=status, summary=summary, decided_at_ms=at_ms)
            runs = _without_oldest(decided if run is last else run for run in before.runs)
            await self._write_run(key, before, decided, runs, synced=True)
        return DocumentRun(document_id, decided)

    async def recent(self, project_id: str, document_id: str) -> tuple[RunRecord, ...]:
        """Return the last runs of a document, oldest first."""
        return (await self._runs_of(project_id, document_id)).runs

    async def accepted_runs(self, project_id: str, document_id: str) -> tuple[RunRecord, ...]:
        """Return the last runs of a document that the author accepted, oldest first."""
        return (await self._runs_of(project_id, document_id)).accepted

    def cached_accepted_runs(
        self, project_id: str, document_id: str
    ) -> tuple[RunRecord, ...] | None:
        """Return what `accepted` returns, if it is in memory."""
        known = self._documents.peek((project_id, document_id))
        return None if known is None else known.accepted

    async def of_project(self, project_id: str) -> list[DocumentRun]:
        """Return the last runs of every document of a project; a file that is damaged is skipped."""
        return await to_thread.run_sync(lambda: list(self._runs_in(project_id)))

    async def _runs_of(self, project_id: str, document_id: str) -> _DocumentRuns:
        key = (project_id, document_id)
        if (known := self._documents.peek(key)) is not None:
            return known
        async with self._lock:
            return await self._load(key)

    async def _load(self, key: tuple[str, str]) -> _DocumentRuns:
        known = self._documents.peek(key)
        if known is None:
            known = await to_thread.run_sync(_read_file, self._path(*key))
            self._documents.put(key, known)
        return known

    async def _write_run(
        self,
        key: tuple[str, str],
        before: _DocumentRuns,
        line: RunRecord,
        runs: tuple[RunRecord, ...],
        *,
        synced: bool,
    ) -> None:
        """Add a line to a document's file, or write the file anew if it has no room."""
        # If writing fails, half a line may be there; the next record reads the file again.
        self._documents.forget(key)
        if not before.room:
            await to_thread.run_sync(_write, before.path, key[1], runs)
            room = MAX_LINES - len(runs)
        elif synced:
            await to_thread.run_sync(stored_files.append, before.path, _line(line))
            room = before.room - 1
        else:
            await self._writer.append(before.path, _line(line))
            room = before.room - 1
        after = _DocumentRuns(before.path, runs, room)
        self._documents.put(key, after)
        if after.accepted != before.accepted:
            self.revision += 1

    def _path(self, project_id: str, document_id: str) -> Path:
        name = sha256(document_id.encode()).hexdigest()[:32]
        return self._folder / project_id / f"{name}.jsonl"

    def _locate(self, project_id: str, run_id: str) -> str:
        """Find the document of a run in the files; of several, that of the latest run."""
        found = [
            (run.at_ms, document_id)
            for document_id, run in self._runs_in(project_id, run_id.encode())
            if run.run_id == run_id
        ]
        if not found:
            raise _no_such_run(run_id)
        return max(found)[1]

    def _runs_in(self, project_id: str, holding: bytes = b"") -> Iterator[DocumentRun]:
        """Read the runs of all files of a project that hold some bytes."""
        for path in sorted((self._folder / project_id).glob("*.jsonl")):
            if stored_files.is_aside(path):
                continue
            try:
                data = stored_files.content(path, limit=stored_files.LIMIT_BYTES) or b""
                if holding not in data:
                    continue
                head, lines = _parse(path, data)
            except (OSError, DaemonError, stored_files.DamagedFileError) as error:
                log.warning("runs_not_read", file=path.name, error=type(error).__name__)
                continue
            # A file that was put there by hand may be of no document.
            if path == self._path(project_id, head.document_id):
                runs = _without_oldest(_last_lines(lines))
                yield from (DocumentRun(head.document_id, run) for run in runs)


def is_whole(line: bytes) -> bool:
    """Return whether a line holds a run."""
    return _decode(line) is not None


def _summary_with(summary: RunSummary | str, accepted: AcceptedText | None) -> RunSummary | str:
    if accepted is None:
        return summary
    brief = summary if isinstance(summary, RunSummary) else RunSummary()
    return replace(brief, excerpt=accepted.excerpt, characters=accepted.characters)


def _no_such_run(run_id: str) -> DaemonError:
    return DaemonError(
        ErrorCode.NOT_FOUND,
        "There is no such run any more; `ai:run:list` lists those that can be decided on.",
        runId=run_id,
    )


def _without_oldest(runs: Iterable[RunRecord]) -> tuple[RunRecord, ...]:
    """Leave out the oldest runs, accepted ones and others apart."""
    listed = list(runs)
    accepted = [run.number for run in listed if run.status is RunStatus.ACCEPTED]
    others = [run.number for run in listed if run.status is not RunStatus.ACCEPTED]
    kept = {*accepted[-MAX_RECENT_SUMMARY:], *others[-MOST_NOT_ACCEPTED:]}
    return tuple(run for run in listed if run.number in kept)


def _read_file(path: Path) -> _DocumentRuns:
    data = stored_files.content(path, limit=stored_files.LIMIT_BYTES)
    if data is None:
        return _DocumentRuns(path)
    try:
        head, lines = _parse(path, data)
    except stored_files.DamagedFileError as damage:
        log.warning("runs_set_aside", file=stored_files.set_aside(path), damage=str(damage))
        return _DocumentRuns(path)
    whole = all(map(is_whole, lines[:-1])) and lines[-1] == b""
    # A line that was torn by a kill makes the next record write the file anew; so does version 1,
    # which knew no decisions.
    room = max(0, MAX_LINES - len(lines) + 1) if whole and head.version == VERSION else 0
    return _DocumentRuns(path, _without_oldest(_last_lines(lines)), room)


def _parse(path: Path, data: bytes) -> tuple[_Head, list[bytes]]:
    first, *lines = data.split(b"\n")
    return stored_files.decode(first, _Head, version=VERSION, name=path.name), lines or [b""]


def _last_lines(lines: Iterable[bytes]) -> Iterable[RunRecord]:
    """Return the last line of each run, in the order of the runs."""
    runs = (run for line in lines if (run := _decode(line)) is not None)
    return {run.number: run for run in runs}.values()


def _decode(line: bytes) -> RunRecord | None:
    try:
        return msgspec.json.decode(line, type=RunRecord)
    except (msgspec.DecodeError, RecursionError):
        return None


def _write(path: Path, document_id: str, runs: tuple[RunRecord, ...]) -> None:
    with disk_errors(FOLDER):
        stored_files.make_folders(path.parent)
    head = _line(_Head(version=VERSION, document_id=document_id))
    stored_files.replace(path, head + b"".join(map(_line, runs)))


def _line(value: Model) -> bytes:
    return msgspec.json.encode(value) + b"\n"
