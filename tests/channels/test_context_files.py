"""What a model sees: refs, pages, tails and matches, without secrets and without paths."""

import base64
from pathlib import Path

import pytest

from creonowd.redaction import PLACEHOLDER
from creonowd.rpc.channel import Role
from creonowd.rpc.server import Server
from creonowd.settings import Settings
from testing.clients import Client, daemon, in_memory
from testing.novels import Chat, make_chat
from tests.channels.conftest import Lines

KEY = "ghp_Zq8Lw2Xv9Rt4Yb7Nc1Md6Kf3Hs5Jg0Pd2Xa"


@pytest.fixture
async def chat(client: Client, tmp_path: Path) -> Chat:
    return await make_chat(client, tmp_path / "novel")


@pytest.mark.requirement("CF-011", "CF-012", "CF-016", "CF-032")
async def test_a_list_gives_refs_and_nothing_about_files(chat: Chat) -> None:
    await chat.put("one", kind="history", mimeType="text/markdown")
    await chat.put("two", key="call_1")

    listed = await chat.call("context.list")

    first, second = listed["items"]
    assert list(listed) == ["items"]
    assert first.keys() == {"id", "kind", "mimeType", "byteSize", "createdAt", "hint"}
    assert (first["kind"], first["mimeType"], first["byteSize"]) == ("history", "text/markdown", 3)
    assert isinstance(first["createdAt"], int)
    assert second["hint"] == "a hint"
    assert second["id"].startswith("ctx_")


@pytest.mark.requirement("CF-016", "CF-017")
async def test_a_list_gives_the_newest_oldest_first(chat: Chat) -> None:
    ids = [await chat.put(str(n), kind="catalog" if n % 2 else "artifact") for n in range(60)]

    by_default = await chat.call("context.list")
    catalogues = await chat.call("context.list", kind="catalog", limit=3)
    everything = await chat.call("context.list", limit=500)

    assert [item["id"] for item in by_default["items"]] == ids[-50:]
    assert [item["id"] for item in catalogues["items"]] == [ids[55], ids[57], ids[59]]
    assert [item["id"] for item in everything["items"]] == ids


@pytest.mark.parametrize(
    ("channel", "payload", "field"),
    [
        ("context.list", {"limit": 0}, "limit"),
        ("context.list", {"limit": 501}, "limit"),
        ("context.list", {"limit": 1.5}, "limit"),
        ("context.list", {"kind": "file"}, "kind"),
        ("context.list", {"conversationId": "../x"}, "conversationId"),
        ("context.list", {"conversationId": "x" * 65}, "conversationId"),
        ("context.list", {"conversationId": ""}, "conversationId"),
        ("context.list", {"projectId": " "}, "projectId"),
        ("context.read", {"limit": 0}, "limit"),
        ("context.read", {"limit": 65_537}, "limit"),
        ("context.read", {"offset": -1}, "offset"),
        ("context.read", {"encoding": "utf-16"}, "encoding"),
        ("context.read", {"encoding": "base64"}, "encoding"),
        ("context.tail", {"lines": 0}, "lines"),
        ("context.tail", {"lines": 2001}, "lines"),
        ("context.grep", {"pattern": ""}, "pattern"),
        ("context.grep", {"pattern": "x" * 1001}, "pattern"),
        ("context.grep", {"pattern": "("}, "pattern"),
        ("context.grep", {"pattern": "x", "maxResults": 0}, "maxResults"),
        ("context.grep", {"pattern": "x", "maxResults": 201}, "maxResults"),
        ("context.grep", {"pattern": "x", "contextLines": -1}, "contextLines"),
        ("context.grep", {"pattern": "x", "cursor": "nonsense"}, "cursor"),
        ("context.grep", {}, "pattern"),
    ],
)
async def test_a_bad_payload_names_its_field(
    chat: Chat, channel: str, payload: dict[str, object], field: str
) -> None:
    ref_id = await chat.put("x")

    error = await chat.failure(channel, **({"id": ref_id} | payload))

    assert (error.number, error.code) == (-32602, "INVALID_ARGUMENT")
    assert field in error.details["field"]


@pytest.mark.requirement("CF-018", "CF-042")
async def test_pages_joined_give_the_file(chat: Chat) -> None:
    content = "第一回 甄士隐梦幻识通灵\r\n😀 " * 500
    ref_id = await chat.put(content)
    pages: list[str] = []
    offset, done = 0, False
    while not done:
        page = await chat.call("context.read", id=ref_id, offset=offset, limit=1000)
        assert (page["id"], page["offset"], page["limit"]) == (ref_id, offset, 1000)
        assert page["nextOffset"] - offset <= 1000
        pages.append(page["content"])
        offset, done = page["nextOffset"], page["done"]

    assert "".join(pages) == content
    assert offset == len(content.encode())


