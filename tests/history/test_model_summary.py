"""Who summarises, once, and what happens if the disk or the model does not take part."""

import os
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from creonowd.history.histories import Histories, History
from creonowd.history.model_summary import stored_summary
from creonowd.history.rounds import Message, Round, Speaker
from creonowd.history.summary import HistorySummary, extractive_summary

KEY = ("prj_one", "chat")


class Slow:
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
    histories, slow = Histories(tmp_path), Slow()
    history = await talked(histories, "one", "two", "three")
    found: list[str] = []

    async def ask() -> None:
        written = await stored_summary(slow, histories, KEY, history, 2)
        found.append(written.summary.overall_goal)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            tasks.start_soon(ask)
            await slow.started.wait()
            slow.go_on.set()

    assert found == ["written by 1", "written by 1"]
    assert (await Histories(tmp_path).read(KEY)).summaries[2].by_model


async def test_others_may_append_and_clear_while_a_model_thinks(tmp_path: Path) -> None:
    histories, slow = Histories(tmp_path), Slow()
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

    histories, slow = Histories(tmp_path), Slow()
    history = await talked(histories, "one", "two", "three")
    slow.go_on.set()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    resource.setrlimit(resource.RLIMIT_FSIZE, (history.size + 40, hard))
    try:
        written = await stored_summary(slow, histories, KEY, history, 2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert written.summary == extractive_summary(history.rounds[:2])
    assert not written.by_model
    assert len((await Histories(tmp_path).read(KEY)).rounds) == 3


def test_a_long_conversation_is_extracted_step_by_step_as_all_at_once() -> None:
    messages = [Message(role=Speaker.USER, content=f"Do {n}. Then rest.") for n in range(40)]
    growing = [Round(index, [message]) for index, message in enumerate(messages)]

    stepwise = [extractive_summary(growing[:covers]) for covers in (3, 11, 12, 40)]

    anew = [
        extractive_summary(
            [Round(index, [message]) for index, message in enumerate(messages[:covers])]
        )
        for covers in (3, 11, 12, 40)
    ]
    assert stepwise == anew
    assert stepwise[-1].overall_goal == "Do 0. Then rest."
