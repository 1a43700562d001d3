"""A file on its way in: written piece by piece under another name, surveyed, then put in place.

Knows temporary files; knows nothing of refs.
"""

import contextlib
import os
from collections.abc import Generator
from pathlib import Path

from creonowd.artifacts.refs import Survey
from creonowd.artifacts.surveying import Surveyor
from creonowd.storage import atomic

_MODE = 0o600


class Incoming:
    """A temporary file that is being filled."""

    def __init__(self, temporary: Path, descriptor: int) -> None:
        self._temporary = temporary
        self._file = os.fdopen(descriptor, "wb", buffering=0)
        self._surveyor = Surveyor()
        self.size = 0

    def write(self, data: bytes) -> None:
        """Add bytes at the end."""
        self._surveyor.add(data)
        self.size += len(data)
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) :]

    def place(self, path: Path) -> Survey:
        """Make the file `path`, on the disk when this returns."""
        os.fsync(self._file.fileno())
        self._file.close()
        atomic.move(self._temporary, path)
        atomic.sync_folder(path.parent)
        return self._surveyor.survey()

    def close(self) -> None:
        """Forget what was not put in place."""
        self._file.close()
        self._temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def incoming(folder: Path) -> Generator[Incoming]:
    """Open a file that leaves nothing behind unless it is put in place; disk errors are told."""
    with atomic.disk_errors("a context file"):
        one = Incoming(*atomic.create_temporary(folder, _MODE))
        try:
            yield one
        finally:
            one.close()
