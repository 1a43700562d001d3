"""Indexes for tests: made of strings, asked with strings."""

from pathlib import Path
from typing import NamedTuple
from weakref import WeakKeyDictionary

from creonowd.retrieval.bm25 import search, shares_of
from creonowd.retrieval.loaded_index import IndexLoader, LoadedIndex
from creonowd.retrieval.passages import Database, cut, put_document, stored_texts
from creonowd.retrieval.ranking import (
    NO_OWN_PASSAGES,
    CurrentDocument,
    RankedPassage,
    choose,
    make_query,
    own_passages,
    rank,
)

# As in the daemon, a novel that is asked many questions is read into memory once.
_LOADERS: WeakKeyDictionary[Database, IndexLoader] = WeakKeyDictionary()


def index_of(folder: Path, **texts: str) -> Database:
    """Make an index of documents called by their keywords."""
    database = Database(folder / "index.sqlite3")
    database.open()
    for name, text in texts.items():
        write(database, name, text)
    return database


def write(database: Database, name: str, text: str) -> None:
    with database.write() as connection:
        put_document(connection, f"{name}.md", ("mark", text.encode()), cut(text))


class FoundText(NamedTuple):
    """A passage that was found, with the share of each term in its score."""

    path: str
    lines: str
    score: float
    shares: dict[str, float]


def find(database: Database, query: str, most: int = 20) -> list[FoundText]:
    weights = make_query("", query).weights
    if not weights:
        return []
    loaded = load(database)
    matches = search(loaded.terms, weights, most)
    rows: list[int] = matches.rows.tolist()
    shares = shares_of(loaded.terms, weights, most, rows)
    return [
        FoundText(loaded.path(row), loaded.rows[row].lines, score, parts)
        for row, score, parts in zip(rows, matches.scores.tolist(), shares, strict=True)
    ]


def load(database: Database) -> LoadedIndex:
    with database.read() as connection:
        return IndexLoader().load(connection)


def ranked(
    database: Database, query: str, limit: int = 20, current: CurrentDocument | None = None
) -> list[RankedPassage]:
    loader = _LOADERS.setdefault(database, IndexLoader())
    with database.read() as connection:
        loaded = loader.load(connection)
        found = search(loaded.terms, make_query("", query).weights, 3 * limit)
        rows: list[int] = found.rows.tolist()
        texts = stored_texts(connection, [loaded.rows[row].id for row in rows])
    matches = list(zip(rows, found.scores.tolist(), strict=True))
    own = NO_OWN_PASSAGES
    if current is not None:
        in_current = [match for match in matches if match[0] in loaded.rows_in(current.path)]
        own = own_passages(in_current, loaded, current, texts)
    return rank(choose(matches, loaded, limit, own), loaded, texts)


def refs(database: Database, query: str) -> list[str]:
    return [f"{found.path}#{found.lines}" for found in find(database, query)]


def is_whole(database: Database) -> None:
    """Fail unless every passage belongs to a document and has its terms."""
    with database.read() as connection:
        orphans = "SELECT count(*) FROM passages WHERE document NOT IN (SELECT id FROM documents)"
        assert connection.execute(orphans).fetchone() == (0,)
        loaded = IndexLoader().load(connection)
    with_terms = {int(number) for part, _ in loaded.terms.parts for number in part.passages}
    assert {row.id for row in loaded.rows} <= with_terms
