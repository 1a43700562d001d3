"""`viewer:*` in memory: what the page may choose from, and who serves pages."""

import contextlib
import hashlib
import hmac
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from creonowd.rpc.access import Grant
from creonowd.rpc.channel import Role
from creonowd.rpc.server import Server
from testing.clients import Client, in_memory
from testing.novels import Novel

SECRET = "sk-proj-Q7fK2mX9pL4vB8nT1wZ6cR3yH5dJ0sGa"


@contextlib.asynccontextmanager
async def page_of(server: Server) -> AsyncGenerator[Client]:
    """Connect as a page does, with a token that may inspect."""
    token = server.grants.mint(Grant(Role.OWNER, inspects=True))
    async with in_memory(server, role=None) as page:
        await page.call("initialize", {"token": token})
        yield page


async def test_projects_are_listed_by_name_without_their_place(
    client: Client, novel: Novel, tmp_path: Path
) -> None:
    other = tmp_path / "二"
    other.mkdir()
    name = f"写在 {other} 里，{SECRET}"
    made = await client.call("project:create", {"rootPath": str(other), "name": name})

    reply = await client.call("viewer:projects")

    assert reply["items"][0] == {"projectId": novel.project_id, "name": "红楼梦"}
    assert reply["items"][1]["projectId"] == made["projectId"]
    assert str(other) not in str(reply)
    assert SECRET not in str(reply)


async def test_skills_are_listed_by_name_and_whether_they_can_run(
    client: Client, novel: Novel
) -> None:
    novel.put(
        ".creonow/skills/leaky/SKILL.md", f"---\nname: {SECRET}\ndescription: 夜\n---\n写。\n"
    )
    novel.put(".creonow/skills/broken/SKILL.md", "---\nname: [\n---\n")

    reply = await client.call("viewer:skills", novel.params)

    skills = {one["id"]: one for one in reply["items"]}
    assert skills["builtin:continue"] == {"id": "builtin:continue", "name": "续写", "valid": True}
    assert skills["project:broken"]["valid"] is False
    assert skills["project:leaky"]["name"] == "***REDACTED***"
    assert SECRET not in str(reply)


async def test_skills_are_listed_in_the_language_of_the_connection(
    client: Client, novel: Novel
) -> None:
    await client.call("initialize", {"locale": "en"})

    reply = await client.call("viewer:skills", novel.params)

    names = {one["id"]: one["name"] for one in reply["items"]}
    assert names["builtin:continue"] == "Continue"


async def test_the_folder_of_notes_can_be_made_without_learning_where_it_is(
    client: Client, tmp_path: Path
) -> None:
    made = await client.call("project:create", {"rootPath": str(tmp_path)})
    project = {"projectId": made["projectId"]}

    before = await client.call("viewer:tree", project)
    after = await client.call("viewer:tree", project | {"make": True})

    assert [one["exists"] for one in (before, after)] == [False, True]
    assert not after["documentWrites"]
    assert (tmp_path / ".creonow" / "rules" / "constraints.json").is_file()


async def test_a_person_that_is_written_down_is_in_the_next_prompt(
    client: Client, novel: Novel
) -> None:
    about = {"kind": "person", "name": "刘姥姥: 乡下", "text": "她进过大观园。"}

    written = await client.call("viewer:write_down", novel.params | about)

    assert written["path"] == ".creonow/characters/刘姥姥- 乡下.md"
    place = {"documentId": "x.md", "cursorPosition": 0, "skillId": "builtin:continue"}
    prompt = (await client.call("context:assemble", novel.params | place))["prompt"]
    assert "她进过大观园。" in prompt
    assert "刘姥姥: 乡下" in prompt


async def test_what_was_written_down_is_taken_back_unless_it_has_changed(
    client: Client, novel: Novel
) -> None:
    note = {"kind": "note", "name": "世界", "text": "一"}
    written = await client.call("viewer:write_down", novel.params | note)
    undo = novel.params | {"undo": written["undo"]}

    undone = await client.call("context:undo", undo)
    gone = not (novel.root / written["path"]).exists()
    again = await client.call("context:undo", novel.params | {"undo": undone["undo"]})
    novel.put(written["path"], "别人写的")
    refused = await client.failure("context:undo", undo)

    assert (gone, undone["revision"]) == (True, "")
    assert again["revision"]
    assert refused.code == "CONFLICT"
    assert (novel.root / written["path"]).read_text("utf-8") == "别人写的"


async def test_nothing_that_exists_is_written_over(client: Client, novel: Novel) -> None:
    note = {"kind": "note", "name": "世界", "text": "一"}
    await client.call("viewer:write_down", novel.params | note)

    again = await client.failure("viewer:write_down", novel.params | note | {"text": "二"})

    assert again.code == "CONFLICT"
    assert "一" in (novel.root / ".creonow/settings/世界.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("../../outside", "outside"),
        ("/etc/passwd", "etc-passwd"),
        ("a\\b", "a-b"),
        (" . 夜\n行 ", "夜 行"),
    ],
)
async def test_no_name_leaves_the_folder_of_notes(
    client: Client, novel: Novel, name: str, stem: str
) -> None:
    about = {"kind": "note", "name": name, "text": "x"}

    written = await client.call("viewer:write_down", novel.params | about)

    assert written["path"] == f".creonow/settings/{stem}.md"
    assert (novel.root / written["path"]).is_file()


