"""The same request is answered from what was made before, and every change is seen at once."""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from creonowd.context.fragment import Layer
from creonowd.context.source import SourceResult
from creonowd.engine.services import Session
from creonowd.settings import Settings
from testing.clients import Client
from testing.novels import Novel, make_novel
from testing.sources import InMemorySource, piece

PATIENCE = 30
FIRST = "第一章\n\n林远推开门，雨还在下。\n"
SECOND = "第二章\n\n苏晴没有抬头。林远坐下了。\n"
SKILL = "---\nname: 续写\ncontext_rules:\n  surrounding: 400\n  retrieval: true\n---\n"


@pytest.fixture
async def novel(client: Client, tmp_path: Path) -> Novel:
    files = {
        ".creonow/rules/style.md": "短句为主。\n",
        ".creonow/characters/林远.md": "林远，冷静。\n",
        ".creonow/settings/世界观.md": "近未来的海港。\n",
        ".creonow/skills/续写/SKILL.md": f"{SKILL}请续写。\n",
        "01.md": FIRST,
        "02.md": SECOND,
    }
    made = await make_novel(client, tmp_path / "novel", files)
    await client.call(
        "context:retrieve",
        {**made.params, "documentId": "02.md", "cursorPosition": 0, "query": "雨", "wait": True},
    )
    return made


async def assemble(novel: Novel, **changes: Any) -> dict[str, Any]:
    here = {"skillId": None, "documentId": "02.md", "cursorPosition": len(SECOND)}
    return await novel.assemble(**{**here, **changes})


