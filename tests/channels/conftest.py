"""A project to ask about, over the wire, and what was logged."""

from collections.abc import Generator
from pathlib import Path

import pytest
import structlog

from creonowd.model import Model
from testing.clients import Client

Lines = list[structlog.typing.EventDict]


class Book(Model):
    """A project's id and its folder."""

    project_id: str
    root: Path

    @property
    def asked(self) -> dict[str, str]:
        """The payload that names it."""
        return {"projectId": self.project_id}

    def put(self, path: str, content: str | bytes) -> Path:
        """Write a file as an editor would."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
        return place


@pytest.fixture
async def book(client: Client, tmp_path: Path) -> Book:
    """A fresh project with nothing in it."""
    root = tmp_path / "红楼梦"
    root.mkdir()
    made = await client.call("project:create", {"rootPath": str(root)})
    return Book(project_id=made["projectId"], root=root)


@pytest.fixture
def logged() -> Generator[Lines]:
    """The log lines of this test, before they are rendered."""
    with structlog.testing.capture_logs() as lines:
        yield lines
