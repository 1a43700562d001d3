"""What was found becomes what is offered: still true, without repetition, scored from 0 to 1.

Of the current document only what it says now counts, whatever the index remembers.

Pure. Knows no index and no prompt.
"""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from creonowd.model import Model
from creonowd.retrieval.bm25 import FoundPassage
from creonowd.retrieval.index_writer import Alike
from creonowd.retrieval.passages import Places


class Current(Model):
    """The document at hand as it is now, and the stretch of it that the query is made of."""

    path: str
    text: str
    asked_from: int = 0
    asked_to: int = 0


class Ranked(Model):
    """A passage to offer; `duplicates` say nearly the same and stepped back for it."""

    found: FoundPassage
    score: float
    duplicates: tuple[str, ...] = ()


def source_ref(found: FoundPassage) -> str:
    """Name the lines of the document: `chapters/07.md#L120-L143`."""
    return f"{found.path}#{found.lines}"


def rank(found: Iterable[FoundPassage], current: Current | None, limit: int) -> list[Ranked]:
    """Rank the best passages; a score is the share of the best one's.

    What the query itself was made of is its own best match: it does not set the measure, and
    copies of it elsewhere step back for it.
    """
    present = list(found) if current is None else _present(found, current)
    groups = _collapsed(present, current, limit)
    best = max((group[0].score for group in groups if not _asked(group[0], current)), default=1.0)
    ranked = [
        Ranked(
            found=group[0],
            score=round(min(1.0, group[0].score / best), 4),
            duplicates=tuple(map(source_ref, group[1:])),
        )
        for group in groups
    ]
    return sorted(ranked, key=lambda one: (-one.score, one.found.path, one.found.start))


def _present(found: Iterable[FoundPassage], current: Current) -> list[FoundPassage]:
    """Find passages of the current document where they stand now; the index may lag behind it."""
    present: list[FoundPassage] = []
    places: Places | None = None
    for one in found:
        if one.path != current.path or current.text.startswith(one.text, one.start):
            present.append(one)
        elif (start := current.text.find(one.text)) >= 0:
            places = places or Places(current.text)
            end = start + len(one.text)
            present.append(replace(one, start=start, end=end, lines=places.lines(start, end)))
    return present


def _collapsed(
    found: Sequence[FoundPassage], current: Current | None, limit: int
) -> list[list[FoundPassage]]:
    """Group passages that are alike, the best of each first, until there are enough groups."""
    groups: list[list[FoundPassage]] = []
    alike = Alike()
    for one in sorted(found, key=lambda one: not _asked(one, current)):
        number = alike.find(one.sketch)
        if number is not None:
            groups[number].append(one)
        elif len(groups) == limit:
            break
        else:
            groups.append([one])
    return groups


def _asked(one: FoundPassage, current: Current | None) -> bool:
    if current is None or one.path != current.path:
        return False
    return max(one.start, current.asked_from) < min(one.end, current.asked_to)
