"""Where the terms of a query stand in the index, and how much each weighs there.

Rare terms are walked in full, of a common one only the passages that it weighs most in. Rows
come as one list per term and many terms per statement: with every row by itself, threads would
change hands thousands of times per query. Knows terms, not what a query is worth.
"""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from creonowd.model import Model
from creonowd.sources.retrieval.terms import is_lone
from creonowd.sources.retrieval.writing import STEPS, marked

COMMON = 512
MOST_ROWS = 20_000
SATURATION = 1.2

# What stands for the weighted frequency in each step; the first is mere presence.
_TYPICAL = (1.0, 1.6, 2.3, 3.4, 5.2, 7.6, 12.0)
_IMPACTS = tuple(f * (SATURATION + 1) / (f + SATURATION) for f in _TYPICAL)

PRESENT = _IMPACTS[0]

_ROWS = msgspec.json.Decoder(list[int])
_LISTED = (
    "SELECT (SELECT group_concat(rowid) FROM"
    " (SELECT rowid FROM postings WHERE postings MATCH t.value LIMIT ?))"
    " FROM json_each(?) t ORDER BY t.key"
)


class Postings(Model):
    """Where a term stands, with its impact; of a common term only where it weighs most."""

    impacts: dict[int, float]
    common: bool = False


def walk(connection: sqlite3.Connection, terms: Iterable[str], enough: int) -> dict[str, Postings]:
    """Look every term up; of a common one at least `enough` places, if there are so many."""
    listed = list(terms)
    whole = [term for term in listed if not is_lone(term)]
    present = dict(zip(whole, _rows(connection, map(_quoted, whole), COMMON + 1), strict=True))
    rare = _rare(connection, {t: rows for t, rows in present.items() if len(rows) <= COMMON})
    common = _common(connection, [term for term in whole if term not in rare], enough)
    lone = _lone(connection, [term for term in listed if is_lone(term)])
    every = rare | common | lone
    return {term: every[term] for term in listed}


def _rare(
    connection: sqlite3.Connection, present: Mapping[str, Sequence[int]]
) -> dict[str, Postings]:
    walked = {term: dict.fromkeys(rows, PRESENT) for term, rows in present.items()}
    reaching = [term for term, rows in present.items() if rows]
    for step, impact in enumerate(_IMPACTS[1:]):
        matches = [_quoted(marked(term, step)) for term in reaching]
        reached = dict(zip(reaching, _rows(connection, matches, COMMON), strict=True))
        for term, rows in reached.items():
            walked[term].update(dict.fromkeys(rows, impact))
        reaching = [term for term, rows in reached.items() if rows]
    return {term: Postings(impacts=impacts) for term, impacts in walked.items()}


def _common(
    connection: sqlite3.Connection, terms: Sequence[str], enough: int
) -> dict[str, Postings]:
    walked: dict[str, dict[int, float]] = {term: {} for term in terms}
    wanting = list(terms)
    for step in reversed(range(-1, len(STEPS))):
        reached = _all_rows(connection, [_quoted(marked(term, step)) for term in wanting])
        for term, rows in zip(wanting, reached, strict=True):
            walked[term] = dict.fromkeys(rows, _IMPACTS[step + 1]) | walked[term]
        wanting = [term for term in wanting if len(walked[term]) < enough]
    return {term: Postings(impacts=impacts, common=True) for term, impacts in walked.items()}


def _lone(connection: sqlite3.Connection, terms: Sequence[str]) -> dict[str, Postings]:
    rows = _all_rows(connection, [f"{_quoted(term)} *" for term in terms])
    impacts = (dict.fromkeys(each, PRESENT) for each in rows)
    return {term: Postings(impacts=each) for term, each in zip(terms, impacts, strict=True)}


def _all_rows(connection: sqlite3.Connection, matches: Sequence[str]) -> list[list[int]]:
    """List where terms stand; of too many places the first by path and offset.

    The number of a row tells when it was indexed, and nothing may depend on that.
    """
    listed = _rows(connection, matches, MOST_ROWS + 1)
    return [
        rows if len(rows) <= MOST_ROWS else _first_rows(connection, match)
        for match, rows in zip(matches, listed, strict=True)
    ]


def _first_rows(connection: sqlite3.Connection, match: str) -> list[int]:
    found = connection.execute(
        "SELECT p.id FROM postings f JOIN passages p ON p.id = f.rowid"
        " JOIN documents d ON d.id = p.document"
        " WHERE f.postings MATCH ? ORDER BY d.path, p.start LIMIT ?",
        (match, MOST_ROWS),
    )
    return [row for (row,) in found]


def _rows(connection: sqlite3.Connection, matches: Iterable[str], most: int) -> list[list[int]]:
    wanted = list(matches)
    if not wanted:
        return []
    listed = connection.execute(_LISTED, (most, json.dumps(wanted))).fetchall()
    return [_ROWS.decode(f"[{rows or ''}]") for (rows,) in listed]


def _quoted(term: str) -> str:
    return f'"{term}"'
