"""Bring an index in line with what a project holds now: its files, and what is open and unsaved.

Reads only what looks changed, indexes only what is. Blocks its thread; knows no event loop.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from threading import Event

from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model
from creonowd.sources.retrieval.catalogue import LARGEST, documents_in, is_left_out
from creonowd.sources.retrieval.concealing import Finder, concealed
from creonowd.sources.retrieval.database import Database
from creonowd.sources.retrieval.held import Held
from creonowd.sources.retrieval.passages import Passage, cut
from creonowd.sources.retrieval.writing import Entry, entries, put, remove, settle, touch
from creonowd.storage.encodings import decode_text
from creonowd.storage.safe_folder import read_inside

# The coarsest clock of a disk in use (FAT): within it, two writes may look like one.
YOUNG_MS = 2000
UNREAD = "unread"
MANY = 32
# A thread that computes keeps all others waiting; short rests let assemblies through. There are
# systems on which the shortest rest is long, so not every passage has one.
BREATH_SECONDS = 0.0005
AT_A_STRETCH = 256
BETWEEN_RESTS = 3

Report = Callable[[int, int], None]


class _StoppedError(Exception):
    """Nobody waits for the index any more."""


class Pace:
    """How a round goes about its passages: at a stretch if they are few, else with rests."""

    def __init__(self, stop: Event) -> None:
        self._stop = stop
        self._passed = 0

    def through(self, passages: Iterable[Passage]) -> Iterator[Passage]:
        """Go through some passages, as long as anyone waits for them."""
        for passage in passages:
            self._passed += 1
            rests = self._passed > AT_A_STRETCH and self._passed % BETWEEN_RESTS == 0
            if self._stop.wait(BREATH_SECONDS if rests else 0):
                raise _StoppedError
            yield passage


class Scene(Model):
    """What an index is to be brought in line with."""

    root: Path
    now_ms: int
    held: Mapping[str, Held]
    finder: Finder


def refresh(database: Database, scene: Scene, report: Report, stop: Event) -> bool:
    """Index what changed and drop what is gone; False if told to stop before the end.

    `report` hears how many documents of how many are done. Each is in the index as soon as it is.
    """
    with database.reading() as connection:
        known = entries(connection)
    marks = _marks(scene)
    gone = sorted(known.keys() - marks.keys())
    stale = sorted(p for p, mark in marks.items() if p not in known or known[p].mark != mark)
    report(0, len(gone) + len(stale))
    pace = Pace(stop)
    for number, path in enumerate((*gone, *stale), start=1):
        try:
            _bring(database, scene, path, known.get(path), pace)
        except _StoppedError:
            return False
        report(number, len(gone) + len(stale))
    if len(gone) + len(stale) >= MANY:
        with database.writing() as connection:
            settle(connection)
    return True


def left_out(database: Database) -> list[str]:
    """List the documents that could not be read as text."""
    with database.reading() as connection:
        rows = connection.execute("SELECT path FROM documents WHERE digest = x'' ORDER BY path")
        return [path for (path,) in rows]


def _marks(scene: Scene) -> dict[str, str]:
    files = {path: _mark(status, scene) for path, status in documents_in(scene.root).items()}
    for path, held in scene.held.items():
        if path in files or not is_left_out(scene.root, path):
            files[path] = held.mark
    return files


def _mark(status: os.stat_result, scene: Scene) -> str:
    """Spell what tells a file's states apart; nothing does while it is young."""
    if scene.now_ms - status.st_mtime_ns // 1_000_000 <= YOUNG_MS:
        return f"young {status.st_mtime_ns}"
    return f"{status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"


def _bring(database: Database, scene: Scene, path: str, known: Entry | None, pace: Pace) -> None:
    found = _read(scene, path)
    with database.writing() as connection:
        if found is None:
            remove(connection, path)
            return
        mark, text = found
        digest = b"" if text is None else _digest(text)
        if known is not None and known.digest == digest:
            touch(connection, path, mark)
        else:
            shown = concealed(text or "", cut(text or ""), scene.finder)
            put(connection, path, (mark, digest), pace.through(shown))


def _read(scene: Scene, path: str) -> tuple[str, str | None] | None:
    """Read a document and its mark: None if it is gone, no text if it is none or refuses."""
    if (held := scene.held.get(path)) is not None:
        return held.mark, held.text()
    try:
        mark = _mark((scene.root / path).stat(), scene)
    except OSError:
        return None
    try:
        return mark, decode_text(read_inside(scene.root, "", path, limit=LARGEST).data).text
    except DaemonError as error:
        if error.code is ErrorCode.NOT_FOUND:
            return None
        # What may be read the next time gets a mark that no file has, so that it is tried again.
        passing = error.code is ErrorCode.IO_ERROR and "limitBytes" not in error.details
        return (UNREAD if passing else mark), None


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
