"""A document for the author's own eyes and hands: read with secrets masked, changed, taken back."""

from pathlib import Path
from typing import Any

import pytest

from creonowd.rpc.channel import Role
from creonowd.rpc.server import Server
from creonowd.settings import Settings
from testing.clients import Client, in_memory
from testing.novels import SECRET, Novel

TEXT = f"---\r\norder: 1\r\n---\r\n😀林远的密钥是 {SECRET} 。\r\n他走了。\r\n"
BOM = b"\xef\xbb\xbf"


@pytest.fixture
def daemon_settings() -> Settings:
    return Settings(e2e=True, debug=True, warm_up=False, document_writes=True)


@pytest.fixture
async def chapter(client: Client, novel: Novel) -> Path:
    await client.call("initialize", {"positionEncoding": "utf-16"})
    return novel.put("一.md", BOM + TEXT.encode())


async def read(client: Client, novel: Novel, document: str = "一.md") -> dict[str, Any]:
    return await client.call("context:document:read", novel.params | {"documentId": document})


def edit(text: str, old: str, new: str) -> dict[str, Any]:
    start = units(text[: text.index(old)])
    return {"from": start, "to": start + units(old), "text": new}


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


async def test_secrets_are_masked_and_every_position_stays(
    client: Client, novel: Novel, chapter: Path
) -> None:
    shown = await read(client, novel)

    assert SECRET not in str(shown)
    assert shown["text"] == TEXT.replace(SECRET, "█" * len(SECRET))
    assert shown["length"] == units(TEXT)
    (secret,) = shown["secrets"]
    assert (secret["from"], secret["to"]) == (
        units(TEXT[: TEXT.index(SECRET)]),
        units(TEXT[: TEXT.index(SECRET)]) + len(SECRET),
    )
    assert (shown["open"], shown["writable"]) == (False, True)


async def test_a_draft_is_edited_without_losing_what_was_masked(
    client: Client, novel: Novel, chapter: Path
) -> None:
    shown = await read(client, novel)
    change = edit(shown["text"], "他走了", "他留下了")
    sync = {"documentId": "一.md", "version": 1, "edits": [change]}

    await client.call(
        "context:document:sync", novel.params | sync | {"baseRevision": shown["revision"]}
    )
    again = await read(client, novel)
    stale = await client.failure(
        "context:document:sync", novel.params | sync | {"baseRevision": "0" * 64}
    )

    assert again["open"] is True
    assert "他留下了" in again["text"]
    assert len(again["secrets"]) == 1
    assert chapter.read_bytes() == BOM + TEXT.encode()
    assert stale.code == "CONFLICT"


async def test_a_write_changes_what_is_edited_and_no_other_byte(
    client: Client, novel: Novel, chapter: Path
) -> None:
    shown = await read(client, novel)
    change = edit(shown["text"], "他走了。", "他留下了。\n天亮了。")
    write = {"documentId": "一.md", "revision": shown["revision"], "edits": [change]}

    written = await client.call("context:document:write", novel.params | write)
    after = chapter.read_bytes()
    again = await client.failure("context:document:write", novel.params | write)
    undone = await client.call("context:undo", novel.params | {"undo": written["undo"]})

    expected = TEXT.replace("他走了。", "他留下了。\r\n天亮了。")
    assert after == BOM + expected.encode()
    assert written["length"] == units(expected)
    assert again.code == "CONFLICT"
    assert chapter.read_bytes() == BOM + TEXT.encode()
    await client.call("context:undo", novel.params | {"undo": undone["undo"]})
    assert chapter.read_bytes() == after


async def test_what_changed_again_is_not_undone(
    client: Client, novel: Novel, chapter: Path
) -> None:
    shown = await read(client, novel)
    change = edit(shown["text"], "他走了", "他来了")
    write = {"documentId": "一.md", "revision": shown["revision"], "edits": [change]}
    written = await client.call("context:document:write", novel.params | write)
    chapter.write_text("别的。\n", encoding="utf-8")

    error = await client.failure("context:undo", novel.params | {"undo": written["undo"]})
    gone = await client.failure("context:undo", novel.params | {"undo": "undo_x"})

    assert (error.code, gone.code) == ("CONFLICT", "NOT_FOUND")
    assert chapter.read_text(encoding="utf-8") == "别的。\n"


