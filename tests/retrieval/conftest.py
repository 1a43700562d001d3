"""What the tests of retrieval share."""

from pathlib import Path

import pytest

from tests.retrieval.indexed_project import IndexedProject


@pytest.fixture
def indexed(tmp_path: Path) -> IndexedProject:
    """A project with nothing in it."""
    return IndexedProject(tmp_path)