@pytest.mark.requirement("CF-019")
async def test_a_page_is_8192_bytes_by_default_and_65536_at_most(chat: Chat) -> None:
    ref_id = await chat.put("x" * 100_000)

    usual = await chat.call("context.read", id=ref_id)
    largest = await chat.call("context.read", id=ref_id, limit=65_536)

    assert (len(usual["content"]), usual["limit"], usual["done"]) == (8192, 8192, False)
    assert len(largest["content"]) == 65_536
    refused = await chat.failure("context.read", id=ref_id, limit=65_537)
    assert (refused.code, refused.details["maximum"]) == ("INVALID_ARGUMENT", 65_536)


async def test_an_offset_past_the_end_is_an_empty_last_page(chat: Chat) -> None:
    ref_id = await chat.put("abc")

    page = await chat.call("context.read", id=ref_id, offset=1000)

    assert (page["content"], page["done"], page["nextOffset"]) == ("", True, 3)


@pytest.mark.requirement("CF-020", "CF-021")
async def test_a_tail_is_the_last_200_lines_by_default(chat: Chat) -> None:
    ref_id = await chat.put("".join(f"line {n}\n" for n in range(3000)))

    usual = await chat.call("context.tail", id=ref_id)
    two = await chat.call("context.tail", id=ref_id, lines=2)
    most = await chat.call("context.tail", id=ref_id, lines=2000)

    assert (usual["id"], usual["lines"]) == (ref_id, 200)
    assert usual["content"].startswith("line 2800\n")
    assert two["content"] == "line 2998\nline 2999\n"
    assert most["content"].count("\n") == 2000
    refused = await chat.failure("context.tail", id=ref_id, lines=2001)
    assert (refused.code, refused.details["maximum"]) == ("INVALID_ARGUMENT", 2000)


@pytest.mark.requirement("CF-022", "CF-023", "CF-024")
async def test_a_grep_tells_lines_numbers_and_totals(chat: Chat) -> None:
    ref_id = await chat.put("".join(f"{n} {'Error' if n % 2 else 'ok'}\n" for n in range(200)))

    usual = await chat.call("context.grep", id=ref_id, pattern="error")
    around = await chat.call("context.grep", id=ref_id, pattern="^3 ", contextLines=1)
    exact = await chat.call("context.grep", id=ref_id, pattern="error", caseSensitive=True)

    assert (usual["totalMatches"], len(usual["matches"]), usual["truncated"]) == (100, 50, True)
    assert usual["matches"][0] == {"line": 2, "offset": 5, "content": "1 Error"}
    assert around["matches"][0]["before"] == ["2 ok"]
    assert around["matches"][0]["after"] == ["4 ok"]
    assert (exact["totalMatches"], exact["matches"], exact["truncated"]) == (0, [], False)
    assert not usual["timedOut"]


async def test_a_grep_goes_on_with_its_cursor(chat: Chat) -> None:
    ref_id = await chat.put("hit\nmiss\n" * 120)
    lines: list[int] = []
    cursor: dict[str, str] = {}
    while True:
        found = await chat.call("context.grep", id=ref_id, pattern="hit", **cursor)
        assert found["totalMatches"] == 120
        lines += [match["line"] for match in found["matches"]]
        if not found["truncated"]:
            break
        cursor = {"cursor": found["cursor"]}

    assert lines == list(range(1, 240, 2))


@pytest.mark.requirement("CF-041")
async def test_a_catastrophic_pattern_gets_its_answer(chat: Chat) -> None:
    ref_id = await chat.put("a" * 50_000 + "!\n")

    found = await chat.call("context.grep", id=ref_id, pattern="(a+)+$")

    assert found["totalMatches"] == 0


@pytest.mark.requirement("CF-044")
async def test_what_is_read_is_redacted_with_evidence(chat: Chat) -> None:
    ref_id = await chat.put(f"token {KEY}\n")

    page = await chat.call("context.read", id=ref_id)
    tail = await chat.call("context.tail", id=ref_id)
    found = await chat.call("context.grep", id=ref_id, pattern="token")

    assert page["content"] == tail["content"] == f"token {PLACEHOLDER}\n"
    assert found["matches"][0]["content"] == f"token {PLACEHOLDER}"
    for reply in (page, tail, found):
        (evidence,) = reply["redactionEvidence"]
        assert evidence["sourceRef"] == ref_id
        assert evidence["matchCount"] == 1
        assert evidence["patternId"].startswith("github_token")


async def test_what_was_taken_out_is_counted_in_the_log(chat: Chat, logged: Lines) -> None:
    ref_id = await chat.put(f"token {KEY}\n")

    await chat.call("context.read", id=ref_id)

    (line,) = [line for line in logged if line["event"] == "context_redaction_applied"]
    assert line["matches"] == 1
    assert KEY not in str(logged)


