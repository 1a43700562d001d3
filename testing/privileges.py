"""Being someone who may not read everything; the tests may well be run by root."""

import contextlib
import os
import tempfile
from collections.abc import Generator
from pathlib import Path


@contextlib.contextmanager
def without_privileges() -> Generator[Path]:
    """Give a folder of someone who may not read everything, and be them."""
    root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as place:
        if root:
            os.chown(place, 65534, 65534)
            os.seteuid(65534)
        try:
            yield Path(place).resolve()
        finally:
            if root:
                os.seteuid(0)
