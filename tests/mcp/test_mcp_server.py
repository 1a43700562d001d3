"""The SDK's own client against the real process, in both generations of the protocol."""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
from anyio.abc import SocketAttribute, SocketStream, TaskGroup
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError
from skills_ref.validator import validate

from creonowd.cli import main
from creonowd.cli.mcp import skill_file
from creonowd.daemon import endpoint
from creonowd.errors import DaemonError, ErrorCode
from creonowd.mcp import daemon_link
from creonowd.mcp.agent_tools import TOOLS
from creonowd.mcp.mcp_server import POLL_SECONDS
from creonowd.settings import process_environment
from testing.novels import SECRET, write_files

GENERATIONS = pytest.mark.parametrize("mode", ["legacy", "auto"])
READING = [tool.name for tool in TOOLS if not tool.writes]
FOX = "一只白狐站在老松下，尾巴上系着红绳。"
CHAPTERS = {
    f"chapters/{n:02}.md": f"# 第{n}章\n\n林远在渡口等船，这是第{n}天。\n\n"
    + "雨一直下，船家不肯开船。\n\n" * 4
    for n in range(1, 7)
} | {
    "chapters/02.md": f"# 第2章\n\n{FOX}\n\n林远把{SECRET}抄在墙上。\n",
    "chapters/05.md": "# 第5章\n\n城门在黎明前塌了。\n",
    ".creonow/characters/林远.md": "---\nname: 林远\n---\n年轻的账房先生。\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "小说 novel"
    write_files(folder, CHAPTERS)
    return folder


def command(root: Path, *more: str) -> StdioServerParameters:
    user_data = root.parent / "用户 data"
    words = ["-P", "-m", "creonowd", "mcp", "--project", str(root), "--user-data", str(user_data)]
    environ = process_environment() | {"CREONOW_WARM_UP": "false", "LC_ALL": "C.UTF-8"}
    environ.pop("PYTHONWARNDEFAULTENCODING", None)
    return StdioServerParameters(command=sys.executable, args=[*words, *more], env=environ)


@asynccontextmanager
async def connected(
    root: Path, mode: str = "legacy", *more: str, **options: Any
) -> AsyncGenerator[Any]:
    client: Any = Client(command(root, *more), mode=mode, cache=None, **options)
    with anyio.fail_after(120):
        async with client:
            yield client


async def text(client: Any, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return content(result)


async def error(client: Any, tool: str, **arguments: Any) -> tuple[str, str]:
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.content
    assert result.structured_content is not None
    return str(result.structured_content["code"]), content(result)


def content(result: Any) -> str:
    (part,) = result.content
    return str(part.text)


@GENERATIONS
async def test_an_agent_finds_its_way_through_a_novel(root: Path, mode: str) -> None:
    async with connected(root, mode) as client:
        outline = await text(client, "story_outline")
        passages = await client.call_tool(
            "story_search", {"query": "白狐 红绳", "document": "chapters/04.md"}
        )
        found = content(passages)
        best = passages.structured_content["passages"][0]["documentId"]
        there = await text(client, "story_context", document=best)
        later = await text(client, "story_search", query="城门 黎明", document="chapters/04.md")
        ahead = await text(
            client, "story_search", query="城门 黎明", document="chapters/04.md", future=True
        )
        context = await text(
            client, "story_context", document="chapters/04.md", skill="builtin:continue"
        )
        about = await text(client, "story_explain", about="林远", document="chapters/04.md")
        later_on = await text(client, "story_explain", about="城门", document="chapters/04.md")
        checked = await text(
            client, "constraints_check", text="雨停了。", document="chapters/04.md"
        )
        tools = (await client.list_tools()).tools
        with pytest.raises(MCPError) as refused:
            await client.call_tool("constraints_add", {"text": "不要出现「手机」"})
        resources = (await client.list_resources()).resources
        templates = (await client.list_resource_templates()).resource_templates
        chapter = await client.read_resource(resources[1].uri)
        prompts = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
        filled = await client.get_prompt("builtin:continue", {"document": "chapters/04.md"})

    assert outline.splitlines()[1].startswith("2. chapters/02.md: ")
    assert FOX in found
    assert FOX in there
    assert "chapters/02.md#L" in found
    assert "words: " in found
    assert "塌了" not in later
    assert "塌了" in ahead
    assert "年轻的账房先生" in context
    assert "这是第4天" in context
    assert "塌了" not in context
    assert about.startswith("in: ")
    assert later_on.startswith("never_considered: ")
    assert checked.startswith("passed: ")
    everything = outline + found + later + ahead + context + about + later_on
    assert SECRET not in everything
    assert str(root.parent) not in everything
    assert [tool.name for tool in tools] == READING
    assert all(tool.annotations.read_only_hint for tool in tools)
    assert "constraints_add" in str(refused.value)
    assert not (root / ".creonow/rules/constraints.json").exists()
    assert resources[1].uri == "creonow://story/chapters/02.md"
    assert {one.uri_template for one in templates} == {
        "creonow://context/{id}",
        "creonow://story/{+document}",
    }
    (shown,) = chapter.contents
    assert FOX in shown.text
    assert SECRET not in shown.text
    places = ["document", "position", "instruction"]
    assert [one.name for one in prompts["builtin:continue"].arguments] == places
    assert [one.name for one in prompts["builtin:polish"].arguments] == [*places, "selection"]
    assert "这是第4天" in filled.messages[0].content.text


def test_the_list_of_tools_is_the_same_in_every_run() -> None:
    """A prompt cache begins with it."""
    program = (
        "from creonowd.mcp.agent_tools import TOOLS; import json;"
        "print(json.dumps([[t.name, t.title, t.description, t.schema] for t in TOOLS]))"
    )
    lists = [
        subprocess.run(
            [sys.executable, "-P", "-c", program],
            env=process_environment() | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]

    assert lists[0] == lists[1]
    assert len(lists[0]) < 8000


async def test_a_fact_in_a_huge_log_takes_three_calls(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scripted agent: list, grep, read."""
    monkeypatch.setenv("CREONOW_MAX_MESSAGE_BYTES", str(80 << 20))
    line = "2026-11-18 04:00:00 INFO  nothing happened at all, and it went on for a while\n"
    log = line * 400_000 + "ERROR the ferry's key is under stone seven\n" + line * 260_000
    assert len(log) > 50_000_000

    async with connected(root, "legacy", "--write") as client:
        await text(client, "context_put", content=log, hint="the ferry's log")
        listed = await text(client, "context_list")
        file_id = listed.split()[0]
        found = await client.call_tool("context_grep", {"id": file_id, "pattern": "key is under"})
        (match,) = found.structured_content["matches"]
        page = await text(client, "context_read", id=file_id, offset=match["offset"], limit=60)

    assert content(found).startswith("400001:ERROR the ferry's key")
    assert page.startswith("ERROR the ferry's key is under stone seven\n")


@GENERATIONS
async def test_files_rules_and_runs_in_a_server_that_writes(root: Path, mode: str) -> None:
    lines = "".join(f"line {n}\n" for n in range(1, 301))
    async with connected(root, mode, "--write") as client:
        put = await client.call_tool("context_put", {"content": lines, "hint": "numbers"})
        file_id = put.structured_content["ref"]["id"]
        listed = await text(client, "context_list", kind="artifact")
        page = await text(client, "context_read", id=file_id, limit=20)
        tail = await text(client, "context_tail", id=file_id, lines=2)
        grep = await text(
            client, "context_grep", id=file_id, pattern="line 1[0-9]$", maxResults=2, contextLines=1
        )
        added = await text(client, "constraints_add", text="不要出现「手机」")
        broken = await text(
            client, "constraints_check", text="他拿出手机。", document="chapters/01.md"
        )
        unknown = await error(client, "run_accept", runId="run_0000000000000000")
        prompts = [
            await client.get_prompt(one.name, {"document": "chapters/01.md", "selection": "2-8"})
            for one in (await client.list_prompts()).prompts
        ]

    assert listed.startswith(file_id)
    assert page.startswith("line 1\nline 2\n")
    assert "go on with offset" in page
    assert tail.startswith("line 299\nline 300\n")
    assert grep.splitlines()[:3] == ["9-line 9", "10:line 10", "11-line 11"]
    assert "cursor" in grep
    assert added.startswith("Added as con_")
    assert broken.startswith("violated: ")
    assert "“手机”" in broken
    assert unknown[0] == "NOT_FOUND"
    assert all(prompt.messages[0].content.text for prompt in prompts)
    assert len(prompts) >= 6


async def test_errors_and_long_answers_say_what_to_do_next(root: Path) -> None:
    write_files(root, {"chapters/03.md": "# 第3章\n\n" + "林远数着石阶，一级又一级。\n\n" * 900})
    async with connected(root) as client:
        await text(client, "story_search", query="石阶")  # waits for the index
        reply = await client.call_tool("story_context", {"document": "chapters/03.md"})
        file_id = reply.structured_content["ref"]["id"]
        rest = await text(client, "context_grep", id=file_id, pattern="chapters.02", maxResults=1)
        file = await client.read_resource(f"creonow://context/{file_id}")
        again = await client.call_tool("story_context", {"document": "chapters/03.md"})
        files = await text(client, "context_list")
        missing = await error(client, "story_context", document="chapter/4.md")
        outside = await error(client, "story_context", document="../secret.md")
        wrong = await error(client, "story_search", query="", document=None)
        extra = await error(client, "context_list", path="/etc/passwd")
        pattern = await error(client, "context_grep", id="ctx_nope", pattern="(")
        absent = await error(client, "context_read", id="../../etc/passwd")
        with pytest.raises(MCPError) as resource:
            await client.read_resource("creonow://story/..%2F..%2Fetc%2Fpasswd")
        with pytest.raises(MCPError) as prompt:
            await client.get_prompt(
                "builtin:polish", {"document": "chapters/01.md", "selection": "x"}
            )
        with pytest.raises(MCPError) as unselected:
            await client.get_prompt("builtin:polish", {"document": "chapters/01.md"})
        with pytest.raises(MCPError) as place:
            await client.get_prompt(
                "builtin:continue", {"document": "chapters/01.md", "position": "9" * 5000}
            )
        with pytest.raises(MCPError) as cursor:
            await client.list_resources(cursor="9" * 5000)
        beyond = await text(client, "story_outline", first=7)
        negative = await error(client, "story_outline", last=-1)
        placeless = await error(client, "story_search", query="雨", position=3)
        echo = await error(client, "story_context", document="x" * 4000)
        unknown = await text(
            client, "story_context", document="chapters/01.md", skill="builtin:nope"
        )

    assert file_id in content(reply)
    assert content(again) == content(reply)
    assert len(files.splitlines()) == 1
    assert len(content(reply)) < 9000
    assert "[1 of " in rest
    assert "林远数着石阶" in file.contents[0].text
    assert missing[0] == outside[0] == absent[0] == "NOT_FOUND"
    assert "chapters/04.md" in missing[1]
    assert "story_outline" in missing[1]
    assert wrong[0] == extra[0] == "INVALID_ARGUMENT"
    assert "`$.query`" in wrong[1]
    assert "kind, limit" in extra[1]
    assert pattern[0] in {"INVALID_ARGUMENT", "NOT_FOUND"}
    assert "passwd" not in str(resource.value) or "no " in str(resource.value)
    assert "120-180" in str(prompt.value)
    assert {one.value.code for one in (prompt, unselected, place, cursor)} == {-32602}
    assert "must be a number" in str(place.value)
    assert beyond == "There are 6 chapters, none of them in this range."
    assert negative[0] == placeless[0] == "INVALID_ARGUMENT"
    assert "`document`" in placeless[1]
    assert len(echo[1]) < 300
    assert re.search("^SKILL_UNKNOWN: .+", unknown, re.MULTILINE)


async def test_two_servers_share_one_daemon_and_outlive_each_other(root: Path) -> None:
    async with connected(root, "auto") as second:
        async with connected(root, "auto", "--write") as first:
            lists = [(await one.list_tools()).tools for one in (first, second)]
            async with second.listen(resources_list_changed=True) as changes:
                await anyio.sleep(POLL_SECONDS + 1)
                await text(first, "context_put", content="from the first", hint="shared\nid")
                change = await anext(aiter(changes))
            listed = await text(second, "context_list")
            daemons = endpoint.read(root.parent / "用户 data")
        again = await text(second, "context_list")

    assert type(change).__name__ == "ResourcesListChanged"
    wire = [[tool.model_dump_json() for tool in tools] for tools in lists]
    assert wire[0][: len(READING)] == wire[1]
    assert daemons is not None
    assert listed.endswith("shared id")
    assert again == listed


async def test_a_daemon_that_dies_is_started_again(root: Path) -> None:
    async with connected(root, "legacy", "--write") as client:
        await text(client, "context_put", content="kept", hint="before the crash")
        running = endpoint.read(root.parent / "用户 data")
        assert running is not None
        psutil.Process(running.pid).kill()
        listed = await text(client, "context_list")

    assert "before the crash" in listed


async def test_a_client_hears_of_progress_and_of_new_chapters(root: Path) -> None:
    heard = anyio.Event()
    steps: list[float] = []

    async def listen(message: Any) -> None:
        if "list_changed" in getattr(message, "method", ""):
            heard.set()

    async def report(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)

    write_files(root, {f"more/{n}.md": f"# {n}\n\n" + "雨。" * 3000 for n in range(60)})
    async with connected(root, "legacy", message_handler=listen) as client:
        with anyio.move_on_after(0.01):
            await client.call_tool("story_search", {"query": "雨"})
        await client.call_tool("story_search", {"query": "白狐"}, progress_callback=report)
        await client.list_resources()
        number = 0
        while not heard.is_set():
            number += 1
            write_files(root, {f"chapters/{number + 6:02}.md": "# 新\n"})
            with anyio.move_on_after(POLL_SECONDS):
                await heard.wait()

    assert steps == sorted(steps)
    assert steps


@asynccontextmanager
async def scripted_daemon(
    user_data: Path, answer: Callable[[SocketStream], Awaitable[None]]
) -> AsyncGenerator[TaskGroup]:
    """Be the daemon of a folder: every connection is handed to `answer`."""
    lock = endpoint.take_lock(user_data)
    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as tasks,
    ):
        address = f"127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
        endpoint.write(user_data, (endpoint.Endpoint(transport="tcp", address=address),))
        tasks.start_soon(listener.serve, answer)
        yield tasks
        tasks.cancel_scope.cancel()
    os.close(lock)


async def test_a_write_that_was_cut_off_is_not_to_be_repeated_blindly(root: Path) -> None:
    async def end_with_the_write(stream: SocketStream) -> None:
        lines = BufferedByteReceiveStream(stream)
        known = {"channels": ["context:files:put"], "projectId": "prj_1", "token": "t"}
        async with stream:
            while True:
                asked = json.loads(await lines.receive_until(b"\n", 1 << 20))
                if asked["method"] == "context:files:put":
                    return
                reply = {"jsonrpc": "2.0", "id": asked["id"], "result": known}
                await stream.send(json.dumps(reply).encode() + b"\n")

    async with (
        scripted_daemon(root.parent / "用户 data", end_with_the_write),
        connected(root, "legacy", "--write") as client,
    ):
        code, said = await error(client, "context_put", content="kept?", hint="cut off")

    assert code == "DISCONNECTED"
    assert "look whether the change was made" in said
    assert "Try again" not in said


async def test_a_daemon_that_does_not_answer_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon_link, "ANSWER_SECONDS", 0.05)

    async def say_nothing(stream: SocketStream) -> None:
        async with stream:
            await anyio.sleep_forever()

    async with scripted_daemon(tmp_path, say_nothing) as tasks:
        link = daemon_link.DaemonLink(tmp_path, tmp_path, [], tasks)
        with pytest.raises(DaemonError) as caught:
            with anyio.fail_after(20):
                await link.open()
        await link.aclose()

    assert caught.value.code is ErrorCode.TIMEOUT


@pytest.mark.parametrize("words", [["--print-config"], ["--print-config", "--write"]])
def test_the_snippets_name_this_server(
    root: Path, words: list[str], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["mcp", "--project", str(root), *words]) == 0

    printed = capfdbinary.readouterr().out.decode()
    blocks = printed.split("\n\n")
    snippets = [json.loads(block) for block in blocks if block.startswith("{")]
    servers = [
        next(iter(next(iter(one.values())).values())) for one in snippets if "mcp" not in one
    ]
    assert len(servers) == 4
    for server in servers:
        assert server["command"] == sys.executable
        assert server["args"][-1] == ("--write" if "--write" in words else str(root))
    (table,) = [block for block in blocks if block.startswith("[mcp_servers")]
    assert tomllib.loads(table)["mcp_servers"]["creonow"]["args"] == servers[0]["args"]


def test_the_skill_for_agents_names_only_tools_that_exist() -> None:
    skill = skill_file().read_text(encoding="utf-8")
    names = set(re.findall(r"`((?:context|story|constraints|run)_[a-z]+)`", skill))

    assert names == {tool.name for tool in TOOLS}


def test_the_skill_for_agents_keeps_to_the_open_standard() -> None:
    assert validate(skill_file().parent) == []


def test_the_daemon_never_loads_the_sdk() -> None:
    program = (
        "import sys; from creonowd.cli import serve; from creonowd.daemon import build, run;"
        "from creonowd.channels import CONTRACT;"
        "sys.exit(any(name.partition('.')[0] in {'mcp', 'pydantic'} for name in sys.modules))"
    )

    assert subprocess.run([sys.executable, "-P", "-c", program], check=False).returncode == 0
