"""New records: an id that nobody can guess, a name that is free, and the time.

Knows records and names; knows no disk.
"""

import msgspec

from creonowd.artifacts import names
from creonowd.artifacts.index import Index
from creonowd.artifacts.refs import NewFile, Record, Retention
from creonowd.clock import Clock
from creonowd.errors import DaemonError, ErrorCode


def mint(new: NewFile, index: Index, project_id: str, clock: Clock) -> Record:
    """Make the record of a new file, with an id and a path that the index does not have."""
    now = clock.now_ms()
    ref_id = clock.new_id("ctx")
    while ref_id in index:
        ref_id = clock.new_id("ctx")
    return Record(
        id=ref_id,
        retention=Retention.EAGER if new.recipe is None else Retention.LAZY,
        path=names.choose(new.origin, new.key or ref_id, now, new.mime_type, index.paths),
        created_at=now,
        stored_at=now,
        sequence=index.next_sequence,
        project_id=project_id,
        **msgspec.structs.asdict(new),
    )


def refuse_other(old: Record, *, same: bool) -> None:
    """Refuse to let a key name something else than it does; CONFLICT says what it names."""
    if not same:
        raise DaemonError(
            ErrorCode.CONFLICT,
            "The key names another file already; choose another key or delete that file.",
            field="key",
            id=old.id,
        )
