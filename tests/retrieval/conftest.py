"""What the tests of retrieval share."""

from pathlib import Path

import pytest

from tests.retrieval.stage import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """A project with nothing in it."""
    return Stage(tmp_path)
