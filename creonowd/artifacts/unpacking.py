"""The files of an archive, unpacked into a stage and held against what its manifest says of them.

Knows how to read a zip without trusting it; knows nothing of where the files go.
"""

import calendar
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile, ZipInfo

import msgspec

from creonowd.artifacts import names
from creonowd.artifacts.archive import LARGEST_MANIFEST, Layout, refused
from creonowd.artifacts.exporting import Progress, Report
from creonowd.artifacts.incoming import incoming
from creonowd.artifacts.ledger import MANIFEST, Manifest, is_sound
from creonowd.artifacts.refs import (
    BLOCK,
    LONGEST_HINT,
    LONGEST_KEY,
    VERSION,
    Record,
    Retention,
    Survey,
)
from creonowd.artifacts.stopping import Stop
from creonowd.clock import Clock
from creonowd.workspace import stored

_LATEST_MS = 1 << 53
_LONGEST_TYPE = 200


class Rules(NamedTuple):
    """What an import may bring: so many bytes, recipes that pass, hints as they may be told."""

    most_bytes: int
    check_recipe: Callable[[dict[str, Any]], object]
    told: Callable[[str], str]


class Arrival(NamedTuple):
    """A record of an archive, and the number of its staged file if it has one."""

    record: Record
    staged: int | None


class Unpacking:
    """An archive that is being staged."""

    def __init__(
        self, zipped: ZipFile, layout: Layout, stage: Path, stop: Stop, report: Report
    ) -> None:
        self._zip = zipped
        self._layout = layout
        self._stage = stage
        self._stop = stop
        self._report = report
        total = sum(info.file_size for info in layout.files.values())
        self._done = Progress(0, len(layout.files), 0, total)

    def arrivals(self, rules: Rules, clock: Clock) -> list[Arrival]:
        """Stage every file; without a manifest, each gets a new id."""
        if self._layout.manifest is None:
            return [self._stranger(path, clock) for path in sorted(self._layout.files)]
        listed = self._listed(self._layout.manifest)
        _refuse_contradictions(listed, self._layout)
        return [self._arrival(_vetted(record, rules)) for record in listed]

    def _listed(self, info: ZipInfo) -> tuple[Record, ...]:
        if info.file_size > LARGEST_MANIFEST:
            raise refused("manifest", "The manifest is too large.")
        data = b"".join(self._chunks(info))
        try:
            return stored.decode(data, Manifest, version=VERSION, name=MANIFEST).items
        except stored.DamagedFileError:
            raise refused("manifest", "The manifest cannot be understood.") from None

    def _arrival(self, record: Record) -> Arrival:
        info = self._layout.files.get(record.path)
        if info is None:
            return Arrival(msgspec.structs.replace(record, survey=None), None)
        number, surveyed = self._staged(info)
        if record.survey is None or record.survey.sha256 != surveyed.sha256:
            raise refused("hash", "A file is not the one that the manifest tells of.")
        return Arrival(msgspec.structs.replace(record, survey=surveyed), number)

    def _stranger(self, path: str, clock: Clock) -> Arrival:
        info = self._layout.files[path]
        number, surveyed = self._staged(info)
        origin = names.origin_of(path)
        record = Record(
            id=clock.new_id("ctx"),
            kind=names.kind_of(origin),
            origin=origin,
            retention=Retention.EAGER,
            path=path,
            hint=path.rpartition("/")[2],
            mime_type="text/plain" if surveyed.utf8 else "application/octet-stream",
            created_at=calendar.timegm((*info.date_time, 0, 0, 0)) * 1000,
            stored_at=0,
            sequence=number,
            project_id="",
            survey=surveyed,
        )
        return Arrival(record, number)

    def _staged(self, info: ZipInfo) -> tuple[int, Survey]:
        number = self._done.files
        with incoming(self._stage) as file:
            for chunk in self._chunks(info):
                file.write(chunk)
                self._done = self._done._replace(bytes=self._done.bytes + len(chunk))
                self._report(self._done)
            surveyed = file.place(self._stage / str(number))
        self._done = self._done._replace(files=number + 1)
        return number, surveyed

    def _chunks(self, info: ZipInfo) -> Iterator[bytes]:
        """Read an entry, and no more of it than it declares."""
        left = info.file_size
        with self._zip.open(info) as entry:
            while chunk := entry.read(BLOCK):
                self._stop.check()
                left -= len(chunk)
                if left < 0:
                    raise refused("bomb", "An entry holds more than it declares.")
                yield chunk


def _refuse_contradictions(listed: tuple[Record, ...], layout: Layout) -> None:
    ids = {record.id for record in listed}
    paths = {record.path.lower() for record in listed}
    keys = [record.key for record in listed if record.key is not None]
    eager = {record.path for record in listed if not record.lazy}
    if len(ids) != len(listed) or len(paths) != len(listed) or len(set(keys)) != len(keys):
        raise refused("manifest", "The manifest names an id, a path or a key twice.")
    if layout.files.keys() - {record.path for record in listed}:
        raise refused("manifest", "The archive holds a file that its manifest does not name.")
    if eager - layout.files.keys():
        raise refused("manifest", "The manifest names a file that the archive does not hold.")


def _vetted(record: Record, rules: Rules) -> Record:
    key_fits = record.key is None or len(record.key) <= LONGEST_KEY
    fits = 0 <= record.created_at <= _LATEST_MS and len(record.mime_type) <= _LONGEST_TYPE
    if not (is_sound(record) and fits and key_fits and 0 <= record.sequence <= _LATEST_MS):
        raise refused("manifest", "The manifest describes a file that no daemon would make.")
    if record.recipe is not None:
        rules.check_recipe(record.recipe)
    hint = rules.told(record.hint)[:LONGEST_HINT]
    return msgspec.structs.replace(record, hint=hint, deleted=False)
