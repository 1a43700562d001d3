"""Find the passages that a query is about: BM25 over the index, best first.

The finalists are looked into for the common terms, of which not every place was walked; so
neither time nor memory follow the size of the corpus. Knows terms and weights, not where they
come from.
"""

import json
import math
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest

import msgspec

from creonowd.model import Model
from creonowd.retrieval.index_writer import HEADING_JOINT, STEPS, marked
from creonowd.retrieval.query import is_lone, stands_in

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


_Row = tuple[int, str, int, int, str, str, str, bytes]


class FoundPassage(Model):
    """A passage, its BM25 and how much of that each term brought."""

    path: str
    start: int
    end: int
    lines: str
    heading: tuple[str, ...]
    text: str
    sketch: bytes
    score: float
    shares: dict[str, float]


def search(
    connection: sqlite3.Connection, weights: Mapping[str, float], most: int
) -> list[FoundPassage]:
    """Find at least `most` passages if there are so many, best first; ties by path and offset.

    Weights are factors of terms; only their ratios matter.
    """
    enough = most if len(weights) == 1 else COMMON
    walked = walk(connection, weights, enough)
    values = _values(connection, weights, walked)
    scores: defaultdict[int, float] = defaultdict(float)
    for term, postings in walked.items():
        value = values[term]
        for row, impact in postings.impacts.items():
            scores[row] += value * impact
    rows = _loaded(connection, _first(connection, scores, most))
    shares = _shares(rows, walked, values)
    found = [_found(row, shares[row[0]]) for row in rows]
    return sorted(found, key=lambda one: (-one.score, one.path, one.start))


def _values(
    connection: sqlite3.Connection,
    weights: Mapping[str, float],
    walked: Mapping[str, Postings],
) -> dict[str, float]:
    """Weigh each term by how rare it is; a single term has nothing to be compared with."""
    if len(weights) == 1:
        return dict(weights)
    (total,) = connection.execute("SELECT count(*) FROM passages").fetchone()
    return {
        term: weight * _rarity(total, _frequency(connection, term, walked[term]))
        for term, weight in weights.items()
    }


def _rarity(total: int, frequency: int) -> float:
    return math.log(1 + (total - frequency + 0.5) / (frequency + 0.5))


def _frequency(connection: sqlite3.Connection, term: str, postings: Postings) -> int:
    if not postings.common:
        return len(postings.impacts)
    row = connection.execute("SELECT doc FROM vocabulary WHERE term = ?", (term,)).fetchone()
    return row[0]


def _first(connection: sqlite3.Connection, scores: Mapping[int, float], most: int) -> list[int]:
    """Choose the rows with the best scores; where the last place is shared, by path and offset."""
    if len(scores) <= most:
        return list(scores)
    least = min(nlargest(most, scores.values()))
    chosen = [row for row, score in scores.items() if score > least]
    shared = [row for row, score in scores.items() if score == least]
    places = connection.execute(
        "SELECT p.id FROM passages p JOIN documents d ON d.id = p.document"
        " WHERE p.id IN (SELECT value FROM json_each(?)) ORDER BY d.path, p.start LIMIT ?",
        (json.dumps(shared), most - len(chosen)),
    )
    return chosen + [row for (row,) in places]


def _loaded(connection: sqlite3.Connection, rows: Iterable[int]) -> list[_Row]:
    found = connection.execute(
        "SELECT p.id, d.path, p.start, p.end, p.lines, p.heading, p.text, p.sketch"
        " FROM passages p JOIN documents d ON d.id = p.document"
        " WHERE p.id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(rows)),),
    )
    return found.fetchall()


def _shares(
    rows: Sequence[_Row], walked: Mapping[str, Postings], values: Mapping[str, float]
) -> dict[int, dict[str, float]]:
    """Tell how much each term brings to each row."""
    shares: dict[int, dict[str, float]] = {row[0]: {} for row in rows}
    for term, postings in walked.items():
        value, impacts = values[term], postings.impacts
        for row in shares.keys() & impacts.keys():
            shares[row][term] = round(value * impacts[row], 6)
        if postings.common:
            least = round(value * PRESENT, 6)
            for row in rows:
                if row[0] not in impacts and stands_in(term, row[6]):
                    shares[row[0]][term] = least
    return shares


def _found(row: _Row, shares: dict[str, float]) -> FoundPassage:
    _, path, start, end, lines, heading, text, sketch = row
    return FoundPassage(
        path=path,
        start=start,
        end=end,
        lines=lines,
        heading=tuple(heading.split(HEADING_JOINT)) if heading else (),
        text=text,
        sketch=sketch,
        score=round(sum(shares.values()), 6),
        shares=shares,
    )
