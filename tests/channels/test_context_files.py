"""What a model sees of context files, and what the host does with them: no secret, no path."""

import base64
import os
import zipfile
from pathlib import Path
from typing import Any

import anyio
import pytest

from creonowd.redaction import PLACEHOLDER
from creonowd.rpc.channel import Role
from creonowd.rpc.server import Server
from creonowd.settings import Settings
from testing.clients import Client, daemon, in_memory
from testing.conversations import assistant, calls, result, user
from testing.logs import LogLines
from testing.novels import Chat, make_chat

KEY = "ghp_Zq8Lw2Xv9Rt4Yb7Nc1Md6Kf3Hs5Jg0Pd2Xa"

ROUNDS = [
    user("找"),
    calls(("c1", "Grep", {"pattern": "夜"})),
    result("c1", "a.md:1:夜"),
    assistant("第一行。"),
    user("more"),
    assistant("Fine."),
]


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
async def test_a_grep_returns_lines_numbers_and_totals(chat: Chat) -> None:
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


async def test_what_was_taken_out_is_counted_in_the_log(chat: Chat, logged: LogLines) -> None:
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


async def test_ids_that_differ_only_in_case_are_a_conflict(chat: Chat) -> None:
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


@pytest.mark.requirement("CF-001", "CF-015", "CF-028")
async def test_a_short_text_is_put_and_answered_with_its_ref_alone(chat: Chat) -> None:
    result = await chat.call("context:files:put", kind="artifact", content="短", hint="一句话")

    assert list(result) == ["ref"]
    assert result["ref"]["kind"] == "artifact"
    assert result["ref"]["byteSize"] == 3
    assert result["ref"]["hint"] == "一句话"


@pytest.mark.requirement("CF-033", "CF-034", "CF-015")
async def test_a_long_text_is_answered_with_head_tail_and_what_is_missing(chat: Chat) -> None:
    content = "开头" + "红楼梦\n" * 5000 + "结尾"

    result = await chat.call("context:files:put", kind="artifact", content=content, hint="h")

    preview = result["preview"]
    assert preview.startswith("开头")
    assert preview.endswith("结尾")
    assert result["ref"]["id"] in preview
    assert len(preview) <= 4000
    assert len(preview.encode()) <= 16 * 1024
    assert 0 < result["missingChars"] < len(content)
    assert str(result["missingBytes"]) in preview


@pytest.mark.parametrize(("characters", "previewed"), [(4000, False), (4001, True)])
async def test_the_limit_is_4000_characters(
    chat: Chat, characters: int, *, previewed: bool
) -> None:
    result = await chat.call(
        "context:files:put", kind="artifact", content="x" * characters, hint="h"
    )

    assert ("preview" in result) is previewed


async def test_the_limits_are_settings(tmp_path: Path) -> None:
    async with daemon(tmp_path, Settings(max_inline_chars=500)) as client:
        chat = await make_chat(client, tmp_path / "novel")
        result = await chat.call("context:files:put", kind="artifact", content="x" * 501, hint="h")

    assert len(result["preview"]) <= 500


async def test_a_preview_shows_no_secret(chat: Chat) -> None:
    result = await chat.call(
        "context:files:put", kind="artifact", content=f"{KEY}\n" * 300, hint=f"with {KEY}"
    )

    assert KEY not in result["preview"]
    assert result["redactionEvidence"]
    assert result["ref"]["hint"] == f"with {PLACEHOLDER}"


async def test_bytes_come_as_base64(chat: Chat) -> None:
    sent = base64.b64encode(bytes(range(256)) * 100).decode()

    result = await chat.call("context:files:put", kind="artifact", base64=sent, hint="h")
    read = await chat.call(
        "context.read", id=result["ref"]["id"], raw=True, encoding="base64", limit=65536
    )

    assert read["base64"] == sent
    assert "25600 bytes" in result["preview"]


async def test_text_sent_as_base64_is_text(chat: Chat) -> None:
    sent = base64.b64encode("红".encode()).decode()

    result = await chat.call("context:files:put", kind="artifact", base64=sent, hint="h")

    assert result["ref"]["mimeType"] == "text/plain"


