"""A project's own sources: read when asked for, and once while unchanged."""

import json
import os
import threading
import tracemalloc
from collections.abc import AsyncGenerator, Generator, Sequence
from pathlib import Path

import anyio
import pytest

from creonowd.clock import SystemClock
from creonowd.context.budget import BudgetProfile, allowances_of
from creonowd.context.fragment import STABLE, ConstraintOrigin, Layer, Reason, show
from creonowd.context.plan import ContextRules, Need, Plan, SkillNeeds, wants
from creonowd.context.source import (
    GatheredFragments,
    Source,
    SourceQuery,
    SourceResult,
    gather,
    wanted_sources,
)
from creonowd.errors import DaemonError, ErrorCode, Language
from creonowd.redaction import Redactor
from creonowd.retrieval.project_index import Indexes
from creonowd.sources.passage_source import PassageSearch
from creonowd.sources.project_files import (
    ProjectSources,
    other_rules,
    outline_files,
    preferences,
    settings_texts,
    style_guide,
)
from creonowd.threads import BatchCache
from creonowd.workspace.constraints import Constraints
from creonowd.workspace.creonow_tree import (
    DEFAULTS,
    LIMIT_BYTES,
    CreonowFolder,
    Folder,
    Tree,
    make_tree,
)
from creonowd.workspace.projects import Project
from creonowd.workspace.watcher import Watcher
from testing.sources import result_of
from tests.sources.folders import folder, too_big, unreadable

ASK = SourceQuery(project_id="prj", skill_id="s", limit=200)
CONSTRAINTS = [
    {
        "id": f"con_{number:016}",
        "text": text,
        "type": "plot",
        "source": source,
        "priority": 100,
        "degradable": False,
        "updatedAt": "2026-01-01T00:00:00Z",
    }
    for number, (text, source) in enumerate([("严格第一人称", "user"), ("冷静", "kg")])
]

STYLE = ".creonow/rules/style.md"
TERMS = ".creonow/rules/terminology.json"

WORLD = ".creonow/settings/世界观.md"

PATH = ".creonow/settings/memory.json"


class SlowTree(Tree):
    """A tree that records which folders are read, and can hang at one of them."""

    def __init__(self) -> None:
        super().__init__(SystemClock())
        self.folders: list[CreonowFolder] = []
        self.hangs: CreonowFolder | None = None
        self.free = threading.Event()

    def read_all_now(self, root: Path, scope: CreonowFolder) -> Folder:
        """Read a folder, unless that hangs."""
        self.folders.append(scope)
        if scope is self.hangs:
            self.free.wait(60)
        return super().read_all_now(root, scope)


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
        "rules/constraints.json": json.dumps({"version": 2, "items": CONSTRAINTS}),
    }.items():
        path = tmp_path / ".creonow" / name
        path.write_text(text, encoding="utf-8")
        os.utime(path, old)
    return Project(project_id="prj", name="x", root=tmp_path)


@pytest.fixture
def tree() -> Generator[SlowTree]:
    tree = SlowTree()
    yield tree
    tree.free.set()


@pytest.fixture
async def sources(
    project: Project, tree: SlowTree, tmp_path: Path
) -> AsyncGenerator[ProjectSources]:
    clock = SystemClock()
    watcher = Watcher(clock)
    indexes = Indexes(
        tmp_path / "data", clock, watcher, lambda _project: {}, Redactor(), grace_seconds=60
    )
    async with indexes.run():
        yield ProjectSources(tree, Constraints(tree, clock, Redactor()), PassageSearch(indexes))


async def test_large_files_that_make_no_sense_are_not_kept_without_end(
    sources: ProjectSources, project: Project
) -> None:
    rules = project.root / ".creonow" / "rules" / "a.json"

    tracemalloc.start()
    try:
        for number in range(40):
            rules.write_bytes(b"%d{" % number + b" " * 2_000_000)
            await fetched(sources.of(project))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert kept < 30_000_000


async def fetched(sources: Sequence[Source]) -> dict[str, SourceResult]:
    with anyio.fail_after(60):
        return {source.name: await result_of(source, ASK) for source in sources}


