"""Context files for tests: any bytes, opened as the store opens them."""

import contextlib
from collections.abc import Generator
from pathlib import Path

from creonowd.artifacts.tree import OpenFile, opened


@contextlib.contextmanager
def file_of(folder: Path, data: bytes) -> Generator[OpenFile]:
    """Open a file that holds `data`."""
    (folder / "file").write_bytes(data)
    with opened(folder, "file") as file:
        yield file