async def test_a_log_with_a_stray_byte_has_its_preview(chat: Chat) -> None:
    data = base64.b64encode(b"HEAD \xff" + b"line\r\n" * 1000 + b"TAIL").decode()

    put = await chat.call("context:files:put", kind="artifact", base64=data, hint="log")

    assert put["ref"]["mimeType"] == "application/octet-stream"
    assert put["preview"].startswith("HEAD \ufffdline\r\n")
    assert put["preview"].endswith("line\r\nTAIL")


async def test_the_same_key_gives_the_same_ref(chat: Chat) -> None:
    first = await chat.put("content", key="call_1")
    second = await chat.put("content", key="call_1")
    error = await chat.failure(
        "context:files:put", kind="artifact", content="other", hint="h", key="call_1"
    )

    assert second == first
    assert (error.code, error.details["id"]) == ("CONFLICT", first)
    assert len((await chat.call("context.list"))["items"]) == 1


@pytest.mark.parametrize(
    ("payload", "field"),
    [
        ({"content": None}, "content"),
        ({"base64": "AAAA"}, "content"),
        ({"content": None, "base64": "not base64!"}, "base64"),
        ({"kind": "file"}, "kind"),
        ({"hint": ""}, "hint"),
        ({"hint": None}, "hint"),
        ({"key": ""}, "key"),
        ({"key": "k" * 257}, "key"),
        ({"mimeType": "nonsense"}, "mimeType"),
        ({"origin": "summary"}, "origin"),
        ({"conversationId": "a/b"}, "conversationId"),
        ({"conversationId": "a" * 65}, "conversationId"),
    ],
)
async def test_a_bad_put_names_its_field(
    chat: Chat, tmp_path: Path, payload: dict[str, Any], field: str
) -> None:
    whole = {"kind": "artifact", "content": "x", "hint": "h"} | payload
    sent = {name: value for name, value in whole.items() if value is not None}

    error = await chat.failure("context:files:put", **sent)

    assert (error.number, error.code) == (-32602, "INVALID_ARGUMENT")
    assert field in str(error.details["field"])
    assert not list(tmp_path.rglob("chat-1"))


async def test_the_longest_conversation_id_is_64_characters(chat: Chat) -> None:
    longest = Chat(chat.client, chat.key["projectId"], "x" * 64)

    assert await longest.put("x")


async def test_half_an_emoji_is_kept_as_one_character(chat: Chat) -> None:
    await chat.client.raw(
        b'{"jsonrpc":"2.0","id":"cut","method":"context:files:put","params":'
        b'{"projectId":"%s","conversationId":"chat-1","kind":"artifact","hint":"h",'
        b'"content":"cut \\ud83d"}}\n' % chat.key["projectId"].encode()
    )
    reply = await chat.client.reply("cut")

    page = await chat.call("context.read", id=reply["result"]["ref"]["id"])
    assert page["content"] == "cut \ufffd"


@pytest.mark.requirement("CF-014", "CF-030")
async def test_the_host_makes_a_lazy_file_at_first_access(chat: Chat) -> None:
    asked: list[Any] = []

    def make(question: Any) -> Any:
        asked.append(question)
        return {"content": "made by the host\n"}

    chat.client.handlers["context:files:materialise"] = make
    result = await chat.call(
        "context:files:register",
        kind="history",
        hint="h",
        recipe={"type": "host", "rounds": [1, 9]},
    )
    ref_id = result["ref"]["id"]
    assert asked == []
    assert "byteSize" not in result["ref"]

    tail = await chat.call("context.tail", id=ref_id)
    found = await chat.call("context.grep", id=ref_id, pattern="host")

    assert tail["content"] == "made by the host\n"
    assert found["totalMatches"] == 1
    assert asked == [
        {
            **chat.key,
            "id": ref_id,
            "kind": "history",
            "hint": "h",
            "recipe": {"type": "host", "rounds": [1, 9]},
            "offset": 0,
        }
    ]
    assert (await chat.call("context.list"))["items"][0]["byteSize"] == 17


