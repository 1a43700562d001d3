"""The five seeds as rows of data, and what is wrong with them.

Knows the form of a row and which tests name it; never runs a test and never reads a seed.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from creonowd.model import Model
from tests.requirements.mentions import Mention, find_mentions

PLACE = Path("tests") / "requirements"
PREFIXES = {1: "CN", 2: "CE", 3: "SK", 4: "CF", 5: "CB"}

Words = Annotated[str, Meta(min_length=1)]


class Row(Model, forbid_unknown_fields=True):
    """One demand of a seed.

    `shown` is how it is proved; `ruling` is where the design decides otherwise or more
    precisely. A row shown by `ruling` is settled there and needs no test; one shown by a
    `bench` names the script that reports it. A row that is not done says in `open` why.
    """

    id: Annotated[str, Meta(pattern=r"^[A-Z]{2}-[0-9]{3}$")]
    kind: Literal["must", "should", "scenario", "threshold", "code", "shape"]
    section: Words
    says: Words
    shown: Literal["unit", "property", "contract", "e2e", "bench", "ruling"]
    bench: Words | None = None
    issue: Annotated[int, Meta(ge=2, le=14)]
    ruling: Words | None = None
    open: Words | None = None
    done: bool


class Seed(Model, forbid_unknown_fields=True):
    """One file of the manifest."""

    seed: Annotated[int, Meta(ge=1, le=5)]
    title: Words
    row: list[Row]


class Manifest(Model):
    """Everything that was read, what names it, and what is wrong."""

    seeds: list[Seed]
    mentions: list[Mention]
    problems: list[str]


def read_manifest(root: Path) -> Manifest:
    """Read the manifest of the repository at `root` and hold it against its tests."""
    seeds, problems = _read_seeds(root / PLACE)
    mentions, strays = find_mentions(root)
    rows = [row for seed in seeds for row in seed.row]
    return Manifest(
        seeds=seeds,
        mentions=mentions,
        problems=[
            *problems,
            *strays,
            *_misnumbered(seeds),
            *(problem for row in rows for problem in _contradictions(row)),
            *_unshown(root, rows, mentions),
            *_unknown(rows, mentions),
        ],
    )


def _read_seeds(place: Path) -> tuple[list[Seed], list[str]]:
    seeds: list[Seed] = []
    problems: list[str] = []
    for path in sorted(place.glob("*.toml")):
        try:
            seeds.append(msgspec.toml.decode(path.read_bytes(), type=Seed))
        except msgspec.DecodeError as error:
            problems.append(f"{path.name}: {error}")
    return seeds, problems or ([] if seeds else ["there is no manifest"])


def _misnumbered(seeds: Sequence[Seed]) -> Iterable[str]:
    counts = Counter(row.id for seed in seeds for row in seed.row)
    yield from (f"{row}: stands {count} times" for row, count in counts.items() if count > 1)
    for seed in seeds:
        prefix = PREFIXES[seed.seed]
        strangers = (row.id for row in seed.row if not row.id.startswith(prefix))
        yield from (f"{row}: rows of seed {seed.seed} begin with {prefix}" for row in strangers)


def _contradictions(row: Row) -> Iterable[str]:
    if (row.bench is None) is (row.shown == "bench"):
        yield f"{row.id}: `bench` belongs to rows shown by a bench, and to all of them"
    if row.shown == "ruling" and row.ruling is None:
        yield f"{row.id}: is settled by a ruling but quotes none"
    if row.done is (row.open is not None):
        yield f"{row.id}: `open` belongs to rows that are not done, and to all of them"


def _unshown(root: Path, rows: Sequence[Row], mentions: Sequence[Mention]) -> Iterable[str]:
    shown = {(mention.id, mention.path) for mention in mentions}
    tested = {mention.id for mention in mentions if not mention.bench}
    for row in rows:
        if not row.done or row.shown == "ruling":
            continue
        if row.bench is None and row.id not in tested:
            yield f"{row.id}: is marked done, but no test names it"
        if row.bench is not None and not (root / row.bench).is_file():
            yield f"{row.id}: is marked done, but there is no {row.bench}"
        elif row.bench is not None and (row.id, row.bench) not in shown:
            yield f"{row.id}: is marked done, but {row.bench} does not name it"


def _unknown(rows: Sequence[Row], mentions: Sequence[Mention]) -> Iterable[str]:
    known = {row.id for row in rows}
    for mention in mentions:
        if mention.id not in known:
            yield f"{mention.path}: {mention.test} names {mention.id}, which is no row"
