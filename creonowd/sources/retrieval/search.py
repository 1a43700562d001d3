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

from creonowd.model import Model
from creonowd.sources.retrieval.postings import COMMON, PRESENT, Postings, walk
from creonowd.sources.retrieval.terms import stands_in
from creonowd.sources.retrieval.writing import HEADING_JOINT

_Row = tuple[int, str, int, int, str, str, str, bytes]


class Found(Model):
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


def search(connection: sqlite3.Connection, weights: Mapping[str, float], most: int) -> list[Found]:
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


def _found(row: _Row, shares: dict[str, float]) -> Found:
    _, path, start, end, lines, heading, text, sketch = row
    return Found(
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
