"""Rank passages that were found: without repetition, with scores from 0 to 1.

Of the current document only what its text says now counts; the index may lag behind it.
"""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from creonowd.model import Model
from creonowd.retrieval.bm25 import FoundPassage
from creonowd.retrieval.index_writer import Duplicates
from creonowd.retrieval.passages import LineNumbers


class CurrentDocument(Model):
    """The document at hand as it is now, and the stretch of it that the query is made of."""

    path: str
    text: str
    query_start: int = 0
    query_end: int = 0


class Ranked(Model):
    """A passage and its score; `duplicates` say nearly the same and are not offered."""

    found: FoundPassage
    score: float
    duplicates: tuple[str, ...] = ()


def source_ref(found: FoundPassage) -> str:
    """Return the name of a passage: its path and lines, as in `chapters/07.md#L120-L143`."""
    return f"{found.path}#{found.lines}"


def rank(
    found: Iterable[FoundPassage], current: CurrentDocument | None, limit: int
) -> list[Ranked]:
    """Rank the best passages; a score is the share of the best one's.

    What the query itself was made of is its own best match: it does not count as the best one,
    and copies of it elsewhere are its duplicates.
    """
    present = list(found) if current is None else _present(found, current)
    groups = _groups(present, current, limit)
    best = max(
        (group[0].score for group in groups if not _is_query(group[0], current)), default=1.0
    )
    ranked = [
        Ranked(
            found=group[0],
            score=round(min(1.0, group[0].score / best), 4),
            duplicates=tuple(map(source_ref, group[1:])),
        )
        for group in groups
    ]
    return sorted(ranked, key=lambda one: (-one.score, one.found.path, one.found.start))


def _present(found: Iterable[FoundPassage], current: CurrentDocument) -> list[FoundPassage]:
    """Move passages of the current document to where they stand now; drop those that are gone."""
    present: list[FoundPassage] = []
    numbers: LineNumbers | None = None
    for one in found:
        if one.path != current.path or current.text.startswith(one.text, one.start):
            present.append(one)
        elif (start := current.text.find(one.text)) >= 0:
            numbers = numbers or LineNumbers(current.text)
            end = start + len(one.text)
            present.append(replace(one, start=start, end=end, lines=numbers.spell(start, end)))
    return present


def _groups(
    found: Sequence[FoundPassage], current: CurrentDocument | None, limit: int
) -> list[list[FoundPassage]]:
    """Group passages that say nearly the same, the best of each first, up to `limit` groups."""
    groups: list[list[FoundPassage]] = []
    duplicates = Duplicates()
    for one in sorted(found, key=lambda one: not _is_query(one, current)):
        number = duplicates.find(one.sketch)
        if number is not None:
            groups[number].append(one)
        elif len(groups) == limit:
            break
        else:
            groups.append([one])
    return groups


def _is_query(one: FoundPassage, current: CurrentDocument | None) -> bool:
    """Return whether the query was made of a part of this passage."""
    if current is None or one.path != current.path:
        return False
    return max(one.start, current.query_start) < min(one.end, current.query_end)
