"""`story:summarise` and `story:summary:*`: who wrote a summary, when it holds, what it costs."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from creonowd.engine.services import Session
from creonowd.providers.fake import Fake
from creonowd.sources.chapter_summaries import extract
from testing.clients import Client
from testing.novels import Novel, make_novel

CHAPTERS = {
    f"第{n}章.md": f"# 第{n}章\n\n" + f"林远在第{n}天走到了渡口，船夫递给他一封信。\n\n" * 4
    for n in range(1, 7)
}
WRITTEN = "林远拿到了信。\n\n林远在渡口从船夫手里拿到父亲的信，决定北上。"


@pytest.fixture
async def novel(client: Client, tmp_path: Path) -> Novel:
    return await make_novel(client, tmp_path / "长夜", CHAPTERS, documentId="第6章.md")


async def call(novel: Novel, channel: str, **payload: Any) -> Any:
    return await novel.client.call(f"story:{channel}", novel.params | payload)


async def states(novel: Novel) -> dict[str, tuple[str | None, bool]]:
    items = (await call(novel, "summary:list"))["items"]
    return {item["path"]: (item.get("origin"), item["stale"]) for item in items}


async def test_without_a_model_summaries_are_extracts_and_say_so(novel: Novel) -> None:
    result = await call(novel, "summarise")
    shown = await call(novel, "summary:get", documentId="第2章.md")

    assert (result["origin"], result["model"], result["inputTokens"]) == ("extract", "", 0)
    assert result["documents"] == list(CHAPTERS)
    assert shown["origin"] == "extract"
    assert shown["text"].startswith("（摘录）")
    assert await states(novel) == dict.fromkeys(CHAPTERS, ("extract", False))


async def test_an_extract_is_shown_before_anything_is_stored(novel: Novel) -> None:
    shown = await call(novel, "summary:get", documentId="第1章.md")

    assert (shown["origin"], shown["stored"]) == ("extract", False)
    assert "渡口" in shown["text"]
    assert await states(novel) == dict.fromkeys(CHAPTERS, (None, False))
    assert not (novel.root / ".creonow").exists()


async def test_the_cost_is_reported_before_and_nothing_is_done(novel: Novel) -> None:
    await novel.script({"text": WRITTEN})

    estimate = await call(novel, "summarise", documents=["第1章.md", "第2章.md"], dryRun=True)

    assert (estimate["origin"], estimate["dryRun"]) == ("model", True)
    assert estimate["documents"] == ["第1章.md", "第2章.md"]
    assert estimate["inputTokens"] > 400
    assert estimate["outputTokens"] == 1400
    assert await states(novel) == dict.fromkeys(CHAPTERS, (None, False))
    one = await call(novel, "summarise", documents=["第1章.md"])
    assert one["origin"] == "model"


async def test_a_model_writes_and_its_words_enter_prompts(novel: Novel) -> None:
    await novel.script({"text": WRITTEN})

    await call(novel, "summarise", documents=["第5章.md"])
    shown = await call(novel, "summary:get", documentId="第5章.md")
    prompt = (await novel.assemble(skillId="builtin:continue"))["prompt"]

    assert (shown["text"], shown["brief"], shown["origin"]) == (WRITTEN, "林远拿到了信。", "model")
    assert "决定北上" in prompt


async def test_a_chapter_that_is_too_long_for_one_call_is_read_to_its_end(
    novel: Novel, session: Session
) -> None:
    """Each of its parts is summarised, a secret across two of them is not sent, and then both."""
    half = "林远在渡口等了很久，船夫没有来。\n\n" * 3000
    novel.put("第7章.md", half + "password: hunter2-Zq81\n\n" + half + "最后，林远烧掉了信。\n")
    await novel.script({"text": "等船。"}, {"text": "烧信。"}, {"text": WRITTEN})

    estimate = await call(novel, "summarise", documents=["第7章.md"], dryRun=True)
    await call(novel, "summarise", documents=["第7章.md"])
    shown = await call(novel, "summary:get", documentId="第7章.md")

    fake = await session.ai.open_provider(session.ai.chosen_name)
    assert isinstance(fake, Fake)
    first, second, joined = [sent.user for sent in fake.calls]
    assert estimate["outputTokens"] == 3 * 700
    assert shown["text"] == WRITTEN
    assert "烧掉了信" not in first
    assert "烧掉了信" in second
    assert abs(len(first) - len(second)) < len(first) // 10
    assert joined == "# 第7章\n\n等船。\n\n烧信。\n"
    assert "hunter2" not in first + second


async def test_a_model_that_comes_later_writes_in_place_of_extracts(novel: Novel) -> None:
    await call(novel, "summarise", documents=["第1章.md"])
    await novel.script({"text": WRITTEN})

    estimate = await call(novel, "summarise", documents=["第1章.md"], dryRun=True)
    done = await call(novel, "summarise", documents=["第1章.md"])

    assert estimate["inputTokens"] > 0
    assert (done["documents"], done["skipped"]) == (["第1章.md"], 0)
    assert (await states(novel))["第1章.md"] == ("model", False)


async def test_no_extract_takes_the_place_of_what_a_model_wrote(novel: Novel) -> None:
    await novel.script({"text": WRITTEN})
    await call(novel, "summarise", documents=["第1章.md"])

    done = await call(novel, "summarise", documents=["第1章.md", "第2章.md"], again=True)

    assert (done["origin"], done["documents"], done["skipped"]) == ("extract", ["第2章.md"], 1)
    assert (await states(novel))["第1章.md"] == ("model", False)


async def test_editing_a_chapter_invalidates_its_summary_alone(novel: Novel) -> None:
    await call(novel, "summarise")
    cache = novel.root / ".creonow/cache/summaries"
    before = {file.name: file.read_bytes() for file in cache.iterdir()}

    novel.put("第3章.md", CHAPTERS["第3章.md"] + "林远烧掉了信。\n")
    after = await states(novel)
    again = await call(novel, "summarise")

    assert after == dict.fromkeys(CHAPTERS, ("extract", False)) | {"第3章.md": (None, False)}
    assert (again["documents"], again["skipped"]) == (["第3章.md"], 5)
    assert {name: (cache / name).read_bytes() for name in before} == before


async def test_line_ends_and_front_matter_are_no_change_of_the_text(novel: Novel) -> None:
    await call(novel, "summarise")

    novel.put("第3章.md", ("---\norder: 3\n---\n" + CHAPTERS["第3章.md"]).replace("\n", "\r\n"))

    assert (await states(novel))["第3章.md"] == ("extract", False)


async def test_an_edited_summary_stays_and_becomes_stale(novel: Novel) -> None:
    set_ = await call(novel, "summary:set", documentId="第5章.md", text="信是假的。船夫在说谎。")
    await call(novel, "summarise", again=True)
    shutil.rmtree(novel.root / ".creonow/cache")
    kept = await states(novel)
    fresh = await novel.assemble(skillId="builtin:continue")

    novel.put("第5章.md", "林远改走山路，遇见了一场大雪，险些丧命。\n")
    changed = await states(novel)
    stale = await novel.assemble(skillId="builtin:continue")
    await call(novel, "summarise", again=True)

    assert (set_["origin"], set_["brief"]) == ("author", "信是假的。")
    assert kept["第5章.md"] == ("author", False)
    assert "船夫在说谎" in fresh["prompt"]
    assert not [n for n in fresh["notices"] if n["code"] == "SUMMARY_STALE"]
    assert changed["第5章.md"] == ("author", True)
    (notice,) = [n for n in stale["notices"] if n["code"] == "SUMMARY_STALE"]
    assert "第5章.md" in notice["message"]
    assert (await call(novel, "summary:get", documentId="第5章.md"))["text"].startswith("信是假的")
    (file,) = (novel.root / ".creonow/summaries").iterdir()
    assert json.loads(file.read_bytes())["text"] == "信是假的。船夫在说谎。"


async def test_a_model_s_summary_of_the_new_text_counts_before_a_stale_edit(novel: Novel) -> None:
    await call(novel, "summary:set", documentId="第5章.md", text="旧话。")
    novel.put("第5章.md", "林远改走山路，遇见了一场大雪，险些丧命。\n")
    await novel.script({"text": WRITTEN})

    await call(novel, "summarise", documents=["第5章.md"])

    assert (await states(novel))["第5章.md"] == ("model", False)
    assert len(list((novel.root / ".creonow/summaries").iterdir())) == 1


async def test_the_author_may_take_an_edit_back(novel: Novel) -> None:
    await call(novel, "summary:set", documentId="第5章.md", text="旧话。")

    back = await call(novel, "summary:set", documentId="第5章.md", text=None)

    assert (back["origin"], back["stored"]) == ("extract", False)


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        ({"documentId": "第9章.md", "text": "x"}, "NOT_FOUND"),
        ({"documentId": "../第1章.md", "text": "x"}, "NOT_FOUND"),
        ({"documentId": "第1章.md", "text": " \n"}, "INVALID_ARGUMENT"),
        ({"documentId": "第1章.md", "text": "长" * 8001}, "INVALID_ARGUMENT"),
        ({"documentId": "第1章.md"}, "INVALID_ARGUMENT"),
    ],
)
async def test_a_summary_that_makes_no_sense_is_refused(
    novel: Novel, payload: dict[str, Any], code: str
) -> None:
    error = await novel.client.failure("story:summary:set", novel.params | payload)

    assert error.code == code
    assert not (novel.root / ".creonow").exists()


async def test_an_unknown_document_cannot_be_summarised(novel: Novel) -> None:
    payload = novel.params | {"documents": ["第1章.md", "没有.md"]}

    error = await novel.client.failure("story:summarise", payload)

    assert error.code == "NOT_FOUND"
    assert await states(novel) == dict.fromkeys(CHAPTERS, (None, False))


async def test_progress_is_reported_and_a_failure_costs_one_chapter(novel: Novel) -> None:
    await novel.script({"text": WRITTEN}, {"fail": "UPSTREAM_ERROR"}, {"text": WRITTEN})
    documents = ["第1章.md", "第2章.md", "第3章.md"]

    result = await call(novel, "summarise", documents=documents, _meta={"progressToken": "p"})

    values = [e["params"]["value"] for e in novel.client.events if e["method"] == "$/progress"]
    assert values[-1] == {"done": 3, "documents": 3}
    assert result["documents"] == ["第1章.md", "第3章.md"]
    assert result["failures"] == [{"path": "第2章.md", "code": "UPSTREAM_ERROR"}]


async def test_a_cancelled_call_keeps_what_is_done(novel: Novel) -> None:
    await novel.script({"text": WRITTEN}, {"text": WRITTEN, "stall": True})
    message = {"jsonrpc": "2.0", "id": "s", "method": "story:summarise"}
    params = novel.params | {"documents": ["第1章.md", "第2章.md"], "_meta": {"progressToken": "p"}}
    await novel.client.post(message | {"params": params})
    client = novel.client
    await client.until(
        lambda: any(e["params"].get("value", {}).get("done") == 1 for e in client.events)
    )

    await client.post({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "s"}})
    reply = await client.reply("s")

    assert reply["error"]["data"]["code"] == "CANCELED"
    kept = await states(novel)
    assert (kept["第1章.md"], kept["第2章.md"]) == (("model", False), (None, False))


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"version":1}',
        b'{"version":9,"text":"x"}',
        b"x" * 5_000_000,
    ],
)
async def test_a_damaged_summary_file_is_as_good_as_none(novel: Novel, damage: bytes) -> None:
    await call(novel, "summarise")
    for file in (novel.root / ".creonow/cache/summaries").iterdir():
        file.write_bytes(damage)
    novel.put(".creonow/summaries/abc.json", damage)

    assert await states(novel) == dict.fromkeys(CHAPTERS, (None, False))
    result = await novel.assemble(skillId="builtin:continue")
    assert "第5章.md#summary" in result["userContent"]


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
async def test_a_link_out_of_the_project_is_neither_read_nor_written(
    novel: Novel, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (novel.root / ".creonow/cache").mkdir(parents=True)
    (novel.root / ".creonow/cache/summaries").symlink_to(outside)
    (novel.root / ".creonow/summaries").symlink_to(outside)

    result = await call(novel, "summarise", documents=["第1章.md"])
    await novel.client.failure(
        "story:summary:set", novel.params | {"documentId": "第1章.md", "text": "话。"}
    )

    assert result["documents"] == []
    assert list(outside.iterdir()) == []


async def test_thousands_of_chapters_can_be_listed_and_summed_up(
    client: Client, tmp_path: Path
) -> None:
    files = {f"{n}.md": f"第{n}天，林远走了很远的路，遇见了许多人。" for n in range(1, 3001)}
    novel = await make_novel(client, tmp_path / "长", files, documentId="3000.md")

    result = await novel.assemble(skillId="builtin:continue")
    items = (await call(novel, "summary:list"))["items"]

    assert len(items) == 3000
    assert "2999.md#summary" in result["userContent"]
    assert result["tokenCount"] <= 6000


def test_a_place_is_none_of_the_people_of_an_english_chapter() -> None:
    text = (
        "They dined at Netherfield, and Jane was asked to stay at Netherfield for a week.\n\n"
        "It rained, and Jane wrote that nobody in Netherfield had seen Charlotte or Mr. Bingley.\n\n"
        "So they spoke to Charlotte instead, and then Mr. Bingley came from Netherfield himself.\n"
    )

    people = extract(text).text.splitlines()[1]

    assert people == "People: Charlotte, Jane, Mr. Bingley."


def test_an_extract_has_no_words_that_only_announce_speech() -> None:
    """What follows them is left out, so that they say nothing."""
    scene = (
        "Elizabeth walked to Netherfield Hall through the mud and the rain of the morning.\n\n"
        "Then Jane and Elizabeth spoke of Netherfield Hall, and at last Jane said to Elizabeth,\n\n"
        "“Go home.”\n\n"
        "Elizabeth found her sister Jane ill in bed, and stayed with Jane all day.\n\n"
        "In the evening Elizabeth closed the window, and Jane slept at last.\n\n"
        "“Nobody will come now,” said Jane.\n"
    )

    made = extract(scene * 3)

    assert "said to Elizabeth" not in made.text
    assert made.text.endswith("Elizabeth closed the window, and Jane slept at last.")
    assert "Hall" not in made.text.splitlines()[1]