async def test_the_host_may_make_it_in_pieces(chat: Chat) -> None:
    content = "红楼梦\n" * 100_000

    def make(question: Any) -> Any:
        data = content.encode()[question["offset"] :][:500_000]
        last = question["offset"] + len(data) == len(content.encode())
        return {"base64": base64.b64encode(data).decode(), "done": last}

    chat.client.handlers["context:files:materialise"] = make
    ref_id = await chat.register({"type": "host"})

    found = await chat.call("context.grep", id=ref_id, pattern="楼")

    assert found["totalMatches"] == 100_000


async def test_many_readers_make_a_lazy_file_once(chat: Chat) -> None:
    asked: list[Any] = []

    def make(question: Any) -> Any:
        asked.append(question)
        return {"content": "once"}

    chat.client.handlers["context:files:materialise"] = make
    ref_id = await chat.register({"type": "host"})
    request = {"jsonrpc": "2.0", "method": "context.read", "params": {**chat.key, "id": ref_id}}

    for number in range(100, 110):
        await chat.client.post(request | {"id": number})
    replies = [await chat.client.reply(number) for number in range(100, 110)]

    assert [reply["result"]["content"] for reply in replies] == ["once"] * 10
    assert len(asked) == 1


@pytest.mark.requirement("CF-031")
async def test_a_cleaned_lazy_file_is_made_again(chat: Chat) -> None:
    chat.client.handlers["context:files:materialise"] = lambda _: {"content": "again and again"}
    ref_id = await chat.register({"type": "host"})
    await chat.call("context.read", id=ref_id)

    pruned = await chat.call("context:files:prune", maxBytes=0)
    page = await chat.call("context.read", id=ref_id)

    assert pruned["cleaned"] == [
        {
            "conversationId": "chat-1",
            "id": ref_id,
            "kind": "history",
            "bytes": 15,
            "reason": "lazy_lru",
        }
    ]
    assert page["content"] == "again and again"


async def test_another_connection_can_make_it_after_a_restart(tmp_path: Path) -> None:
    async with daemon(tmp_path) as client:
        chat = await make_chat(client, tmp_path / "novel")
        ref_id = await chat.register({"type": "host"})

    async with daemon(tmp_path) as client:
        client.handlers["context:files:materialise"] = lambda _: {"content": "by the next host"}
        page = await Chat(client, chat.key["projectId"]).call("context.read", id=ref_id)

    assert page["content"] == "by the next host"


async def test_the_host_that_registered_is_asked_before_who_reads(
    server: Server, chat: Chat
) -> None:
    chat.client.handlers["context:files:materialise"] = lambda _: {"content": "by the host"}
    ref_id = await chat.register({"type": "host"})
    async with in_memory(server) as other:
        other.handlers["context:files:materialise"] = lambda _: {"content": "by the reader"}
        page = await Chat(other, chat.key["projectId"]).call("context.read", id=ref_id)

    assert page["content"] == "by the host"


async def test_a_page_is_never_asked_to_make_an_owners_file(tmp_path: Path) -> None:
    """Else it could say what is in a file that the model takes for the owner's."""
    asked: list[Any] = []

    def forge(params: Any) -> dict[str, str]:
        asked.append(params)
        return {"content": "forged"}

    async with daemon(tmp_path) as client:
        chat = await make_chat(client, tmp_path / "novel")
        ref_id = await chat.register({"type": "host"})
    async with daemon(tmp_path) as client:
        token = (await client.call("session:grant", {"role": "renderer"}))["token"]
        server = client.wire.connection.server if client.wire is not None else None
        assert server is not None
        async with in_memory(server, role=None) as page:
            await page.call("initialize", {"token": token})
            page.handlers["context:files:materialise"] = forge
            forger = Chat(page, chat.key["projectId"])
            await forger.register({"type": "host"})
            error = await forger.failure("context.read", id=ref_id)
        client.handlers["context:files:materialise"] = lambda _: {"content": "the owner's"}
        read = await Chat(client, chat.key["projectId"]).call("context.read", id=ref_id)

    assert error.code == "HOST_ERROR"
    assert asked == []
    assert read["content"] == "the owner's"


