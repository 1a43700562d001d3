"""A project with an index, for tests that change its files and buffers."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from creonowd.clock import SystemClock
from creonowd.redaction import Redactor
from creonowd.retrieval.project_index import EditorDocument, Indexes
from creonowd.workspace.projects import Project
from creonowd.workspace.watcher import Watcher

PATIENCE = 60


class IndexedProject:
    """A user's data, one project, and the documents of it that an editor has open."""

    def __init__(self, folder: Path) -> None:
        self.user_data = folder / "data"
        self.project = Project(project_id="prj_test", name="test", root=folder / "小说")
        self.project.root.mkdir()
        self.open_documents: dict[str, EditorDocument] = {}
        self.watcher = Watcher(SystemClock())

    @asynccontextmanager
    async def indexes(
        self, *, watching: bool = True, grace_seconds: float = PATIENCE
    ) -> AsyncGenerator[Indexes]:
        indexes = Indexes(
            self.user_data,
            SystemClock(),
            self.watcher,
            lambda _id: self.open_documents,
            Redactor(),
            grace_seconds=grace_seconds,
        )
        if not watching:
            async with indexes.run():
                yield indexes
            return
        async with self.watcher.run(), indexes.run():
            yield indexes

    def write(self, path: str, text: str) -> None:
        (self.project.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.project.root / path).write_text(text, encoding="utf-8", newline="\n")

    @property
    def file(self) -> Path:
        return self.user_data / "retrieval" / "prj_test.sqlite3"
