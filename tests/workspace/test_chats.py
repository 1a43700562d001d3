import json
import os
import subprocess
import sys
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.clock import SteppingClock
from creonowd.errors import DaemonError, ErrorCode
from creonowd.redaction import PLACEHOLDER, Redactor
from creonowd.workspace.chats import Chats, check_id, entry_of
from creonowd.workspace.projects import Project

ROOT = Path(__file__).parents[2]
FOLDER = ".creonow/conversations"
SECRET = "sk-abcdefghij0123456789ABCDEFGHIJ"

MISFITS: list[tuple[dict[str, Any], str]] = [
    ({}, "conversation.messages"),
    ({"messages": "x"}, "conversation.messages"),
    ({"messages": [{}]}, "conversation.messages[0].role"),
    ({"messages": [{"role": "", "content": "x"}]}, "conversation.messages[0].role"),
    ({"messages": [{"role": "user", "content": 7}]}, "conversation.messages[0].content"),
    ({"messages": [], "documentId": 7}, "conversation.documentId"),
    ({"messages": [], "id": 7}, "conversation.id"),
]


@pytest.fixture
def store() -> Chats:
    return Chats(SteppingClock(), Redactor())


def messages_of(*texts: str, **more: Any) -> dict[str, Any]:
    roles = ("user", "assistant")
    messages = [{"role": roles[n % 2], "content": text} for n, text in enumerate(texts)]
    return {"messages": messages, **more}


def on_disk(project: Project, name: str) -> dict[str, Any]:
    return json.loads((project.root / FOLDER / f"{name}.json").read_bytes())


def by_hand(project: Project, name: str, content: Any) -> Path:
    place = project.root / FOLDER / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return place


async def ids(store: Chats, project: Project) -> list[str]:
    return [known.entry.id for known in (await store.list(project)).items]


async def refusal(asked: Awaitable[object]) -> DaemonError:
    with pytest.raises(DaemonError) as caught:
        await asked
    return caught.value


async def test_a_saved_conversation_is_a_file_of_its_own(store: Chats, project: Project) -> None:
    entry = await store.save(project, messages_of("续写", "好的", id="c-1", documentId="第一章.md"))

    document = on_disk(project, "c-1")
    assert document["version"] == 1
    assert document["id"] == "c-1"
    assert document["documentId"] == "第一章.md"
    assert document["messages"][0] == {"role": "user", "content": "续写"}
    assert entry.message_count == 2
    assert entry.document_id == "第一章.md"
    assert await store.read(project, "c-1") == document


async def test_a_conversation_without_an_id_gets_one(store: Chats, project: Project) -> None:
    first = await store.save(project, messages_of("甲"))
    second = await store.save(project, messages_of("乙"))

    assert first.id.startswith("cnv_")
    assert first.id != second.id
    assert await ids(store, project) == [second.id, first.id]


async def test_saving_again_replaces_the_messages_and_keeps_the_beginning(
    store: Chats, project: Project
) -> None:
    first = await store.save(project, messages_of("甲", id="c"))
    await store.analyse(project, "c", {"summary": "总结", "topics": ["甲"]})

    second = await store.save(project, messages_of("甲", "乙", "丙", id="c", mood="好"))

    document = on_disk(project, "c")
    assert second.created_at == first.created_at
    assert second.updated_at > first.updated_at
    assert second.message_count == 3
    assert document["analysis"] == {"summary": "总结", "topics": ["甲"]}
    assert document["mood"] == "好"


async def test_fields_that_nobody_knows_are_kept(store: Chats, project: Project) -> None:
    message = {"role": "user", "content": "甲", "createdAt": 5, "tokens": {"in": 3}}

    await store.save(project, {"id": "c", "messages": [message], "skillId": "continue"})

    assert on_disk(project, "c")["messages"] == [message]
    assert on_disk(project, "c")["skillId"] == "continue"


async def test_the_newest_comes_first(store: Chats, project: Project) -> None:
    for name in ("a", "b", "c"):
        await store.save(project, messages_of(name, id=name))

    await store.save(project, messages_of("again", id="a"))

    assert await ids(store, project) == ["a", "c", "b"]


async def test_an_analysis_replaces_the_heuristic_summary_and_not_the_place(
    store: Chats, project: Project
) -> None:
    before = await store.save(project, messages_of("请续写\n  这一段", id="a"))
    await store.save(project, messages_of("乙", id="b"))

    after = await store.analyse(project, "a", {"summary": "讨论续写", "tags": ["x"]})

    assert (before.summary, before.summary_quality) == ("请续写 这一段", "heuristic")
    assert (after.summary, after.summary_quality) == ("讨论续写", "analysis")
    assert await ids(store, project) == ["b", "a"]


