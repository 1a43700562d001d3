"""Find the passages that a query is about: BM25 over the index, best first.

Rare terms are walked in full. Of a common one only the passages that it weighs most in are
walked, and the finalists are looked into for the rest; so neither time nor memory follow the
size of the corpus. Knows terms and weights, not where they come from.
"""

import json
import math
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping
from heapq import nlargest

from creonowd.model import Model
from creonowd.sources.retrieval.terms import is_lone, stands_in
from creonowd.sources.retrieval.writing import HEADING_JOINT, STEPS, marked

COMMON = 512
MOST_ROWS = 20_000
SATURATION = 1.2

# What stands for the weighted frequency in each step; the first is mere presence.
_TYPICAL = (1.0, 1.6, 2.3, 3.4, 5.2, 7.6, 12.0)
_IMPACTS = tuple(f * (SATURATION + 1) / (f + SATURATION) for f in _TYPICAL)


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


class _Postings(Model):
    """Where a term stands, with its impact; of a common term only where it weighs most."""

    impacts: dict[int, float]
    common: bool = False


def search(connection: sqlite3.Connection, weights: Mapping[str, float], most: int) -> list[Found]:
    """Find at least `most` passages if there are so many, best first; ties by path and offset.

    Weights are factors of terms; only their ratios matter.
    """
    enough = most if len(weights) == 1 else COMMON
    walked = {term: _walk(connection, term, enough) for term in weights}
    values = _values(connection, weights, walked)
    scores: defaultdict[int, float] = defaultdict(float)
    for term, postings in walked.items():
        for row, impact in postings.impacts.items():
            scores[row] += values[term] * impact
    finalists = _first(connection, scores, most)
    found = [_found(row, walked, values) for row in _loaded(connection, finalists)]
    return sorted(found, key=lambda one: (-one.score, one.path, one.start))


def _walk(connection: sqlite3.Connection, term: str, enough: int) -> _Postings:
    if is_lone(term):
        rows = _all_rows(connection, f'"{term}" *')
        return _Postings(impacts=dict.fromkeys(rows, _IMPACTS[0]))
    present = _rows(connection, f'"{term}"', COMMON + 1)
    if len(present) > COMMON:
        return _Postings(impacts=_heaviest(connection, term, enough), common=True)
    impacts = dict.fromkeys(present, _IMPACTS[0])
    for step in range(len(STEPS)):
        rows = _reached(connection, term, step)
        if not rows:
            break
        impacts.update(dict.fromkeys(rows, _IMPACTS[step + 1]))
    return _Postings(impacts=impacts)


def _heaviest(connection: sqlite3.Connection, term: str, enough: int) -> dict[int, float]:
    impacts: dict[int, float] = {}
    for step in reversed(range(len(STEPS))):
        reached = dict.fromkeys(_reached(connection, term, step), _IMPACTS[step + 1])
        impacts = reached | impacts
        if len(impacts) >= enough:
            return impacts
    rest = dict.fromkeys(_all_rows(connection, f'"{term}"'), _IMPACTS[0])
    return rest | impacts


def _reached(connection: sqlite3.Connection, term: str, step: int) -> list[int]:
    return _all_rows(connection, f'"{marked(term, step)}"')


def _all_rows(connection: sqlite3.Connection, match: str) -> list[int]:
    """List where a term stands; of too many places the first by path and offset.

    The number of a row tells when it was indexed, and nothing may depend on that.
    """
    rows = _rows(connection, match, MOST_ROWS + 1)
    if len(rows) <= MOST_ROWS:
        return rows
    found = connection.execute(
        "SELECT p.id FROM postings f JOIN passages p ON p.id = f.rowid"
        " JOIN documents d ON d.id = p.document"
        " WHERE f.postings MATCH ? ORDER BY d.path, p.start LIMIT ?",
        (match, MOST_ROWS),
    )
    return [row for (row,) in found]


def _rows(connection: sqlite3.Connection, match: str, most: int) -> list[int]:
    rows = connection.execute(
        "SELECT rowid FROM postings WHERE postings MATCH ? LIMIT ?", (match, most)
    )
    return [row for (row,) in rows]


def _values(
    connection: sqlite3.Connection,
    weights: Mapping[str, float],
    walked: Mapping[str, _Postings],
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


def _frequency(connection: sqlite3.Connection, term: str, postings: _Postings) -> int:
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


def _loaded(connection: sqlite3.Connection, rows: Iterable[int]) -> sqlite3.Cursor:
    return connection.execute(
        "SELECT p.id, d.path, p.start, p.end, p.lines, p.heading, p.text, p.sketch"
        " FROM passages p JOIN documents d ON d.id = p.document"
        " WHERE p.id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(rows)),),
    )


def _found(row: _Row, walked: Mapping[str, _Postings], values: Mapping[str, float]) -> Found:
    number, path, start, end, lines, heading, text, sketch = row
    shares: dict[str, float] = {}
    for term, postings in walked.items():
        impact = postings.impacts.get(number)
        if impact is None and postings.common and stands_in(term, text):
            impact = _IMPACTS[0]
        if impact is not None:
            shares[term] = round(values[term] * impact, 6)
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
