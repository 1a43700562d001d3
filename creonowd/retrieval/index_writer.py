"""Put documents into the index and take them out. Only what changed in a document is touched.

BM25's part that belongs to a term and a passage is settled here: besides each term, the index
holds the term with a mark for every step that its weighted frequency reaches. Searching can so
take the best passages of a term first, and needs to look at no others.
"""

import math
import sqlite3
import struct
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from hashlib import blake2b

from creonowd.model import Model
from creonowd.retrieval.passages import Passage
from creonowd.retrieval.query import terms_of

SIZE = 16
ALIKE = 0.5

_WHOLE = struct.Struct(f"<{SIZE}I")


def sketch(terms: Sequence[str]) -> bytes:
    """Make the fingerprint of a passage from its terms in order."""
    # Bigrams overlap, so the next but one is the first that says something new.
    pairs = {one + other for one, other in zip(terms, terms[2:], strict=False)} or set(terms)
    least = sorted(zlib.crc32(pair.encode("utf-8", "surrogatepass")) for pair in pairs)[:SIZE]
    return struct.pack(f"<{len(least)}I", *least)


class Duplicates:
    """Recognises passages that say nearly the same, by their fingerprints."""

    def __init__(self) -> None:
        self._seen: list[tuple[int, ...]] = []
        self._by_hash: dict[int, list[int]] = {}

    def find(self, fingerprint: bytes) -> int | None:
        """Tell the number of the first remembered fingerprint that is alike, else remember this.

        Numbers count the remembered ones from zero.
        """
        hashes = _hashes(fingerprint)
        # Two lists in one order that share so much share something among their first few.
        first = hashes[: len(hashes) - math.ceil(ALIKE * len(hashes)) + 1]
        known = self._by_hash
        met = [known[value] for value in first if value in known]
        if met and (number := self._alike(hashes, met)) is not None:
            return number
        for value in first:
            known.setdefault(value, []).append(len(self._seen))
        self._seen.append(hashes)
        return None

    def _alike(self, hashes: tuple[int, ...], met: list[list[int]]) -> int | None:
        whole = frozenset(hashes)
        for number in sorted({number for numbers in met for number in numbers}):
            other = self._seen[number]
            if len(whole.intersection(other)) >= ALIKE * max(len(whole), len(other)):
                return number
        return None


def _hashes(fingerprint: bytes) -> tuple[int, ...]:
    if len(fingerprint) == _WHOLE.size:
        return _WHOLE.unpack(fingerprint)
    return struct.unpack(f"<{len(fingerprint) // 4}I", fingerprint)


# The lower ends of the steps; below the first a term is only present.
STEPS = (1.35, 1.9, 2.8, 4.2, 6.5, 9.5)
NOMINAL_LENGTH = 200
LENGTH_SHARE = 0.75
HEADING_JOINT = "\x1f"

_FIRST_MARK = 0xE000


class IndexedDocument(Model):
    """A document of the index: by what to tell whether it has changed."""

    id: int
    mark: str
    digest: bytes


def entries(connection: sqlite3.Connection) -> dict[str, IndexedDocument]:
    """List what is in the index, by path."""
    rows = connection.execute("SELECT path, id, mark, digest FROM documents")
    return {
        path: IndexedDocument(id=id_, mark=mark, digest=digest) for path, id_, mark, digest in rows
    }


def put(
    connection: sqlite3.Connection, path: str, entry: tuple[str, bytes], passages: Iterable[Passage]
) -> None:
    """Make the index hold exactly these passages of a document, under its mark and digest."""
    (document,) = connection.execute(
        "INSERT INTO documents (path, mark, digest) VALUES (?, ?, ?)"
        " ON CONFLICT (path) DO UPDATE SET mark = excluded.mark, digest = excluded.digest"
        " RETURNING id",
        (path, *entry),
    ).fetchone()
    kept = _kept(connection, document)
    moved: list[tuple[int, int, str, int]] = []
    for passage in passages:
        same = kept.get(_digest(passage))
        if same:
            moved.append((passage.start, passage.end, passage.lines, same.pop()))
        else:
            _add(connection, document, passage)
    connection.executemany(
        "UPDATE passages SET start = ?1, end = ?2, lines = ?3"
        " WHERE id = ?4 AND (start <> ?1 OR end <> ?2 OR lines <> ?3)",
        moved,
    )
    _drop(connection, (row for rows in kept.values() for row in rows))


def touch(connection: sqlite3.Connection, path: str, mark: str) -> None:
    """Note a new mark for a document whose text is the same."""
    connection.execute("UPDATE documents SET mark = ? WHERE path = ?", (mark, path))


def remove(connection: sqlite3.Connection, path: str) -> None:
    """Take a document out."""
    found = connection.execute("SELECT id FROM documents WHERE path = ?", (path,)).fetchone()
    if found is not None:
        rows = connection.execute("SELECT id FROM passages WHERE document = ?", found).fetchall()
        _drop(connection, (row for (row,) in rows))
        connection.execute("DELETE FROM documents WHERE id = ?", found)


def settle(connection: sqlite3.Connection) -> None:
    """Join the pieces that many changes leave behind, so that searching touches fewer."""
    connection.execute("INSERT INTO postings (postings) VALUES ('optimize')")


def marked(term: str, step: int) -> str:
    """Spell a term as it stands in the index where it reaches a step; -1 is mere presence."""
    return term if step < 0 else term + chr(_FIRST_MARK + step)


def _kept(connection: sqlite3.Connection, document: int) -> defaultdict[bytes, list[int]]:
    kept: defaultdict[bytes, list[int]] = defaultdict(list)
    rows = connection.execute(
        "SELECT digest, id FROM passages WHERE document = ? ORDER BY start DESC", (document,)
    )
    for digest, row in rows:
        kept[digest].append(row)
    return kept


def _digest(passage: Passage) -> bytes:
    said = HEADING_JOINT.join((*passage.heading, passage.text))
    return blake2b(said.encode("utf-8", "surrogatepass"), digest_size=16).digest()


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
        "INSERT INTO postings (rowid, terms) VALUES (?, ?)", (row, _posted(Counter(terms), heading))
    )


def _drop(connection: sqlite3.Connection, rows: Iterable[int]) -> None:
    """Take passages out; the full-text index must be told again what it was given."""
    for row in rows:
        heading, text = connection.execute(
            "SELECT heading, text FROM passages WHERE id = ?", (row,)
        ).fetchone()
        connection.execute(
            "INSERT INTO postings (postings, rowid, terms) VALUES ('delete', ?, ?)",
            (row, _posted(Counter(terms_of(text)), heading)),
        )
        connection.execute("DELETE FROM passages WHERE id = ?", (row,))


def _posted(counts: Counter[str], heading: str) -> str:
    """Spell all that the index shall hold of a passage: its terms, marked, and its heading's."""
    by_count: defaultdict[int, list[str]] = defaultdict(list)
    for term, count in counts.items():
        by_count[count].append(term)
    ratio = 1 - LENGTH_SHARE + LENGTH_SHARE * counts.total() / NOMINAL_LENGTH
    words = [*counts, *(term for term in dict.fromkeys(terms_of(heading)) if term not in counts)]
    for count, terms in by_count.items():
        for step, least in enumerate(STEPS):
            if count / ratio >= least:
                words += [marked(term, step) for term in terms]
    return " ".join(words)