@pytest.mark.parametrize(
    ("messages", "summary"),
    [
        ([], ""),
        ([{"role": "assistant", "content": "只有我"}], "只有我"),
        ([{"role": "system", "content": "系统"}, {"role": "user", "content": "用户"}], "用户"),
        ([{"role": "user", "content": " \n"}, {"role": "user", "content": "第二"}], "第二"),
        ([{"role": "user", "content": "长" * 121}], "长" * 120 + "…"),
        ([{"role": "user", "content": "👨‍👩‍👧" * 200}], "👨‍👩‍👧" * 120 + "…"),
    ],
)
def test_the_heuristic_summary_is_how_it_began(messages: list[Any], summary: str) -> None:
    assert entry_of("c", {"messages": messages}, "then").summary == summary


@pytest.mark.parametrize(
    "bad",
    [
        "",
        " ",
        "a b",
        "a/b",
        "../a",
        "a.json",
        "测试",
        "a" * 65,
        "index",
        "INDEX",
        "con",
        "NUL",
        "a\0",
    ],
)
async def test_an_id_that_cannot_be_a_file_is_refused(
    store: Chats, project: Project, bad: str
) -> None:
    errors = [
        await refusal(store.read(project, bad)),
        await refusal(store.save(project, messages_of("甲", id=bad))),
        await refusal(store.analyse(project, bad, {"summary": "x"})),
    ]

    assert {error.code for error in errors} == {ErrorCode.INVALID_ARGUMENT}
    assert errors[0].details["field"] == "conversationId"
    assert errors[1].details["field"] == "conversation.id"
    assert list(project.root.iterdir()) == []


@given(st.text(max_size=70))
def test_no_id_leaves_the_folder(text: str) -> None:
    try:
        check_id(text)
    except DaemonError:
        return
    assert text.replace("_", "a").replace("-", "a").isalnum()
    assert text.isascii()


async def test_ids_that_differ_in_case_only_are_a_conflict(store: Chats, project: Project) -> None:
    await store.save(project, messages_of("甲", id="Draft"))

    error = await refusal(store.save(project, messages_of("乙", id="draft")))

    assert error.code is ErrorCode.CONFLICT
    assert await ids(store, project) == ["Draft"]


@pytest.mark.parametrize(("conversation", "field"), MISFITS)
async def test_what_is_no_conversation_names_its_field(
    store: Chats, project: Project, conversation: dict[str, Any], field: str
) -> None:
    error = await refusal(store.save(project, conversation))

    assert error.code is ErrorCode.INVALID_ARGUMENT
    assert error.details["field"].replace("[...]", "[0]") == field


async def test_a_conversation_nested_too_deeply_is_refused(store: Chats, project: Project) -> None:
    deep: Any = "x"
    for _ in range(80):
        deep = [deep]

    error = await refusal(store.save(project, messages_of("甲", extra=deep)))

    assert error.code is ErrorCode.INVALID_ARGUMENT


async def test_unknown_conversations_are_not_found(store: Chats, project: Project) -> None:
    await store.save(project, messages_of("甲", id="a"))

    read = await refusal(store.read(project, "b"))
    analysed = await refusal(store.analyse(project, "b", {"summary": "x"}))

    assert read.code is analysed.code is ErrorCode.NOT_FOUND
    assert not (project.root / FOLDER / "b.json").exists()


@pytest.mark.parametrize("analysis", [{}, {"summary": ""}, {"summary": " "}, {"summary": 7}])
async def test_an_analysis_needs_a_summary(
    store: Chats, project: Project, analysis: dict[str, Any]
) -> None:
    await store.save(project, messages_of("甲", id="a"))

    error = await refusal(store.analyse(project, "a", analysis))

    assert error.code is ErrorCode.INVALID_ARGUMENT
    assert error.details["field"] == "analysis.summary"


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"version": 1, "items": 7}', b"\xff"])
async def test_a_damaged_index_is_set_aside_and_rebuilt(
    store: Chats, project: Project, damage: bytes
) -> None:
    for name in ("a", "b"):
        await store.save(project, messages_of(name, id=name))
    by_hand(project, "index.json", damage)

    listed = await ids(store, project)

    assert listed == ["b", "a"]
    assert (project.root / FOLDER / "index.damaged-1.json").read_bytes() == damage
    assert [item["entry"]["id"] for item in on_disk(project, "index")["items"]] == ["b", "a"]


async def test_many_may_find_the_index_damaged_at_once(project: Project) -> None:
    stores = [Chats(SteppingClock(), Redactor()) for _ in range(3)]
    await stores[0].save(project, messages_of("甲", id="a"))
    listed: list[list[str]] = []

    async def look(number: int) -> None:
        listed.append(await ids(stores[number % 3], project))

    with anyio.fail_after(60):
        for _ in range(20):
            by_hand(project, "index.json", b"{")
            async with anyio.create_task_group() as tasks:
                for number in range(6):
                    tasks.start_soon(look, number)

    assert listed == [["a"]] * 120


