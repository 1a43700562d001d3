"""A history survives a crash: what was acknowledged is there, a torn line is dropped with a warning.

Its summaries are written once, whether or not the disk and the model take part.
"""

import os
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from creonowd.context.fragment import show
from creonowd.errors import DaemonError, ErrorCode
from creonowd.history.histories import Histories, History, StoredSummary, stored_summary
from creonowd.history.rounds import Message, Round, Speaker
from creonowd.history.summary import HistorySummary, extractive_summary
from creonowd.storage import journal
from testing.clients import over_stdio
from testing.conversations import realistic_round, user

KEY = ("prj_one", "chat")


def message(text: str) -> Message:
    return Message(role=Speaker.USER, content=text)


def place(folder: Path) -> Path:
    return folder / "histories" / "prj_one" / "chat.jsonl"


async def written(folder: Path, *texts: str) -> Path:
    histories = Histories(folder)
    for text in texts:
        async with histories.lock(KEY):
            await histories.append(KEY, [message(text)])
    return place(folder)


async def texts_and_warnings(folder: Path) -> tuple[list[str], list[str]]:
    history = await Histories(folder).read(KEY)
    return [one.request for one in history.rounds], show(history.warnings).warnings


async def test_a_torn_last_line_is_dropped_with_a_warning_and_cut_off(tmp_path: Path) -> None:
    path = await written(tmp_path, "one", "two", "三")
    path.write_bytes(path.read_bytes()[:-7])

    texts, warnings = await texts_and_warnings(tmp_path)
    histories = Histories(tmp_path)
    async with histories.lock(KEY):
        appended = await histories.append(KEY, [message("four")])

    assert texts == ["one", "two"]
    assert warnings[0].startswith("HISTORY_TORN_LINE")
    assert appended.warnings[0].code == "HISTORY_TORN_LINE"
    assert await texts_and_warnings(tmp_path) == (["one", "two", "four"], [])


async def test_long_histories_are_not_all_kept_in_memory(tmp_path: Path) -> None:
    histories = Histories(tmp_path)
    tracemalloc.start()
    try:
        for number in range(30):
            key = ("prj_one", f"chat{number}")
            async with histories.lock(key):
                await histories.append(key, [message("x" * 3_000_000)])
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert kept < 16_000_000
    assert (await histories.read(("prj_one", "chat0"))).rounds[0].request == "x" * 3_000_000


async def test_a_damaged_line_costs_itself_only(tmp_path: Path) -> None:
    path = await written(tmp_path, "one", "two", "three")
    path.write_bytes(path.read_bytes().replace(b"two", b"TWO"))

    texts, warnings = await texts_and_warnings(tmp_path)

    assert texts == ["one", "three"]
    assert warnings == ["HISTORY_DAMAGED_LINE: 1"]


async def test_a_newer_history_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = await written(tmp_path, "one")
    path.write_bytes(path.read_bytes().replace(b'"version":1', b'"version":9'))
    before = path.read_bytes()

    with pytest.raises(DaemonError) as caught:
        await texts_and_warnings(tmp_path)

    assert caught.value.code is ErrorCode.VERSION_TOO_NEW
    assert path.read_bytes() == before


async def test_a_summary_is_kept_beside_the_rounds_it_covers(tmp_path: Path) -> None:
    await written(tmp_path, "one", "two")
    kept = StoredSummary(covers=1, summary=HistorySummary(overall_goal="one"), by_model=True)
    first_rounds = (await Histories(tmp_path).read(KEY)).rounds[:1]
    await Histories(tmp_path).store_summary(KEY, kept, first_rounds)

    history = await Histories(tmp_path).read(KEY)

    assert history.summaries == {1: kept}
    assert len(history.rounds) == 2


async def test_a_summary_of_rounds_that_were_cleared_meanwhile_is_not_kept(tmp_path: Path) -> None:
    await written(tmp_path, "old one", "old two")
    histories = Histories(tmp_path)
    first_rounds = (await histories.read(KEY)).rounds[:1]
    await histories.clear(KEY)
    await written(tmp_path, "new one", "new two")

    await histories.store_summary(
        KEY, StoredSummary(covers=1, summary=HistorySummary()), first_rounds
    )

    assert (await histories.read(KEY)).summaries == {}
    assert await histories.summary_of(KEY, first_rounds) is None


@pytest.mark.skipif(os.name == "nt", reason="Windows has no limit on the size of a file")
async def test_a_disk_that_takes_only_half_a_line_loses_nothing_before_it(tmp_path: Path) -> None:
    import resource

    path = await written(tmp_path, "one", "two")
    before = path.read_bytes()
    histories = Histories(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    async with histories.lock(KEY):
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 40, hard))
        try:
            with pytest.raises(DaemonError) as caught:
                await histories.append(KEY, [message("three")])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        after = path.read_bytes()
        await histories.append(KEY, [message("three, again")])

    assert caught.value.code in {ErrorCode.IO_ERROR, ErrorCode.STORAGE_FULL}
    assert str(tmp_path) not in f"{caught.value} {caught.value.details}"
    assert after == before
    assert await texts_and_warnings(tmp_path) == (["one", "two", "three, again"], [])


