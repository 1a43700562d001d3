"""Search the index by BM25: the passages that a query is about, best first.

Of a common term only the passages where it weighs most are looked up; the best passages are then
searched for the common terms that they contain besides. So neither time nor memory follow the
size of the corpus.
"""

import json
import math
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest

import msgspec

from creonowd.model import Model
from creonowd.retrieval.index_writer import HEADING_JOINT, STEPS, term_at_step
from creonowd.retrieval.query import contains_term, is_single_character

# A term in more passages is common.
COMMON = 512
MOST_ROWS = 20_000
SATURATION = 1.2

# The weighted frequency assumed for each step; the first is mere presence.
_TYPICAL = (1.0, 1.6, 2.3, 3.4, 5.2, 7.6, 12.0)
_IMPACTS = tuple(f * (SATURATION + 1) / (f + SATURATION) for f in _TYPICAL)

PRESENT = _IMPACTS[0]

_ROWS = msgspec.json.Decoder(list[int])
_ROWS_OF_TERMS = (
    "SELECT (SELECT group_concat(rowid) FROM"
    " (SELECT rowid FROM postings WHERE postings MATCH t.value LIMIT ?))"
    " FROM json_each(?) t ORDER BY t.key"
)

_PassageRow = tuple[int, str, int, int, str, str, str, bytes]


class FoundPassage(Model):
    """A passage, its BM25 and each term's share of that."""

    path: str
    start: int
    end: int
    lines: str
    heading: tuple[str, ...]
    text: str
    sketch: bytes
    score: float
    shares: dict[str, float]


class Postings(Model):
    """The rows of a term with its impact in each; of a common term only those of most impact."""

    impacts: dict[int, float]
    common: bool = False


def search(
    connection: sqlite3.Connection, weights: Mapping[str, float], most: int
) -> list[FoundPassage]:
    """Find at least `most` passages if there are so many, best first; ties by path and offset.

    Weights are factors of terms; only their ratios matter.
    """
    enough = most if len(weights) == 1 else COMMON
    postings = look_up(connection, weights, enough)
    values = _values(connection, weights, postings)
    scores: defaultdict[int, float] = defaultdict(float)
    for term, of_term in postings.items():
        value = values[term]
        for row, impact in of_term.impacts.items():
            scores[row] += value * impact
    rows = _load(connection, _best(connection, scores, most))
    shares = _shares(rows, postings, values)
    found = [_passage(row, shares[row[0]]) for row in rows]
    return sorted(found, key=lambda one: (-one.score, one.path, one.start))


def look_up(
    connection: sqlite3.Connection, terms: Iterable[str], enough: int
) -> dict[str, Postings]:
    """Return the postings of every term; of a common one at least `enough`, if there are so many."""
    all_terms = list(terms)
    whole = [term for term in all_terms if not is_single_character(term)]
    single = [term for term in all_terms if is_single_character(term)]
    present = dict(zip(whole, _rows(connection, map(_phrase, whole), COMMON + 1), strict=True))
    rare = _rare(connection, {t: rows for t, rows in present.items() if len(rows) <= COMMON})
    common = _common(connection, [term for term in whole if term not in rare], enough)
    postings = rare | common | _single(connection, single)
    return {term: postings[term] for term in all_terms}


def _rare(
    connection: sqlite3.Connection, present: Mapping[str, Sequence[int]]
) -> dict[str, Postings]:
    """Raise the impacts of rare terms step by step, as long as any row reaches the next."""
    impacts = {term: dict.fromkeys(rows, PRESENT) for term, rows in present.items()}
    terms = [term for term, rows in present.items() if rows]
    for step, impact in enumerate(_IMPACTS[1:]):
        phrases = [_phrase(term_at_step(term, step)) for term in terms]
        rows_at_step = dict(zip(terms, _rows(connection, phrases, COMMON), strict=True))
        for term, rows in rows_at_step.items():
            impacts[term].update(dict.fromkeys(rows, impact))
        terms = [term for term, rows in rows_at_step.items() if rows]
    return {term: Postings(impacts=of_term) for term, of_term in impacts.items()}


def _common(
    connection: sqlite3.Connection, terms: Sequence[str], enough: int
) -> dict[str, Postings]:
    """Take the rows of common terms from the highest step down, until there are enough."""
    impacts: dict[str, dict[int, float]] = {term: {} for term in terms}
    short = list(terms)
    for step in reversed(range(-1, len(STEPS))):
        phrases = [_phrase(term_at_step(term, step)) for term in short]
        for term, rows in zip(short, _all_rows(connection, phrases), strict=True):
            impacts[term] = dict.fromkeys(rows, _IMPACTS[step + 1]) | impacts[term]
        short = [term for term in short if len(impacts[term]) < enough]
    return {term: Postings(impacts=of_term, common=True) for term, of_term in impacts.items()}


