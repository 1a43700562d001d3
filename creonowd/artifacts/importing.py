"""A zip into a conversation: ids and times are kept, nothing in it is trusted, all or nothing.

Knows the order of things; how a zip is read and how files are staged stands elsewhere.
"""

import contextlib
import io
import stat
import struct
import zlib
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile, ZipFile

from creonowd.artifacts import archive, staging
from creonowd.artifacts.conversation import Conversation
from creonowd.artifacts.declared import Rules
from creonowd.artifacts.exporting import Report
from creonowd.artifacts.refs import Record
from creonowd.artifacts.staging import Move, Plan
from creonowd.artifacts.store import Store
from creonowd.artifacts.unpacking import Arrival, Unpacking
from creonowd.errors import DaemonError, ErrorCode
from creonowd.storage import atomic
from creonowd.threads import StopSignal

_DAMAGE = (
    BadZipFile,
    EOFError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    struct.error,
    ValueError,
    zlib.error,
)


class _Sparing(io.BufferedReader):
    """An archive that is never asked for more at once than a decent table of contents needs.

    `ZipFile` reads that table whole, and makes an object of every entry, before one can be counted.
    """

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > archive.LARGEST_DIRECTORY:
            raise archive.refused("too_many_files", "The archive's table of contents is too long.")
        return super().read(size)


class Target(NamedTuple):
    """Where an archive goes: into a conversation of a project; by default the archive's own."""

    project_id: str
    conversation_id: str | None


class Imported(NamedTuple):
    """Where the files went, and which they are."""

    conversation: Conversation
    records: list[Record]


def import_archive(
    store: Store, target: Target, path: Path, rules: Rules, *, stop: StopSignal, report: Report
) -> Imported:
    """Check an archive, stage its files, and put all of them into a conversation."""
    with _opened(path, rules.most_bytes) as (zipped, size):
        layout = archive.lay_out(zipped.infolist(), size, rules.most_bytes)
        conversation_id = target.conversation_id or layout.conversation_id
        store.find(target.project_id, conversation_id)
        with staging.stage(store.root, store.clock.new_id("imp")) as place:
            unpacking = Unpacking(zipped, layout, place, stop, report)
            arrived = unpacking.arrivals(rules, store.clock)
            stop.check()
            conversation = store.bound(target.project_id, conversation_id)
            _settle(store, conversation, place, arrived)
    ids = {one.record.id for one in arrived}
    return Imported(conversation, [r for r in conversation.records() if r.id in ids])


def _settle(
    store: Store, conversation: Conversation, place: Path, arrived: Sequence[Arrival]
) -> None:
    staged = {one.record.id: one.staged for one in arrived}

    def put_in_place(fresh: list[Record]) -> None:
        moves = tuple(Move(record=record, staged=staged[record.id]) for record in fresh)
        plan = Plan(
            conversation_id=conversation.id, project_id=conversation.project_id, moves=moves
        )
        staging.carry_out(store.root, place, plan)

    conversation.take_in([one.record for one in arrived], put_in_place)


@contextlib.contextmanager
def _opened(path: Path, most_bytes: int) -> Generator[tuple[ZipFile, int]]:
    with atomic.disk_errors("the archive"):
        try:
            status = path.stat()
        except FileNotFoundError:
            raise DaemonError(
                ErrorCode.NOT_FOUND, "There is no such archive.", field="path"
            ) from None
        if not stat.S_ISREG(status.st_mode):
            raise archive.refused("not_an_archive", "The path is no file.")
        if status.st_size > most_bytes:
            raise archive.refused("too_large", f"The archive is over {most_bytes} bytes.")
        try:
            with _Sparing(path.open("rb", buffering=0)) as file, ZipFile(file) as zipped:
                yield zipped, status.st_size
        except _DAMAGE:
            raise archive.refused("damaged", "The file is no zip archive, or damaged.") from None