async def test_every_file_belongs_to_one_source(sources: ProjectSources, project: Project) -> None:
    found = await fetched(sources.of(project))

    assert {name: [f.text for f in each.fragments] for name, each in found.items()} == {
        "style": ["短句。"],
        "rules": ["不用感叹号。"],
        "characters": ["冷静。"],
        "settings": ["海港。"],
        "outline": ["第一卷"],
        "threads": [],
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


async def gathered(
    sources: ProjectSources, project: Project, rules: ContextRules
) -> GatheredFragments:
    """Gather after a batch of reads, as the engine does."""
    plan = plan_for(rules)
    wanted, cache = wanted_sources(plan, sources.of(project)), BatchCache()
    for source in wanted:
        source.read_ahead(cache)
    with anyio.fail_after(60):
        return await gather(plan, wanted)


def plan_for(rules: ContextRules, timeout_ms: int = 10_000) -> Plan:
    return Plan(
        project_id="prj",
        document_id="a.md",
        skill=SkillNeeds(skill_id="s", rules=rules),
        allowances=allowances_of(BudgetProfile()),
        source_timeout_ms=timeout_ms,
    )


async def test_nothing_that_a_skill_did_not_ask_for_is_read(
    sources: ProjectSources, tree: SlowTree, project: Project
) -> None:
    await gathered(sources, project, ContextRules(style_guide=True))

    assert tree.folders == [CreonowFolder.RULES]


async def test_a_folder_that_serves_several_sources_is_read_once(
    sources: ProjectSources, tree: SlowTree, project: Project
) -> None:
    await gathered(sources, project, ContextRules(characters=True, outline=True, retrieval=True))

    assert sorted(tree.folders) == sorted(
        [
            CreonowFolder.RULES,
            CreonowFolder.CHARACTERS,
            CreonowFolder.SETTINGS,
            CreonowFolder.THREADS,
        ]
    )


async def test_a_folder_that_hangs_costs_its_own_sources_only(
    sources: ProjectSources, tree: SlowTree, project: Project
) -> None:
    tree.hangs = CreonowFolder.CHARACTERS
    plan = plan_for(ContextRules(characters=True, style_guide=True), timeout_ms=1000)

    with anyio.fail_after(60):
        found = await gather(plan, wanted_sources(plan, sources.of(project)))

    assert [f.text for f in found.fragments[Layer.RULES]] == [
        "短句。",
        "不用感叹号。",
        "严格第一人称",
        "冷静",
    ]
    assert [f.text for f in found.fragments[Layer.SETTINGS]] == ["海港。"]
    assert {f.source: f.kind for f in found.failures} == {
        "characters": "timeout",
        "mentioned": "timeout",
    }


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
        Need.OUTLINE: ["outline", "threads"],
        Need.USER_PREFERENCES: ["memory"],
        Need.RETRIEVAL: ["retrieval"],
    }


async def test_a_failure_of_each_has_its_warning(sources: ProjectSources, project: Project) -> None:
    warnings = {s.name: s.unavailable.text(Language.CHINESE) for s in sources.of(project)}

    assert warnings["memory"] == "MEMORY_UNAVAILABLE: 记忆数据未注入"
    assert warnings["constraints"].startswith("CONSTRAINTS_UNAVAILABLE: ")
    assert warnings["retrieval"] == "RAG_UNAVAILABLE: 检索数据未注入"
    assert {s.layer for s in sources.of(project)} == {*STABLE, Layer.RETRIEVED}


async def test_a_project_folder_that_is_gone_is_a_failure_and_no_empty_folder(
    sources: ProjectSources, project: Project
) -> None:
    project.root.rename(project.root.with_name("elsewhere"))
    style = next(source for source in sources.of(project) if source.name == "style")

    with anyio.fail_after(60), pytest.raises(DaemonError) as caught:
        await result_of(style, ASK)

    assert caught.value.code is ErrorCode.NOT_FOUND
    assert "bring it back" in caught.value.message


@pytest.mark.requirement("CN-002")
def test_style_and_terminology_are_the_guide_and_the_rest_is_not() -> None:
    files = folder(
        {
            STYLE: "# Style\n\n短句为主。\r\n",
            TERMS: '{"terms": [{"term": "灵脉", "note": "不译"}]}',
            ".creonow/rules/对白.md": "不用感叹号。",
            ".creonow/rules/constraints.json": '{"version": 1, "items": []}',
        }
    )

    guide, rest = style_guide(files), other_rules(files)

    assert [(f.source_ref, f.text, f.whole) for f in guide.fragments] == [
        (STYLE, "# Style\n\n短句为主。\r\n", False),
        (TERMS, '{"terms":[{"note":"不译","term":"灵脉"}]}', True),
    ]
    assert [f.source_ref for f in rest.fragments] == [".creonow/rules/对白.md"]