async def test_what_a_page_registered_is_made_by_pages_alone(server: Server, chat: Chat) -> None:
    chat.client.handlers["context:files:materialise"] = lambda _: {"content": "the owner's"}
    await chat.register({"type": "host"})
    async with in_memory(server, role=Role.RENDERER) as page:
        page.handlers["context:files:materialise"] = lambda _: {"content": "the page's"}
        own = Chat(page, chat.key["projectId"])
        ref_id = await own.register({"type": "host", "of": "page"})

        read = await own.call("context.read", id=ref_id)

    assert read["content"] == "the page's"


async def test_a_host_that_cannot_make_it_is_an_error_that_can_be_retried(chat: Chat) -> None:
    ref_id = await chat.register({"type": "host"})
    chat.client.handlers["context:files:materialise"] = lambda _: {"content": "", "done": False}

    error = await chat.failure("context.read", id=ref_id)
    chat.client.handlers["context:files:materialise"] = lambda _: {"content": "now"}
    page = await chat.call("context.read", id=ref_id)

    assert error.code == "HOST_ERROR"
    assert error.data["retryable"]
    assert page["content"] == "now"


async def test_a_silent_host_times_out_and_leaves_nothing(tmp_path: Path) -> None:
    async with daemon(tmp_path, Settings(context_host_timeout_ms=50)) as client:
        chat = await make_chat(client, tmp_path / "novel")
        client.handlers["context:files:materialise"] = lambda _: NotImplemented
        ref_id = await chat.register({"type": "host"})

        error = await chat.failure("context.read", id=ref_id)
        stats = await chat.call("context:files:stats")

    assert error.code == "TIMEOUT"
    assert stats["lazyMade"]["files"] == 0


async def test_many_silent_hosts_keep_nobody_else_waiting(tmp_path: Path) -> None:
    """They are silent for longer than anybody here waits."""
    async with daemon(tmp_path, Settings(context_host_timeout_ms=600_000)) as client:
        chat = await make_chat(client, tmp_path / "novel")
        client.handlers["context:files:materialise"] = lambda _: NotImplemented
        for number in range(60):
            ref_id = await chat.register({"type": "host", "number": number})
            request = {"jsonrpc": "2.0", "id": f"slow {number}", "method": "context.read"}
            meta = {"_meta": {"timeoutMs": 600_000}}
            await client.post(request | {"params": {**chat.key, "id": ref_id, **meta}})

        put_id = await chat.put("something else")
        page = await chat.call("context.read", id=put_id)
        constraints = await chat.call("constraints:list")

    assert page["content"] == "something else"
    assert constraints["constraints"] == []


async def test_a_cancelled_read_stops_waiting_for_the_host(chat: Chat) -> None:
    chat.client.handlers["context:files:materialise"] = lambda _: NotImplemented
    ref_id = await chat.register({"type": "host"})
    request = {"jsonrpc": "2.0", "id": "slow", "method": "context.read"}
    await chat.client.post(request | {"params": {**chat.key, "id": ref_id}})
    await anyio.lowlevel.checkpoint()
    await chat.client.post(
        {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "slow"}}
    )

    reply = await chat.client.reply("slow")

    assert reply["error"]["data"]["code"] == "CANCELED"


@pytest.mark.requirement("CF-001")
async def test_a_catalogue_is_made_from_its_recipe(chat: Chat) -> None:
    recipe = {"type": "json", "value": {"tools": ["read", "写"], "a": 1}}
    ref_id = await chat.register(recipe, kind="catalog")

    page = await chat.call("context.read", id=ref_id)

    assert page["content"] == '{\n  "a": 1,\n  "tools": [\n    "read",\n    "写"\n  ]\n}\n'
    assert (await chat.call("context.list"))["items"][0]["mimeType"] == "application/json"


