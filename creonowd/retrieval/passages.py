"""The passages of documents: how a document is cut into them, and the SQLite file that keeps them.

A passage is whole paragraphs under one heading, about 400 tokens at most. Where it ends depends on
the text around that place alone, so that an edit changes the passages near it and no others.

Of a document only what changed is written to the file. The file is disposable: whatever is wrong
with it, the remedy is a new one.
"""

import contextlib
import json
import re
import sqlite3
import struct
import threading
import zlib
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, Protocol

import structlog
from msgspec.structs import replace

from creonowd.context.fragment import Span
from creonowd.model import Model
from creonowd.redaction import PLACEHOLDER, SecretSpan
from creonowd.redaction.split_points import split_points
from creonowd.retrieval.ranking import SKETCH_HASHES, StoredText, search_terms
from creonowd.storage import front_matter, stored_files
from creonowd.text import LINE, LineNumbers
from creonowd.tokens.boundaries import grapheme_floor, sentences
from creonowd.tokens.tokenizer import about_tokens

MOST_TOKENS = 400
FEWEST_TOKENS = 220
SCRAP_TOKENS = 80
LONGEST_HEADING = 80

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


# One block in this many may end a passage, chosen by a checksum of its text.
_ONE_IN = 3

_MARKDOWN = re.compile(r" {0,3}(#{1,6})[ \t]+(.+?)[ \t]*#*[ \t]*$")
_FENCE = re.compile(r" {0,3}(```|~~~)")
_NUMBER = r"[0-9０-９〇零一二三四五六七八九十百千两]+"
_CHINESE = re.compile(
    rf"[\s\u3000]*(第\s*{_NUMBER}\s*([卷部篇集回章幕节])(?:[\s\u3000：:、·.].*)?)$"
)
_COUNTED = "one two three four five six seven eight nine ten eleven twelve thirteen".replace(
    " ", "|"
)
_ENGLISH = re.compile(
    rf"\s*((book|volume|part|chapter|act|scene)\s+(?:[0-9]+|[ivxlcdm]+|{_COUNTED})\b.*)$",
    re.IGNORECASE,
)
_OUTER = {"卷", "部", "篇", "集", "book", "volume", "part"}
_INNER = {"节", "scene"}


class Passage(Model):
    """A stretch of a document in code points, its lines as `L120-L143`, and its text."""

    start: int
    end: int
    lines: str
    heading: tuple[str, ...]
    text: str


def cut(text: str) -> Iterator[Passage]:
    """Cut a text into passages, in order; blank stretches and front matter belong to none."""
    numbers = LineNumbers(text)
    for group in _groups(_blocks(text)):
        start, end = group[0].start, group[-1].end
        if content := text[start:end].rstrip():
            yield Passage(
                start=start,
                end=start + len(content),
                lines=numbers.spell(start, start + len(content)),
                heading=group[-1].heading,
                text=content,
            )


class _Line(NamedTuple):
    start: int
    end: int
    text: str


class _TextBlock(NamedTuple):
    """What should stay whole: a heading, a paragraph, a line or a sentence.

    `part_of` is the beginning of the line that a sentence is a part of.
    """

    start: int
    end: int
    tokens: float
    heading: tuple[str, ...]
    may_end: bool = False
    is_heading: bool = False
    part_of: int | None = None


def _groups(blocks: Iterable[_TextBlock]) -> Iterator[list[_TextBlock]]:
    """Join blocks to passages."""
    group: list[_TextBlock] = []
    tokens = 0.0
    for block in blocks:
        is_full = tokens + block.tokens > MOST_TOKENS
        if group and (is_full or _is_separate(block, group[-1], tokens)):
            yield group
            group, tokens = [], 0.0
        group.append(block)
        tokens += block.tokens
        if block.may_end and tokens >= FEWEST_TOKENS:
            yield group
            group, tokens = [], 0.0
    if group:
        yield group


def _is_separate(block: _TextBlock, before: _TextBlock, tokens: float) -> bool:
    """Return whether a block begins a passage: a heading does, and the text after a cut line."""
    if before.is_heading or block.is_heading:
        return not before.is_heading
    return block.part_of != before.part_of and tokens >= SCRAP_TOKENS


def _blocks(text: str) -> Iterator[_TextBlock]:
    headings = Headings()
    paragraph: list[_Line] = []
    for match in LINE.finditer(text, len(front_matter.split(text).front_matter)):
        line = _Line(match.start(), match.end(), match.group())
        is_blank, above = not line.text.strip(), headings.path
        if not is_blank and not headings.read(line.text.rstrip("\r\n")):
            paragraph.append(line)
            continue
        yield from _paragraph(text, paragraph, above)
        paragraph = []
        if not is_blank:
            tokens = about_tokens(line.text)
            yield _TextBlock(line.start, line.end, tokens, headings.path, is_heading=True)
    yield from _paragraph(text, paragraph, headings.path)