@pytest.mark.skipif(os.name == "nt", reason="Windows asks for rights to make a link")
async def test_a_link_in_place_of_a_log_is_neither_read_nor_written(tmp_path: Path) -> None:
    others = tmp_path / "others.jsonl"
    others.write_bytes(journal.encode(b'{"messages":[]}'))
    path = place(tmp_path)
    path.parent.mkdir(parents=True)
    path.symlink_to(others)
    histories = Histories(tmp_path)

    with pytest.raises(DaemonError) as reading:
        await histories.read(KEY)
    with pytest.raises(DaemonError) as writing:
        journal.append(path, 0, b"{}")

    assert {reading.value.code, writing.value.code} == {ErrorCode.IO_ERROR}
    assert others.read_bytes() == journal.encode(b'{"messages":[]}')


async def test_a_killed_daemon_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    book = tmp_path / "book"
    book.mkdir()
    async with over_stdio(tmp_path / "user") as client:
        project = await client.call("project:create", {"rootPath": str(book)}, 30)
        where = {"projectId": project["projectId"], "conversationId": "chat"}
        for number in range(4):
            await client.call(
                "context:history:append", {**where, "messages": realistic_round(number)}, 30
            )
        assert client.process is not None
        client.process.kill()
        await client.process.wait()
    (path,) = (tmp_path / "user" / "histories").rglob("*.jsonl")
    path.write_bytes(path.read_bytes() + b'{"version":1,"checksum":"00')

    async with over_stdio(tmp_path / "user") as client:
        read = await client.call("context:history:read", where, 30)
        built = await client.call("context:build", {**where, "input": "x", "systemPrompt": "y"}, 30)
        await client.call("context:history:append", {**where, "messages": [user("on")]}, 30)
        after = await client.call("context:history:read", where, 30)

    assert read["totalRounds"] == 4
    assert read["warnings"][0].startswith("HISTORY_TORN_LINE")
    assert built["warnings"][0].startswith("HISTORY_TORN_LINE")
    assert len(read["rounds"][3]["messages"]) == 7
    assert after["totalRounds"] == 5
    assert after["warnings"] == []


class SlowSummariser:
    """A summariser that waits until it is let go on."""

    def __init__(self) -> None:
        self.asked = 0
        self.started = anyio.Event()
        self.go_on = anyio.Event()

    async def summarise(
        self, rounds: Sequence[Round], before: HistorySummary | None = None
    ) -> HistorySummary | None:
        """Return a summary with the number of this call."""
        self.asked += 1
        self.started.set()
        await self.go_on.wait()
        return HistorySummary(overall_goal=f"written by {self.asked}", left_off=str(len(rounds)))


async def talked(histories: Histories, *texts: str) -> History:
    async with histories.lock(KEY):
        messages = [Message(role=Speaker.USER, content=text) for text in texts]
        return await histories.append(KEY, messages)


async def test_two_turns_at_once_get_one_summary(tmp_path: Path) -> None:
    histories, slow = Histories(tmp_path), SlowSummariser()
    history = await talked(histories, "one", "two", "three")
    found: list[str] = []

    async def ask() -> None:
        stored = await stored_summary(slow, histories, KEY, history, 2)
        found.append(stored.summary.overall_goal)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            tasks.start_soon(ask)
            await slow.started.wait()
            slow.go_on.set()

    assert found == ["written by 1", "written by 1"]
    assert (await Histories(tmp_path).read(KEY)).summaries[2].by_model


async def test_others_may_append_and_clear_while_a_model_thinks(tmp_path: Path) -> None:
    histories, slow = Histories(tmp_path), SlowSummariser()
    history = await talked(histories, "one", "two", "three")

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stored_summary, slow, histories, KEY, history, 2)
            await slow.started.wait()
            await histories.clear(KEY)
            await talked(histories, "new one", "new two", "new three")
            slow.go_on.set()

    after = await histories.read(KEY)
    assert [one.request for one in after.rounds] == ["new one", "new two", "new three"]
    assert after.summaries == {}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no limit on the size of a file")
async def test_a_disk_that_takes_no_summary_costs_the_models_words_only(tmp_path: Path) -> None:
    import resource

    histories, slow = Histories(tmp_path), SlowSummariser()
    history = await talked(histories, "one", "two", "three")
    slow.go_on.set()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    resource.setrlimit(resource.RLIMIT_FSIZE, (history.size + 40, hard))
    try:
        stored = await stored_summary(slow, histories, KEY, history, 2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert stored.summary == extractive_summary(history.rounds[:2])
    assert not stored.by_model
    assert len((await Histories(tmp_path).read(KEY)).rounds) == 3
