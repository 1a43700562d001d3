"""Stored JSON files with a `version`: a newer one is refused, a damaged one is kept aside."""

import re
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from creonowd.errors import version_too_new
from creonowd.storage.atomic import content, disk_errors, move

LIMIT_BYTES = 64 * 1024 * 1024

T = TypeVar("T")

_ASIDE = re.compile(r"\.damaged-[0-9]+\Z")


class DamagedFileError(Exception):
    """A stored file is there and cannot be understood."""


class _Versioned(msgspec.Struct):
    version: Any = None


def load(path: Path, kind: type[T], *, version: int) -> T | None:
    """Read a stored file of at most `version`; None if there is none, DamagedFileError if it is broken."""
    data = content(path, limit=LIMIT_BYTES)
    return None if data is None else decode(data, kind, version=version, name=path.name)


def decode(data: bytes, kind: type[T], *, version: int, name: str) -> T:
    """Decode the bytes of a stored file called `name`."""
    try:
        refuse_newer(name, _version_of(data), version, file=name)
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise DamagedFileError(f"{name}: {error}") from None


def refuse_newer(what: str, found: object, known: int, **details: str) -> None:
    """Fail with VERSION_TOO_NEW if a version is greater than the one that this daemon knows."""
    if isinstance(found, int) and found > known:
        raise version_too_new(what, found, known, **details)


def set_aside(path: Path) -> str:
    """Rename a damaged file so that nothing overwrites it, and return its new name."""
    with disk_errors(path.name):
        number = 1
        while (aside := path.with_name(f"{path.stem}.damaged-{number}{path.suffix}")).exists():
            number += 1
        move(path, aside)
    return aside.name


def is_aside(path: Path) -> bool:
    """Return whether `path` is a damaged file that was renamed."""
    return _ASIDE.search(path.stem) is not None


def _version_of(data: bytes) -> Any:
    """Read the version alone: of a hostile file, the rest could fill the memory."""
    try:
        return msgspec.json.decode(data, type=_Versioned).version
    except msgspec.ValidationError:
        return None
