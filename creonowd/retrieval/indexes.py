"""The indexes of all projects, opened when they are first asked for.

A project that cannot be watched is refreshed with every question: as correct, only slower.
"""

import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from creonowd.clock import Clock
from creonowd.errors import DaemonError, ErrorCode
from creonowd.retrieval.database import Database
from creonowd.retrieval.passages import DocumentSecretFinder
from creonowd.retrieval.project_index import EditorDocument, ProjectIndex
from creonowd.workspace.creonow_tree import is_document
from creonowd.workspace.projects import Project
from creonowd.workspace.watcher import ProjectChange, Watcher

FOLDER = "retrieval"

ProjectDocuments = Callable[[str], Mapping[str, EditorDocument]]


@dataclass
class _OpenIndex:
    index: ProjectIndex
    database: Database
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ended: anyio.Event = field(default_factory=anyio.Event)
    watched: bool = False


class Indexes:
    """Opens the index of a project, and keeps it current from then on."""

    def __init__(
        self,
        user_data: Path,
        clock: Clock,
        watcher: Watcher,
        open_documents: ProjectDocuments,
        finder: DocumentSecretFinder,
    ) -> None:
        self._folder = user_data / FOLDER
        self._clock, self._watcher = clock, watcher
        self._open_documents, self._finder = open_documents, finder
        self._indexes: dict[str, _OpenIndex] = {}
        self._tasks: TaskGroup | None = None

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Keep indexes current for as long as the block lasts."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            try:
                yield
            finally:
                self._tasks = None
                tasks.cancel_scope.cancel()

    def of(self, project: Project) -> ProjectIndex:
        """Return a project's index as it is now; it refreshes if anything may have changed."""
        opened = self._indexes.get(project.project_id) or self._open(project)
        if opened.index.problem or (not opened.watched and opened.index.is_current):
            opened.index.files_changed()
        opened.index.buffers_changed()
        return opened.index

    async def forget(self, project_id: str) -> None:
        """Delete the index of a project that was removed."""
        opened = self._indexes.pop(project_id, None)
        if opened is not None:
            opened.scope.cancel()
            await opened.ended.wait()
        database = opened.database if opened else self._database(project_id)
        await to_thread.run_sync(database.remove)

    def problems(self) -> dict[str, str]:
        """Return the projects that cannot be indexed, and why."""
        return {
            project_id: opened.index.problem
            for project_id, opened in self._indexes.items()
            if opened.index.problem
        }

    def _open(self, project: Project) -> _OpenIndex:
        if self._tasks is None:
            raise DaemonError(ErrorCode.SHUTTING_DOWN)
        database = self._database(project.project_id)
        documents = partial(self._open_documents, project.project_id)
        index = ProjectIndex(database, project.root, self._clock, documents, self._finder)
        opened = _OpenIndex(index, database)
        self._indexes[project.project_id] = opened
        opened.index.files_changed()
        self._tasks.start_soon(self._run, project, opened)
        return opened

    async def _run(self, project: Project, opened: _OpenIndex) -> None:
        try:
            with opened.scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._watch, project, opened)
                    await opened.index.run()
        finally:
            self._watcher.drop(_listener(project))
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(opened.database.close)
            opened.ended.set()

    async def _watch(self, project: Project, opened: _OpenIndex) -> None:
        def on_change(change: ProjectChange) -> None:
            opened.watched = change.watching
            if not change.watching or any(map(is_document, change.paths)):
                opened.index.files_changed()

        with contextlib.suppress(DaemonError):
            await self._watcher.subscribe(project, _listener(project), on_change)
            opened.watched = True
            opened.index.files_changed()

    def _database(self, project_id: str) -> Database:
        return Database(self._folder / f"{project_id}.sqlite3")


def _listener(project: Project) -> str:
    return f"retrieval of {project.project_id}"