async def settled(novel: Novel, session: Session, **changes: Any) -> dict[str, Any]:
    """Assemble until the answer is kept: at first the index is still catching up."""
    with anyio.fail_after(PATIENCE):
        result = await assemble(novel, **changes)
        while not len(session.engine.answers):
            result = await assemble(novel, **changes)
        return result


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone reports changes in time")
async def test_where_nothing_changed_no_file_is_looked_at(
    novel: Novel, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await settled(novel, session)
    began = await again_quickly(novel, session)

    def fail(*_: Any) -> None:
        raise AssertionError

    with monkeypatch.context() as patch:
        patch.setattr(session.tree, "read_all_now", fail)
        patch.setattr(session.skills, "find_now", fail)
        patch.setattr(session.budgets, "effective_now", fail)
        # A busy machine may need so long that everything is looked at again.
        second = await assemble(novel) if session.clock.monotonic() - began < 0.5 else first

    assert first["prompt"] == second["prompt"]
    assert first["warnings"] == second["warnings"]


async def again_quickly(novel: Novel, session: Session) -> float:
    """Assemble until what was read is kept; return the time."""
    (project,) = await session.projects.list()
    with anyio.fail_after(PATIENCE):
        while True:
            began = session.clock.monotonic()
            await assemble(novel)
            if session.engine.cached_reads(project) is not None:
                return began


@pytest.mark.parametrize("daemon_settings", [Settings(e2e=True, warm_up=False, quick_checks=False)])
async def test_a_daemon_without_quick_checks_keeps_nothing_that_it_read(
    novel: Novel, session: Session
) -> None:
    (project,) = await session.projects.list()

    await settled(novel, session)

    assert session.engine.cached_reads(project) is None


async def test_a_file_that_cannot_be_used_counts_as_soon_as_it_is_mended(novel: Novel) -> None:
    place = novel.root / ".creonow/settings/世界观.md"

    for _ in range(3):
        place.write_text("---\nfrom: [1\n---\n海港。", encoding="utf-8")
        broken = await assemble(novel)
        place.write_text("内陆。", encoding="utf-8")
        mended = await assemble(novel)

        assert "SETTINGS_UNAVAILABLE" in str(broken["warnings"])
        assert "内陆" in mended["prompt"]


async def test_the_same_request_has_the_same_answer(novel: Novel, session: Session) -> None:
    first = await settled(novel, session)

    second = await assemble(novel)

    assert second == first | {"stablePrefixUnchanged": True}
    assert len(session.engine.answers) == 1


async def test_the_prefix_is_compared_with_that_of_the_call_before(
    novel: Novel, session: Session
) -> None:
    await settled(novel, session)
    novel.put(".creonow/rules/style.md", "长句为主。\n")
    other = await assemble(novel)
    novel.put(".creonow/rules/style.md", "短句为主。\n")

    back = await assemble(novel)

    assert other["prefixChange"]["sourceRef"] == ".creonow/rules/style.md"
    assert back["prefixChange"]["sourceRef"] == ".creonow/rules/style.md"
    assert back["stablePrefixUnchanged"] is False


Change = Callable[[Novel], Awaitable[Any]]


def puts(path: str, text: str) -> Change:
    async def change(novel: Novel) -> None:
        novel.put(path, text)

    return change


def calls(channel: str, **params: Any) -> Change:
    async def change(novel: Novel) -> None:
        await novel.client.call(channel, {**novel.params, **params})

    return change


async def accept_a_run(novel: Novel) -> None:
    run = await novel.run(skillId="builtin:continue", documentId="02.md", cursorPosition=5)
    await novel.client.call("ai:run:accept", {**novel.params, "runId": run["runId"]})


@pytest.mark.parametrize(
    ("change", "seen"),
    [
        (puts(".creonow/rules/style.md", "长句为主。\n"), "长句为主"),
        (puts(".creonow/rules/新.md", "不写梦。\n"), "不写梦"),
        (puts(".creonow/characters/苏晴.md", "苏晴，话少。\n"), "苏晴，话少"),
        (puts(".creonow/settings/世界观.md", "古代的山村。\n"), "古代的山村"),
        (puts(".creonow/threads/信.md", "---\nplanted: 01.md\n---\n那封信。\n"), "那封信"),
        (puts("大纲.md", "最后雨停。\n"), "最后雨停"),
        (puts("02.md", f"{SECOND}钟响了。\n"), "钟响了"),
        (puts("01.md", "第一章\n\n雪夜。林远没有来。\n"), "雪夜"),
        (puts(".creonow/project.json", '{"version": 1, "language": "en"}'), "## "),
        (calls("constraints:create", constraint={"text": "不提月亮"}), "不提月亮"),
        (calls("context:document:sync", documentId="02.md", version=1, text="新的一页。"), "新的一页"),
        (accept_a_run, "续写"),
    ],
)  # fmt: skip
async def test_a_change_is_seen_by_the_next_request(
    novel: Novel, session: Session, change: Change, seen: str
) -> None:
    before = await settled(novel, session)

    await change(novel)
    after = await assemble(novel)

    assert after["prompt"] != before["prompt"]
    assert seen in after["prompt"]


@pytest.mark.parametrize("name", ["03.md", "第二卷/03.md"])
async def test_a_document_that_was_not_there_is_seen_as_soon_as_it_is(
    novel: Novel, session: Session, name: str
) -> None:
    for _ in range(3):
        await again_quickly(novel, session)
        missing = await assemble(novel, documentId=name)
        assert "IMMEDIATE_UNAVAILABLE" in str(missing["warnings"])

        novel.put(name, "第三章\n\n雪停了。\n")
        there = await assemble(novel, documentId=name)
        (novel.root / name).unlink()

        assert "雪停了" in there["prompt"]


async def test_a_budget_that_changed_is_kept_at_once(novel: Novel, session: Session) -> None:
    await settled(novel, session)
    budget = await novel.client.call("context:budget:get", novel.params)

    changed = {"version": budget["version"], "totalBudgetTokens": 3000}
    await novel.client.call("context:budget:update", {**novel.params, **changed})
    after = await assemble(novel)

    assert after["budget"]["maxInputTokens"] == 3000


async def test_a_skill_that_changed_is_seen_at_once(novel: Novel, session: Session) -> None:
    await settled(novel, session, skillId="project:续写")

    novel.put(".creonow/skills/续写/SKILL.md", f"{SKILL}请改写。\n")
    after = await assemble(novel, skillId="project:续写")

    assert "请改写。" in after["prompt"]


async def test_what_cannot_say_whether_it_changed_is_asked_each_time(
    novel: Novel, session: Session
) -> None:
    await settled(novel, session)
    source = InMemorySource(Layer.SETTINGS, "kg", [piece(Layer.SETTINGS, "kg/1", "图谱甲")])
    session.engine.source_providers.append(_Provider(source))

    first = await assemble(novel)
    source.answer = SourceResult(fragments=(piece(Layer.SETTINGS, "kg/1", "图谱乙"),))
    second = await assemble(novel)

    assert "图谱甲" in first["prompt"]
    assert "图谱乙" in second["prompt"]


async def test_a_failure_is_not_repeated_from_memory(novel: Novel, session: Session) -> None:
    place = novel.root / ".creonow" / "rules" / "constraints.json"
    place.write_text("no JSON", "utf-8")
    broken = await assemble(novel)

    place.unlink()
    mended = await assemble(novel)

    assert any("CONSTRAINTS_UNAVAILABLE" in warning for warning in broken["warnings"])
    assert not any("CONSTRAINTS_UNAVAILABLE" in warning for warning in mended["warnings"])


async def test_a_folder_that_cannot_be_read_costs_its_sources_only(novel: Novel) -> None:
    folder = novel.root / ".creonow" / "characters"
    (folder / "林远.md").unlink()
    folder.rmdir()
    folder.write_text("in the way", "utf-8")

    found = await assemble(novel)

    assert "短句为主" in found["prompt"]
    assert any("CHARACTERS_UNAVAILABLE" in warning for warning in found["warnings"])


async def test_without_an_index_the_passages_are_missing_only(
    client: Client, session: Session, tmp_path: Path
) -> None:
    (session.user_data / "retrieval").write_text("in the way", "utf-8")
    files = {"01.md": FIRST, "02.md": SECOND}
    made = await make_novel(client, tmp_path / "unindexed", files)
    await assemble(made)
    index = session.indexes.of(await session.projects.find(made.project_id))
    with anyio.fail_after(PATIENCE):
        while index.problem is None:
            await index.step(after=index.steps)

    found = await assemble(made)

    assert "林远坐下了" in found["prompt"]
    assert any("RAG_UNAVAILABLE" in warning for warning in found["warnings"])


class _Provider:
    def __init__(self, source: InMemorySource) -> None:
        self._source = source

    def of(self, project: object) -> list[InMemorySource]:
        del project
        return [self._source]