@pytest.mark.parametrize(
    ("data", "new"),
    [
        ("林远走了。\n".encode("gb18030"), "林远来了。\n".encode("gb18030")),
        (
            b"\xff\xfe" + "林远走了。\n".encode("utf-16-le"),
            b"\xff\xfe" + "林远来了。\n".encode("utf-16-le"),
        ),
    ],
)
async def test_a_file_keeps_its_encoding(
    client: Client, novel: Novel, data: bytes, new: bytes
) -> None:
    file = novel.put("旧.md", data)
    shown = await read(client, novel, "旧.md")
    change = {"from": 2, "to": 3, "text": "来"}
    write = {"documentId": "旧.md", "revision": shown["revision"], "edits": [change]}

    await client.call("context:document:write", novel.params | write)

    assert file.read_bytes() == new


async def test_the_file_is_read_although_a_draft_is_open(
    client: Client, novel: Novel, chapter: Path
) -> None:
    asked = novel.params | {"documentId": "一.md"}
    before = await client.call("context:document:read", asked)
    await client.call("context:document:sync", asked | {"version": 1, "text": "草稿。\n"})

    draft = await client.call("context:document:read", asked)
    file = await client.call("context:document:read", asked | {"onDisk": True})

    assert draft["text"] == "草稿。\n"
    assert (file["text"], file["revision"]) == (before["text"], before["revision"])


async def test_a_document_is_made_where_there_is_none(client: Client, novel: Novel) -> None:
    text = "# 第一章\n\n😀下雨了。\n"
    edits = [{"from": 0, "to": 0, "text": text}]
    write = {"documentId": "卷一/上/01.md", "revision": "", "edits": edits}

    written = await client.call("context:document:write", novel.params | write)
    shown = await read(client, novel, "卷一/上/01.md")
    again = await client.failure("context:document:write", novel.params | write)
    outside = await client.failure(
        "context:document:write", novel.params | write | {"documentId": "../01.md"}
    )

    assert (novel.root / "卷一/上/01.md").read_bytes() == text.encode()
    assert (written["revision"], written["length"]) == (shown["revision"], len(text))
    assert (again.code, outside.code) == ("CONFLICT", "NOT_FOUND")
    await client.call("context:undo", novel.params | {"undo": written["undo"]})
    assert not (novel.root / "卷一/上/01.md").exists()


@pytest.mark.parametrize("document", ["../外.md", ".creonow/rules/style.md", "无.md", "图.png"])
async def test_only_documents_of_the_project_are_read_and_written(
    client: Client, novel: Novel, document: str
) -> None:
    (novel.root.parent / "外.md").write_text("外面\n", encoding="utf-8")
    novel.put(".creonow/rules/style.md", "短句。\n")
    novel.put("图.png", b"\x89PNG")
    payload = novel.params | {"documentId": document}

    unread = await client.failure("context:document:read", payload)
    unwritten = await client.failure(
        "context:document:write", payload | {"revision": "0" * 64, "edits": []}
    )

    assert {unread.code, unwritten.code} <= {"NOT_FOUND", "UNSUPPORTED"}


async def test_a_page_may_neither_read_nor_write(
    client: Client, server: Server, novel: Novel, chapter: Path
) -> None:
    write: dict[str, Any] = {"documentId": "一.md", "revision": "0" * 64, "edits": []}
    async with in_memory(server, role=Role.RENDERER) as page:
        unread = await page.failure("context:document:read", novel.params | {"documentId": "一.md"})
        unwritten = await page.failure("context:document:write", novel.params | write)

    assert unread.code == "CONTEXT_INSPECT_FORBIDDEN"
    assert unwritten.code == "FORBIDDEN"


class TestWithoutLeave:
    """The author has not allowed it."""

    @pytest.fixture
    def daemon_settings(self) -> Settings:
        return Settings(e2e=True, warm_up=False)

    async def test_nothing_is_written_or_read(
        self, client: Client, novel: Novel, chapter: Path
    ) -> None:
        write: dict[str, Any] = {"documentId": "一.md", "revision": "0" * 64, "edits": []}

        unwritten = await client.failure("context:document:write", novel.params | write)
        unread = await client.failure(
            "context:document:read", novel.params | {"documentId": "一.md"}
        )

        assert unwritten.code == "FORBIDDEN"
        assert unread.code == "CONTEXT_INSPECT_FORBIDDEN"


async def test_a_deleted_constraint_comes_back_with_its_id_in_its_place(
    client: Client, novel: Novel
) -> None:
    await novel.constrain("不写感叹号", f"不写 {SECRET}", "不写回忆")
    before = (await client.call("constraints:list", novel.params))["constraints"]
    file = novel.root / ".creonow/rules/constraints.json"
    data = file.read_bytes()

    deleted = await client.call(
        "constraints:delete", novel.params | {"constraintId": before[1]["id"]}
    )
    await client.call("context:undo", novel.params | {"undo": deleted["undo"]})

    assert (await client.call("constraints:list", novel.params))["constraints"] == before
    assert file.read_bytes() == data
