"""The SQLite file of one project's index: its tables, its connections, the documents in it.

Only what changed in a document is written. The file is disposable: whatever is wrong with it, the
remedy is a new one.
"""

import contextlib
import json
import sqlite3
import struct
import threading
import zlib
from collections import defaultdict
from collections.abc import Generator, Iterable, Sequence
from hashlib import blake2b
from pathlib import Path

import structlog

from creonowd.model import Model
from creonowd.retrieval.passages import Passage
from creonowd.retrieval.ranking import SKETCH_HASHES, StoredText, terms_of
from creonowd.storage import stored_files

VERSION = 4
MARK = 0x4352_4E4F
CACHE_KIB = 2048
BUSY_SECONDS = 5
HEADING_JOINT = "\x1f"

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
            stored_files.make_folders(self._path.parent)
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
    try:
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        connection.close()  # Windows removes no file that is open, and a damaged one has to go
        raise
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


class IndexedDocument(Model):
    """A document of the index; its mark and digest show whether the document has changed."""

    id: int
    mark: str
    digest: bytes


def indexed_documents(connection: sqlite3.Connection) -> dict[str, IndexedDocument]:
    """Return all documents of the index by path."""
    rows = connection.execute("SELECT path, id, mark, digest FROM documents")
    return {
        path: IndexedDocument(id=id_, mark=mark, digest=digest) for path, id_, mark, digest in rows
    }


def put_document(
    connection: sqlite3.Connection, path: str, entry: tuple[str, bytes], passages: Iterable[Passage]
) -> None:
    """Make these the passages of a document in the index, with `entry` as its mark and digest."""
    (document,) = connection.execute(
        "INSERT INTO documents (path, mark, digest) VALUES (?, ?, ?)"
        " ON CONFLICT (path) DO UPDATE SET mark = excluded.mark, digest = excluded.digest"
        " RETURNING id",
        (path, *entry),
    ).fetchone()
    rows_before = _rows_by_digest(connection, document)
    moved: list[tuple[int, int, str, int]] = []
    for passage in passages:
        same = rows_before.get(_digest(passage))
        if same:
            moved.append((passage.start, passage.end, passage.lines, same.pop()))
        else:
            _add(connection, document, passage)
    connection.executemany(
        "UPDATE passages SET start = ?1, end = ?2, lines = ?3"
        " WHERE id = ?4 AND (start <> ?1 OR end <> ?2 OR lines <> ?3)",
        moved,
    )
    _drop(connection, (row for rows in rows_before.values() for row in rows))


def set_mark(connection: sqlite3.Connection, path: str, mark: str) -> None:
    """Change the mark of a document whose text is the same."""
    connection.execute("UPDATE documents SET mark = ? WHERE path = ?", (mark, path))


def remove_document(connection: sqlite3.Connection, path: str) -> None:
    """Take a document out, if it is there."""
    found = connection.execute("SELECT id FROM documents WHERE path = ?", (path,)).fetchone()
    if found is not None:
        rows = connection.execute("SELECT id FROM passages WHERE document = ?", found).fetchall()
        _drop(connection, (row for (row,) in rows))
        connection.execute("DELETE FROM documents WHERE id = ?", found)


def stored_texts(connection: sqlite3.Connection, numbers: Iterable[int]) -> dict[int, StoredText]:
    """Return the texts of those passages that are there, by number."""
    found = connection.execute(
        "SELECT id, text, heading FROM passages WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(numbers)),),
    )
    return {
        number: StoredText(text, tuple(heading.split(HEADING_JOINT)) if heading else ())
        for number, text, heading in found
    }


def _rows_by_digest(connection: sqlite3.Connection, document: int) -> defaultdict[bytes, list[int]]:
    by_digest: defaultdict[bytes, list[int]] = defaultdict(list)
    rows = connection.execute(
        "SELECT digest, id FROM passages WHERE document = ? ORDER BY start DESC", (document,)
    )
    for digest, row in rows:
        by_digest[digest].append(row)
    return by_digest


def _digest(passage: Passage) -> bytes:
    content = HEADING_JOINT.join((*passage.heading, passage.text))
    return blake2b(content.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _add(connection: sqlite3.Connection, document: int, passage: Passage) -> None:
    heading = HEADING_JOINT.join(passage.heading)
    from creonowd.retrieval.bm25 import pack_terms

    terms = terms_of(passage.text)
    connection.execute(
        "INSERT INTO passages (document, start, end, lines, heading, digest, sketch, terms, text)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(document, passage.start, passage.end, passage.lines, heading, _digest(passage)),
            *(sketch(terms), pack_terms(terms, heading), passage.text),
        ),
    )


def _drop(connection: sqlite3.Connection, rows: Iterable[int]) -> None:
    connection.executemany("DELETE FROM passages WHERE id = ?", ((row,) for row in rows))


def sketch(terms: Sequence[str]) -> bytes:
    """Return the fingerprint of a passage: the least hashes of its pairs of terms."""
    # Neighbouring bigrams share a character, so pair each with the second after it.
    pairs = {one + other for one, other in zip(terms, terms[2:], strict=False)} or set(terms)
    hashes = sorted(zlib.crc32(pair.encode("utf-8", "surrogatepass")) for pair in pairs)
    least = hashes[:SKETCH_HASHES]
    return struct.pack(f"<{len(least)}I", *least)
