"""What AI runs came to, the last few of each document: `<userData>/runs/<project>/`.

Knows records and files; what a summary says is decided where it is made.
"""

from collections import OrderedDict
from hashlib import sha256
from pathlib import Path

import anyio
import msgspec
import structlog
from anyio import to_thread

from creonowd.context.needs import MAX_RECENT_SUMMARY
from creonowd.model import Model
from creonowd.workspace import atomic, stored

FOLDER = "runs"
VERSION = 1
REMEMBERED = 256

log = structlog.stdlib.get_logger(__name__)


class RunRecord(Model):
    """One finished run: what was sent by hash, our count beside the provider's, and a summary."""

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


class _Stored(Model):
    version: int
    document_id: str
    runs: tuple[RunRecord, ...]


class Runs:
    """The runs of every document; a record is on the disk before it is acknowledged."""

    def __init__(self, user_data: Path) -> None:
        self._folder = user_data / FOLDER
        self._lock = anyio.Lock()
        self._known: OrderedDict[Path, tuple[RunRecord, ...]] = OrderedDict()

    async def record(self, project_id: str, document_id: str, run: RunRecord) -> None:
        """Add a run to its document's; the oldest makes room."""
        path = self._path(project_id, document_id)
        async with self._lock:
            runs = (*await self._all(path), run)[-MAX_RECENT_SUMMARY:]
            await to_thread.run_sync(_save, path, document_id, runs)
            self._keep(path, runs)

    async def recent(self, project_id: str, document_id: str) -> tuple[RunRecord, ...]:
        """Give the last runs of a document, oldest first."""
        path = self._path(project_id, document_id)
        if path in self._known:
            return self._known[path]
        async with self._lock:
            return await self._all(path)

    async def _all(self, path: Path) -> tuple[RunRecord, ...]:
        if path not in self._known:
            self._keep(path, await to_thread.run_sync(_load, path))
        return self._known[path]

    def _keep(self, path: Path, runs: tuple[RunRecord, ...]) -> None:
        self._known[path] = runs
        self._known.move_to_end(path)
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)

    def _path(self, project_id: str, document_id: str) -> Path:
        name = sha256(document_id.encode()).hexdigest()[:32]
        return self._folder / project_id / f"{name}.json"


def _load(path: Path) -> tuple[RunRecord, ...]:
    try:
        found = stored.load(path, _Stored, version=VERSION)
    except stored.DamagedFileError as damage:
        log.warning("runs_set_aside", file=stored.set_aside(path), damage=str(damage))
        found = None
    return () if found is None else found.runs


def _save(path: Path, document_id: str, runs: tuple[RunRecord, ...]) -> None:
    with atomic.disk_errors(FOLDER):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    content = _Stored(version=VERSION, document_id=document_id, runs=runs)
    atomic.replace(path, msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")
