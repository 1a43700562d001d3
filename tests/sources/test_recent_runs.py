from pathlib import Path

import msgspec
import pytest

from creonowd.context.plan import Ask
from creonowd.sources.recent_runs import RecentRunsSource
from creonowd.workspace.runs import RunRecord, Runs

RUN = RunRecord(
    run_id="run_1",
    skill_id="builtin:continue",
    at_ms=1,
    provider="fake",
    model="m",
    prompt_hash="a",
    stable_prefix_hash="b",
    token_count=1,
    summary="",
)


def ask(count: int, document_id: str | None = "a.md") -> Ask:
    return Ask(
        project_id="prj_1",
        skill_id="s",
        limit=200,
        document_id=document_id,
        recent_summary=count,
    )


async def recorded(user_data: Path, count: int) -> RecentRunsSource:
    runs = Runs(user_data)
    for number in range(count):
        summary = msgspec.structs.replace(RUN, summary=f"第{number}次")
        await runs.record("prj_1", "a.md", summary)
    return RecentRunsSource(runs)


@pytest.mark.requirement("SK-034")
async def test_the_last_runs_are_given_oldest_first(tmp_path: Path) -> None:
    source = await recorded(tmp_path, 5)

    fetched = await source.fetch(ask(3))

    assert [fragment.text for fragment in fetched.fragments] == ["第2次", "第3次", "第4次"]
    assert [fragment.source_ref for fragment in fetched.fragments] == ["runs/3", "runs/4", "runs/5"]
    assert {fragment.score for fragment in fetched.fragments} == {1.0}


async def test_nothing_is_given_that_was_not_asked_for(tmp_path: Path) -> None:
    source = await recorded(tmp_path, 2)

    assert (await source.fetch(ask(0))).fragments == ()
    assert (await source.fetch(ask(3, "b.md"))).fragments == ()
    assert (await source.fetch(ask(3, None))).fragments == ()
    assert len((await source.fetch(ask(10))).fragments) == 2
