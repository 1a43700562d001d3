"""Write documents into the index and take them out; only what changed in a document is touched."""

import json
import sqlite3
import struct
import zlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from hashlib import blake2b

from creonowd.model import Model
from creonowd.retrieval.passages import Passage
from creonowd.retrieval.query import terms_of
from creonowd.retrieval.ranking import SKETCH_HASHES, StoredText

HEADING_JOINT = "\x1f"


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
    from creonowd.retrieval.postings import pack_terms

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
