"""`context:source:*` and `context:retrieve`: hosts that offer text, and ranked passages with reasons."""

import shutil
import sqlite3
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from creonowd.context.source import SourceQuery, SourceResult
from creonowd.engine.services import Session
from creonowd.errors import DaemonError, ErrorCode
from creonowd.rpc.channel import Role
from creonowd.rpc.server import Server
from creonowd.settings import Settings
from creonowd.sources.hosts import (
    MANY_CHUNKS,
    MOST_ABSENT,
    MOST_CHUNKS,
    MOST_PER_CLIENT,
    HostSource,
)
from creonowd.workspace.projects import Project
from testing.clients import PATIENCE, Client, daemon, in_memory
from testing.logs import LogLines
from testing.novels import Novel, make_novel
from testing.sources import result_of

REGISTER = "context:source:register"
UNREGISTER = "context:source:unregister"
FETCH = "context:source:fetch"
GRAPH = {"layer": "rules", "name": "图谱", "kind": "kg"}
CHUNK = {"source": "kg:林远", "content": "林远是更夫。"}
SECRET = "sk-" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv"
SNOW = "林远站在城门口，望着雪里的灯火，一句话也没有说。风从河上来，吹灭了两盏。\n"
BOAT = "船过了三道湾，水声忽然大起来，阿青把灯举高，照见岸上一排空空的马桩。\n"
FILLER = "众人说了一回闲话，吃了茶，看了一回花，各自散去，一宿无话。\n"


@pytest.fixture
async def project(session: Session, tmp_path: Path) -> Project:
    return await session.projects.create(str(tmp_path), None)


@pytest.fixture
async def host(server: Server, session: Session) -> AsyncGenerator[Client]:
    async with in_memory(server) as connected:
        connected.handlers[FETCH] = lambda _params: {"chunks": [CHUNK]}
        yield connected


async def fetch(source: HostSource, project: Project, **more: Any) -> SourceResult:
    ask = SourceQuery(project_id=project.project_id, skill_id="builtin:continue", limit=200, **more)
    with anyio.fail_after(PATIENCE):
        return await result_of(source, ask)


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
async def test_dynamic_layers_are_sent_document_and_query(
    session: Session, host: Client, project: Project, layer: str
):
    asked: list[Any] = []
    host.handlers[FETCH] = lambda params: asked.append(params) or {"chunks": []}
    await host.call(REGISTER, GRAPH | {"layer": layer, "kind": "memory"})
    (source,) = session.hosts.of(project)

    await fetch(source, project, document_id="a.md", query="雪", wish="续写")

    assert asked[0]["documentId"] == "a.md"
    assert asked[0]["query"] == "雪\n续写"


async def test_a_host_that_does_not_answer_is_notified_that_nobody_waits(
    session: Session, host: Client, project: Project
):
    host.handlers[FETCH] = lambda _params: NotImplemented
    await host.call(REGISTER, GRAPH | {"timeoutMs": 1})
    (source,) = session.hosts.of(project)

    assert await failure(source, project) is ErrorCode.TIMEOUT
    assert (await host.event("$/cancelRequest"))["id"] == "creonowd-1"


