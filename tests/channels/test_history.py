"""`context:history:*` and `context:tool:compress` over the wire."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from creonowd.rpc.server import Server
from testing.clients import Client, in_memory
from testing.conversations import (
    SECRETS,
    assistant,
    broken_pairs,
    calls,
    realistic_round,
    result,
    user,
)
from testing.novels import make_chat


async def test_history_keeps_the_brief_result_and_the_file_all_of_it(
    client: Client, tmp_path: Path
) -> None:
    chat = await make_chat(client, tmp_path / "book")
    lines = [f"src/a.py:{n}: found {n}" for n in range(40)]
    messages = [
        user("find it"),
        calls(("c1", "Grep", {"pattern": "found"})),
        result("c1", "\n".join(lines)),
    ]

    appended = await chat.call("context:history:append", messages=messages)
    read = await chat.call("context:history:read")

    kept = read["rounds"][0]["messages"][2]
    ref = appended["messages"][2]["ref"]["id"]
    page = await chat.call("context.read", id=ref)
    assert appended["appended"] == 3
    assert appended["totalRounds"] == 1
    assert kept["name"] == "Grep"
    assert kept["content"].startswith('[Grep] "found": 40 matches in 1 file\nsrc/a.py:0: found 0')
    assert "found 5" not in kept["content"]
    assert kept["content"].endswith(f"Full output: {ref}")
    assert page["content"] == "\n".join(lines)


@pytest.mark.requirement("CF-033", "CF-034", "CF-001")
async def test_a_text_over_the_limits_is_answered_with_preview_and_ref(
    client: Client, tmp_path: Path
) -> None:
    chat = await make_chat(client, tmp_path / "book")
    prose = "\n".join(f"第{n}段。夜色很深，林远推开门。" for n in range(800))

    appended = await chat.call("context:history:append", messages=[user(prose)])
    compressed = await chat.call(
        "context:tool:compress", tool="Read", args={"path": "a.md"}, result=prose, toolCallId="c9"
    )

    page = await chat.call("context.read", id=appended["ref"]["id"], limit=100)
    assert "bytes left out" in appended["preview"]
    assert page["content"].startswith("第0段。")
    assert "bytes left out" in compressed["preview"]
    assert "observation" not in compressed
    assert compressed["summary"].endswith(f"Full output: {compressed['ref']['id']}")


@pytest.mark.requirement("CB-001", "CB-036")
async def test_the_model_gets_the_whole_observation_and_history_the_summary(
    client: Client, tmp_path: Path
) -> None:
    chat = await make_chat(client, tmp_path / "book")
    listing = {"entries": [f"file_{n}.md" for n in range(60)]}

    answer = await chat.call("context:tool:compress", tool="LS", args={"path": "."}, result=listing)
    again = await chat.call("context:tool:compress", tool="LS", args={"path": "."}, result=listing)
    alone = await client.call("context:tool:compress", {"tool": "LS", "result": listing})

    assert "file_59.md" in answer["observation"]
    assert "file_59.md" not in answer["summary"]
    assert "60 entries" in answer["summary"]
    assert again["summary"].split("\n")[:-1] == answer["summary"].split("\n")[:-1]
    assert "ref" not in alone


async def test_a_call_id_that_is_used_again_gets_a_file_of_its_own(
    client: Client, tmp_path: Path
) -> None:
    chat = await make_chat(client, tmp_path / "book")

    refs = [
        (await chat.call("context:tool:compress", tool="Web", result=text, toolCallId="call_0"))[
            "ref"
        ]
        for text in ("first", "second", "first")
    ]

    assert refs[0]["id"] == refs[2]["id"] != refs[1]["id"]


async def test_a_summary_that_is_appended_again_stays_as_it_is(
    client: Client, tmp_path: Path
) -> None:
    chat = await make_chat(client, tmp_path / "book")
    made = await chat.call("context:tool:compress", tool="Read", result="a\nb", toolCallId="c1")
    messages = [user("read"), calls(("c1", "Read", {})), result("c1", made["summary"])]

    await chat.call("context:history:append", messages=messages)
    read = await chat.call("context:history:read")

    assert read["rounds"][0]["messages"][2]["content"] == made["summary"]


@pytest.mark.requirement("CB-014", "CB-015", "CB-047")
async def test_neither_secrets_nor_raw_json_enter_history_or_files(
    client: Client, tmp_path: Path
) -> None:
    chat = await make_chat(client, tmp_path / "book")
    nested = {"config": {"password": SECRETS[0], "list": [{"api_key": "short"}]}}
    raw = {
        "stdout": json.dumps(nested),
        "stderr": f"mysql -uroot -p{SECRETS[0]} db",
        "exit_code": 1,
    }
    given = {"command": f"curl -H 'Authorization: Bearer {SECRETS[1]}' x", "token": SECRETS[0]}
    messages = [
        user(f"my key is {SECRETS[1]}"),
        calls(("c1", "Bash", json.dumps(given)), ("c2", "Web", given)),
        result("c1", json.dumps(raw)),
        result("c2", json.dumps(nested)),
        assistant(f"I used password={SECRETS[0]}"),
    ]

    appended = await chat.call("context:history:append", messages=messages)
    read = await chat.call("context:history:read")

    built = await chat.call("context:build", input="go on", systemPrompt="You help.")
    refs = [one["ref"]["id"] for one in appended["messages"] if "ref" in one]
    files = [await chat.call("context.read", id=ref) for ref in refs]
    raws = [await chat.call("context.read", id=ref, raw=True) for ref in refs]
    everything = json.dumps([appended, read, built, files, raws])
    kept = [m["content"] for m in read["rounds"][0]["messages"] if m["role"] == "tool"]
    assert len(refs) == 2
    assert not [secret for secret in (*SECRETS, '"short"', "short\\") if secret in everything]
    assert not [content for content in kept if "{" in content]
    assert "***REDACTED***" in everything


@pytest.mark.requirement("CB-050")
async def test_thoughts_are_not_kept(client: Client, tmp_path: Path) -> None:
    chat = await make_chat(client, tmp_path / "book")
    messages = [
        user("hello"),
        assistant("<think>secret plan</think>Good morning."),
        user("more"),
        assistant("Thought: I should look.\nIt is hidden.\nAction: Read[a.md]"),
        {**assistant("Fine."), "thought": "also hidden", "reasoning": "hidden"},
    ]

    await chat.call("context:history:append", messages=messages)
    read = await chat.call("context:history:read")

    contents = [m["content"] for r in read["rounds"] for m in r["messages"]]
    assert contents == ["hello", "Good morning.", "more", "Action: Read[a.md]", "Fine."]
    assert "hidden" not in json.dumps(read)


async def test_an_answer_behind_a_thought_is_kept(client: Client, tmp_path: Path) -> None:
    chat = await make_chat(client, tmp_path / "book")
    messages = [
        user("一"),
        assistant("思考：先想一想\n答案"),
        user("two"),
        assistant("Thought: a\nanswer"),
        user("three"),
        {**calls(("c1", "Read", {})), "content": "Thought: I should look."},
    ]

    await chat.call("context:history:append", messages=messages)

    read = await chat.call("context:history:read")
    built = await chat.call("context:build", input="more", systemPrompt="You help.")
    said = [m["content"] for r in read["rounds"] for m in r["messages"] if m["role"] != "user"]
    assert said == ["答案", "answer", ""]
    assert {"答案", "answer"} <= {m["content"] for m in built["messages"]}


async def test_a_mere_thought_leaves_no_empty_message_in_the_next_turn(
    client: Client, tmp_path: Path
) -> None:
    chat = await make_chat(client, tmp_path / "book")
    thought = assistant("<think>nothing to say</think>")

    await chat.call("context:history:append", messages=[user("hello"), thought])

    built = await chat.call("context:build", input="more", systemPrompt="You help.")
    assert [m["content"] for m in built["messages"]] == ["You help.", "hello", "more"]


async def test_a_secret_in_a_name_is_not_kept(client: Client, tmp_path: Path) -> None:
    chat = await make_chat(client, tmp_path / "book")
    named = {**result("c1", "x"), "name": SECRETS[1]}
    messages = [{**user("go"), "name": SECRETS[1]}, calls(("c1", SECRETS[1], {})), named]

    appended = await chat.call("context:history:append", messages=messages)

    read = await chat.call("context:history:read")
    built = await chat.call("context:build", input="go", systemPrompt="You help.")
    assert SECRETS[1] not in json.dumps([appended, read, built])


@pytest.mark.parametrize(
    ("messages", "field"),
    [
        ([], "messages"),
        ([{"role": "system", "content": "x"}], "role"),
        ([{"role": "user", "content": {"a": 1}}], "messages[0].content"),
        ([user("x"), result("nobody", "y")], "messages[1].toolCallId"),
        ([user("x"), calls(("a", "LS", {}), ("a", "LS", {}))], "messages[1].toolCalls"),
        ([{**user("x"), "toolCalls": [{"id": "a", "name": "LS"}]}], "messages[0].toolCalls"),
        (
            [user("x"), calls(("a", "LS", {})), result("a", 1), result("a", 2)],
            "messages[3].toolCallId",
        ),
    ],
)
async def test_messages_that_part_calls_and_results_are_refused_whole(
    client: Client, tmp_path: Path, messages: list[dict[str, Any]], field: str
) -> None:
    chat = await make_chat(client, tmp_path / "book")

    error = await chat.failure("context:history:append", messages=messages)

    read = await chat.call("context:history:read")
    assert error.code == "INVALID_ARGUMENT"
    assert field in error.details["field"]
    assert read["rounds"] == []


async def test_clearing_forgets_the_rounds_and_may_be_repeated(
    client: Client, tmp_path: Path
) -> None:
    chat = await make_chat(client, tmp_path / "book")
    await chat.call("context:history:append", messages=realistic_round(1))

    first = await chat.call("context:history:clear")
    second = await chat.call("context:history:clear")

    read = await chat.call("context:history:read")
    assert first == {"cleared": True, "rounds": 1}
    assert second == {"cleared": True, "rounds": 0}
    assert read == {"rounds": [], "totalRounds": 0, "warnings": [], "notices": []}


async def test_a_history_belongs_to_one_project(client: Client, tmp_path: Path) -> None:
    chat = await make_chat(client, tmp_path / "one")
    other = await make_chat(client, tmp_path / "two")
    await chat.call("context:history:append", messages=[user("mine")])

    codes = [
        (await other.failure("context:history:read")).code,
        (await other.failure("context:history:clear")).code,
        (await other.failure("context:history:append", messages=[user("x")])).code,
        (await other.failure("context:build", input="x", systemPrompt="y")).code,
        (await other.failure("context:tool:compress", tool="LS", result="x")).code,
    ]

    assert codes == ["CONTEXT_SCOPE_VIOLATION"] * 5


async def test_unknown_projects_and_bad_ids_are_two_errors(client: Client, tmp_path: Path) -> None:
    chat = await make_chat(client, tmp_path / "book")
    bad = {**chat.key, "conversationId": "../up"}
    unknown = {"projectId": "prj_aaaaaaaaaaaaaaaaaaaa", "conversationId": "c"}

    codes = [
        (await client.failure("context:history:read", bad)).code,
        (await client.failure("context:history:read", unknown)).code,
        (await client.failure("context:history:read", {**unknown, "projectId": " "})).code,
        (
            await client.failure(
                "context:tool:compress", {"tool": "LS", "result": 1, "conversationId": "c"}
            )
        ).code,
    ]

    assert codes == ["INVALID_ARGUMENT", "NOT_FOUND", "INVALID_ARGUMENT", "INVALID_ARGUMENT"]


async def test_two_clients_that_append_at_once_lose_and_mix_nothing(
    client: Client, server: Server, tmp_path: Path
) -> None:
    chat = await make_chat(client, tmp_path / "book")

    async def speak(one: Client, first: int) -> None:
        for number in range(first, first + 8):
            payload = {**chat.key, "messages": realistic_round(number)}
            await one.call("context:history:append", payload)

    async with in_memory(server) as other:
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(speak, client, 0)
                tasks.start_soon(speak, other, 100)
        read = await other.call("context:history:read", chat.key)

    asked = [one["messages"][0]["content"] for one in read["rounds"]]
    expected = [realistic_round(n)[0]["content"] for n in (*range(8), *range(100, 108))]
    assert sorted(asked) == sorted(expected)
    assert {len(one["messages"]) for one in read["rounds"]} == {7}
    assert all(one["finished"] for one in read["rounds"])
    assert not broken_pairs([m for one in read["rounds"] for m in one["messages"]])


async def test_a_result_that_comes_after_another_client_spoke_is_refused(
    client: Client, server: Server, tmp_path: Path
) -> None:
    chat = await make_chat(client, tmp_path / "book")
    await chat.call("context:history:append", messages=[user("a"), calls(("c1", "LS", {}))])

    async with in_memory(server) as other:
        theirs = {**chat.key, "messages": [user("b")]}
        await other.call("context:history:append", theirs)
        late = await chat.failure("context:history:append", messages=[result("c1", "x")])

    assert late.code == "INVALID_ARGUMENT"
    assert late.details["field"] == "messages[0].toolCallId"


@pytest.mark.parametrize(
    ("tool", "raw", "part"),
    [
        ("Read", "\x00\x01\x02" * 200_000, "binary, 600000 bytes"),
        ("Web", "iVBORw0KGgo" + "A" * 400_000, "binary, 400011 bytes"),
        ("Grep", "a.md:1:夜\n" * 60_000, "60000 matches in at least 1 file"),
        ("Web", '{"rows": [' + '{"n": 1, "note": "x"}, ' * 20_000, "(its JSON is malformed)"),
        ("Web", "[" * 50_000, "1 line, 50000 characters"),
    ],
)
async def test_huge_and_binary_results_are_kept_in_brief_and_in_full(
    client: Client, tmp_path: Path, tool: str, raw: str, part: str
) -> None:
    chat = await make_chat(client, tmp_path / "book")
    messages = [user("go"), calls(("c1", tool, {})), result("c1", raw), assistant("done")]

    appended = await chat.call("context:history:append", messages=messages)

    built = await chat.call("context:build", input="next", systemPrompt="You help.")
    read = await chat.call("context:history:read")
    kept = read["rounds"][0]["messages"][2]["content"]
    assert part in kept
    assert len(kept) < 3000
    assert appended["messages"][2]["ref"]["byteSize"] == len(raw.encode())
    assert built["tokenCount"] <= 16_000


async def test_rounds_can_be_read_in_pages(client: Client, tmp_path: Path) -> None:
    chat = await make_chat(client, tmp_path / "book")
    messages = [m for n in range(6) for m in (user(f"q{n}"), assistant(f"a{n}"))]
    await chat.call("context:history:append", messages=messages)

    newest = await chat.call("context:history:read", limit=2)
    before = await chat.call("context:history:read", limit=2, before=4)

    assert [one["index"] for one in newest["rounds"]] == [4, 5]
    assert [one["index"] for one in before["rounds"]] == [2, 3]
    assert newest["totalRounds"] == 6
