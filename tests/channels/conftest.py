"""A project without files, over the wire, and the log lines of a test."""

from collections.abc import Generator
from pathlib import Path

import pytest
import structlog

from testing.clients import Client
from testing.logs import LogLines
from testing.novels import Novel, make_novel


@pytest.fixture
async def novel(client: Client, tmp_path: Path) -> Novel:
    """A fresh project with nothing in it."""
    return await make_novel(client, tmp_path / "红楼梦", {})


@pytest.fixture
def logged() -> Generator[LogLines]:
    """The log lines of this test, before they are rendered."""
    with structlog.testing.capture_logs() as lines:
        yield lines
