"""Story: a tool prints too much; the model gets a ref and finds its way through the file."""

import zipfile
from pathlib import Path

import pytest

from testing.clients import over_stdio
from testing.novels import Chat, make_chat

LOG = "".join(
    f"2024-05-01 12:{n // 60 % 60:02d}:{n % 60:02d} 编译第{n}章 {'错误：缺少人物表' if n == 7777 else '完成'}\n"
    for n in range(20_000)
)


@pytest.mark.requirement("CF-002", "CF-035", "SK-003")
async def test_a_model_finds_its_way_with_list_grep_read_and_tail(tmp_path: Path) -> None:
    async with over_stdio(tmp_path / "user data") as client:
        chat = await make_chat(client, tmp_path / "novel")
        put = await chat.call(
            "context:files:put",
            kind="artifact",
            origin="terminal",
            content=LOG,
            hint="build output",
            key="snippet-1",
        )
        (ref,) = (await chat.call("context.list", kind="artifact"))["items"]
        found = await chat.call("context.grep", id=ref["id"], pattern="错误", contextLines=1)
        place = found["matches"][0]
        page = await chat.call("context.read", id=ref["id"], offset=place["offset"], limit=200)
        tail = await chat.call("context.tail", id=ref["id"], lines=1)

    assert len(put["preview"]) <= 4000
    assert ref["id"] == put["ref"]["id"]
    assert (found["totalMatches"], place["line"]) == (1, 7778)
    assert "第7776章" in place["before"][0]
    assert page["content"].startswith(place["content"])
    assert tail["content"] == LOG.splitlines(keepends=True)[-1]


async def test_files_survive_a_kill_and_a_move_to_another_machine(tmp_path: Path) -> None:
    archive = tmp_path / "chat.zip"
    async with over_stdio(tmp_path / "one") as client:
        chat = await make_chat(client, tmp_path / "novel")
        ref_id = await chat.put(LOG, key="call_1")
        assert client.process is not None
        client.process.kill()
        await client.process.wait()
    async with over_stdio(tmp_path / "one") as client:
        chat = Chat(client, chat.key["projectId"])
        page = await chat.call("context.read", id=ref_id)
        await chat.call("context:files:export", path=str(archive))
    async with over_stdio(tmp_path / "two") as client:
        chat = await make_chat(client, tmp_path / "novel")
        arrived = await chat.call("context:files:import", path=str(archive))
        moved = await chat.call("context.read", id=ref_id)

    assert page["content"] == moved["content"]
    assert LOG.startswith(page["content"])
    assert [item["id"] for item in arrived["items"]] == [ref_id]
    assert zipfile.is_zipfile(archive)
