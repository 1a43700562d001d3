"""`project:*` — the folders that are projects."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from creonowd.context.numerals import chapter_of
from creonowd.context.story import OrderReason, Story, StoryDocument, StoryDoubt
from creonowd.engine.services import Session, forget_names
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Empty, Model, Params, Result
from creonowd.rpc.channel import Channel, Role
from creonowd.storage.safe_folder import check_root
from creonowd.text import file_stem
from creonowd.threads import call_in_thread, until_stopped
from creonowd.workspace.projects import Project


class CreateProject(Params):
    """A folder of the disk, or a name for a new one.

    Only owners may name a path: a page asks its main process, which shows a folder dialogue of its
    own.
    """

    root_path: str | None = None
    """The absolute path of an existing, writable folder: the novel's own. The same folder gives
    the same project."""
    name: Annotated[str, Meta(max_length=200)] | None = None
    """What the project is called; the folder's own name if left out. With a name alone a new
    folder is made below `<userData>/projects/`."""


class ProjectId(Params):
    """A project by its id."""

    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""


class ProjectInfo(Result):
    """A project; `rootPath` is the one real path of its folder, without secrets in its names."""

    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""
    root_path: str
    """The one real path of its folder, without secrets in its names."""
    name: str
    """What it is called."""


class ProjectList(Result):
    """All projects, in the order in which they were created."""

    items: list[ProjectInfo]
    """The projects."""


class DeletedProject(Result):
    """The project that is forgotten; its folder is untouched."""

    deleted: bool
    """Always true: the project is no longer listed."""
    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""


class ChapterInfo(Model):
    """A document of the story."""

    path: str
    """Its path below the project's folder."""
    decided_by: OrderReason
    """What decided its place: its `name`, the `story_file` or its `front_matter`."""
    length: int | UnsetType = UNSET
    """Its length in code points, without front matter; absent if it cannot be read."""
    chapter: int | UnsetType = UNSET
    """The number in its name; absent if it has none."""


class ProjectStory(Result):
    """The documents in the order of the story, those outside of it, and what is unclear."""

    documents: list[ChapterInfo]
    """The chapters in reading order; text behind the current one does not enter a prompt."""
    outside: list[ChapterInfo]
    """Documents without a place in time, such as notes."""
    doubts: list[StoryDoubt]
    """What the author should settle in `.creonow/story.json`, or with `order` in front matter."""


async def create_project(session: Session, params: CreateProject) -> ProjectInfo:
    """Make a folder a project; another spelling of the same path is the same project."""
    if params.root_path is None:
        if not (params.name or "").strip():
            raise DaemonError(
                ErrorCode.INVALID_ARGUMENT,
                "Send `rootPath`, or a `name` for a new folder.",
                field="rootPath",
            )
        return _info(session, await session.projects.create_folder(str(params.name)))
    if session.peer.role is not Role.OWNER:
        raise DaemonError(
            ErrorCode.FORBIDDEN,
            "Only owners may name a path; let the main process create the project.",
            field="rootPath",
            role=session.peer.role,
            required=Role.OWNER,
        )
    return _info(session, await session.projects.create(params.root_path, params.name))


async def list_projects(session: Session, _params: Empty) -> ProjectList:
    """List all projects."""
    return ProjectList(items=[_info(session, project) for project in await session.projects.list()])


async def get_current_project(session: Session, _params: Empty) -> ProjectInfo:
    """Return the current project; NOT_FOUND if there is none."""
    return _info(session, await session.projects.current())


async def set_current_project(session: Session, params: ProjectId) -> ProjectInfo:
    """Make a project the current one."""
    return _info(session, await session.projects.set_current(params.project_id))


async def delete_project(session: Session, params: ProjectId) -> DeletedProject:
    """Forget a project; none of the user's files is touched."""
    project = await session.projects.delete(params.project_id)
    await session.watcher.forget(project.project_id)
    await session.indexes.forget(project.project_id)
    await session.extracts.forget(project.project_id)
    session.chapters.forget(project.root)
    session.tree.forget(project.root)
    forget_names()
    if (kept := session.engine.read_cache) is not None:
        await call_in_thread(kept.forget, project.root)
    return DeletedProject(deleted=True, project_id=project.project_id)


async def read_story(session: Session, params: ProjectId) -> ProjectStory:
    """Return a project's documents in the order of the story, and what decided it."""
    project = await session.projects.find(params.project_id)
    await call_in_thread(check_root, project.root)
    story = await session.chapters.story(project)
    return await call_in_thread(_visible_story, session, story)


def _visible_story(session: Session, story: Story) -> ProjectStory:
    """Hide the secrets in names; of 20 000 documents that takes a second."""
    return ProjectStory(
        documents=[_chapter(session, document) for document in until_stopped(story.documents)],
        outside=[_chapter(session, document) for document in until_stopped(story.outside)],
        doubts=[_doubt(session, doubt) for doubt in until_stopped(story.doubts)],
    )


def _chapter(session: Session, document: StoryDocument) -> ChapterInfo:
    chapter = chapter_of(file_stem(document.path))
    return ChapterInfo(
        path=session.redactor.redact(document.path).text,
        decided_by=document.decided_by,
        length=UNSET if document.length is None else document.length,
        chapter=UNSET if chapter is None else chapter.value,
    )


def _doubt(session: Session, doubt: StoryDoubt) -> StoryDoubt:
    return StoryDoubt(
        kind=doubt.kind, paths=tuple(session.redactor.redact(path).text for path in doubt.paths)
    )


def _info(session: Session, project: Project) -> ProjectInfo:
    return ProjectInfo(
        project_id=project.project_id,
        root_path=session.redactor.hide_secrets(str(project.root)),
        name=session.redactor.hide_secrets(project.name),
    )


CHANNELS = (
    Channel("project:create", create_project),
    Channel("project:list", list_projects),
    Channel("project:getCurrent", get_current_project, errors=(ErrorCode.NOT_FOUND,)),
    Channel("project:setCurrent", set_current_project),
    Channel("project:delete", delete_project),
    Channel("project:story", read_story),
)