@pytest.mark.requirement("CF-044")
async def test_sensitive_mode_takes_out_more(chat: Chat) -> None:
    ref_id = await chat.put("mail to jane.doe@example.com\n")

    usual = await chat.call("context.read", id=ref_id)
    wide = await chat.call("context.read", id=ref_id, sensitive=True)

    assert "jane.doe" in usual["content"]
    assert "jane.doe" not in wide["content"]


async def test_a_setting_makes_the_wider_rules_the_rule(tmp_path: Path) -> None:
    async with daemon(tmp_path, Settings(context_sensitive=True)) as client:
        chat = await make_chat(client, tmp_path / "novel")
        ref_id = await chat.put("mail to jane.doe@example.com\n")

        page = await chat.call("context.read", id=ref_id)

    assert "jane.doe" not in page["content"]


async def test_an_owner_may_read_raw_text_and_bytes(chat: Chat) -> None:
    data = b"\x89PNG\xff" + KEY.encode()
    put = await chat.call(
        "context:files:put", kind="artifact", hint="h", base64=base64.b64encode(data).decode()
    )
    ref_id = put["ref"]["id"]

    raw = await chat.call("context.read", id=ref_id, raw=True)
    whole = await chat.call("context.read", id=ref_id, raw=True, encoding="base64")

    assert put["ref"]["mimeType"] == "application/octet-stream"
    assert raw["content"] == data.decode("utf-8", "replace")
    assert base64.b64decode(whole["base64"]) == data
    assert whole["done"]


async def test_a_renderer_may_read_but_not_raw(server: Server, chat: Chat) -> None:
    ref_id = await chat.put(KEY)
    async with in_memory(server, role=Role.RENDERER) as renderer:
        theirs = Chat(renderer, chat.key["projectId"])
        page = await theirs.call("context.read", id=ref_id)
        refusals = [
            await theirs.failure("context.read", id=ref_id, raw=True),
            await theirs.failure("context.tail", id=ref_id, raw=True),
            await theirs.failure("context.grep", id=ref_id, pattern="x", raw=True),
        ]

    assert page["content"] == PLACEHOLDER
    assert {error.code for error in refusals} == {"FORBIDDEN"}


@pytest.mark.requirement("CF-039", "CF-040")
@pytest.mark.parametrize(
    "ref_id",
    [
        "",
        "ctx_00000000000000000000",
        "../chat-2/manifest.json",
        "/etc/passwd",
        "artifacts/tool/x.txt",
    ],
)
@pytest.mark.parametrize("channel", ["context.read", "context.tail", "context.grep"])
async def test_an_id_is_never_a_path(chat: Chat, channel: str, ref_id: str) -> None:
    await chat.put("x", key="x")

    error = await chat.failure(channel, id=ref_id, pattern="x")

    assert (error.number, error.code) == (-32803, "NOT_FOUND")


@pytest.mark.requirement("CF-004", "CF-039")
async def test_a_conversation_does_not_see_anothers_files(chat: Chat) -> None:
    ref_id = await chat.put("mine")
    other = Chat(chat.client, chat.key["projectId"], "chat-2")
    await other.put("theirs")

    error = await other.failure("context.read", id=ref_id)
    listed = await other.call("context.list")

    assert error.code == "NOT_FOUND"
    assert len(listed["items"]) == 1


async def test_a_conversation_belongs_to_its_first_project(chat: Chat, tmp_path: Path) -> None:
    ref_id = await chat.put("mine")
    other = await make_chat(chat.client, tmp_path / "other novel")

    for channel in ("context.list", "context.read", "context:files:stats"):
        error = await other.failure(channel, id=ref_id)
        assert error.code == "CONTEXT_SCOPE_VIOLATION"


async def test_an_unknown_project_is_not_found(chat: Chat) -> None:
    error = await Chat(chat.client, "prj_00000000000000000000").failure("context.list")

    assert error.code == "NOT_FOUND"


async def test_an_unused_conversation_is_empty_and_stays_unused(chat: Chat, tmp_path: Path) -> None:
    listed = await chat.call("context.list")
    error = await chat.failure("context.read", id="ctx_00000000000000000000")

    assert listed == {"items": []}
    assert error.code == "NOT_FOUND"
    assert not list(tmp_path.rglob("chat-1"))


async def test_ids_that_differ_in_case_are_told_apart_by_a_conflict(chat: Chat) -> None:
    await chat.put("x")

    error = await Chat(chat.client, chat.key["projectId"], "CHAT-1").failure("context.list")

    assert error.code == "CONFLICT"
    assert error.details["field"] == "conversationId"


async def test_no_reply_holds_an_absolute_path(chat: Chat, tmp_path: Path) -> None:
    ref_id = await chat.put("x", hint=f"made in {tmp_path}/novel")

    listed = await chat.call("context.list")
    error = await chat.failure("context.read", id=f"{tmp_path}")

    assert str(tmp_path) not in str(listed)
    assert str(tmp_path) not in str(error.data)
    assert listed["items"][0]["id"] == ref_id