async def test_a_project_file_can_be_a_recipe(chat: Chat, tmp_path: Path) -> None:
    (tmp_path / "novel" / "chapters").mkdir()
    (tmp_path / "novel" / "chapters" / "一.md").write_bytes("第一章\n".encode() * 120_000)
    ref_id = await chat.register({"type": "file", "path": "chapters/一.md"})

    found = await chat.call("context.grep", id=ref_id, pattern="第一章")

    assert found["totalMatches"] == 120_000


@pytest.mark.parametrize(
    "path", ["../secret", "/etc/passwd", "a/../../secret", "a/./b", "..", "C:\\x", "a\\b", "a\0b"]
)
async def test_a_recipe_that_leaves_the_project_is_refused_at_once(
    chat: Chat, tmp_path: Path, path: str
) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    recipe = {"type": "file", "path": path}

    error = await chat.failure("context:files:register", kind="history", hint="h", recipe=recipe)

    assert (error.code, error.details["field"]) == ("INVALID_ARGUMENT", "recipe")
    assert "recipe.path" in str(error)
    assert (await chat.call("context.list"))["items"] == []


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
async def test_a_link_in_the_project_is_not_followed(chat: Chat, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "novel" / "link").symlink_to(tmp_path / "secret")
    ref_id = await chat.register({"type": "file", "path": "link"})

    error = await chat.failure("context.read", id=ref_id)

    assert error.code == "CONTEXT_SCOPE_VIOLATION"


async def test_a_project_file_that_is_missing_is_not_found(chat: Chat) -> None:
    ref_id = await chat.register({"type": "file", "path": "missing.md"})

    assert (await chat.failure("context.read", id=ref_id)).code == "NOT_FOUND"


@pytest.mark.parametrize(
    "recipe",
    [
        {},
        {"type": "magic"},
        {"type": 1},
        {"type": []},
        {"type": "json"},
        {"type": "file"},
        {"type": "file", "path": ""},
        {"type": "json", "value": "x" * 70_000},
    ],
)
async def test_a_recipe_that_nobody_can_follow_is_refused(
    chat: Chat, recipe: dict[str, Any]
) -> None:
    error = await chat.failure("context:files:register", kind="history", hint="h", recipe=recipe)

    assert (error.code, error.details["field"]) == ("INVALID_ARGUMENT", "recipe")


@pytest.mark.requirement("CF-043")
async def test_a_file_is_deleted_for_good(chat: Chat) -> None:
    ref_id = await chat.put("12345")
    kept = await chat.put("x")

    deleted = await chat.call("context:files:delete", id=ref_id)
    read = await chat.failure("context.read", id=ref_id)
    again = await chat.failure("context:files:delete", id=ref_id)

    assert deleted == {"deleted": 1, "freedBytes": 5}
    assert (read.code, again.code) == ("NOT_FOUND", "NOT_FOUND")
    assert [item["id"] for item in (await chat.call("context.list"))["items"]] == [kept]


@pytest.mark.requirement("CF-043")
async def test_a_conversation_is_deleted_whole(chat: Chat, tmp_path: Path) -> None:
    await chat.put("12345")
    await chat.register({"type": "host"})

    deleted = await chat.call("context:files:delete")
    again = await chat.call("context:files:delete")

    assert deleted == {"deleted": 2, "freedBytes": 5}
    assert again == {"deleted": 0, "freedBytes": 0}
    assert not list(tmp_path.rglob("chat-1"))


@pytest.mark.requirement("CF-043")
async def test_pruning_never_takes_an_eager_file_before_its_age(chat: Chat) -> None:
    ref_id = await chat.put("x" * 100)

    pruned = await chat.call("context:files:prune", maxBytes=0)

    assert pruned["cleaned"] == []
    assert (pruned["keptFiles"], pruned["keptBytes"], pruned["inUse"]) == (1, 100, 0)
    assert (await chat.call("context.read", id=ref_id))["content"] == "x" * 100