def _paragraph(text: str, lines: list[_Line], heading: tuple[str, ...]) -> Iterator[_TextBlock]:
    """Keep a paragraph whole if it is small enough; else its lines, else its sentences."""
    weights = [about_tokens(line.text) for line in lines]
    if lines and sum(weights) <= MOST_TOKENS:
        whole = _Line(lines[0].start, lines[-1].end, text[lines[0].start : lines[-1].end])
        yield _block(whole, sum(weights), heading)
        return
    for line, tokens in zip(lines, weights, strict=True):
        if tokens <= MOST_TOKENS:
            yield _block(line, tokens, heading)
        else:
            yield from _sentences(text, line, heading)


def _sentences(text: str, line: _Line, heading: tuple[str, ...]) -> Iterator[_TextBlock]:
    start = line.start
    for end in (*sentences(text, line.start, line.end - 1), line.end):
        while start < end:
            stop = _piece_end(text, start, end)
            piece = _Line(start, stop, text[start:stop])
            yield _block(piece, about_tokens(piece.text), heading, part_of=line.start)
            start = stop


def _piece_end(text: str, start: int, end: int) -> int:
    """Return the end of a stretch if it is small enough, else a grapheme boundary inside it."""
    tokens = about_tokens(text[start:end])
    if tokens <= MOST_TOKENS:
        return end
    stop = grapheme_floor(text, start + max(1, int((end - start) * MOST_TOKENS / tokens)))
    return stop if stop > start else end


def _block(
    line: _Line, tokens: float, heading: tuple[str, ...], *, part_of: int | None = None
) -> _TextBlock:
    may_end = zlib.crc32(line.text.encode("utf-8", "surrogatepass")) % _ONE_IN == 0
    return _TextBlock(line.start, line.end, tokens, heading, may_end=may_end, part_of=part_of)


class Heading(NamedTuple):
    """A heading's title, and how deep it stands; 1 is the top."""

    level: int
    title: str


class Headings:
    """The headings above the current line of a document that is read line by line."""

    def __init__(self) -> None:
        self._above: tuple[Heading, ...] = ()
        self._fence: str | None = None

    @property
    def path(self) -> tuple[str, ...]:
        """The titles above the current line, outermost first."""
        return tuple(heading.title for heading in self._above)

    def read(self, line: str) -> bool:
        """Read the next line and return whether it is a heading."""
        if self._is_code(line):
            return False
        found = heading_of(line)
        if found is not None:
            above = (heading for heading in self._above if heading.level < found.level)
            self._above = (*above, found)
        return found is not None

    def _is_code(self, line: str) -> bool:
        fence = _FENCE.match(line)
        if fence is not None and self._fence in (None, fence[1]):
            self._fence = None if self._fence else fence[1]
            return True
        return self._fence is not None


def heading_of(line: str) -> Heading | None:
    """Return the heading of a line: one of Markdown, or a number that opens a chapter."""
    if not line or len(line) > LONGEST_HEADING:
        return None
    if markdown := _MARKDOWN.match(line):
        return Heading(len(markdown[1]), markdown[2])
    if (numbered := _CHINESE.match(line) or _ENGLISH.match(line)) is None:
        return None
    title, unit = numbered[1].strip(), numbered[2].lower()
    level = 1 if unit in _OUTER else 3 if unit in _INNER else 2
    return None if _is_prose(title) else Heading(level, title)


def _is_prose(title: str) -> bool:
    return title.endswith((",", "，", ";", "；")) or "。" in title


class DocumentSecretFinder(Protocol):
    """Finds secrets."""

    def find(self, text: str) -> Sequence[SecretSpan]:
        """Return where secrets stand in a text, in order."""
        ...


def text_digest(text: str) -> bytes:
    """Return the digest under which a document's text is known to its index."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def without_secrets(
    text: str, passages: Iterable[Passage], finder: DocumentSecretFinder
) -> Iterator[Passage]:
    """Return the passages of a text, with placeholders for what is secret only in its context.

    What is recognised as a secret within the passage stays: redaction finds it again later.
    """
    secrets = list(_secrets(text, finder))
    starts, ends = [secret.start for secret in secrets], [secret.end for secret in secrets]
    for passage in passages:
        first = bisect_right(ends, passage.start)
        inside = secrets[first : bisect_left(starts, passage.end)]
        yield _redact(passage, inside, finder) if inside else passage


def _secrets(text: str, finder: DocumentSecretFinder) -> Iterator[Span]:
    """Find the secrets of a text part by part: no secret reaches over a split point."""
    splits = [point.at for point in split_points(text, 0, len(text)) if not point.may_cut_secret]
    for start, end in pairwise([0, *splits, len(text)]):
        for found in finder.find(text[start:end]):
            yield Span(start + found.start, start + found.end)


def _redact(passage: Passage, secrets: Sequence[Span], finder: DocumentSecretFinder) -> Passage:
    recognised = finder.find(passage.text)
    pieces: list[str] = []
    done = 0
    for secret in secrets:
        start, end = secret.start - passage.start, secret.end - passage.start
        if any(found.start <= start and end <= found.end for found in recognised):
            continue
        pieces += [passage.text[done : max(0, start)], PLACEHOLDER]
        done = end
    return replace(passage, text="".join([*pieces, passage.text[done:]]))


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

    terms = search_terms(passage.text)
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