async def test_a_name_of_which_nothing_is_left_is_refused(client: Client, novel: Novel) -> None:
    refused = await client.failure(
        "viewer:write_down", novel.params | {"kind": "note", "name": "../.."}
    )

    assert refused.code == "INVALID_ARGUMENT"


async def test_a_broken_card_is_fixed_where_it_stands_and_that_is_undone(
    server: Server, novel: Novel
) -> None:
    card = ".creonow/characters/林远.md"
    novel.put(card, f"---\nname: [林远\n---\n密钥 {SECRET}。\n")
    before = (novel.root / card).read_bytes()
    async with page_of(server) as page:
        file = await page.call("viewer:file:read", novel.params | {"path": card})
        edit = {"from": file["text"].index("["), "to": file["text"].index("[") + 1, "text": ""}
        change = {"path": card, "revision": file["revision"], "edits": [edit]}

        written = await page.call("viewer:file:write", novel.params | change)
        stale = await page.failure("viewer:file:write", novel.params | change)
        await page.call("context:undo", novel.params | {"undo": written["undo"]})

    assert SECRET not in file["text"]
    assert "█" * len(SECRET) in file["text"]
    assert stale.code == "CONFLICT"
    assert (novel.root / card).read_bytes() == before


@pytest.mark.parametrize(
    "path",
    [
        "chapters/01.md",
        ".creonow/project.json",
        ".creonow/rules/../../x.md",
        "/etc/passwd",
        "../.gitignore",
        "chapters/../../.ignore",
        "/.gitignore",
    ],
)
async def test_only_texts_for_prompts_are_fixed(server: Server, novel: Novel, path: str) -> None:
    async with page_of(server) as page:
        refused = await page.failure("viewer:file:read", novel.params | {"path": path})

    assert refused.code == "INVALID_ARGUMENT"


async def test_the_line_that_hides_a_file_is_named_taken_out_and_put_back(
    server: Server, novel: Novel
) -> None:
    novel.put(".gitignore", "# mine\ndrafts/\n*.log\n")
    novel.put("drafts/old.md", "The zeppelin landed on the roof.\n")
    place = {"documentId": "chapters/01.md", "cursorPosition": 0, "debugMode": True}
    question = novel.params | place | {"about": "zeppelin"}
    async with page_of(server) as page:
        hidden = await page.call("context:explain", question)
        (remedy,) = hidden["remedies"]
        file = await page.call("viewer:file:read", novel.params | {"path": remedy["ignoreFile"]})
        line = file["text"].splitlines(keepends=True)[remedy["line"] - 1]
        start = file["text"].index(line)
        edit = {"from": start, "to": start + len(line), "text": ""}
        change = {"path": remedy["ignoreFile"], "revision": file["revision"], "edits": [edit]}

        written = await page.call("viewer:file:write", novel.params | change)
        shown = await page.call("context:explain", question)
        await page.call("context:undo", novel.params | {"undo": written["undo"]})
        again = await page.call("context:explain", question)

    assert (remedy["do"], remedy["path"], line) == ("include_file", "drafts/old.md", "drafts/\n")
    assert shown.get("cause") != "ignored"
    assert shown["verdict"] != "not_in_project"
    assert again["cause"] == "ignored"
    assert (novel.root / ".gitignore").read_text("utf-8") == "# mine\ndrafts/\n*.log\n"


async def test_who_may_not_inspect_reads_no_file(client: Client, novel: Novel) -> None:
    refused = await client.failure(
        "viewer:file:read", novel.params | {"path": ".creonow/rules/style.md"}
    )

    assert refused.code == "CONTEXT_INSPECT_FORBIDDEN"


async def test_a_renderer_writes_nothing_down(server: Server, novel: Novel) -> None:
    async with in_memory(server, role=Role.RENDERER) as page:
        about = {"kind": "note", "name": "x"}
        refused = await page.failure("viewer:write_down", novel.params | about)

    assert refused.code == "FORBIDDEN"


async def test_whoever_knows_the_digest_of_a_token_can_prove_it(server: Server) -> None:
    grant = Grant(Role.OWNER, None, 4_000_000_000_000, single_use=True, inspects=True)
    token = server.grants.mint(grant)
    nonce = "0123456789abcdef" * 4
    digest = hashlib.sha256(token.encode()).digest()
    async with in_memory(server, role=None) as stranger:
        reply = await stranger.call("viewer:prove", {"nonce": nonce})
        guessed = await stranger.failure("viewer:prove", {"nonce": ""})

    assert reply["proofs"] == [hmac.digest(digest, nonce.encode(), "sha256").hex()]
    assert guessed.code == "INVALID_ARGUMENT"


async def test_a_daemon_without_a_process_serves_no_pages(client: Client, novel: Novel) -> None:
    refused = await client.failure("viewer:open", novel.params)
    unknown = await client.failure("viewer:open", {"projectId": "prj_0123456789abcdefghij"})

    assert refused.code == "UNSUPPORTED"
    assert unknown.code == "NOT_FOUND"