async def test_an_index_of_a_newer_daemon_is_left_alone(store: Chats, project: Project) -> None:
    await store.save(project, messages_of("甲", id="a"))
    newer = by_hand(project, "index.json", {"version": 2, "items": "?"}).read_bytes()

    listed = await ids(store, project)
    await store.save(project, messages_of("乙", id="b"))

    assert listed == ["a"]
    assert await ids(store, project) == ["b", "a"]
    assert (project.root / FOLDER / "index.json").read_bytes() == newer


async def test_a_lost_index_is_rebuilt(store: Chats, project: Project) -> None:
    await store.save(project, messages_of("甲", id="a"))
    (project.root / FOLDER / "index.json").unlink()

    assert await ids(store, project) == ["a"]

    assert on_disk(project, "index")["version"] == 1


async def test_files_that_came_went_or_changed_by_hand_are_seen(
    store: Chats, project: Project
) -> None:
    for name in ("a", "b"):
        await store.save(project, messages_of(name, id=name))
    (project.root / FOLDER / "a.json").unlink()
    by_hand(project, "c.json", messages_of("丙", updatedAt="2030-01-01T00:00:00.000Z"))
    changed = on_disk(project, "b")
    changed["messages"][0]["content"] = "手改"
    by_hand(project, "b.json", changed)

    entries = {known.entry.id: known.entry for known in (await store.list(project)).items}

    assert list(entries) == ["c", "b"]
    assert entries["b"].summary == "手改"


async def test_quick_rewrites_of_one_size_are_all_seen(store: Chats, project: Project) -> None:
    for number in range(30):
        by_hand(project, "a.json", messages_of(f"{number:03}"))
        assert (await store.list(project)).items[0].entry.summary == f"{number:03}"


async def test_a_damaged_conversation_is_reported_and_the_rest_is_listed(
    store: Chats, project: Project
) -> None:
    await store.save(project, messages_of("甲", id="a"))
    by_hand(project, "bad.json", b"{")
    by_hand(project, "worse.json", {"messages": 7})

    listing = await store.list(project)
    error = await refusal(store.read(project, "bad"))

    assert [known.entry.id for known in listing.items] == ["a"]
    assert [problem.path for problem in listing.problems] == [
        f"{FOLDER}/bad.json",
        f"{FOLDER}/worse.json",
    ]
    assert error.code is ErrorCode.IO_ERROR
    assert error.details == {"path": f"{FOLDER}/bad.json", "reason": "invalid_format"}


async def test_a_save_over_a_damaged_file_keeps_the_damage_aside(
    store: Chats, project: Project
) -> None:
    by_hand(project, "a.json", b"{ half")

    await store.save(project, messages_of("新", id="a"))

    assert (project.root / FOLDER / "a.damaged-1.json").read_bytes() == b"{ half"
    assert await ids(store, project) == ["a"]


async def test_a_conversation_of_a_newer_daemon_is_refused_and_never_rewritten(
    store: Chats, project: Project
) -> None:
    newer = by_hand(project, "a.json", {"version": 2, "messages": "?"}).read_bytes()

    read = await refusal(store.read(project, "a"))
    saved = await refusal(store.save(project, messages_of("甲", id="a")))

    assert read.code is saved.code is ErrorCode.VERSION_TOO_NEW
    assert (project.root / FOLDER / "a.json").read_bytes() == newer


async def test_without_a_tree_there_is_nothing_and_nothing_is_made(
    store: Chats, project: Project
) -> None:
    assert await ids(store, project) == []
    assert list(project.root.iterdir()) == []


