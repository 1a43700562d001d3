"""The indexes of all projects that anyone has asked about: opened when first wanted.

Knows projects and who tells of their changes; knows no query. Without a watcher each question
starts a look at the disk, so everything stays correct, only slower.
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

Holding = Callable[[str], Mapping[str, EditorDocument]]


@dataclass
class _OpenIndex:
    index: ProjectIndex
    database: Database
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ended: anyio.Event = field(default_factory=anyio.Event)
    watched: bool = False


class Indexes:
    """Gives the index of a project, and keeps it current from then on."""

    def __init__(
        self,
        user_data: Path,
        clock: Clock,
        watcher: Watcher,
        holding: Holding,
        finder: DocumentSecretFinder,
    ) -> None:
        self._folder = user_data / FOLDER
        self._clock, self._watcher = clock, watcher
        self._holding, self._finder = holding, finder
        self._kept: dict[str, _OpenIndex] = {}
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
        """Give a project's index as it is now; whatever may have changed is looked after."""
        kept = self._kept.get(project.project_id) or self._open(project)
        if kept.index.problem or (not kept.watched and kept.index.current):
            kept.index.files_changed()
        kept.index.buffers_changed()
        return kept.index

    async def forget(self, project_id: str) -> None:
        """Delete the index of a project that is one no longer."""
        kept = self._kept.pop(project_id, None)
        if kept is not None:
            kept.scope.cancel()
            await kept.ended.wait()
        database = kept.database if kept else self._database(project_id)
        await to_thread.run_sync(database.remove)

    def problems(self) -> dict[str, str]:
        """Tell which projects cannot be indexed, and why."""
        return {id_: kept.index.problem for id_, kept in self._kept.items() if kept.index.problem}

    def _open(self, project: Project) -> _OpenIndex:
        if self._tasks is None:
            raise DaemonError(ErrorCode.SHUTTING_DOWN)
        database = self._database(project.project_id)
        holding = partial(self._holding, project.project_id)
        index = ProjectIndex(database, project.root, self._clock, holding, self._finder)
        kept = _OpenIndex(index, database)
        self._kept[project.project_id] = kept
        kept.index.files_changed()
        self._tasks.start_soon(self._keep, project, kept)
        return kept

    async def _keep(self, project: Project, kept: _OpenIndex) -> None:
        try:
            with kept.scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._follow, project, kept)
                    await kept.index.run()
        finally:
            self._watcher.drop(_listener(project))
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(kept.database.close)
            kept.ended.set()

    async def _follow(self, project: Project, kept: _OpenIndex) -> None:
        """Hear of changes; a project that cannot be watched is looked at with every question."""

        def hear(change: ProjectChange) -> None:
            kept.watched = change.watching
            if not change.watching or any(map(is_document, change.paths)):
                kept.index.files_changed()

        with contextlib.suppress(DaemonError):
            await self._watcher.subscribe(project, _listener(project), hear)
            kept.watched = True
            kept.index.files_changed()

    def _database(self, project_id: str) -> Database:
        return Database(self._folder / f"{project_id}.sqlite3")


def _listener(project: Project) -> str:
    return f"retrieval of {project.project_id}"
