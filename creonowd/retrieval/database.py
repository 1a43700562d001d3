"""The SQLite file of one project's index: its tables, its check, its connections.

The file is disposable: whatever is wrong with it, the remedy is a new one.
"""

import contextlib
import sqlite3
import threading
from collections.abc import Generator
from pathlib import Path

import structlog

from creonowd.storage import atomic

VERSION = 4
MARK = 0x4352_4E4F
CACHE_KIB = 2048
BUSY_SECONDS = 5

_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}
_TABLES = """
CREATE TABLE documents (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    path TEXT NOT NULL UNIQUE,
    mark TEXT NOT NULL,
    digest BLOB NOT NULL
);
CREATE TABLE passages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    document INTEGER NOT NULL,
    start INTEGER NOT NULL,
    end INTEGER NOT NULL,
    lines TEXT NOT NULL,
    heading TEXT NOT NULL,
    digest BLOB NOT NULL,
    sketch BLOB NOT NULL,
    terms BLOB NOT NULL,
    text TEXT NOT NULL
);
CREATE INDEX passages_of ON passages (document, start);
CREATE TABLE segments (id INTEGER PRIMARY KEY, data BLOB NOT NULL);
"""

log = structlog.get_logger(__name__)


class DamagedIndexError(Exception):
    """The index file is broken and has to be made anew."""


class Database:
    """One project's index file, with a connection for reading and one for writing.

    Both may be used from any thread, by one at a time; neither waits for the other.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_lock, self._write_lock = threading.RLock(), threading.RLock()
        self._reader: sqlite3.Connection | None = None
        self._writer: sqlite3.Connection | None = None
        self.generation = 0

    @contextlib.contextmanager
    def read(self) -> Generator[sqlite3.Connection]:
        """Open the last finished state of the index for the block."""
        with self._read_lock, _damage_check():
            if self._reader is None:
                self._reader = _connect(self._path)
            yield self._reader

    @contextlib.contextmanager
    def write(self) -> Generator[sqlite3.Connection]:
        """Open a transaction for the block."""
        with self._write_lock, _damage_check():
            if self._writer is None:
                self._writer = _connect(self._path)
            with self._writer:
                self._writer.execute("BEGIN IMMEDIATE")
                yield self._writer
            self.generation += 1

    def open(self) -> bool:
        """Use the file if it is sound and of this version, else make a new one.

        Return whether the file could be used.
        """
        with self._write_lock:
            if self._path.is_file() and self._is_sound():
                return True
            self.start_over()
            return False

    def start_over(self) -> None:
        """Throw the file away and make an empty one."""
        with self._read_lock, self._write_lock:
            self.close()
            self.remove()
            atomic.make_folders(self._path.parent)
            writer = _connect(self._path)
            writer.executescript(f"BEGIN; {_TABLES} PRAGMA application_id = {MARK}; COMMIT;")
            writer.execute(f"PRAGMA user_version = {VERSION}")
            self._writer = writer
            self.generation += 1
        log.info("retrieval_index_made", index=self._path.stem)

    def close(self) -> None:
        """Close both connections."""
        with self._read_lock, self._write_lock:
            for connection in (self._reader, self._writer):
                if connection is not None:
                    connection.close()
            self._reader = self._writer = None

    def remove(self) -> None:
        """Delete the file, which must be closed."""
        for suffix in ("", "-wal", "-shm", "-journal"):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)

    def _is_sound(self) -> bool:
        try:
            with self.read() as connection:
                (mark,) = connection.execute("PRAGMA application_id").fetchone()
                (version,) = connection.execute("PRAGMA user_version").fetchone()
                (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
                return (mark, version, verdict) == (MARK, VERSION, "ok")
        except DamagedIndexError:
            return False


def is_damage(error: sqlite3.DatabaseError) -> bool:
    """Return whether the file itself is broken, and not only busy or out of space."""
    return error.sqlite_errorcode & 0xFF in _DAMAGED


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


@contextlib.contextmanager
def _damage_check() -> Generator[None]:
    """Raise DamagedIndexError for errors of SQLite that mean a broken file."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if is_damage(error):
            raise DamagedIndexError(str(error)) from error
        raise
