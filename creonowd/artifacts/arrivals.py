"""Records from elsewhere made to fit a conversation: same ids and times, new names where taken.

Knows records; knows no disk and no archive.
"""

from collections.abc import Sequence

import msgspec

from creonowd.artifacts import names
from creonowd.artifacts.index import Index
from creonowd.artifacts.refs import Record
from creonowd.errors import DaemonError, ErrorCode


def fitted(index: Index, arriving: Sequence[Record], project_id: str, now_ms: int) -> list[Record]:
    """List the records that are new here, in order; CONFLICT if one contradicts what is here."""
    fresh: list[Record] = []
    taken = set(index.paths)
    for record in sorted(arriving, key=lambda record: record.order):
        if _is_here(index, record):
            continue
        path = record.path
        if path.lower() in taken:
            label = record.key or record.id
            path = names.choose(record.origin, label, record.created_at, record.mime_type, taken)
        taken.add(path.lower())
        fresh.append(
            msgspec.structs.replace(
                record,
                path=path,
                project_id=project_id,
                stored_at=now_ms,
                sequence=index.next_sequence + len(fresh),
            )
        )
    return fresh


def _is_here(index: Index, record: Record) -> bool:
    old = index.get(record.id)
    namesake = None if record.key is None else index.by_key(record.key)
    if old is None and namesake is None:
        return False
    if old is not None and _is_same(old, record) and (namesake is None or namesake.id == old.id):
        return True
    raise DaemonError(
        ErrorCode.CONFLICT,
        "The conversation has another file under the same id or key; import into a new one.",
        field="conversationId",
        id=record.id,
    )


def _is_same(old: Record, new: Record) -> bool:
    if old.lazy or new.lazy:
        return old.recipe == new.recipe
    return (
        old.survey is not None
        and new.survey is not None
        and (old.survey.sha256 == new.survey.sha256)
    )
