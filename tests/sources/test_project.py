"""A project's own sources, over a real folder: read when asked for, and once while unchanged."""

import os
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from creonowd.clock import SystemClock
from creonowd.context.fragment import STABLE, ConstraintOrigin, Layer, Reason
from creonowd.context.plan import Ask, ContextRules, Fetched, Need, Source, wants
from creonowd.errors import DaemonError, ErrorCode
from creonowd.redaction import Redactor
from creonowd.retrieval.indexes import Indexes
from creonowd.sources.passage_source import Passages
from creonowd.sources.project_files import ProjectSources
from creonowd.workspace.creonow_tree import LIMIT_BYTES, Tree, make_tree
from creonowd.workspace.projects import Project
from creonowd.workspace.watcher import Watcher

ASK = Ask(project_id="prj", skill_id="s", limit=200)


class HeldConstraints:
    """A store that holds what it is told."""

    def __init__(self, *constraints: tuple[str, str]) -> None:
        self.held = constraints

    def read_now(self, root: Path) -> Any:
        constraints: Sequence[Any] = [
            SimpleNamespace(id=f"con_{i}", text=text, source=source, priority=100, degradable=False)
            for i, (text, source) in enumerate(self.held)
        ]
        return SimpleNamespace(data=repr(self.held).encode(), constraints=constraints)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    make_tree(tmp_path)
    old = (1_600_000_000, 1_600_000_000)
    for name, text in {
        "rules/style.md": "短句。",
        "rules/对白.md": "不用感叹号。",
        "characters/林远.md": "冷静。",
        "settings/世界观.md": "海港。",
        "settings/outline.md": "第一卷",
        "settings/memory.json": '{"version": 1, "rules": [{"text": "少用成语"}]}',
    }.items():
        path = tmp_path / ".creonow" / name
        path.write_text(text, encoding="utf-8")
        os.utime(path, old)
    return Project(project_id="prj", name="x", root=tmp_path)


@pytest.fixture
async def sources(project: Project, tmp_path: Path) -> AsyncGenerator[ProjectSources]:
    clock = SystemClock()
    indexes = Indexes(tmp_path / "data", clock, Watcher(clock), lambda _project: {}, Redactor())
    async with indexes.running():
        yield ProjectSources(
            Tree(clock),
            HeldConstraints(("严格第一人称", "user"), ("冷静", "kg")),
            Passages(indexes),
        )


async def fetched(sources: Sequence[Source]) -> dict[str, Fetched]:
    with anyio.fail_after(60):
        return {source.name: await source.fetch(ASK) for source in sources}


async def test_every_file_belongs_to_one_source(sources: ProjectSources, project: Project) -> None:
    found = await fetched(sources.of(project))

    assert {name: [f.text for f in each.fragments] for name, each in found.items()} == {
        "style": ["短句。"],
        "rules": ["不用感叹号。"],
        "characters": ["冷静。"],
        "settings": ["海港。"],
        "outline": ["第一卷"],
        "memory": ["少用成语"],
        "constraints": ["严格第一人称", "冷静"],
        "mentioned": [],
        "retrieval": [],
    }
    origins = [f.origin for f in found["constraints"].fragments]
    assert origins == [ConstraintOrigin.USER, ConstraintOrigin.KG]


async def test_what_has_not_changed_is_the_very_same_value(
    sources: ProjectSources, project: Project
) -> None:
    before, after = await fetched(sources.of(project)), await fetched(sources.of(project))

    stable = [source.name for source in sources.of(project) if source.layer in STABLE]
    assert all(before[name] is after[name] for name in stable)


async def test_what_was_made_of_large_files_is_let_go(
    sources: ProjectSources, project: Project
) -> None:
    """An author saves all day, and each version of the folder would take its own memory."""
    setting = project.root / ".creonow/settings/世界观.md"
    before = await fetched(sources.of(project))

    for version in range(10):
        setting.write_text(f"{version}".ljust(3_000_000), encoding="utf-8")
        await fetched(sources.of(project))
    setting.write_text("海港。", encoding="utf-8")
    os.utime(setting, (1_600_000_000, 1_600_000_000))
    after = await fetched(sources.of(project))

    assert before["settings"] == after["settings"]
    assert before["settings"] is not after["settings"]


async def test_a_file_that_cannot_be_read_costs_no_second_look_at_the_others(
    sources: ProjectSources, project: Project
) -> None:
    (project.root / ".creonow/settings/巨著.md").write_bytes(bytes(LIMIT_BYTES + 1))

    before, after = await fetched(sources.of(project)), await fetched(sources.of(project))

    assert [left.reason for left in after["settings"].left_out] == [Reason.TOO_LARGE]
    assert before["settings"] is after["settings"]


async def test_a_change_on_disk_is_seen_at_once(sources: ProjectSources, project: Project) -> None:
    await fetched(sources.of(project))

    (project.root / ".creonow/rules/style.md").write_text("长句。", encoding="utf-8")
    found = await fetched(sources.of(project))

    assert [f.text for f in found["style"].fragments] == ["长句。"]


async def test_rules_and_constraints_are_asked_by_every_skill(
    sources: ProjectSources, project: Project
) -> None:
    always = [s.name for s in sources.of(project) if wants(ContextRules(), s.need)]

    assert always == ["rules", "constraints"]


async def test_each_need_has_its_sources(sources: ProjectSources, project: Project) -> None:
    by_need: dict[Need, list[str]] = {}
    for source in sources.of(project):
        by_need.setdefault(source.need, []).append(source.name)

    assert by_need == {
        Need.STYLE_GUIDE: ["style"],
        Need.ALWAYS: ["rules", "constraints"],
        Need.CHARACTERS: ["characters", "settings"],
        Need.EVIDENCE: ["mentioned"],
        Need.OUTLINE: ["outline"],
        Need.USER_PREFERENCES: ["memory"],
        Need.RETRIEVAL: ["retrieval"],
    }


async def test_a_failure_of_each_has_its_warning(sources: ProjectSources, project: Project) -> None:
    told = {source.name: source.unavailable for source in sources.of(project)}

    assert told["memory"] == "MEMORY_UNAVAILABLE: 记忆数据未注入"
    assert told["constraints"].startswith("CONSTRAINTS_UNAVAILABLE: ")
    assert told["retrieval"] == "RAG_UNAVAILABLE: 检索数据未注入"
    assert {s.layer for s in sources.of(project)} == {*STABLE, Layer.RETRIEVED}


async def test_a_project_folder_that_is_gone_is_told_and_not_taken_for_an_empty_one(
    sources: ProjectSources, project: Project
) -> None:
    project.root.rename(project.root.with_name("elsewhere"))
    style = next(source for source in sources.of(project) if source.name == "style")

    with anyio.fail_after(60), pytest.raises(DaemonError) as caught:
        await style.fetch(ASK)

    assert caught.value.code is ErrorCode.NOT_FOUND
    assert "bring it back" in caught.value.message
