"""Documents that lie in a project's folder, read in the encoding they have.

Knows files and encodings; whether an editor has a newer text is the business of `documents`.
What has not changed on disk is neither read nor decoded again.
"""

import os
from collections import OrderedDict
from pathlib import Path
from threading import Lock

from creonowd.clock import Clock
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model
from creonowd.workspace.atomic import disk_errors
from creonowd.workspace.buffer import Buffer
from creonowd.workspace.encodings import decode_text
from creonowd.workspace.file_cache import FileCache
from creonowd.workspace.opening import Opened, lies_inside, read_inside, real_folder
from creonowd.workspace.paths import problem_with

LIMIT_BYTES = 64 * 1024 * 1024
KEPT = 16


class _Read(Model):
    data: bytes
    buffer: Buffer


class DocumentFiles:
    """The documents on disk of all projects; safe to use from any thread."""

    def __init__(self, clock: Clock) -> None:
        self._files = FileCache(clock)
        self._kept: OrderedDict[tuple[Path, str], _Read] = OrderedDict()
        self._lock = Lock()

    def read(self, root: Path, path: str) -> Buffer:
        """Read a document; line ends and positions are those on disk.

        NOT_FOUND if there is no such file or the path leads out of the project, UNSUPPORTED if
        it is no text, IO_ERROR if it is too big or cannot be read. Blocks its thread.
        """
        if not is_document_path(path):
            raise _absent()
        opened = self._opened(root, path)
        with self._lock:
            kept = self._kept.get((root, path))
        if kept is None or kept.data is not opened.data:
            kept = _Read(data=opened.data, buffer=Buffer.of(decode_text(opened.data).text))
            self._keep((root, path), kept)
        return kept.buffer

    @property
    def reads(self) -> int:
        """How many files were really read."""
        return self._files.reads

    def _opened(self, root: Path, path: str) -> Opened:
        try:
            with disk_errors(path):
                real = os.path.realpath(root / path)
                # Not Path.is_file(), which fails on a name that is too long.
                known = os.path.isfile(real)  # noqa: PTH113
                if not known or not lies_inside(Path(real), real_folder(root, "")):
                    return read_inside(root, "", path, limit=LIMIT_BYTES)
                return self._files.fetch(root, "", path, Path(real).stat(), limit=LIMIT_BYTES)
        except DaemonError as error:
            raise _absent() if error.code is ErrorCode.INVALID_ARGUMENT else error from None

    def _keep(self, key: tuple[Path, str], read: _Read) -> None:
        with self._lock:
            self._kept[key] = read
            self._kept.move_to_end(key)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)


def is_document_path(path: str) -> bool:
    """Tell whether an id can name a file of the user: relative, plain, and nothing hidden."""
    hidden = any(name.startswith(".") for name in path.split("/"))
    return not hidden and problem_with(path) is None


def _absent() -> DaemonError:
    return DaemonError(
        ErrorCode.NOT_FOUND, "The document is neither open nor a file of the project."
    )
