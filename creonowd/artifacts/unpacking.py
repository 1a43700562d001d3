"""The files of an archive, unpacked into a stage and held against what its manifest says of them.

Knows how to read a zip without trusting it; knows nothing of where the files go.
"""

import calendar
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile, ZipInfo

import msgspec

from creonowd.artifacts import names
from creonowd.artifacts.archive import Layout, refused
from creonowd.artifacts.declared import LARGEST_MANIFEST, Declared, Rules, declared
from creonowd.artifacts.exporting import Progress, Report
from creonowd.artifacts.incoming import incoming
from creonowd.artifacts.refs import BLOCK, Record, Retention, Survey
from creonowd.clock import Clock
from creonowd.threads import StopSignal


class Arrival(NamedTuple):
    """A record of an archive, and the number of its staged file if it has one."""

    record: Record
    staged: int | None


class Unpacking:
    """An archive that is being staged."""

    def __init__(
        self, zipped: ZipFile, layout: Layout, stage: Path, stop: StopSignal, report: Report
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
        manifest = self._read_manifest(self._layout.manifest)
        told = declared(manifest, self._layout.files.keys(), rules)
        return [self._arrival(one) for one in told]

    def _read_manifest(self, info: ZipInfo) -> bytes:
        if info.file_size > LARGEST_MANIFEST:
            raise refused("manifest", "The manifest is too large.")
        return b"".join(self._chunks(info))

    def _arrival(self, told: Declared) -> Arrival:
        info = self._layout.files.get(told.record.path)
        if info is None:
            return Arrival(told.record, None)
        number, surveyed = self._staged(info)
        if told.sha256 != surveyed.sha256:
            raise refused("hash", "A file is not the one that the manifest tells of.")
        return Arrival(msgspec.structs.replace(told.record, survey=surveyed), number)

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
