"""Files in a conversation's folder that no record speaks of get one, under a new id.

Knows files and their names; knows nothing of who put them there.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from creonowd.artifacts import ledger, names, tree
from creonowd.artifacts.refs import BLOCK, Record, Retention
from creonowd.artifacts.surveying import survey
from creonowd.clock import Clock


def adopted(
    folder: Path, records: Sequence[Record], project_id: str, clock: Clock
) -> Iterator[Record]:
    """Write a record for every stranger, as a conversation from elsewhere needs it."""
    sequence = max((record.sequence for record in records), default=-1)
    for path in ledger.strangers(folder, records):
        sequence += 1
        record = _record(folder, path, project_id, sequence, clock)
        ledger.write_record(folder, record)
        yield record


def _record(folder: Path, path: str, project_id: str, sequence: int, clock: Clock) -> Record:
    import mimetypes

    with tree.opened(folder, path) as file:
        surveyed = survey(file.chunks(BLOCK))
    name = path.rpartition("/")[2]
    origin = names.origin_of(path)
    guessed = mimetypes.guess_type(name)[0]
    return Record(
        id=clock.new_id("ctx"),
        kind=names.kind_of(origin),
        origin=origin,
        retention=Retention.EAGER,
        path=path,
        hint=name,
        mime_type=guessed or ("text/plain" if surveyed.utf8 else "application/octet-stream"),
        created_at=(folder / path).stat().st_mtime_ns // 1_000_000,
        stored_at=clock.now_ms(),
        sequence=sequence,
        project_id=project_id,
        survey=surveyed,
    )
