"""Search one file: with ripgrep where it is and the file is plain text, in process otherwise.

Knows which engine fits and how far a reply may go; knows nothing of refs.
"""

import re
from pathlib import Path
from typing import NamedTuple

from creonowd.artifacts import ripgrep, scanning
from creonowd.artifacts.excerpts import Excerpt, excerpt
from creonowd.artifacts.redacting import Reader
from creonowd.artifacts.searching import LONGEST_LINE, Cursor, Found, Place, Query
from creonowd.artifacts.tree import OpenFile
from creonowd.errors import DaemonError, ErrorCode
from creonowd.redaction import RedactionEvidence

MOST_SHOWN_BYTES = 1024 * 1024
MOST_SIEVED = 50_000

_CURSOR = re.compile(r"([0-9]{1,15})-([0-9]{1,15})-([0-9]{1,15})", re.ASCII)


class Match(NamedTuple):
    """A line that matches as it is told: without secrets, and clipped."""

    place: Place
    content: str
    before: list[str]
    after: list[str]


class Matches(NamedTuple):
    """What a search found; `total` is the true number unless the time was too short."""

    matches: list[Match]
    total: int
    complete: bool
    cursor: Cursor | None
    evidence: tuple[RedactionEvidence, ...]


def search(file: OpenFile, query: Query, program: Path | None) -> Found:
    """Find the lines that match with the engine that fits."""
    survey = query.survey
    plain = survey is not None and survey.utf8 and survey.longest_line <= LONGEST_LINE
    found = None
    if plain and program is not None:
        run = ripgrep.run if query.sieve is None else _run_and_sieve
        found = run(program, file, query)
    return scanning.scan(file, query) if found is None else found


def _run_and_sieve(program: Path, file: OpenFile, query: Query) -> Found | None:
    """Sieve what ripgrep finds; too much to be held is left to the scan, which need not."""
    found = ripgrep.run(program, file, query._replace(most=MOST_SIEVED))
    if found is None or found.total > len(found.places):
        return None
    passed: list[Place] = []
    for count, place in enumerate(found.places):
        query.stop.check()
        if query.limit.over and count >= query.most:
            return Found(passed[: query.most], len(passed), complete=False)
        if query.sieve is None or query.sieve.passes(place.offset):
            passed.append(place)
    return Found(passed[: query.most], len(passed), complete=found.complete)


def tell(file: OpenFile, query: Query, found: Found, context_lines: int, reader: Reader) -> Matches:
    """Show what was found, as much as fits into a reply, and where to go on."""
    excerpts: list[Excerpt] = []
    shown = 0
    for place in found.places[: query.most - 1]:
        query.stop.check()
        excerpts.append(excerpt(file, place, query, context_lines))
        shown += sum(line.end - line.start for line in excerpts[-1].lines)
        if shown >= MOST_SHOWN_BYTES:
            break
    rest = found.places[len(excerpts) :]
    seen = query.start.seen
    matches, evidence = _texts(file, excerpts, reader)
    return Matches(
        matches,
        seen + found.total,
        found.complete,
        Cursor(rest[0], seen + len(excerpts)) if rest else None,
        evidence,
    )


def spell_cursor(cursor: Cursor) -> str:
    """Write a cursor for the client to keep."""
    return f"{cursor.place.line}-{cursor.place.offset}-{cursor.seen}"


def parse_cursor(text: str, file: OpenFile) -> Cursor:
    """Understand a cursor that an earlier search gave out for this file."""
    match = _CURSOR.fullmatch(text)
    if match is not None:
        line, offset, seen = map(int, match.groups())
        begins_line = offset == 0 or file.read_at(offset - 1, 1) == b"\n"
        if line >= 1 and begins_line and offset <= file.size:
            return Cursor(Place(line, offset), seen)
    raise DaemonError(
        ErrorCode.INVALID_ARGUMENT,
        "The cursor does not belong to this file; start the search again.",
        field="cursor",
    )


def _texts(
    file: OpenFile, excerpts: list[Excerpt], reader: Reader
) -> tuple[list[Match], tuple[RedactionEvidence, ...]]:
    lines = sorted({line for one in excerpts for line in one.lines})
    clean = reader.read(file, [(line.start, line.end) for line in lines])
    marked = {line: line.marked(text) for line, text in zip(lines, clean.texts, strict=True)}
    matches = [
        Match(
            one.place,
            marked[one.line],
            [marked[line] for line in one.before],
            [marked[line] for line in one.after],
        )
        for one in excerpts
    ]
    return matches, clean.evidence
