"""Indexes for tests: made of strings, asked with strings."""

from pathlib import Path

from creonowd.retrieval.bm25 import FoundPassage, search
from creonowd.retrieval.database import Database
from creonowd.retrieval.index_writer import put_document
from creonowd.retrieval.passages import cut
from creonowd.retrieval.query import make_query
from creonowd.retrieval.ranking import RankedPassage, rank, source_ref


def index_of(folder: Path, **texts: str) -> Database:
    """Make an index of documents called by their keywords."""
    database = Database(folder / "index.sqlite3")
    database.open()
    for name, text in texts.items():
        write(database, name, text)
    return database


def write(database: Database, name: str, text: str) -> None:
    with database.write() as connection:
        put_document(connection, f"{name}.md", ("mark", text.encode()[:16]), cut(text))


def find(database: Database, query: str, most: int = 20) -> list[FoundPassage]:
    with database.read() as connection:
        return search(connection, make_query("", query).weights, most)


def ranked(database: Database, query: str, limit: int = 20) -> list[RankedPassage]:
    return rank(find(database, query, 3 * limit), None, limit)


def refs(database: Database, query: str) -> list[str]:
    return [source_ref(found) for found in find(database, query)]


def is_whole(database: Database) -> None:
    """Fail unless the full-text index agrees with itself."""
    with database.write() as connection:
        connection.execute("INSERT INTO postings (postings) VALUES ('integrity-check')")