def test_files_that_ensure_made_say_nothing() -> None:
    files = folder({f".creonow/{path}": data for path, data in DEFAULTS.items()})

    assert not style_guide(files).fragments
    assert not other_rules(files).fragments


def test_a_blank_file_is_no_candidate() -> None:
    files = folder({".creonow/rules/空.md": " \n\n", STYLE: ""})

    assert not other_rules(files).fragments
    assert not style_guide(files).fragments


@pytest.mark.requirement("CN-043")
def test_what_cannot_be_used_is_left_out_with_its_reason_and_a_warning() -> None:
    files = folder(
        {".creonow/rules/a.json": "{broken", ".creonow/rules/b.md": b"\xff\xfe\xff"},
        {".creonow/rules/c.md": unreadable(), ".creonow/rules/d.md": too_big()},
    )

    fetched = other_rules(files)

    assert {item.source_ref[-6:]: item.reason for item in fetched.left_out} == {
        "a.json": Reason.INVALID_FORMAT,
        "s/b.md": Reason.INVALID_FORMAT,
        "s/c.md": Reason.READ_ERROR,
        "s/d.md": Reason.TOO_LARGE,
    }
    assert ".creonow/rules/c.md" in [warning.source_ref for warning in fetched.warnings]
    assert not fetched.fragments


def test_a_byte_order_mark_is_not_text() -> None:
    fetched = style_guide(folder({STYLE: b"\xef\xbb\xbfx"}))

    assert [f.text for f in fetched.fragments] == ["x"]


@pytest.mark.requirement("CN-012")
def test_every_text_but_memory_and_outline_is_a_setting() -> None:
    files = folder(
        {
            WORLD: "近未来的海港。",
            ".creonow/settings/地理/港口.txt": "三面环山。",
            ".creonow/settings/纪年.json": '{"b": 1, "a": 2}',
            ".creonow/settings/memory.json": '{"version": 1, "rules": []}',
            ".creonow/settings/outline.md": "第一卷",
            ".creonow/settings/old/outline.md": "旧稿",
        }
    )

    texts, plan = settings_texts(files), outline_files(files)

    assert [f.source_ref.removeprefix(".creonow/settings/") for f in texts.fragments] == [
        "old/outline.md",
        "世界观.md",
        "地理/港口.txt",
        "纪年.json",
    ]
    assert [f.source_ref for f in plan.fragments] == [".creonow/settings/outline.md"]


@pytest.mark.parametrize(
    ("text", "confidence", "body"),
    [
        ("没有前言。", None, "没有前言。"),
        ("---\nconfidence: 0.4\n---\n也许有海。", 0.4, "也许有海。"),
        ("---\r\nconfidence: 1\r\n---\r\n\r\n有海。\r\n", 1.0, "有海。\r\n"),
        ("---\ntitle: x\n---\n有海。", None, "有海。"),
        ("---\n分割线而已", None, "---\n分割线而已"),
        ("---\n分割线而已\n---\n有海。", None, "---\n分割线而已\n---\n有海。"),
    ],
)
def test_confidence_is_read_from_front_matter_which_is_not_sent(
    text: str, confidence: float | None, body: str
) -> None:
    (fragment,) = settings_texts(folder({WORLD: text})).fragments

    assert fragment.confidence == confidence
    assert fragment.text == body


def test_a_file_of_front_matter_alone_says_nothing_to_the_model() -> None:
    (fragment,) = settings_texts(folder({WORLD: "---\nconfidence: 1\n---\n"})).fragments

    assert fragment.text == ""


def test_json_claims_its_confidence_in_a_key() -> None:
    files = folder({".creonow/settings/a.json": '{"confidence": 0.25, "x": 1}'})

    (fragment,) = settings_texts(files).fragments

    assert fragment.confidence == 0.25
    assert fragment.whole


@pytest.mark.parametrize("claimed", ["1.5", "-0.1", "high", "true", "[1]"])
def test_a_confidence_that_is_none_leaves_the_file_out(claimed: str) -> None:
    fetched = settings_texts(folder({WORLD: f"---\nconfidence: {claimed}\n---\n有海。"}))

    assert [item.reason for item in fetched.left_out] == [Reason.INVALID_FORMAT]
    assert show(fetched.warnings).warnings[0].startswith(f"SETTINGS_UNAVAILABLE: {WORLD}")


