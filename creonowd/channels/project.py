"""`project:*` — the folders that are projects."""

from typing import Annotated

from msgspec import Meta

from creonowd.engine.services import Session
from creonowd.model import Empty, Params, Result
from creonowd.rpc.channel import Channel
from creonowd.workspace.projects import Project


class CreateProject(Params):
    """The absolute path of an existing, writable folder; its own name serves if none is given."""

    root_path: str
    name: Annotated[str, Meta(max_length=200)] | None = None


class ProjectId(Params):
    """A project by its id."""

    project_id: str


class ProjectInfo(Result):
    """A project; `rootPath` is the one real path of its folder."""

    project_id: str
    root_path: str
    name: str


class ProjectList(Result):
    """All projects, in the order in which they were created."""

    items: list[ProjectInfo]


class DeletedProject(Result):
    """The project that is forgotten; its folder is untouched."""

    deleted: bool
    project_id: str


async def create_project(session: Session, params: CreateProject) -> ProjectInfo:
    """Make a folder a project; another spelling of the same path is the same project."""
    return _info(await session.projects.create(params.root_path, params.name))


async def list_projects(session: Session, _params: Empty) -> ProjectList:
    """List all projects."""
    return ProjectList(items=[_info(project) for project in await session.projects.list()])


async def get_current_project(session: Session, _params: Empty) -> ProjectInfo:
    """Return the current project; NOT_FOUND if there is none."""
    return _info(await session.projects.current())


async def set_current_project(session: Session, params: ProjectId) -> ProjectInfo:
    """Make a project the current one."""
    return _info(await session.projects.set_current(params.project_id))


async def delete_project(session: Session, params: ProjectId) -> DeletedProject:
    """Forget a project; none of the user's files is touched."""
    project = await session.projects.delete(params.project_id)
    await session.watcher.forget(project.project_id)
    await session.indexes.forget(project.project_id)
    return DeletedProject(deleted=True, project_id=project.project_id)


def _info(project: Project) -> ProjectInfo:
    return ProjectInfo(
        project_id=project.project_id, root_path=str(project.root), name=project.name
    )


CHANNELS = (
    Channel("project:create", create_project),
    Channel("project:list", list_projects),
    Channel("project:getCurrent", get_current_project),
    Channel("project:setCurrent", set_current_project),
    Channel("project:delete", delete_project),
)