async def test_a_host_is_notified_when_the_asker_gives_up(
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

    assert session.hosts.paused_sources() == {"图谱": "malformed"}


async def test_a_host_that_hangs_up_is_missed_until_it_is_unregistered(
    server: Server, session: Session, client: Client, project: Project
):
    async with in_memory(server) as host:
        await host.call(REGISTER, GRAPH)
        (source,) = session.hosts.of(project)

    assert session.hosts.of(project) == [source]
    assert await failure(source, project) is ErrorCode.DISCONNECTED
    assert await client.call(UNREGISTER, {"name": "图谱"}) == {"unregistered": True}
    assert session.hosts.of(project) == []


async def test_a_host_that_hung_up_is_missed_no_more_when_somebody_offers_the_same(
    server: Server, session: Session, client: Client, host: Client, project: Project
):
    async with in_memory(server) as other:
        await other.call(REGISTER, GRAPH)
    await host.call(REGISTER, GRAPH)
    async with in_memory(server) as third:
        await third.call(REGISTER, GRAPH)

    (source,) = session.hosts.of(project)

    assert (await fetch(source, project)).fragments
    assert await client.call(UNREGISTER, {"name": "图谱"}) == {"unregistered": False}


async def test_no_more_than_so_many_hosts_are_missed(
    server: Server, session: Session, project: Project
):
    for client in range(2):
        async with in_memory(server) as host:
            for number in range(MOST_PER_CLIENT):
                await host.call(REGISTER, GRAPH | {"name": f"{client} {number:02}"})

    names = [source.name for source in session.hosts.of(project)]
    assert names == [f"1 {number:02}" for number in range(MOST_ABSENT)]


async def test_a_graph_that_hung_up_leaves_a_warning_where_a_skill_asks_for_it(
    server: Server, client: Client, full_novel: Novel
):
    missing = "KG_UNAVAILABLE: 知识图谱数据未注入"
    async with in_memory(server) as host:
        host.handlers[FETCH] = lambda _params: {"chunks": [CHUNK]}
        await host.call(REGISTER, GRAPH)
        there = await full_novel.assemble(skillId="builtin:consistency")

    gone = [await full_novel.assemble(skillId="builtin:consistency") for _ in range(5)]
    polished = await full_novel.assemble(skillId="builtin:polish", selection={"from": 0, "to": 4})
    await client.call(UNREGISTER, {"name": "图谱"})
    after = await full_novel.assemble(skillId="builtin:consistency")

    assert [missing in one["warnings"] for one in gone] == 5 * [True]
    assert not [one for one in (there, polished, after) if missing in one["warnings"]]


async def test_a_chunk_that_makes_no_sense_is_in_evidence_warning_and_log(
    client: Client, full_novel: Novel, logged: LogLines
):
    good = {"source": "旧稿#L3", "content": "召回的好片段。", "score": 0.5}
    client.handlers[FETCH] = lambda _params: {
        "chunks": [good | {"source": "坏稿", "score": 7}, good]
    }
    await client.call(REGISTER, {"layer": "retrieved", "name": "向量", "kind": "rag"})

    result = await full_novel.assemble(skillId="builtin:continue")

    assert "召回的好片段。" in result["prompt"]
    entries = {e["sourceRef"]: (e["action"], e["reason"]) for e in result["trimEvidence"]}
    assert entries["坏稿"] == ("dropped", "invalid_format")
    (warning,) = [text for text in result["warnings"] if text.startswith("RAG_UNAVAILABLE")]
    assert warning == ("RAG_UNAVAILABLE: 向量: 1 of 2 chunks make no sense and are left out (坏稿)")
    (line,) = [one for one in logged if one["event"] == "context_chunks_malformed"]
    assert (line["source"], line["chunks"], line["left_out"]) == ("向量", ["坏稿"], 1)


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


@pytest.fixture
def full_novel(novel: Novel) -> Novel:
    novel.put("chapters/01.md", f"# 雪夜\n\n{SNOW}")
    novel.put("chapters/02.md", f"# 江上\n\n{BOAT}")
    novel.put("chapters/03.md", f"# 归来\n\n{FILLER}")
    novel.put(".creonow/characters/林远.md", "---\naliases: [老更夫]\n---\n更夫")
    return novel


async def retrieved(client: Client, novel: Novel, **more: Any) -> dict[str, Any]:
    asked = {"documentId": "chapters/03.md", "cursorPosition": 0, "wait": True}
    return await client.call("context:retrieve", novel.params | asked | more)


async def test_passages_come_with_scores_and_reasons(client: Client, full_novel: Novel) -> None:
    result = await retrieved(client, full_novel, query="老更夫在城门口")

    (passage,) = result["passages"]
    terms = {share["term"] for share in passage["why"]["terms"]}
    assert passage["sourceRef"] == "chapters/01.md#L1-L3"
    assert passage["documentId"] == "chapters/01.md"
    assert passage["heading"] == ["雪夜"]
    assert passage["content"] == f"# 雪夜\n\n{SNOW}".rstrip()
    assert passage["score"] == 1.0
    assert {"林远", "城门", "门口"} <= terms
    assert sum(share["share"] for share in passage["why"]["terms"]) == pytest.approx(1, abs=0.01)
    assert passage["why"]["names"] == ["林远"]
    assert passage["why"]["recency"] == pytest.approx(0.3333)
    assert result["names"] == ["林远", "老更夫"]
    assert result["index"] == {"complete": True, "done": 0, "documents": 0}
    assert result["warnings"] == []


async def test_without_a_query_the_text_before_the_cursor_asks(
    client: Client, full_novel: Novel
) -> None:
    text = "他想起江上那条船，和岸上的马桩。\n" + FILLER
    full_novel.put("chapters/03.md", text)

    result = await retrieved(client, full_novel, cursorPosition=len(text))

    assert result["passages"][0]["sourceRef"] == "chapters/02.md#L1-L3"


async def test_the_query_moves_in_steps_and_not_with_every_letter(
    client: Client, full_novel: Novel
) -> None:
    """With the default budget it moves by 2000 code points, after a beginning in smaller steps."""
    before = (FILLER * 80)[:1999] + "\n"
    text = f"{before}岸上有一排马桩。{FILLER * 80}"
    full_novel.put("chapters/03.md", text)

    typed = [await retrieved(client, full_novel, cursorPosition=2000 + n) for n in (0, 1, 9, 1999)]
    beyond = await retrieved(client, full_novel, cursorPosition=4000)

    asked = [[p["documentId"] for p in result["passages"]] for result in typed]
    assert "chapters/02.md" not in asked[0]
    assert asked == [asked[0]] * 4
    assert "chapters/02.md" in [p["documentId"] for p in beyond["passages"]]


async def test_what_the_window_shows_is_left_out(client: Client, full_novel: Novel) -> None:
    long = f"# 前\n\n{SNOW}" + FILLER * 400 + f"# 后\n\n{SNOW[:-2]}了。\n"
    full_novel.put("chapters/03.md", long)

    at_the_end = await retrieved(client, full_novel, query="城门口", cursorPosition=len(long))
    at_the_start = await retrieved(client, full_novel, query="城门口", cursorPosition=0)

    (shown,) = at_the_end["passages"]
    assert shown["sourceRef"].startswith("chapters/03.md#L1-")
    assert not [p for p in at_the_start["passages"] if p["offset"] == 0]


async def test_the_unsaved_text_is_what_counts(client: Client, full_novel: Novel) -> None:
    asked = full_novel.params | {"documentId": "chapters/03.md"}
    text = f"{FILLER * 200}# 新\n\n玉佩落在雪地里。\n{FILLER * 200}"
    await client.call("context:document:sync", asked | {"version": 1, "text": text})

    result = await retrieved(client, full_novel, query="玉佩", cursorPosition=0)

    (passage,) = result["passages"]
    assert passage["offset"] == text.index("# 新")


@pytest.mark.requirement("CN-016")
async def test_what_lies_in_the_tree_is_no_document_even_when_it_is_open(
    client: Client, full_novel: Novel
) -> None:
    full_novel.put(".gitignore", "废稿/\n[z-a]\n")
    for path in (".creonow/settings/玉.md", ".creonow/玉.md", "废稿/玉.md"):
        full_novel.put(path, "玉佩落在雪地里。\n")
        buffer = {"documentId": path, "version": 1, "text": "玉佩落在雪地里，碎了。\n"}
        await client.call("context:document:sync", full_novel.params | buffer)
    unsaved = {"documentId": "untitled:1", "version": 1, "text": "玉佩还在。\n"}
    await client.call("context:document:sync", full_novel.params | unsaved)

    result = await retrieved(client, full_novel, query="玉佩")

    assert [passage["documentId"] for passage in result["passages"]] == ["untitled:1"]


async def test_secrets_are_in_nothing_that_is_shown(client: Client, full_novel: Novel) -> None:
    full_novel.put("chapters/04.md", f"# 钥匙 {SECRET}\n\n玉佩的密钥是 {SECRET} 。\n")

    result = await retrieved(client, full_novel, query=f"玉佩 {SECRET}")

    shown = repr(result).lower()
    assert "***redacted***" in shown
    assert SECRET[3:].lower() not in shown
    (evidence,) = result["redactionEvidence"]
    assert evidence["patternId"] == "openai_api_key_sk"
    assert evidence["sourceRef"] == "chapters/04.md#L1-L3"


async def test_near_duplicates_are_named_and_not_repeated(
    client: Client, full_novel: Novel
) -> None:
    full_novel.put("drafts/旧稿.md", f"# 雪夜\n\n{SNOW.replace('两盏', '三盏')}")

    result = await retrieved(client, full_novel, query="城门口")

    (passage,) = result["passages"]
    assert passage["sourceRef"] == "chapters/01.md#L1-L3"
    assert passage["duplicates"] == ["drafts/旧稿.md#L1-L3"]


async def test_no_more_come_than_were_asked_for(client: Client, full_novel: Novel) -> None:
    result = await retrieved(client, full_novel, query="灯", limit=1)

    assert len(result["passages"]) == 1


async def test_a_document_that_is_nowhere_costs_nothing_but_a_warning(
    client: Client, full_novel: Novel
) -> None:
    result = await retrieved(client, full_novel, documentId="nowhere.md", query="城门口")

    assert [p["documentId"] for p in result["passages"]] == ["chapters/01.md"]
    assert [warning.partition(":")[0] for warning in result["warnings"]] == [
        "IMMEDIATE_UNAVAILABLE"
    ]


async def test_an_empty_project_has_nothing(client: Client, novel: Novel) -> None:
    result = await retrieved(client, novel, query="城门口")

    assert result["passages"] == []


async def test_waiting_reports_how_far_the_index_is(client: Client, novel: Novel) -> None:
    for number in range(80):
        novel.put(f"{number}.md", SNOW + FILLER * 100)

    await retrieved(client, novel, query="城门口", _meta={"progressToken": "p"})

    values = [
        event["params"]["value"] for event in client.events if event["method"] == "$/progress"
    ]
    assert max(value["documents"] for value in values) == 80
    assert [value["done"] for value in values] == sorted(value["done"] for value in values)


async def test_who_waits_waits_for_what_changes_meanwhile_too(
    client: Client, session: Session, novel: Novel
) -> None:
    for number in range(300):
        novel.put(f"{number}.md", SNOW + FILLER * 100)
    index = session.indexes.of(await session.projects.find(novel.project_id))
    answers: list[Any] = []

    async def wait() -> None:
        answers.append(await retrieved(client, novel, query="渡口"))

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await index.step(after=index.steps + 100)
            novel.put("new.md", "渡口的老人收了钱，什么也没有问。\n")
            index.files_changed()

    (result,) = answers
    assert result["index"]["complete"] is True
    assert [passage["documentId"] for passage in result["passages"]] == ["new.md"]
    assert not [warning for warning in result["warnings"] if "RETRIEVAL_INDEXING" in warning]


async def test_nobody_has_to_wait(client: Client, novel: Novel) -> None:
    for number in range(300):
        novel.put(f"{number}.md", SNOW + FILLER * 100)

    result = await retrieved(client, novel, query="城门口", wait=False)

    assert result["index"]["complete"] is False
    assert result["warnings"][-1].startswith("RETRIEVAL_INDEXING: The index is still being built")


@pytest.mark.parametrize(
    "wrong",
    [
        {"limit": 0},
        {"limit": 201},
        {"cursorPosition": -1},
        {"cursorPosition": 1.5},
        {"query": 5},
        {"documentId": "  "},
    ],
)
async def test_a_payload_that_makes_no_sense_is_refused(
    client: Client, full_novel: Novel, wrong: dict[str, Any]
) -> None:
    asked = full_novel.params | {"documentId": "chapters/03.md", "cursorPosition": 0}

    error = await client.failure("context:retrieve", asked | wrong)

    assert error.code == ErrorCode.INVALID_ARGUMENT
    assert error.number == -32602


async def test_a_search_in_an_unknown_project_is_not_found(client: Client) -> None:
    asked = {"projectId": "prj_0000000000000000", "documentId": "a.md", "cursorPosition": 0}

    assert (await client.failure("context:retrieve", asked)).code == ErrorCode.NOT_FOUND


async def test_a_deleted_project_leaves_no_index(
    client: Client, full_novel: Novel, server_data: Path
) -> None:
    await retrieved(client, full_novel, query="城门口")
    folder = server_data / "retrieval"

    await client.call("project:delete", full_novel.params)

    assert list(folder.iterdir()) == []


def _change(root: Path, _index: Path) -> None:
    (root / "b.md").write_bytes("江船".encode())


def _rename(root: Path, _index: Path) -> None:
    (root / "a.md").rename(root / "c.md")


def _damage(_root: Path, index: Path) -> None:
    index.write_bytes(b"\xff" * 20_000)


def _other_version(_root: Path, index: Path) -> None:
    connection = sqlite3.connect(index)
    connection.execute("PRAGMA user_version = 99")
    connection.execute("DELETE FROM passages")
    connection.commit()
    connection.close()


def _lose(_root: Path, index: Path) -> None:
    shutil.rmtree(index.parent)


@pytest.mark.parametrize(
    ("happens", "found"),
    [
        (_change, {"江船": ["b.md"], "月色": [], "风雪": ["a.md"]}),
        (_rename, {"风雪": ["c.md"], "月色": ["b.md"]}),
        (_damage, {"风雪": ["a.md"], "月色": ["b.md"]}),
        (_other_version, {"风雪": ["a.md"], "月色": ["b.md"]}),
        (_lose, {"风雪": ["a.md"], "月色": ["b.md"]}),
    ],
)
async def test_whatever_happens_while_the_daemon_is_off_is_noticed(
    tmp_path: Path, happens: Callable[[Path, Path], None], found: dict[str, list[str]]
) -> None:
    root, user_data = tmp_path / "书", tmp_path / "data"
    settings = Settings(warm_up=False)
    async with daemon(user_data, settings) as client:
        novel = await make_novel(client, root, {"a.md": "风雪", "b.md": "月色"})
        await retrieved(client, novel, query="风雪")

    happens(root, user_data / "retrieval" / f"{novel.project_id}.sqlite3")

    async with daemon(user_data, settings) as client:
        for query, documents in found.items():
            result = await retrieved(client, novel, query=query)
            assert [passage["documentId"] for passage in result["passages"]] == documents
