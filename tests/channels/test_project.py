from pathlib import Path

import msgspec

from creonowd.channels.project import (
    CHANNELS,
    CreateProject,
    ProjectId,
    create_project,
    delete_project,
    get_current_project,
    list_projects,
    set_current_project,
)
from creonowd.engine.services import Session
from creonowd.model import Empty


async def test_a_project_is_made_listed_chosen_and_forgotten(
    session: Session, tmp_path: Path
) -> None:
    made = await create_project(session, CreateProject(root_path=str(tmp_path), name="石头记"))
    chosen = await set_current_project(session, ProjectId(project_id=made.project_id))
    current = await get_current_project(session, Empty())
    listed = await list_projects(session, Empty())
    deleted = await delete_project(session, ProjectId(project_id=made.project_id))

    assert made == chosen == current == listed.items[0]
    assert msgspec.to_builtins(made) == {
        "projectId": made.project_id,
        "rootPath": str(tmp_path),
        "name": "石头记",
    }
    assert msgspec.to_builtins(deleted) == {"deleted": True, "projectId": made.project_id}
    assert (await list_projects(session, Empty())).items == []


def test_every_project_channel_knows_its_payload() -> None:
    assert {channel.name: channel.params for channel in CHANNELS} == {
        "project:create": CreateProject,
        "project:list": Empty,
        "project:getCurrent": Empty,
        "project:setCurrent": ProjectId,
        "project:delete": ProjectId,
    }
