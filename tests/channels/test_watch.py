import shutil

import anyio
import pytest

from creonowd.channels.creonow import CreonowChanged, merge_changes, start_watching
from creonowd.channels.project import ProjectId
from creonowd.engine.services import Session
from creonowd.rpc.server import Server
from testing.clients import Client, in_memory
from testing.novels import Novel
from tests.channels.conftest import Lines

STYLE = ".creonow/rules/style.md"
CHANGED = "context:creonow:changed"


async def watched(client: Client, novel: Novel) -> bool:
    return (await client.call("context:creonow:status", novel.params))["watching"]


@pytest.mark.requirement("CN-025")
async def test_a_watching_client_is_told_what_changed(
    client: Client, novel: Novel, logged: Lines
) -> None:
    await client.call("context:creonow:ensure", novel.params)

    started = await client.call("context:creonow:watch:start", novel.params)
    novel.put(STYLE, "短句。")
    event = await client.event(CHANGED)
    stopped = await client.call("context:creonow:watch:stop", novel.params)

    assert started == {"watching": True}
    assert event == {
        "projectId": novel.project_id,
        "paths": [STYLE],
        "layers": ["rules"],
        "atMs": event["atMs"],
        "seq": 1,
        "ts": event["ts"],
    }
    assert stopped == {"watching": False}
    events = [line["event"] for line in logged if line["event"].startswith("context_watch")]
    assert events == ["context_watch_started", "context_watch_stopped"]


async def test_starting_and_stopping_twice_is_fine(client: Client, novel: Novel) -> None:
    for _ in range(2):
        assert await client.call("context:creonow:watch:start", novel.params) == {"watching": True}
    novel.put("第一章.md", "一")
    await client.event(CHANGED)

    for _ in range(2):
        assert await client.call("context:creonow:watch:stop", novel.params) == {"watching": False}

    assert [event for event in client.events if event["method"] == CHANGED] == []
    assert not await watched(client, novel)


async def test_watching_is_per_connection_and_status_means_anyone(
    client: Client, server: Server, novel: Novel
) -> None:
    async with in_memory(server) as other:
        await other.call("context:creonow:watch:start", novel.params)

        assert await watched(client, novel)
        assert await client.call("context:creonow:watch:stop", novel.params) == {"watching": False}
        assert await watched(client, novel)
        novel.put("第一章.md", "一")
        await other.event(CHANGED)
        assert client.events == []

    with anyio.fail_after(60):
        while await watched(client, novel):  # noqa: ASYNC110 - a hang-up tells nobody
            await anyio.sleep(0.01)


async def test_a_watcher_that_dies_says_so_and_can_be_started_again(
    client: Client, novel: Novel
) -> None:
    await client.call("context:creonow:watch:start", novel.params)

    shutil.rmtree(novel.root)
    event = await client.event(CHANGED)

    assert event["watching"] is False
    assert event["paths"] == []
    assert not await watched(client, novel)
    assert (await client.failure("context:creonow:watch:start", novel.params)).code == "NOT_FOUND"
    novel.root.mkdir()
    await client.call("context:creonow:watch:start", novel.params)
    assert await watched(client, novel)


async def test_a_deleted_project_is_no_longer_watched(client: Client, novel: Novel) -> None:
    await client.call("context:creonow:watch:start", novel.params)

    await client.call("project:delete", novel.params)
    event = await client.event(CHANGED)

    assert event["watching"] is False


def test_a_lagging_client_gets_one_joined_event() -> None:
    first = CreonowChanged(project_id="p", paths=["b.md"], layers=["retrieved"], at_ms=1)
    second = CreonowChanged(project_id="p", paths=[STYLE, "b.md"], layers=["rules"], at_ms=2)

    both = merge_changes(first, second)

    assert both.paths == [STYLE, "b.md"]
    assert both.layers == ["rules", "retrieved", "immediate"]
    assert both.at_ms == 2


async def test_a_hundred_starts_leave_one_reminder_to_hang_up(
    session: Session, novel: Novel, server: Server
) -> None:
    for _ in range(100):
        await start_watching(session, ProjectId(project_id=novel.project_id))

    assert not session.watcher.register(session.peer.id)