def _single(connection: sqlite3.Connection, terms: Sequence[str]) -> dict[str, Postings]:
    """Find single characters as the beginnings of terms: the index holds bigrams."""
    rows = _all_rows(connection, [f"{_phrase(term)} *" for term in terms])
    impacts = (dict.fromkeys(each, PRESENT) for each in rows)
    return {term: Postings(impacts=each) for term, each in zip(terms, impacts, strict=True)}


def _all_rows(connection: sqlite3.Connection, phrases: Sequence[str]) -> list[list[int]]:
    """Return the rows of each phrase; of too many the first by path and offset.

    A row's number shows when it was indexed, and nothing may depend on that.
    """
    found = _rows(connection, phrases, MOST_ROWS + 1)
    return [
        rows if len(rows) <= MOST_ROWS else _first_rows(connection, phrase)
        for phrase, rows in zip(phrases, found, strict=True)
    ]


def _first_rows(connection: sqlite3.Connection, phrase: str) -> list[int]:
    found = connection.execute(
        "SELECT p.id FROM postings f JOIN passages p ON p.id = f.rowid"
        " JOIN documents d ON d.id = p.document"
        " WHERE f.postings MATCH ? ORDER BY d.path, p.start LIMIT ?",
        (phrase, MOST_ROWS),
    )
    return [row for (row,) in found]


def _rows(connection: sqlite3.Connection, phrases: Iterable[str], most: int) -> list[list[int]]:
    matches = list(phrases)
    if not matches:
        return []
    found = connection.execute(_ROWS_OF_TERMS, (most, json.dumps(matches))).fetchall()
    return [_ROWS.decode(f"[{rows or ''}]") for (rows,) in found]


def _phrase(term: str) -> str:
    return f'"{term}"'


def _values(
    connection: sqlite3.Connection,
    weights: Mapping[str, float],
    postings: Mapping[str, Postings],
) -> dict[str, float]:
    """Weigh each term by how rare it is; a single term has nothing to be compared with."""
    if len(weights) == 1:
        return dict(weights)
    (total,) = connection.execute("SELECT count(*) FROM passages").fetchone()
    return {
        term: weight * _rarity(total, _frequency(connection, term, postings[term]))
        for term, weight in weights.items()
    }


def _rarity(total: int, frequency: int) -> float:
    return math.log(1 + (total - frequency + 0.5) / (frequency + 0.5))


def _frequency(connection: sqlite3.Connection, term: str, postings: Postings) -> int:
    if not postings.common:
        return len(postings.impacts)
    row = connection.execute("SELECT doc FROM vocabulary WHERE term = ?", (term,)).fetchone()
    return row[0]


def _best(connection: sqlite3.Connection, scores: Mapping[int, float], most: int) -> list[int]:
    """Choose the rows with the best scores; those that share the last place by path and offset."""
    if len(scores) <= most:
        return list(scores)
    least = min(nlargest(most, scores.values()))
    better = [row for row, score in scores.items() if score > least]
    equal = [row for row, score in scores.items() if score == least]
    first = connection.execute(
        "SELECT p.id FROM passages p JOIN documents d ON d.id = p.document"
        " WHERE p.id IN (SELECT value FROM json_each(?)) ORDER BY d.path, p.start LIMIT ?",
        (json.dumps(equal), most - len(better)),
    )
    return better + [row for (row,) in first]


def _load(connection: sqlite3.Connection, rows: Iterable[int]) -> list[_PassageRow]:
    found = connection.execute(
        "SELECT p.id, d.path, p.start, p.end, p.lines, p.heading, p.text, p.sketch"
        " FROM passages p JOIN documents d ON d.id = p.document"
        " WHERE p.id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(rows)),),
    )
    return found.fetchall()


def _shares(
    rows: Sequence[_PassageRow], postings: Mapping[str, Postings], values: Mapping[str, float]
) -> dict[int, dict[str, float]]:
    """Return how much each term adds to the score of each row."""
    shares: dict[int, dict[str, float]] = {row[0]: {} for row in rows}
    for term, of_term in postings.items():
        value, impacts = values[term], of_term.impacts
        for row in shares.keys() & impacts.keys():
            shares[row][term] = round(value * impacts[row], 6)
        if of_term.common:
            least = round(value * PRESENT, 6)
            for row in rows:
                if row[0] not in impacts and contains_term(row[6], term):
                    shares[row[0]][term] = least
    return shares


def _passage(row: _PassageRow, shares: dict[str, float]) -> FoundPassage:
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