async def test_pruning_a_project_leaves_others_alone(chat: Chat, tmp_path: Path) -> None:
    other = await make_chat(chat.client, tmp_path / "other", "chat-2")
    theirs = await other.register({"type": "json", "value": 1})
    await other.call("context.read", id=theirs)
    mine = await chat.register({"type": "json", "value": 1})
    await chat.call("context.read", id=mine)

    pruned = await chat.client.call(
        "context:files:prune", {"projectId": chat.key["projectId"], "maxBytes": 0}
    )

    assert [one["id"] for one in pruned["cleaned"]] == [mine]
    assert (await other.call("context:files:stats"))["lazyMade"]["files"] == 1


async def test_stats_count_what_is_kept(chat: Chat) -> None:
    await chat.put("12345")
    await chat.put("红", kind="history")
    await chat.register({"type": "host"})
    made = await chat.register({"type": "json", "value": 1}, kind="catalog")
    await chat.call("context.read", id=made)

    stats = await chat.call("context:files:stats")
    project = await chat.client.call("context:files:stats", {"projectId": chat.key["projectId"]})

    assert stats == project
    assert stats["conversations"] == 1
    assert (stats["files"], stats["bytes"]) == (4, 10)
    assert stats["kinds"]["artifact"] == {"files": 1, "bytes": 5}
    assert stats["eager"] == {"files": 2, "bytes": 8}
    assert (stats["lazy"], stats["lazyMade"]) == (2, {"files": 1, "bytes": 2})
    assert (stats["lazyDays"], stats["eagerDays"]) == (7, 90)


@pytest.mark.requirement("CF-036", "CF-037")
async def test_a_conversation_travels(chat: Chat, tmp_path: Path) -> None:
    ref_id = await chat.put("travelling", key="call_1")
    path = str(tmp_path / "chat.zip")

    exported = await chat.call("context:files:export", path=path)
    arrived = await chat.call("context:files:import", path=path, conversationId="copy")
    page = await Chat(chat.client, chat.key["projectId"], "copy").call("context.read", id=ref_id)

    size = Path(path).stat().st_size
    assert exported == {"path": path, "files": 1, "bytes": size, "rounds": 0}
    assert arrived["conversationId"] == "copy"
    assert arrived["items"] == (await chat.call("context.list"))["items"]
    assert page["content"] == "travelling"
    assert "context/chat-1/manifest.json" in zipfile.ZipFile(path).namelist()


@pytest.mark.requirement("CF-036", "CF-037")
async def test_the_rounds_of_a_conversation_travel_with_its_files(tmp_path: Path) -> None:
    path = str(tmp_path / "chat.zip")
    async with daemon(tmp_path / "a") as client:
        chat = await make_chat(client, tmp_path / "novel")
        await chat.call("context:history:append", messages=ROUNDS)
        before = await chat.call("context:history:read")
        exported = await chat.call("context:files:export", path=path)

    async with daemon(tmp_path / "b") as client:
        there = await make_chat(client, tmp_path / "other")
        project = {"projectId": there.key["projectId"]}
        arrived = await client.call("context:files:import", {**project, "path": path})
        after = await there.call("context:history:read")
        again = await client.call("context:files:import", {**project, "path": path})
        repeated = await there.call("context:history:read")
        ref = arrived["items"][0]["id"]
        page = await there.call("context.read", id=ref)
        built = await there.call("context:build", input="go on", systemPrompt="You help.")

    assert (exported["rounds"], arrived["totalRounds"], again["totalRounds"]) == (2, 2, 2)
    assert arrived["conversationId"] == "chat-1"
    assert after["rounds"] == before["rounds"] == repeated["rounds"]
    assert after["rounds"][0]["messages"][2]["content"].endswith(ref)
    assert page["content"] == "a.md:1:夜"
    assert "第一行。" in [message["content"] for message in built["messages"]]


