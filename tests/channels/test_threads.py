"""Threads of the plot: open ones are prompts where they are open, overdue ones are reported."""

from pathlib import Path
from typing import Any

import pytest

from testing.clients import Client
from testing.novels import Novel, make_novel

FILES = {f"第{n}章.md": f"# 第{n}章\n\n正文。\n" for n in range(1, 10)}


@pytest.fixture
async def novel(client: Client, tmp_path: Path) -> Novel:
    return await make_novel(
        client, tmp_path / "长夜", FILES, documentId="第5章.md", cursorPosition=5
    )


def thread(novel: Novel, name: str, text: str, **values: Any) -> None:
    head = "".join(f"{key}: {value}\n" for key, value in values.items())
    novel.put(f".creonow/threads/{name}.md", f"---\n{head}---\n{text}\n")


async def listed(novel: Novel, **more: Any) -> dict[str, Any]:
    return await novel.client.call("story:threads", novel.params | more)


async def test_a_thread_is_in_prompts_from_where_it_is_planted_until_it_is_resolved(
    novel: Novel,
) -> None:
    thread(novel, "信", "父亲的信没有拆。", planted="第3章", due="第8章", names="[林远]")
    thread(novel, "刀", "断刀的来历。", planted=2, status="resolved", resolved="第6章")
    thread(novel, "灯", "旧灯笼。", planted=1, status="已收")

    prompts = {
        n: (await novel.assemble(documentId=f"第{n}章.md"))["systemPrompt"] for n in (2, 5, 6)
    }
    polish = await novel.assemble(skillId="builtin:polish", selection={"from": 0, "to": 4})

    assert [("的信没有拆" in text, "断刀" in text) for text in prompts.values()] == [
        (False, True),
        (True, True),
        (True, False),
    ]
    assert not any("旧灯笼" in text for text in prompts.values())
    assert "的信没有拆" not in polish["prompt"]


async def test_overdue_threads_are_reported(novel: Novel) -> None:
    thread(novel, "信", "信。", planted="第3章", due="第5章")
    thread(novel, "远", "远。", planted="第3章", due="第40章")

    states = [
        {
            item["path"][17:-3]: item["state"]
            for item in (await listed(novel, documentId=f"第{n}章.md"))["items"]
        }
        for n in (2, 4, 5, 6)
    ]
    end = await listed(novel)

    assert [state["信"] for state in states] == ["not_yet", "open", "due", "overdue"]
    assert {state["远"] for state in states} == {"not_yet", "open"}
    assert (end["open"], end["overdue"]) == (2, 1)


async def test_the_evidence_says_how_many_of_the_open_threads_are_shown(novel: Novel) -> None:
    for n in range(23):
        thread(novel, f"线{n:02}", f"第{n}条线。", planted=1, due=f"第{30 - n}章")

    result = await novel.assemble()

    (notice,) = [one for one in result["notices"] if one["code"] == "CONTEXT_THREAD_LIMIT"]
    entries = [one for one in result["trimEvidence"] if "/threads/" in one["sourceRef"]]
    kept = [one["sourceRef"] for one in entries if one["action"] == "kept"]
    assert "8 of 23" in notice["message"]
    assert len(entries) == 23
    assert {one["rule"] for one in entries if one["action"] == "dropped"} == {"thread_limit"}
    assert kept == [f".creonow/threads/线{n:02}.md" for n in range(15, 23)]


@pytest.mark.parametrize(
    "head", ["status: 也许", "planted: [1]", "names: [1]", "due: true", "planted: [9"]
)
async def test_a_thread_that_makes_no_sense_costs_itself(novel: Novel, head: str) -> None:
    novel.put(".creonow/threads/坏.md", f"---\n{head}\n---\n坏的。\n")
    novel.put(".creonow/threads/乱.md", b"\xff\xfe\xff")
    thread(novel, "好", "好的线。")

    result = await novel.assemble()

    assert "好的线" in result["systemPrompt"]
    assert "坏的" not in result["prompt"]
    assert sum(one["code"] == "THREADS_UNAVAILABLE" for one in result["notices"]) == 2
    assert len((await listed(novel))["unreadable"]) == 2
