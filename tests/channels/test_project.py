import gc
import tracemalloc
from pathlib import Path

import msgspec

from creonowd.channels.document import ListDocuments, list_documents
from creonowd.channels.project import (
    CHANNELS,
    CreateProject,
    ProjectId,
    create_project,
    delete_project,
    get_current_project,
    list_projects,
    read_story,
    set_current_project,
)
from creonowd.engine.explain import ListSubjects, list_subjects
from creonowd.engine.services import Session
from creonowd.model import Empty
from creonowd.rpc.channel import Role
from creonowd.rpc.server import Server
from testing.clients import in_memory


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


async def test_a_forgotten_project_leaves_nothing_in_memory(
    session: Session, tmp_path: Path
) -> None:
    async def use(number: int) -> None:
        root = tmp_path / f"novel {number}"
        root.mkdir()
        for chapter in range(600):
            text = "---\nkind: outline\n---\n" if chapter < 20 else "雨"
            (root / f"{number} 第{chapter}章.md").write_text(text, encoding="utf-8")
        made = await create_project(session, CreateProject(root_path=str(root)))
        project = ProjectId(project_id=made.project_id)
        await list_documents(session, ListDocuments(project_id=made.project_id))
        await read_story(session, project)
        await list_subjects(session, ListSubjects(project_id=made.project_id))
        for outline in session.tree.read_outlines_now(root).files:
            assert outline.data
        await delete_project(session, project)

    await use(0)
    gc.collect()
    tracemalloc.start()
    try:
        await use(1)
        gc.collect()
        kept, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert kept < most / 10, (kept, most)


def test_every_project_channel_knows_its_payload() -> None:
    assert {channel.name: channel.params for channel in CHANNELS} == {
        "project:create": CreateProject,
        "project:list": Empty,
        "project:getCurrent": Empty,
        "project:setCurrent": ProjectId,
        "project:delete": ProjectId,
        "project:story": ProjectId,
    }


async def test_the_story_is_shown_with_what_decided_it(session: Session, tmp_path: Path) -> None:
    texts = {
        "第二章.md": "二",
        "第十章.md": "---\ntitle: 十\n---\n十章",
        "大纲.md": "梗概",
        "插曲.md": "雨",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / ".creonow").mkdir()
    order = '{"version": 1, "order": ["第十章.md"], "outside": ["none.md"]}'
    (tmp_path / ".creonow/story.json").write_text(order, encoding="utf-8")
    made = await create_project(session, CreateProject(root_path=str(tmp_path)))

    story = await read_story(session, ProjectId(project_id=made.project_id))

    assert msgspec.to_builtins(story) == {
        "documents": [
            {"path": "第十章.md", "decidedBy": "story_file", "length": 2, "chapter": 10},
            {"path": "第二章.md", "decidedBy": "name", "length": 1, "chapter": 2},
            {"path": "插曲.md", "decidedBy": "name", "length": 1},
        ],
        "outside": [{"path": "大纲.md", "decidedBy": "name", "length": 2}],
        "doubts": [
            {"kind": "no_match", "paths": ("none.md",)},
            {"kind": "no_number", "paths": ("插曲.md",)},
        ],
    }


async def test_a_page_names_no_path_but_may_make_a_project_by_name(
    server: Server, server_data: Path, tmp_path: Path
) -> None:
    async with in_memory(server, role=Role.RENDERER) as page:
        forbidden = await page.failure("project:create", {"rootPath": str(tmp_path)})
        nameless = await page.failure("project:create", {"name": " "})
        made = await page.call("project:create", {"name": "../石头记"})
        listed = await page.call("project:list")

    assert (forbidden.code, forbidden.details["field"]) == ("FORBIDDEN", "rootPath")
    assert nameless.code == "INVALID_ARGUMENT"
    assert Path(made["rootPath"]).parent == (server_data / "projects").resolve()
    assert [one["projectId"] for one in listed["items"]] == [made["projectId"]]