def test_rules_have_text_and_confidence() -> None:
    rules = [
        {"id": "short", "text": "动作场景偏好短句", "confidence": 0.9},
        {"text": "少用成语", "confidence": 0.5},
        {"text": "偏好雨景"},
    ]

    fetched = preferences(folder({PATH: json.dumps({"version": 1, "rules": rules})}))

    assert [(f.source_ref, f.text, f.confidence) for f in fetched.fragments] == [
        (f"{PATH}#short", "动作场景偏好短句", 0.9),
        (f"{PATH}#2", "少用成语", 0.5),
        (f"{PATH}#3", "偏好雨景", 1.0),
    ]
    assert not fetched.warnings


def test_no_file_is_no_memory() -> None:
    fetched = preferences(folder({}))

    assert not fetched.fragments
    assert not fetched.warnings


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"rules": []}', '{"version": 2, "rules": []}', '{"version": 1}', "[" * 99999],
)
def test_a_file_that_makes_no_sense_costs_the_memory_and_a_warning(text: str) -> None:
    fetched = preferences(folder({PATH: text}))

    assert [warning.code for warning in fetched.warnings] == ["MEMORY_UNAVAILABLE"]
    assert [(item.source_ref, item.reason) for item in fetched.left_out] == [
        (PATH, Reason.INVALID_FORMAT)
    ]


def test_a_file_that_cannot_be_read_does_too() -> None:
    fetched = preferences(folder({}, {PATH: unreadable()}))

    assert [warning.code for warning in fetched.warnings] == ["MEMORY_UNAVAILABLE"]
    assert fetched.left_out[0].reason is Reason.READ_ERROR


@pytest.mark.parametrize(
    "rule", [{"text": "x", "confidence": 1.5}, {"text": ""}, {"text": 7}, "x", {"confidence": 1}]
)
def test_a_rule_that_makes_no_sense_costs_only_itself(rule: object) -> None:
    rules = [rule, {"text": "少用成语"}]

    fetched = preferences(folder({PATH: json.dumps({"version": 1, "rules": rules})}))

    assert [f.text for f in fetched.fragments] == ["少用成语"]
    assert [item.source_ref for item in fetched.left_out] == [f"{PATH}#1"]
    assert [warning.code for warning in fetched.warnings] == ["MEMORY_UNAVAILABLE"]


@pytest.mark.parametrize(
    ("text", "line", "named"),
    [
        ('{"terms": 5}', 1, "terms"),
        ('{\n"terms": [5]}', 2, "terms"),
        ('{"terms": [],\n "banned": {}}', 2, "banned"),
        ("[]", None, "terms"),
        ("5", None, "terms"),
        ('{"terms": [\n', 2, "JSON"),
    ],
)
def test_a_terminology_of_the_wrong_shape_is_left_out_and_named(
    text: str, line: int | None, named: str
) -> None:
    fetched = style_guide(folder({TERMS: text}))

    assert not fetched.fragments
    assert [(one.source_ref, one.reason) for one in fetched.left_out] == [
        (TERMS, Reason.INVALID_FORMAT)
    ]
    (warning,) = fetched.warnings
    assert warning.text().startswith(f"RULES_UNAVAILABLE: {TERMS}")
    assert named in warning.text()
    assert dict(warning.details).get("line") == line


@pytest.mark.parametrize(
    "text",
    [
        '{"terms": ["灵石"]}',
        '{"banned": "灵晶"}',
        '{"terms": [{"term": "a"}], "note": 5}',
        '{"a": 1}',
    ],
)
def test_any_terminology_that_can_be_read_is_kept(text: str) -> None:
    fetched = style_guide(folder({TERMS: text}))

    assert [fragment.source_ref for fragment in fetched.fragments] == [TERMS]
    assert not fetched.warnings


def test_a_file_that_is_no_text_says_so_in_either_language() -> None:
    fetched = settings_texts(folder({WORLD: b"\xff\xfe\xfd\x81"}))

    (warning,) = fetched.warnings
    assert "UTF-8" in warning.text(Language.ENGLISH)
    assert "UTF-8 文本" in warning.text(Language.CHINESE)
