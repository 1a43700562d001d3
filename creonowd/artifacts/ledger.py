"""The records of a conversation on the disk: one small file each, and `manifest.json`, their index.

The record files are the truth. A record is written before its file and removed after it, so a
file without a record is a stranger's and an eager record without a file is what a crash left.
Knows files and records; holds no lock.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from creonowd.artifacts import names, tree
from creonowd.artifacts.refs import VERSION, Record, Retention, is_id
from creonowd.model import Model
from creonowd.storage import atomic, versioned_json

MANIFEST = "manifest.json"

T = TypeVar("T")


class Manifest(Model):
    """What `manifest.json` holds: every ref with its path, origin, hash, size, time and expiry."""

    version: int = VERSION
    conversation_id: str
    project_id: str
    items: tuple[Record, ...] = ()


def write_record(folder: Path, record: Record) -> None:
    """Keep a record beside the files."""
    place = tree.made_folder(folder, f"{names.FOLDERS[record.kind]}/{names.REFS}")
    atomic.replace(place / f"{record.id}.json", msgspec.json.encode(record))


def remove_record(folder: Path, record: Record) -> None:
    """Take a record away."""
    path = names.ref_path(record.kind, record.id)
    tree.remove(folder, path)
    with contextlib.suppress(FileNotFoundError):
        atomic.sync_folder((folder / path).parent)


def erase(folder: Path, record: Record) -> None:
    """Take a file away, and then its record."""
    try:
        tree.remove(folder, record.path)
    except PermissionError:
        # Windows keeps a file that someone reads; it goes when the conversation is loaded again.
        write_record(folder, msgspec.structs.replace(record, deleted=True))
    else:
        remove_record(folder, record)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the index anew."""
    data = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
    atomic.replace(folder / MANIFEST, data + b"\n")


def read_manifest(folder: Path) -> Manifest | None:
    """Read the index; None if it is lost or damaged, VERSION_TOO_NEW if it is from the future."""
    path = folder / MANIFEST
    if path.is_symlink() or not path.is_file():
        return None
    return _understood(path.read_bytes(), MANIFEST, Manifest)


def load(folder: Path, manifest: Manifest | None) -> list[Record]:
    """Read every record whose file is there or can be made, mending from the index what is broken."""
    listed = {record.id: record for record in manifest.items} if manifest else {}
    written = list(_written_records(folder, listed))
    kept = _kept(folder, written)
    for record in _unwritten(folder, listed, {one.id for one in written}):
        # An index that is behind may still list a file whose name another has now.
        if record.path.lower() not in kept:
            write_record(folder, record)
            kept[record.path.lower()] = record
    return list(kept.values())


def is_sound(record: Record) -> bool:
    """Tell whether a record is one that we could have written: its id, and a path of its origin."""
    return (
        is_id(record.id)
        and names.is_path(record.path)
        and names.origin_of(record.path) is record.origin
        and names.kind_of(record.origin) is record.kind
        and (record.retention is Retention.LAZY) == record.lazy
    )


def strangers(folder: Path, records: Iterable[Record]) -> Iterator[str]:
    """List the paths of files that no record speaks of, sweeping what a killed writer left."""
    known = {record.path for record in records}
    for place in names.PLACES.values():
        for entry in _swept(folder, place):
            path = f"{place}/{entry.name}"
            if path not in known and names.is_path(path):
                yield path


def _written_records(folder: Path, listed: dict[str, Record]) -> Iterator[Record]:
    for kind, place in names.FOLDERS.items():
        for entry in _swept(folder, f"{place}/{names.REFS}"):
            ref_id = entry.name.removesuffix(".json")
            record = _understood(Path(entry.path).read_bytes(), entry.name, Record)
            if record is None and ref_id in listed:
                record = listed[ref_id]
                write_record(folder, record)
            fits = record is not None and record.id == ref_id and record.kind is kind
            if record is not None and fits and is_sound(record):
                yield record


def _kept(folder: Path, written: Iterable[Record]) -> dict[str, Record]:
    """Choose one record for each path, the newest, and forget those that have no file."""
    kept: dict[str, Record] = {}
    for record in sorted(written, key=lambda record: record.order, reverse=True):
        if record.path.lower() in kept:
            remove_record(folder, record)
        elif record.deleted or (not record.lazy and tree.is_missing(folder, record.path)):
            erase(folder, record)
        else:
            kept[record.path.lower()] = record
    return kept


def _unwritten(folder: Path, listed: dict[str, Record], written: set[str]) -> Iterator[Record]:
    """List what only the index tells of, if its file is there."""
    for ref_id, record in listed.items():
        there = is_sound(record) and tree.status(folder, record.path) is not None
        if there and ref_id not in written:
            yield record


def _swept(folder: Path, path: str) -> "Iterator[os.DirEntry[str]]":
    """List the plain files of a folder, removing what a killed writer left in it."""
    for entry in tree.entries(folder, path):
        if atomic.is_temporary(entry.name):
            Path(entry.path).unlink(missing_ok=True)
        elif entry.is_file(follow_symlinks=False):
            yield entry


def _understood(data: bytes, name: str, form: type[T]) -> T | None:
    try:
        return versioned_json.decode(data, form, version=VERSION, name=name)
    except versioned_json.DamagedFileError:
        return None
