"""Hosts register, are asked over their own connection, and go when they go."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest

from creonowd.context.source import Ask, Fetched
from creonowd.engine.services import Session
from creonowd.errors import DaemonError, ErrorCode
from creonowd.rpc.channel import Role
from creonowd.rpc.server import Server
from creonowd.sources.hosts import MANY_CHUNKS, MOST_CHUNKS, MOST_PER_CLIENT, HostSource
from creonowd.workspace.projects import Project
from testing.clients import PATIENCE, Client, in_memory

REGISTER = "context:source:register"
UNREGISTER = "context:source:unregister"
FETCH = "context:source:fetch"
GRAPH = {"layer": "rules", "name": "图谱", "kind": "kg"}
CHUNK = {"source": "kg:林远", "content": "林远是更夫。"}


@pytest.fixture
async def project(session: Session, tmp_path: Path) -> Project:
    return await session.projects.create(str(tmp_path), None)


@pytest.fixture
async def host(server: Server, session: Session) -> AsyncGenerator[Client]:
    async with in_memory(server) as connected:
        connected.handlers[FETCH] = lambda _params: {"chunks": [CHUNK]}
        yield connected


async def fetch(source: HostSource, project: Project, **more: Any) -> Fetched:
    ask = Ask(project_id=project.project_id, skill_id="builtin:continue", limit=200, **more)
    with anyio.fail_after(PATIENCE):
        return await source.fetch(ask)


async def failure(source: HostSource, project: Project) -> ErrorCode:
    with pytest.raises(DaemonError) as caught:
        await fetch(source, project)
    return caught.value.code


async def test_a_registered_host_is_asked(session: Session, host: Client, project: Project):
    registered = await host.call(REGISTER, GRAPH | {"timeoutMs": 900})
    (source,) = session.hosts.of(project)

    fetched = await fetch(source, project)

    assert registered == GRAPH | {"registered": True, "timeoutMs": 900}
    assert [fragment.text for fragment in fetched.fragments] == ["林远是更夫。"]


@pytest.mark.parametrize("layer", ["rules", "settings"])
async def test_stable_layers_are_asked_without_document_and_query(
    session: Session, host: Client, project: Project, layer: str
):
    asked: list[Any] = []
    host.handlers[FETCH] = lambda params: asked.append(params) or {"chunks": []}
    await host.call(REGISTER, GRAPH | {"layer": layer})
    (source,) = session.hosts.of(project)

    await fetch(source, project, document_id="a.md", query="雪")

    assert asked == [
        {
            "layer": layer,
            "name": "图谱",
            "projectId": project.project_id,
            "skillId": "builtin:continue",
            "limit": 200,
        }
    ]


@pytest.mark.parametrize("layer", ["retrieved", "immediate"])
async def test_dynamic_layers_are_told_document_and_query(
    session: Session, host: Client, project: Project, layer: str
):
    asked: list[Any] = []
    host.handlers[FETCH] = lambda params: asked.append(params) or {"chunks": []}
    await host.call(REGISTER, GRAPH | {"layer": layer, "kind": "memory"})
    (source,) = session.hosts.of(project)

    await fetch(source, project, document_id="a.md", query="雪", wish="续写")

    assert asked[0]["documentId"] == "a.md"
    assert asked[0]["query"] == "雪\n续写"


async def test_a_host_that_does_not_answer_is_told_that_nobody_waits(
    session: Session, host: Client, project: Project
):
    host.handlers[FETCH] = lambda _params: NotImplemented
    await host.call(REGISTER, GRAPH | {"timeoutMs": 1})
    (source,) = session.hosts.of(project)

    assert await failure(source, project) is ErrorCode.TIMEOUT
    assert (await host.event("$/cancelRequest"))["id"] == "creonowd-1"


async def test_a_host_is_told_when_the_asker_gives_up(
    session: Session, host: Client, project: Project
):
    host.handlers[FETCH] = lambda _params: NotImplemented
    await host.call(REGISTER, GRAPH | {"timeoutMs": 30_000})
    (source,) = session.hosts.of(project)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(fetch, source, project)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()

    assert (await host.event("$/cancelRequest"))["id"] == "creonowd-1"


@pytest.mark.parametrize(
    "answer",
    [
        *(None, [], {"chunks": "none"}, {"chunks": None}, "chunks"),
        {"chunks": [CHUNK] * (MOST_CHUNKS + 1)},
    ],
    ids=range(6),
)
async def test_an_answer_of_another_shape_is_a_failure(
    session: Session, host: Client, project: Project, answer: Any
):
    host.handlers[FETCH] = lambda _params: answer
    await host.call(REGISTER, GRAPH)
    (source,) = session.hosts.of(project)

    assert await failure(source, project) is ErrorCode.HOST_ERROR


async def test_many_chunks_are_read_as_few_are(session: Session, host: Client, project: Project):
    many = [{"source": f"kg:{number}", "content": "雪"} for number in range(2 * MANY_CHUNKS)]
    host.handlers[FETCH] = lambda _params: {"chunks": [*many, None]}
    await host.call(REGISTER, GRAPH)
    (source,) = session.hosts.of(project)

    fetched = await fetch(source, project)

    assert len(fetched.fragments) == 2 * MANY_CHUNKS
    assert len(fetched.left_out) == 1


async def test_a_host_that_keeps_failing_is_left_alone_and_health_says_so(
    session: Session, client: Client, host: Client, project: Project
):
    asked: list[Any] = []
    host.handlers[FETCH] = asked.append
    await host.call(REGISTER, GRAPH)
    (source,) = session.hosts.of(project)

    failures = [await failure(source, project) for _ in range(5)]
    health = await client.call("app:health")

    assert failures == [ErrorCode.HOST_ERROR] * 5
    assert len(asked) == 3
    (trouble,) = health["degraded"]
    assert trouble["part"] == "sources"
    assert "图谱" in trouble["reason"]


async def test_registering_again_gives_a_failing_host_another_chance(
    session: Session, client: Client, host: Client, project: Project
):
    host.handlers[FETCH] = lambda _params: None
    await host.call(REGISTER, GRAPH)
    (source,) = session.hosts.of(project)
    for _ in range(3):
        await failure(source, project)
    host.handlers[FETCH] = lambda _params: {"chunks": [CHUNK]}

    await host.call(REGISTER, GRAPH)
    (source,) = session.hosts.of(project)

    assert (await fetch(source, project)).fragments
    assert (await client.call("app:health"))["degraded"] == []


async def test_chunks_that_all_make_no_sense_count_as_failures(
    session: Session, host: Client, project: Project
):
    host.handlers[FETCH] = lambda _params: {"chunks": [None, "text"]}
    await host.call(REGISTER, GRAPH)
    (source,) = session.hosts.of(project)

    for _ in range(3):
        assert len((await fetch(source, project)).left_out) == 2

    assert session.hosts.resting() == {"图谱": "malformed"}


async def test_a_host_that_hangs_up_is_forgotten(
    server: Server, session: Session, project: Project
):
    async with in_memory(server) as host:
        await host.call(REGISTER, GRAPH)
        (source,) = session.hosts.of(project)

    assert session.hosts.of(project) == []
    assert await failure(source, project) is ErrorCode.DISCONNECTED


async def test_unregistering_ends_it(session: Session, host: Client, project: Project):
    await host.call(REGISTER, GRAPH)
    await host.call(REGISTER, GRAPH | {"layer": "retrieved"})

    assert await host.call(UNREGISTER, {"name": "别的"}) == {"unregistered": False}
    assert await host.call(UNREGISTER, {"name": "图谱", "layer": "rules"}) == {"unregistered": True}
    assert [source.layer for source in session.hosts.of(project)] == ["retrieved"]
    assert await host.call(UNREGISTER, {"name": "图谱"}) == {"unregistered": True}
    assert session.hosts.of(project) == []


async def test_nobody_unregisters_what_another_offers(
    session: Session, client: Client, host: Client, project: Project
):
    await host.call(REGISTER, GRAPH)

    assert await client.call(UNREGISTER, {"name": "图谱"}) == {"unregistered": False}
    assert len(session.hosts.of(project)) == 1


async def test_two_hosts_stand_in_the_order_of_their_names(
    session: Session, client: Client, host: Client, project: Project
):
    await host.call(REGISTER, GRAPH | {"name": "b"})
    await client.call(REGISTER, GRAPH | {"name": "a"})

    assert [source.name for source in session.hosts.of(project)] == ["a", "b"]


async def test_a_host_of_one_project_is_not_asked_for_another(
    session: Session, host: Client, project: Project, tmp_path: Path
):
    (tmp_path / "other").mkdir()
    other = await session.projects.create(str(tmp_path / "other"), None)

    await host.call(REGISTER, GRAPH | {"projectId": other.project_id})

    assert session.hosts.of(project) == []
    assert len(session.hosts.of(other)) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"layer": "everything"},
        {"kind": "oracle"},
        {"name": "  "},
        {"name": "x" * 101},
        {"timeoutMs": 0},
        {"timeoutMs": 30_001},
        {"timeoutMs": 1.5},
        {"name": None},
    ],
)
async def test_an_offer_that_makes_no_sense_is_refused(host: Client, wrong: dict[str, Any]):
    error = await host.failure(REGISTER, GRAPH | wrong)

    assert error.code == ErrorCode.INVALID_ARGUMENT
    assert error.number == -32602


async def test_an_unknown_project_is_not_found(host: Client):
    error = await host.failure(REGISTER, GRAPH | {"projectId": "prj_0000000000000000"})

    assert error.code == ErrorCode.NOT_FOUND


async def test_a_client_may_not_register_without_end(host: Client):
    for number in range(MOST_PER_CLIENT):
        await host.call(REGISTER, GRAPH | {"name": str(number)})

    assert (await host.failure(REGISTER, GRAPH)).code == ErrorCode.INVALID_ARGUMENT
    assert (await host.call(REGISTER, GRAPH | {"name": "5"}))["registered"]


async def test_a_renderer_may_not_register(server: Server):
    async with in_memory(server, role=Role.RENDERER) as renderer:
        assert (await renderer.failure(REGISTER, GRAPH)).code == ErrorCode.FORBIDDEN