async def test_imported_rounds_outlive_the_daemon_and_go_on(tmp_path: Path) -> None:
    path = str(tmp_path / "chat.zip")
    async with daemon(tmp_path / "a") as client:
        chat = await make_chat(client, tmp_path / "novel")
        await chat.call("context:history:append", messages=ROUNDS[:4])
        await chat.call("context:files:export", path=path)
        await chat.call("context:history:append", messages=ROUNDS[4:])
        await chat.call("context:files:export", path=f"{path}.longer")
        copy = Chat(client, chat.key["projectId"], "copy")
        await copy.call("context:files:import", path=path)
        await copy.call("context:files:import", path=f"{path}.longer")
        await copy.call("context:history:append", messages=[user("third")])

    async with daemon(tmp_path / "a") as client:
        copy = Chat(client, chat.key["projectId"], "copy")
        read = await copy.call("context:history:read")

    kept = [message["content"] for one in read["rounds"] for message in one["messages"]]
    assert (read["totalRounds"], read["warnings"]) == (3, [])
    assert [kept[0], *kept[3:]] == ["找", "第一行。", "more", "Fine.", "third"]


async def test_rounds_that_contradict_are_a_conflict_and_nothing_is_imported(
    chat: Chat, tmp_path: Path
) -> None:
    path = str(tmp_path / "chat.zip")
    await chat.call("context:history:append", messages=ROUNDS)
    await chat.call("context:files:export", path=path)
    other = Chat(chat.client, chat.key["projectId"], "other")
    await other.call("context:history:append", messages=[user("something else")])

    error = await other.failure("context:files:import", path=path)

    assert (error.code, error.details["field"]) == ("CONFLICT", "conversationId")
    assert (await other.call("context.list"))["items"] == []
    assert (await other.call("context:history:read"))["totalRounds"] == 1


@pytest.mark.parametrize("bad", [b"{", b'{"version": 1, "messages": [{"role": "system"}]}'])
async def test_rounds_that_are_refused_bring_no_files(
    chat: Chat, tmp_path: Path, bad: bytes
) -> None:
    await chat.call("context:history:append", messages=ROUNDS)
    await chat.call("context:files:export", path=str(tmp_path / "chat.zip"))
    with (
        zipfile.ZipFile(tmp_path / "chat.zip") as old,
        zipfile.ZipFile(tmp_path / "forged.zip", "w") as new,
    ):
        for name in old.namelist():
            new.writestr(name, bad if name.endswith("rounds.json") else old.read(name))
    copy = Chat(chat.client, chat.key["projectId"], "copy")

    error = await copy.failure("context:files:import", path=str(tmp_path / "forged.zip"))

    assert (error.code, error.details["reason"]) == ("INVALID_ARGUMENT", "rounds")
    assert (await copy.call("context.list"))["items"] == []
    assert (await copy.call("context:history:read"))["totalRounds"] == 0


async def test_an_archive_without_rounds_leaves_those_of_the_conversation(
    chat: Chat, tmp_path: Path
) -> None:
    """Archives of earlier daemons hold files alone."""
    path = str(tmp_path / "chat.zip")
    await chat.put("travelling", key="call_1")
    await chat.call("context:files:export", path=path)
    copy = Chat(chat.client, chat.key["projectId"], "copy")
    await copy.call("context:history:append", messages=[user("mine")])

    arrived = await copy.call("context:files:import", path=path)

    assert not [name for name in zipfile.ZipFile(path).namelist() if "rounds" in name]
    assert (len(arrived["items"]), arrived["totalRounds"]) == (1, 1)


async def test_only_owners_export_and_import(server: Server, chat: Chat, tmp_path: Path) -> None:
    await chat.put("x")
    async with in_memory(server, role=Role.RENDERER) as renderer:
        theirs = Chat(renderer, chat.key["projectId"])
        out = await theirs.failure("context:files:export", path=str(tmp_path / "x.zip"))
        back = await theirs.failure("context:files:import", path=str(tmp_path / "x.zip"))

    assert out.code == back.code
    assert out.code in {"FORBIDDEN", "IPC_CHANNEL_FORBIDDEN"}
    assert not (tmp_path / "x.zip").exists()


@pytest.mark.parametrize("path", ["relative.zip", "", "/a\0b"])
async def test_an_archive_needs_an_absolute_path(chat: Chat, path: str) -> None:
    await chat.put("x")

    for channel in ("context:files:export", "context:files:import"):
        error = await chat.failure(channel, path=path)
        assert (error.code, error.details["field"]) == ("INVALID_ARGUMENT", "path")


