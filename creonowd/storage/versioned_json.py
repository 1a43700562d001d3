"""Stored JSON files: each says its `version`, a newer one is refused, a damaged one is kept aside.

Knows how a file is read safely; knows nothing of what is in it.
"""

import re
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from creonowd.errors import DaemonError, ErrorCode
from creonowd.storage.atomic import disk_errors

T = TypeVar("T")

_ASIDE = re.compile(r"\.damaged-[0-9]+\Z")


class _Versioned(msgspec.Struct):
    version: Any = None


class DamagedFileError(Exception):
    """A stored file is there and cannot be understood."""


def load(path: Path, kind: type[T], *, version: int) -> T | None:
    """Read a stored file of at most `version`; None if there is none, DamagedFileError if it is broken."""
    with disk_errors(path.name):
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
    return decode(data, kind, version=version, name=path.name)


def decode(data: bytes, kind: type[T], *, version: int, name: str) -> T:
    """Understand the bytes of a stored file called `name`."""
    try:
        _refuse_newer(_version_of(data), version, name)
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise DamagedFileError(f"{name}: {error}") from None


def set_aside(path: Path) -> str:
    """Rename a damaged file so that nothing overwrites it, and tell its new name."""
    with disk_errors(path.name):
        number = 1
        while (aside := path.with_name(f"{path.stem}.damaged-{number}{path.suffix}")).exists():
            number += 1
        path.rename(aside)
    return aside.name


def is_aside(path: Path) -> bool:
    """Tell whether `path` is a damaged file that was renamed."""
    return _ASIDE.search(path.stem) is not None


def _version_of(data: bytes) -> Any:
    """Read the version alone: of a hostile file, the rest could fill the memory."""
    try:
        return msgspec.json.decode(data, type=_Versioned).version
    except msgspec.ValidationError:
        return None


def _refuse_newer(found: Any, version: int, name: str) -> None:
    if isinstance(found, int) and found > version:
        raise DaemonError(
            ErrorCode.VERSION_TOO_NEW,
            f"{name} has version {found}, this daemon knows {version}; update creonowd.",
            file=name,
            found=found,
            known=version,
        )
