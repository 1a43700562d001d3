"""A conversation's folder on the disk, entered without ever following a link.

Knows folders, links and open files; knows nothing of refs and what they mean.
"""

import contextlib
import os
import stat
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import BinaryIO

from creonowd.errors import DaemonError, ErrorCode

_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
# A planted named pipe would block the opener for ever.
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)
_REPARSE_POINT = 0x400


class OpenFile:
    """A context file while it is read, byte for byte; it may grow meanwhile."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file

    @property
    def size(self) -> int:
        """How many bytes the file has now."""
        return os.fstat(self.file.fileno()).st_size

    def read_at(self, offset: int, length: int) -> bytes:
        """Read up to `length` bytes; fewer only at the end of the file."""
        self.file.seek(offset)
        parts: list[bytes] = []
        while length > 0 and (part := self.file.read(length)):
            parts.append(part)
            length -= len(part)
        return b"".join(parts)

    def chunks(self, size: int, offset: int = 0) -> Iterator[bytes]:
        """Read on from `offset` to the end in pieces of `size`."""
        while chunk := self.read_at(offset, size):
            yield chunk
            offset += len(chunk)


@contextlib.contextmanager
def opened(folder: Path, path: str) -> Generator[OpenFile]:
    """Open a file inside `folder` for reading; FileNotFoundError if it is not there."""
    refuse_links(folder, path)
    descriptor = os.open(folder / path, os.O_RDONLY | _NO_FOLLOW | _NO_WAIT)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _foreign()
        yield OpenFile(file)


def made_folder(folder: Path, path: str) -> Path:
    """Make the folders of `path` inside `folder`, private to this user, and refuse links."""
    place = folder
    for part in ("", *path.split("/")):
        place = place / part
        place.mkdir(mode=0o700, exist_ok=True)
        _refuse_link(place)
    return place


def refuse_links(folder: Path, path: str) -> None:
    """Refuse a path if `folder` or anything below it on the way there is a link."""
    _refuse_link(folder)
    place = folder
    for part in path.split("/"):
        place = place / part
        _refuse_link(place)


def status(folder: Path, path: str) -> os.stat_result | None:
    """Tell of a plain file inside `folder`; None if it is not there, no file, or behind a link."""
    try:
        refuse_links(folder, path)
        found = (folder / path).lstat()
    except (FileNotFoundError, NotADirectoryError, DaemonError):
        return None
    return found if stat.S_ISREG(found.st_mode) else None


def is_missing(folder: Path, path: str) -> bool:
    """Tell whether nothing at all is at `path`, not even something that does not belong there."""
    try:
        refuse_links(folder, path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except DaemonError:
        return False
    return False


def remove(folder: Path, path: str) -> None:
    """Take a file away, or a link planted in its place; what lies behind a link stays."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError, DaemonError):
        refuse_links(folder, path.rpartition("/")[0])
        (folder / path).unlink()


def entries(
    folder: Path, path: str, wanted: Callable[[str], bool] = lambda _name: True
) -> "list[os.DirEntry[str]]":
    """List what lies in `path` inside `folder`, by name; links and what is behind one do not exist.

    Only those with a `wanted` name are looked at.
    """
    try:
        refuse_links(folder, path)
        with os.scandir(folder / path) as found:
            named = [entry for entry in found if wanted(entry.name)]
        real = [entry for entry in named if not _is_link(entry.stat(follow_symlinks=False))]
    except (FileNotFoundError, NotADirectoryError, DaemonError):
        return []
    return sorted(real, key=lambda entry: entry.name)


def _refuse_link(place: Path) -> None:
    if _is_link(place.lstat()):
        raise _foreign()


def _is_link(status: os.stat_result) -> bool:
    attributes = getattr(status, "st_file_attributes", 0)
    return stat.S_ISLNK(status.st_mode) or bool(attributes & _REPARSE_POINT)


def _foreign() -> DaemonError:
    return DaemonError(
        ErrorCode.CONTEXT_SCOPE_VIOLATION,
        "Something in the conversation's folder is a link or no plain file; it is not followed.",
    )