async def test_an_archive_needs_a_folder_and_a_conversation(chat: Chat, tmp_path: Path) -> None:
    unknown = await chat.failure("context:files:export", path=str(tmp_path / "x.zip"))
    await chat.put("x")
    folder = await chat.failure("context:files:export", path=str(tmp_path))
    missing = await chat.failure("context:files:export", path=str(tmp_path / "no" / "x.zip"))

    assert [error.code for error in (unknown, folder, missing)] == [
        "NOT_FOUND",
        "INVALID_ARGUMENT",
        "NOT_FOUND",
    ]


async def test_an_export_reports_its_progress(chat: Chat, tmp_path: Path) -> None:
    await chat.put("x" * 2_000_000)

    await chat.call(
        "context:files:export", path=str(tmp_path / "x.zip"), _meta={"progressToken": "p"}
    )
    event = await chat.client.event("$/progress")

    assert event["token"] == "p"
    assert event["value"]["totalBytes"] == 2_000_000


async def test_files_outlive_the_daemon(tmp_path: Path) -> None:
    async with daemon(tmp_path) as client:
        chat = await make_chat(client, tmp_path / "novel")
        ref_id = await chat.put("durable")

    async with daemon(tmp_path) as client:
        page = await Chat(client, chat.key["projectId"]).call("context.read", id=ref_id)

    assert page["content"] == "durable"


async def test_an_export_replaces_an_archive_of_ours_and_no_other_file(
    chat: Chat, tmp_path: Path
) -> None:
    await chat.put("first")
    archive, diary = tmp_path / "chat.zip", tmp_path / "diary.md"
    diary.write_text("mine", encoding="utf-8")

    await chat.call("context:files:export", path=str(archive))
    await chat.call("context:files:export", path=str(archive))
    refused = await chat.failure("context:files:export", path=str(diary))

    assert (refused.code, refused.details["reason"]) == ("INVALID_ARGUMENT", "not_an_archive")
    assert diary.read_text(encoding="utf-8") == "mine"
    assert sorted(path.name for path in tmp_path.glob("*.*")) == ["chat.zip", "diary.md"]


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
async def test_an_export_into_a_link_to_a_folder_is_refused(chat: Chat, tmp_path: Path) -> None:
    await chat.put("first")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")

    refused = await chat.failure("context:files:export", path=str(tmp_path / "link" / "chat.zip"))

    assert (refused.code, refused.details["reason"]) == ("INVALID_ARGUMENT", "link")
    assert list((tmp_path / "folder").iterdir()) == []


@pytest.mark.skipif(os.name == "nt" or os.getuid() != 0, reason="only root makes such a link")
async def test_an_archive_is_written_where_a_link_of_root_leads(
    chat: Chat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `/tmp` of macOS is one."""
    await chat.put("hello")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    monkeypatch.setattr(os, "getuid", lambda: 1000)

    await chat.call("context:files:export", path=str(tmp_path / "link" / "chat.zip"))

    assert (tmp_path / "folder" / "chat.zip").exists()


@pytest.mark.parametrize(
    ("name", "reason"), [("chat.zip/", "folder"), (".creonow-1-2.tmp", "reserved_name")]
)
async def test_no_archive_is_written_at_a_name_that_is_lost_or_swept(
    chat: Chat, tmp_path: Path, name: str, reason: str
) -> None:
    await chat.put("first")

    refused = await chat.failure("context:files:export", path=f"{tmp_path}/{name}")

    assert (refused.code, refused.details["reason"]) == ("INVALID_ARGUMENT", reason)


@pytest.mark.parametrize(
    "name", ["a" * 300, "a\x1b[2J.zip", "a\n.zip", "con", "a.zip ", "...", "a" * 5000]
)
async def test_a_strange_name_for_an_archive_is_an_invalid_argument(
    chat: Chat, tmp_path: Path, name: str
) -> None:
    await chat.put("first")

    for channel in ("context:files:export", "context:files:import"):
        refused = await chat.failure(channel, path=f"{tmp_path}/{name}")
        assert refused.code == "INVALID_ARGUMENT"
