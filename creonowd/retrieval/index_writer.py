"""Write documents into the index and take them out; only what changed in a document is touched.

BM25's part that belongs to a term and a passage is computed here: besides each term, the index
holds the term with a mark for every step that its weighted frequency reaches. So a search takes
the best passages of a term first, and needs to look at no others.
"""

import sqlite3
import struct
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from hashlib import blake2b

from creonowd.model import Model
from creonowd.retrieval.passages import Passage
from creonowd.retrieval.query import terms_of

# The lower ends of the steps; below the first a term is only present.
STEPS = (1.35, 1.9, 2.8, 4.2, 6.5, 9.5)
NOMINAL_LENGTH = 200
LENGTH_SHARE = 0.75
HEADING_JOINT = "\x1f"

SKETCH_HASHES = 16

_FIRST_MARK = 0xE000


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


def optimise(connection: sqlite3.Connection) -> None:
    """Merge the segments that many changes leave behind, so that a search touches fewer."""
    connection.execute("INSERT INTO postings (postings) VALUES ('optimize')")


def term_at_step(term: str, step: int) -> str:
    """Return a term as the index holds it where it reaches a step; -1 is mere presence."""
    return term if step < 0 else term + chr(_FIRST_MARK + step)


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
    terms = terms_of(passage.text)
    row = connection.execute(
        "INSERT INTO passages (document, start, end, lines, heading, digest, sketch, text)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(document, passage.start, passage.end, passage.lines),
            *(heading, _digest(passage), sketch(terms), passage.text),
        ),
    ).lastrowid
    connection.execute(
        "INSERT INTO postings (rowid, terms) VALUES (?, ?)",
        (row, _posting_terms(Counter(terms), heading)),
    )


def _drop(connection: sqlite3.Connection, rows: Iterable[int]) -> None:
    """Take passages out; the full-text index keeps no text, so it needs their terms again."""
    for row in rows:
        heading, text = connection.execute(
            "SELECT heading, text FROM passages WHERE id = ?", (row,)
        ).fetchone()
        connection.execute(
            "INSERT INTO postings (postings, rowid, terms) VALUES ('delete', ?, ?)",
            (row, _posting_terms(Counter(terms_of(text)), heading)),
        )
        connection.execute("DELETE FROM passages WHERE id = ?", (row,))


def _posting_terms(counts: Counter[str], heading: str) -> str:
    """Return all that the index holds of a passage: its terms, marked, and its heading's."""
    by_count: defaultdict[int, list[str]] = defaultdict(list)
    for term, count in counts.items():
        by_count[count].append(term)
    ratio = 1 - LENGTH_SHARE + LENGTH_SHARE * counts.total() / NOMINAL_LENGTH
    words = [*counts, *(term for term in dict.fromkeys(terms_of(heading)) if term not in counts)]
    for count, terms in by_count.items():
        for step, least in enumerate(STEPS):
            if count / ratio >= least:
                words += [term_at_step(term, step) for term in terms]
    return " ".join(words)


def sketch(terms: Sequence[str]) -> bytes:
    """Return the fingerprint of a passage: the least hashes of its pairs of terms."""
    # Neighbouring bigrams share a character, so pair each with the second after it.
    pairs = {one + other for one, other in zip(terms, terms[2:], strict=False)} or set(terms)
    hashes = sorted(zlib.crc32(pair.encode("utf-8", "surrogatepass")) for pair in pairs)
    least = hashes[:SKETCH_HASHES]
    return struct.pack(f"<{len(least)}I", *least)