async def test_what_lies_among_the_conversations_and_is_none_is_passed_over(
    store: Chats, project: Project
) -> None:
    await store.save(project, messages_of("甲", id="a"))
    for name in ("notes.txt", "a b.json", ".hidden.json", "old/x.json", "测试.json"):
        by_hand(project, name, messages_of("x"))

    assert await ids(store, project) == ["a"]


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
async def test_a_link_out_of_the_folder_is_neither_read_nor_written(
    store: Chats, project: Project, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.json"
    outside.write_text(json.dumps(messages_of("秘密")), encoding="utf-8")
    (project.root / FOLDER).mkdir(parents=True)
    (project.root / FOLDER / "a.json").symlink_to(outside)

    read = await refusal(store.read(project, "a"))
    saved = await refusal(store.save(project, messages_of("甲", id="a")))

    assert read.code is saved.code is ErrorCode.INVALID_ARGUMENT
    assert await ids(store, project) == []
    assert "甲" not in outside.read_text(encoding="utf-8")


async def test_a_message_sent_back_as_it_was_shown_keeps_its_secret_on_disk(
    store: Chats, project: Project
) -> None:
    secret = f"我的密钥是 {SECRET}"
    await store.save(project, messages_of(secret, "好", id="a"))
    shown = Redactor().redact(secret).text

    await store.save(project, messages_of(shown, "好", shown, id="a"))

    kept = [message["content"] for message in on_disk(project, "a")["messages"]]
    assert kept == [secret, "好", shown]


async def test_whatever_is_sent_back_as_it_was_shown_keeps_its_secret_on_disk(
    store: Chats, project: Project
) -> None:
    """Messages may have left at the front, and fields that only the client knows hold paths."""
    texts = [f"{n}: /home/lisi/{n}.md" for n in range(3)]
    more: dict[str, Any] = {"files": [r"C:\Users\li\a.md"], "login": {"password": "Kd83!mQz71pL"}}
    await store.save(project, messages_of(*texts, id="a", **more, **{SECRET: 1}))
    await store.analyse(project, "a", {"summary": "在 /home/lisi/a.md"})
    shown = [Redactor().redact(text).text for text in texts]
    redacted: dict[str, Any] = {"files": [PLACEHOLDER], "login": {"password": PLACEHOLDER}}

    await store.save(project, messages_of(*shown[1:], id="a", **redacted, **{PLACEHOLDER: 1}))
    await store.analyse(project, "a", {"summary": f"在 {PLACEHOLDER}", "tags": ["新"]})

    kept = on_disk(project, "a")
    assert [message["content"] for message in kept["messages"]] == texts[1:]
    assert kept | more | {SECRET: 1} == kept
    assert kept["analysis"] == {"summary": "在 /home/lisi/a.md", "tags": ["新"]}


async def test_many_saves_at_once_lose_nothing(project: Project) -> None:
    stores = [Chats(SteppingClock(), Redactor()) for _ in range(3)]

    async def save(number: int) -> None:
        await stores[number % 3].save(project, messages_of(str(number), id=f"c{number}"))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for number in range(30):
                tasks.start_soon(save, number)

    assert sorted(await ids(stores[0], project)) == sorted(f"c{n}" for n in range(30))


async def test_the_index_spares_reading_what_has_not_changed(
    store: Chats, project: Project
) -> None:
    """An entry that the index knows is listed even if its file could not be read again."""
    for name in ("a", "b"):
        file = by_hand(project, f"{name}.json", messages_of(name))
        os.utime(file, (1_600_000_000, 1_600_000_000))
    await ids(store, project)
    index = on_disk(project, "index")
    index["items"][0]["entry"]["summary"] = "from the index"
    by_hand(project, "index.json", index)

    listing = await store.list(project)

    assert "from the index" in [known.entry.summary for known in listing.items]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills by the hundred need cheap processes")
def test_a_kill_at_any_moment_loses_no_saved_conversation(quick_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "tests.workspace.killed_writer",
        "conversations",
        str(quick_path),
    ]

    killed = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=False
    )

    assert killed.returncode == 0, killed.stderr
    assert int(killed.stdout.split()[1]) >= 50


async def test_where_nothing_can_be_written_the_list_still_comes(
    store: Chats, project: Project
) -> None:
    by_hand(project, "a.json", messages_of("甲"))
    (project.root / ".creonow/cache").write_bytes(b"in the way of every lock")

    assert await ids(store, project) == ["a"]

    assert not (project.root / FOLDER / "index.json").exists()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no named pipes in folders")
@pytest.mark.parametrize("name", ["index.json", "c-1.json"])
@pytest.mark.parametrize("device", ["pipe", "/dev/zero"])
async def test_a_pipe_or_a_device_among_the_conversations_blocks_nobody(
    store: Chats, project: Project, name: str, device: str
) -> None:
    await store.save(project, messages_of("一", id="c-2"))
    place = project.root / FOLDER / name
    place.unlink(missing_ok=True)
    if device == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to(device)

    with anyio.fail_after(10):
        assert await ids(store, project) == ["c-2"]
        assert (await store.read(project, "c-2"))["messages"][0]["content"] == "一"
        if name == "c-1.json":
            error = await refusal(store.read(project, "c-1"))
            assert error.code in {ErrorCode.UNSUPPORTED, ErrorCode.INVALID_ARGUMENT}


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
async def test_a_lock_that_is_a_dangling_link_makes_nothing_elsewhere(
    store: Chats, project: Project, tmp_path: Path
) -> None:
    await store.save(project, messages_of("一", id="c-1"))
    lock = project.root / ".creonow/cache/conversations.lock"
    lock.unlink()
    lock.symlink_to(tmp_path / "elsewhere")

    error = await refusal(store.save(project, messages_of("二", id="c-1")))

    assert error.details["reason"] == "link"
    assert not (tmp_path / "elsewhere").exists()
