"""Which folder a path means, however it is spelled.

Knows spellings, links and what a folder must be; knows nothing of what a project is.
"""

import errno
import os
import tempfile
import unicodedata
from pathlib import Path

from creonowd.errors import DaemonError, ErrorCode, disk_error

_NO_FOLDER = {errno.ENOTDIR, errno.ELOOP}
_NO_PATH = {errno.ENAMETOOLONG, errno.EINVAL}


def canonical(spelling: str) -> Path:
    """Find the one real path of a writable folder, or say what is wrong with it."""
    if not spelling.strip() or "\0" in spelling or not Path(spelling).is_absolute():
        raise _refused("relative", "rootPath must be the absolute path of a folder.")
    folder = _real(Path(spelling))
    if not folder.is_dir():
        raise _refused("not_a_folder", "rootPath is not a folder; choose the folder itself.")
    _refuse_unspeakable(folder)
    _refuse_unwritable(folder)
    return folder


def same_folder(one: Path, other: Path) -> bool:
    """Tell whether two paths lead to one folder, also by case, links or Unicode form."""
    if one == other:
        return True
    try:
        first, second = one.stat(), other.stat()
    except OSError:
        return False
    # Some network drives number no files; then only the spelling can tell.
    return first.st_ino != 0 and os.path.samestat(first, second)


def _real(path: Path) -> Path:
    try:
        return Path(os.path.realpath(_respelt(path), strict=True))
    except FileNotFoundError:
        raise DaemonError(
            ErrorCode.NOT_FOUND,
            "The folder does not exist; create it first or check its spelling.",
            field="rootPath",
            reason="missing",
        ) from None
    except OSError as error:
        if error.errno in _NO_FOLDER:
            raise _refused("not_a_folder", "rootPath does not lead to a folder.") from None
        if error.errno in _NO_PATH:
            raise _refused("invalid", "rootPath is not a path that this system can have.") from None
        raise disk_error(error, "the project folder") from error


def _respelt(path: Path) -> Path:
    """Follow the disk where it spells a name in another Unicode form (macOS hands out NFD)."""
    if path.exists():
        return path
    found = Path(path.anchor)
    for part in path.parts[1:]:
        found /= part if (found / part).exists() else _other_form(found, part)
    return found


def _other_form(folder: Path, part: str) -> str:
    wanted = unicodedata.normalize("NFC", part)
    if wanted.isascii() or not folder.is_dir():
        return part
    names = (entry.name for entry in folder.iterdir())
    return next((name for name in names if unicodedata.normalize("NFC", name) == wanted), part)


def _refuse_unspeakable(folder: Path) -> None:
    try:
        str(folder).encode("utf-8")
    except UnicodeEncodeError:
        raise _refused(
            "not_unicode", "The folder's name is not valid Unicode; rename it."
        ) from None


def _refuse_unwritable(folder: Path) -> None:
    """Ask by doing: permission bits tell little on Windows, on network drives and to root."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError:
        raise DaemonError(
            ErrorCode.IO_ERROR,
            "The folder cannot be written to; change its permissions or choose another.",
            field="rootPath",
            reason="not_writable",
        ) from None


def _refused(reason: str, message: str) -> DaemonError:
    return DaemonError(ErrorCode.INVALID_ARGUMENT, message, field="rootPath", reason=reason)
