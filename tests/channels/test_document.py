"""Documents follow the editor: in its encoding, version by version, until it goes."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from creonowd.engine.services import Session
from creonowd.retrieval import document_list
from creonowd.rpc.channel import Role
from creonowd.rpc.server import Server
from creonowd.workspace import watcher
from testing.clients import Client, in_memory
from testing.novels import make_novel

SYNC = "context:document:sync"
CLOSE = "context:document:close"

KEY = "ghp_Zq8Lw2Xv9Rt4Yb7Nc1Md6Kf3Hs5Jg0Pd2Xa"


@pytest.fixture
async def project(client: Client, tmp_path: Path) -> str:
    return (await client.call("project:create", {"rootPath": str(tmp_path)}))["projectId"]


@pytest.fixture
async def other(server: Server, session: Session) -> AsyncGenerator[Client]:
    """Another client, which counts in UTF-16 as JavaScript does."""
    async with in_memory(server) as connected:
        await connected.call("initialize", {"positionEncoding": "utf-16"})
        yield connected


def whole(project: str, text: str, version: int = 1, document: str = "ch1.md") -> dict[str, Any]:
    return {"projectId": project, "documentId": document, "version": version, "text": text}


def edits(project: str, base: int, *changes: tuple[int, int, str]) -> dict[str, Any]:
    return {
        "projectId": project,
        "documentId": "ch1.md",
        "baseVersion": base,
        "version": base + 1,
        "edits": [{"from": start, "to": end, "text": text} for start, end, text in changes],
    }


def text_of(session: Session, project: str, document: str = "ch1.md") -> str | None:
    found = session.documents.find(None, (project, document))
    return None if found is None else found.buffer.text


async def test_edits_apply_in_order_to_the_version_they_name(
    client: Client, session: Session, project: str
) -> None:
    opened = await client.call(SYNC, whole(project, "林远走了。\r\n"))
    edited = await client.call(SYNC, edits(project, 1, (0, 2, "她"), (1, 1, "也"), (6, 6, "完")))

    assert opened == {"version": 1, "length": 7}
    assert edited == {"version": 2, "length": 8}
    assert text_of(session, project) == "她也走了。\r完\n"


async def test_positions_are_in_the_encoding_of_the_connection(
    client: Client, other: Client, session: Session, project: str
) -> None:
    await client.call(SYNC, whole(project, "a😀b"))
    points = await client.call(SYNC, edits(project, 1, (2, 3, "c")))
    mine = text_of(session, project)
    opened = await other.call(SYNC, whole(project, "a😀b"))
    units = await other.call(SYNC, edits(project, 1, (3, 4, "c")))

    assert (points["length"], opened["length"], units["length"]) == (3, 4, 4)
    assert mine == text_of(session, project) == "a😀c"


@pytest.mark.parametrize(
    "change", [(2, 2, "x"), (0, 2, "x"), (0, 9, "x"), (3, 1, "x"), (-1, 0, "")]
)
async def test_an_edit_that_does_not_fit_is_refused_and_changes_nothing(
    other: Client, session: Session, project: str, change: tuple[int, int, str]
) -> None:
    await other.call(SYNC, whole(project, "a😀b"))

    error = await other.failure(SYNC, edits(project, 1, (4, 4, "y"), change))

    assert (error.number, error.code) == (-32602, "INVALID_ARGUMENT")
    assert text_of(session, project) == "a😀b"
    assert (await other.call(SYNC, edits(project, 1)))["version"] == 2


async def test_a_version_gap_asks_for_the_whole_text(client: Client, project: str) -> None:
    unopened = await client.failure(SYNC, edits(project, 1))
    await client.call(SYNC, whole(project, "一", version=4))
    gap = await client.failure(SYNC, edits(project, 5))
    await client.call(SYNC, whole(project, "一二", version=6))
    fixed = await client.call(SYNC, edits(project, 6, (2, 2, "三")))

    assert unopened.code == gap.code == "CONFLICT"
    assert unopened.details["currentVersion"] is None
    assert gap.details["currentVersion"] == 4
    assert fixed == {"version": 7, "length": 3}


@pytest.mark.parametrize(
    "payload",
    [
        {"version": 1},
        {"version": 1, "text": "a", "edits": []},
        {"version": 2, "edits": []},
        {"version": 1, "baseVersion": 1, "edits": []},
        {"version": -1, "text": "a"},
        {"version": 1.5, "text": "a"},
        {"version": 1, "text": 5},
        {"text": "a"},
        {"version": 1, "text": "a", "documentId": " "},
        {"version": 2, "baseVersion": 1, "edits": [{"from": 0.5, "to": 1, "text": ""}]},
        {"version": 2, "baseVersion": 1, "edits": [{"from": 0, "text": ""}]},
    ],
)
async def test_a_sync_of_the_wrong_shape_is_an_invalid_argument(
    client: Client, project: str, payload: dict[str, Any]
) -> None:
    await client.call(SYNC, whole(project, "a"))

    error = await client.failure(SYNC, {"projectId": project, "documentId": "ch1.md"} | payload)

    assert (error.number, error.code) == (-32602, "INVALID_ARGUMENT")


async def test_a_document_of_an_unknown_project_is_not_found(client: Client) -> None:
    unknown = await client.failure(SYNC, whole("prj_00000000000000000000", "a"))
    blank = await client.failure(SYNC, whole(" ", "a"))

    assert (unknown.code, blank.code) == ("NOT_FOUND", "INVALID_ARGUMENT")


async def test_the_buffers_of_a_client_that_crashed_go_away(
    server: Server, client: Client, session: Session, project: str
) -> None:
    await client.call(SYNC, whole(project, "mine"))
    async with in_memory(server) as crashing:
        await crashing.call(SYNC, whole(project, "theirs"))
        await crashing.call(SYNC, whole(project, "only theirs", document="ch2.md"))
        theirs = text_of(session, project)

    assert theirs == "theirs"
    assert text_of(session, project) == "mine"
    assert text_of(session, project, "ch2.md") is None
    assert len(session.documents) == 1


async def test_a_client_sees_its_own_buffer_and_else_the_latest(
    client: Client, other: Client, session: Session, project: str
) -> None:
    await client.call(SYNC, whole(project, "mine"))
    await other.call(SYNC, whole(project, "theirs"))

    own = session.documents.find(session.peer, (project, "ch1.md"))

    assert own is not None
    assert own.buffer.text == "mine"
    assert text_of(session, project) == "theirs"


async def test_closing_forgets_the_buffer_and_may_be_repeated(
    client: Client, session: Session, project: str
) -> None:
    await client.call(SYNC, whole(project, "一"))
    payload = {"projectId": project, "documentId": "ch1.md"}

    first = await client.call(CLOSE, payload)
    second = await client.call(CLOSE, payload)

    assert (first, second) == ({"closed": True}, {"closed": False})
    assert text_of(session, project) is None
    assert (await client.failure(SYNC, edits(project, 1))).code == "CONFLICT"


async def test_half_an_emoji_keeps_its_place(client: Client, project: str) -> None:
    """JavaScript cuts strings inside emoji; positions after the cut must not move."""
    body = (
        '{"jsonrpc":"2.0","id":"half","method":"context:document:sync","params":'
        f'{{"projectId":"{project}","documentId":"d","version":1,"text":"a\\ud83db"}}}}'
    )

    await client.frame(body.encode())
    reply = await client.reply("half")

    assert reply["result"] == {"version": 1, "length": 3}


async def test_many_syncs_sent_at_once_are_applied_in_the_order_sent(
    client: Client, session: Session, project: str
) -> None:
    await client.call(SYNC, whole(project, "", version=0))

    for number in range(100):
        params = edits(project, number, (number, number, chr(0x4E00 + number)))
        await client.post({"jsonrpc": "2.0", "id": f"s{number}", "method": SYNC, "params": params})
    replies = [await client.reply(f"s{number}") for number in range(100)]

    assert all("result" in reply for reply in replies)
    assert text_of(session, project) == "".join(chr(0x4E00 + number) for number in range(100))


async def test_two_projects_do_not_share_a_document(
    client: Client, session: Session, project: str, tmp_path: Path
) -> None:
    (tmp_path / "second").mkdir()
    second = await client.call("project:create", {"rootPath": str(tmp_path / "second")})

    await client.call(SYNC, whole(project, "一"))

    assert text_of(session, second["projectId"]) is None


@pytest.mark.parametrize(
    ("path", "code"),
    [
        (".ssh/known_hosts", "NOT_FOUND"),
        (".bash_history", "NOT_FOUND"),
        ("notes/.diary.md", "NOT_FOUND"),
        ("private/diary.md", "NOT_FOUND"),
        ("draft.secret.md", "NOT_FOUND"),
        ("main.log", "UNSUPPORTED"),
        ("keys.pem", "UNSUPPORTED"),
    ],
)
async def test_what_is_no_document_of_the_project_is_read_through_no_channel(
    client: Client, server: Server, tmp_path: Path, path: str, code: str
) -> None:
    (tmp_path / ".gitignore").write_text("private/\n*.secret.md\n", encoding="utf-8")
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("nobody may read this 雨", encoding="utf-8")
    project = (await client.call("project:create", {"rootPath": str(tmp_path)}))["projectId"]
    place = {"projectId": project, "documentId": path, "cursorPosition": 0}
    conversation = {"projectId": project, "conversationId": "c"}
    recipe = {"kind": "artifact", "hint": "h", "recipe": {"type": "file", "path": path}}

    async with in_memory(server, role=Role.RENDERER) as page:
        assembled = await page.call("context:assemble", place | {"skillId": "builtin:continue"})
        listed = await page.call(
            "context:document:list", {"projectId": project, "documentId": path}
        )
        found = await page.call("context:retrieve", place | {"query": "雨", "wait": True})
        ref = (await page.call("context:files:register", conversation | recipe))["ref"]
        read = await page.failure("context.read", conversation | {"id": ref["id"]})

    assert "nobody may read this" not in str([assembled, listed, found])
    assert code in str(assembled["warnings"]) or "IMMEDIATE_UNAVAILABLE" in str(
        assembled["warnings"]
    )
    assert [one["documentId"] for one in listed["items"]] == []
    assert read.code == "NOT_FOUND"


async def test_a_binary_with_the_name_of_a_document_is_read_through_no_channel(
    client: Client, server: Server, tmp_path: Path
) -> None:
    (tmp_path / "photo.md").write_bytes(b"\x89PNG\0\0 nobody may read this")
    project = (await client.call("project:create", {"rootPath": str(tmp_path)}))["projectId"]
    place = {"projectId": project, "documentId": "photo.md", "cursorPosition": 0}
    conversation = {"projectId": project, "conversationId": "c"}
    recipe = {"kind": "artifact", "hint": "h", "recipe": {"type": "file", "path": "photo.md"}}

    async with in_memory(server, role=Role.RENDERER) as page:
        assembled = await page.call("context:assemble", place | {"skillId": "builtin:continue"})
        found = await page.call("context:retrieve", place | {"query": "nobody", "wait": True})
        ref = (await page.call("context:files:register", conversation | recipe))["ref"]
        read = await page.failure("context.read", conversation | {"id": ref["id"]})

    assert "nobody may read this" not in str([assembled, found])
    assert read.code == "NOT_FOUND"


@pytest.mark.parametrize(
    "path", ["photo.md", "raw.log", "node_modules/a.md", "private/diary.md", "private/a.log", ".a"]
)
async def test_an_owner_copies_nothing_that_is_binary_foreign_or_ignored(
    client: Client, server: Server, tmp_path: Path, path: str
) -> None:
    (tmp_path / ".gitignore").write_text("private/\n", encoding="utf-8")
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    is_binary = path in {"photo.md", "raw.log"}
    file.write_bytes(b"nobody may read this" + bytes(is_binary))
    project = (await client.call("project:create", {"rootPath": str(tmp_path)}))["projectId"]
    conversation = {"projectId": project, "conversationId": "c"}
    recipe = {"kind": "artifact", "hint": "h", "recipe": {"type": "file", "path": path}}
    ref = (await client.call("context:files:register", conversation | recipe))["ref"]

    read = await client.failure("context.read", conversation | {"id": ref["id"]})
    async with in_memory(server, role=Role.RENDERER) as page:
        seen = await page.failure("context.read", conversation | {"id": ref["id"]})

    assert (read.code, seen.code) == ("NOT_FOUND", "NOT_FOUND")


@pytest.mark.parametrize("path", ["build.log", "data.json", "chapters/plot.py"])
async def test_a_page_reads_no_copy_of_what_is_no_document(
    client: Client, server: Server, tmp_path: Path, path: str
) -> None:
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("only owners may read this", encoding="utf-8")
    project = (await client.call("project:create", {"rootPath": str(tmp_path)}))["projectId"]
    conversation = {"projectId": project, "conversationId": "c"}
    recipe = {"kind": "artifact", "hint": "h", "recipe": {"type": "file", "path": path}}
    ref = (await client.call("context:files:register", conversation | recipe))["ref"]
    place = conversation | {"id": ref["id"]}
    looks = {"context.read": {}, "context.tail": {}, "context.grep": {"pattern": "only"}}

    async with in_memory(server, role=Role.RENDERER) as page:
        before = [await page.failure(look, place | more) for look, more in looks.items()]
        stats = await client.call("context:files:stats", conversation)
        read = await client.call("context.read", place)
        after = [await page.failure(look, place | more) for look, more in looks.items()]

    assert {error.code for error in (*before, *after)} == {"NOT_FOUND"}
    assert stats["lazyMade"]["files"] == 0
    assert read["content"] == "only owners may read this"


async def test_a_secret_in_a_name_is_not_listed_and_the_document_is_still_found(
    client: Client, project: str, tmp_path: Path
) -> None:
    (tmp_path / KEY).mkdir()
    (tmp_path / KEY / f"notes {KEY}.md").write_text("雨停了。", encoding="utf-8")

    listed = await client.call("context:document:list", {"projectId": project})
    (name,) = [item["documentId"] for item in listed["items"]]
    again = await client.call(
        "context:assemble",
        {
            "projectId": project,
            "documentId": name,
            "cursorPosition": 4,
            "skillId": "builtin:continue",
        },
    )

    assert name == "***REDACTED***/notes ***REDACTED***.md"
    assert "雨停了" in str(again)
    assert KEY not in str(again)


async def test_what_a_huge_project_leaves_out_is_reported_in_both_languages(
    client: Client, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_list, "MAX_DOCUMENTS", 2)
    files = {f"{number}.md": "雪落在城门口。\n" for number in range(4)}
    novel = await make_novel(client, tmp_path / "红楼梦", files)
    (novel.root / ".gitignore").write_bytes(b"x\n" * 40_000)
    query = {"documentId": "0.md", "cursorPosition": 0, "query": "城门口", "wait": True}

    listed = await client.call("context:document:list", novel.params)
    found = await client.call("context:retrieve", novel.params | query)
    assembled = await novel.assemble(documentId="0.md", cursorPosition=0)
    health = await client.call("app:health")
    await client.call("initialize", {"locale": "zh-CN"})
    chinese = await client.call("context:document:list", novel.params)
    chinese_health = await client.call("app:health")

    codes = ["DOCUMENTS_LEFT_OUT", "IGNORE_FILE_CUT"]
    assert [item["documentId"] for item in listed["items"]] == ["0.md", "1.md"]
    assert listed["complete"] is False
    assert [notice["code"] for notice in listed["notices"]] == codes
    assert listed["notices"][0]["details"] == {"documents": 2}
    assert listed["notices"][1]["sourceRef"] == ".gitignore"
    assert [notice["code"] for notice in found["notices"]] == codes
    assert set(codes) <= {notice["code"] for notice in assembled["notices"]}
    (part,) = health["degraded"]
    assert part["part"] == "documents"
    assert "only the 2 documents nearest to its top" in part["reason"]
    assert "Not every line of .gitignore counts" in part["reason"]
    assert "仅使用最靠近顶层的 2 篇文档" in chinese["warnings"][0]
    assert "仅使用最靠近顶层的 2 篇文档" in chinese_health["degraded"][0]["reason"]


async def test_a_project_that_fits_is_listed_whole(client: Client, project: str) -> None:
    listed = await client.call("context:document:list", {"projectId": project})

    assert (listed["complete"], listed["warnings"], listed["notices"]) == (True, [], [])


async def test_a_project_of_too_many_folders_degrades_watching(
    client: Client, project: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "MAX_FOLDERS", 2)
    for number in range(4):
        (tmp_path / f"{number}").mkdir()

    await client.call("context:creonow:watch:start", {"projectId": project})
    health = await client.call("app:health")

    assert [part["part"] for part in health["degraded"]] == ["watching"]
    assert project in health["degraded"][0]["reason"]


@pytest.mark.parametrize("channel", ["context:document:list", "project:story"])
async def test_a_folder_that_became_a_link_or_is_gone_is_named_as_the_reason(
    client: Client, tmp_path: Path, channel: str
) -> None:
    novel = await make_novel(client, tmp_path / "novel", {"ch1.md": "一天。"})
    asked = {"projectId": novel.project_id}
    novel.root.rename(tmp_path / "moved")
    gone = await client.failure(channel, asked)
    novel.root.symlink_to(tmp_path / "moved")
    linked = await client.failure(channel, asked)
    status = await client.call("context:creonow:status", asked)

    assert (gone.code, linked.code) == ("NOT_FOUND", "INVALID_ARGUMENT")
    assert linked.details["reason"] == "link"
    assert not status["exists"]
