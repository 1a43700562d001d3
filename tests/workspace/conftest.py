"""A folder in memory where the system has one: tests that write thousands of files wait for no disk."""

import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

MEMORY = Path("/dev/shm")


@pytest.fixture
def quick_path() -> Generator[Path]:
    """Give a temporary folder that is quick to sync."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        yield Path(folder)
