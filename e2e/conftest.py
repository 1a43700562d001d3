"""What every story here shares."""

from collections.abc import Generator
from pathlib import Path

import pytest

from testing.harness import Harness


@pytest.fixture
def anyio_backend() -> str:
    """The daemon runs on asyncio; so do its tests."""
    return "asyncio"


@pytest.fixture
def harness(tmp_path: Path) -> Generator[Harness]:
    """A daemon of the story's own."""
    with Harness(tmp_path / "故事 story") as started:
        yield started
