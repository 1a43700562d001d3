"""Story: knowledge, memory and a vector index live in another process, and that process fails.

One daemon serves all of it; each test has a project of its own and real hosts beside it.
Scenarios of seed 2 are named after it.
"""

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from creonowd.testing.harness import Harness
from testing.clients import PATIENCE, RpcError, environment
from testing.novels import NovelFolder, warnings_beside_index

REPOSITORY = Path(__file__).parents[1]
SENTENCE = "他推开门，雨还在下，檐水滴在石阶上，她没有抬头。\n"
CHAPTER = "这是第十章。\n\n林远推开门，雨还在下。\n苏晴没有抬头。\n"
GRAPH = {"layer": "rules", "name": "图谱", "kind": "kg"}
INDEX = {"layer": "retrieved", "name": "向量", "kind": "rag"}
KG_UNAVAILABLE = "KG_UNAVAILABLE: 知识图谱数据未注入"
OF_THE_GRAPH = "林远是北城的更夫"

Result = dict[str, Any]


class HostedNovel(NovelFolder):
    """A novel with a chapter in a daemon that runs, and hosts beside it."""

    def __init__(self, harness: Harness, name: str) -> None:
        made = harness.make_project(name, {"chapters/10.md": CHAPTER})
        cursor = {
            "documentId": "chapters/10.md",
            "cursorPosition": len(CHAPTER),
            "skillId": "通用",
        }
        super().__init__(Path(made["rootPath"]), made["projectId"], **cursor)
        self.harness = harness

    def assemble(self, **changes: Any) -> Result:
        return self.harness.call("context:assemble", self.payload(**changes))

    def failure(self, **changes: Any) -> RpcError:
        return self.harness.failure("context:assemble", self.payload(**changes))

    def wait_for_index(self) -> None:
        """Wait until the index holds all documents."""
        place = {"documentId": "chapters/10.md", "cursorPosition": 0, "query": "林远"}
        self.harness.call("context:retrieve", {**self.params, "wait": True, **place})

    def host(
        self, manner: str, offer: dict[str, Any], **more: Any
    ) -> AbstractContextManager["subprocess.Popen[bytes]"]:
        """Run a host of this project that has registered, until the block ends."""
        return _running(self.harness.user_data, manner, offer | self.params | more)


@contextmanager
def _running(
    user_data: Path, manner: str, offer: dict[str, Any]
) -> Generator["subprocess.Popen[bytes]"]:
    command = [sys.executable, "-m", "e2e.host", str(user_data), manner, json.dumps(offer)]
    with subprocess.Popen(
        command,
        env=environment(),
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        # A host that cannot register loses its patience and ends, which ends this read too.
        assert process.stdout.readline().strip() == b"ready"
        yield process
        process.stdin.close()
        process.wait(PATIENCE)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Generator[Harness]:
    with Harness(tmp_path_factory.mktemp("宿主 hosts")) as started:
        yield started


@pytest.fixture
def novel(daemon: Harness, request: pytest.FixtureRequest) -> HostedNovel:
    return HostedNovel(daemon, request.node.name.replace("[", " ").strip("]"))


def refs(result: Result, layer: str) -> set[str]:
    return {entry["sourceRef"] for entry in result["trimEvidence"] if entry["layer"] == layer}


def codes(result: Result) -> set[str]:
    return {warning.partition(":")[0] for warning in result["warnings"]}


@pytest.mark.requirement("CE-008", "CN-004", "CE-004")
def test_four_layers_are_assembled(novel: HostedNovel) -> None:
    """四层上下文正常组装."""
    novel.put(".creonow/rules/style.md", "叙述人称：第一人称\n")
    novel.put(".creonow/characters/林远.md", "林远，冷静。\n")
    memory = {"version": 1, "rules": [{"text": "动作场景偏好短句", "confidence": 0.9}]}
    novel.put(".creonow/settings/memory.json", json.dumps(memory, ensure_ascii=False))
    novel.put("chapters/03.md", "# 第三章\n\n林远第一次推开那扇门时，苏晴还不认识他。\n")
    novel.wait_for_index()

    with novel.host("memory", INDEX, kind="memory", name="情景"):
        result = novel.assemble()

    order = [
        result["prompt"].index(said)
        for said in (
            *("第一人称", "林远，冷静。", "动作场景偏好短句"),
            *("苏晴还不认识他", "上回也写过", "苏晴没有抬头。\n"),
        )
    ]
    assert order == sorted(order)
    assert refs(result, "retrieved") == {"chapters/03.md#summary", "memory:episode-1"}
    assert warnings_beside_index(result) == ["SKILL_UNKNOWN"]


def test_a_host_that_answers_is_in_the_prompt(novel: HostedNovel) -> None:
    with novel.host("fine", GRAPH):
        result = novel.assemble()

    assert OF_THE_GRAPH in result["systemPrompt"]
    assert refs(result, "rules") == {"kg:林远"}
    assert "SOURCE_WARNING: 图谱: 图谱停在昨天" in result["warnings"]


def test_nothing_dynamic_is_sent_to_a_host_of_the_stable_layers(novel: HostedNovel) -> None:
    with novel.host("echo", GRAPH), novel.host("echo", INDEX):
        result = novel.assemble(additionalInput="写紧张些")

    stable = f'"layer":"rules","limit":200,"name":"图谱","projectId":"{novel.project_id}"'
    asked = result["systemPrompt"].replace('": "', '":"').replace(", ", ",").replace(": ", ":")
    assert f'问：{{{stable},"skillId":"通用"}}' in asked
    assert '"documentId": "chapters/10.md"' in result["userContent"]
    assert "写紧张些" in result["userContent"].partition('"query": ')[2].partition('"skillId"')[0]


def test_a_constraint_of_the_graph_is_numbered_with_the_others(novel: HostedNovel) -> None:
    wanted = {"projectId": novel.project_id, "constraint": {"text": "严格第一人称叙述"}}
    novel.harness.call("constraints:create", wanted)

    with novel.host("constraint", GRAPH):
        result = novel.assemble()

    assert "[创作约束 - 不可违反]\n1. 严格第一人称叙述\n2. 林远不会大声喊叫\n" in result["prompt"]


@pytest.mark.requirement("CE-054", "CE-055")
@pytest.mark.parametrize("manner", ["slow", "dead", "malformed_answer"])
def test_the_graph_is_not_available(novel: HostedNovel, manner: str) -> None:
    """上下文组装中某层数据源不可用."""
    novel.put(".creonow/rules/style.md", "短句为主。\n")

    with novel.host(manner, GRAPH, timeoutMs=200):
        result = novel.assemble()

    assert KG_UNAVAILABLE in result["warnings"]
    assert refs(result, "rules") == {".creonow/rules/style.md"}
    assert "苏晴没有抬头。" in result["userContent"]


@pytest.mark.requirement("CE-069", "CE-070")
@pytest.mark.parametrize(
    ("offer", "warning"),
    [
        (
            {"layer": "settings", "kind": "memory"},
            "MEMORY_UNAVAILABLE: The memory did not answer; its part is missing.",
        ),
        (
            {"layer": "retrieved", "kind": "memory"},
            "MEMORY_UNAVAILABLE: The memory did not answer; its part is missing.",
        ),
        (
            {"layer": "retrieved", "kind": "rag"},
            "RAG_UNAVAILABLE: Retrieval did not answer; its part is missing.",
        ),
        ({"layer": "retrieved", "kind": "custom"}, "SOURCE_UNAVAILABLE: 图谱"),
    ],
)
def test_each_kind_of_host_has_its_own_warning(
    novel: HostedNovel, offer: dict[str, Any], warning: str
) -> None:
    with novel.host("malformed_answer", GRAPH, **offer):
        result = novel.assemble()

    assert warnings_beside_index(result) == ["SKILL_UNKNOWN", warning]
    assert "苏晴没有抬头。" in result["userContent"]


@pytest.mark.requirement("CE-072")
def test_chunks_that_make_no_sense_cost_themselves(novel: HostedNovel) -> None:
    with novel.host("malformed_chunks", GRAPH):
        result = novel.assemble()

    entries = [entry for entry in result["trimEvidence"] if entry["layer"] == "rules"]
    decisions = sorted((entry["action"], entry["reason"]) for entry in entries)
    (warning,) = [text for text in result["warnings"] if text.startswith("KG_UNAVAILABLE")]
    assert OF_THE_GRAPH in result["systemPrompt"]
    assert "9 块数据中有 8 块不合格式，未注入" in warning
    assert decisions == [("dropped", "invalid_format")] * 8 + [("kept", "over_budget")]


@pytest.mark.requirement("CE-081", "CE-082", "CE-077")
def test_text_of_another_project_is_refused(novel: HostedNovel) -> None:
    """跨项目上下文注入被阻断."""
    with novel.host("foreign_project", INDEX):
        error = novel.failure()

    line = novel.harness.log(
        "context_scope_violation", where=lambda line: line["project_id"] == novel.project_id
    )
    assert error.code == "CONTEXT_SCOPE_VIOLATION"
    assert error.details["source"] == "向量"
    assert "prj_someone_elses" not in f"{error}{error.data}{line}"
    assert line["level"] == "warning"


@pytest.mark.requirement("CE-089")
def test_two_hundred_and_fifty_chunks_are_too_many(novel: HostedNovel) -> None:
    with novel.host("generous", INDEX):
        result = novel.assemble()

    dropped = [e["sourceRef"] for e in result["trimEvidence"] if e["rule"] == "chunk_limit"]
    assert "CONTEXT_RETRIEVED_CHUNK_LIMIT" in codes(result)
    assert sorted(dropped) == [f"rag:{n:03}" for n in range(50)]
    assert result["layers"]["retrieved"]["chunks"] == 200


@pytest.mark.requirement("CE-097")
def test_ninety_thousand_tokens_are_too_much(novel: HostedNovel) -> None:
    """超大上下文输入保护."""
    with novel.host("heavy", INDEX):
        error = novel.failure()

    assert error.code == "CONTEXT_INPUT_TOO_LARGE"
    assert {named["source"] for named in error.details["heaviest"]} == {"向量"}
    assert all(named["sourceRef"].startswith("rag:") for named in error.details["heaviest"])
    assert "narrow the retrieval" in str(error)


@pytest.mark.requirement("CE-027")
def test_retrieved_text_leaves_by_falling_score(novel: HostedNovel) -> None:
    """Token 超出预算——裁剪 Retrieved 层."""
    novel.put(".creonow/rules/style.md", "短句为主。\n" * 150)
    novel.put(".creonow/settings/世界观.md", "近未来的海港。\n" * 150)
    novel.put("chapters/10.md", SENTENCE * 120)

    with novel.host("ten_scores", INDEX):
        result = novel.assemble(cursorPosition=2500)

    kept = {e["sourceRef"] for e in result["trimEvidence"] if e["action"] == "kept"}
    scored = sorted(ref for ref in kept if ref.startswith("rag:"))
    assert 0 < len(scored) < 10
    assert scored == [f"rag:{n}" for n in range(10 - len(scored), 10)]
    assert {".creonow/rules/style.md", ".creonow/settings/世界观.md", "chapters/10.md"} <= kept
    assert result["tokenCount"] <= 6000


def test_two_hosts_and_one_of_them_is_slow(novel: HostedNovel) -> None:
    with novel.host("fine", GRAPH), novel.host("slow", INDEX, timeoutMs=200):
        result = novel.assemble()

    assert OF_THE_GRAPH in result["systemPrompt"]
    assert "RAG_UNAVAILABLE: Retrieval did not answer; its part is missing." in result["warnings"]
    assert KG_UNAVAILABLE not in result["warnings"]


def test_a_host_that_keeps_failing_is_left_alone_and_health_says_so(novel: HostedNovel) -> None:
    with novel.host("malformed_answer", GRAPH, name="常败"):
        for _ in range(4):
            assert KG_UNAVAILABLE in novel.assemble()["warnings"]
        degraded = novel.harness.call("app:health")["degraded"]

    (trouble,) = [trouble for trouble in degraded if trouble["part"] == "sources"]
    line = novel.harness.log("context_source_skipped")
    assert "常败 (HOST_ERROR)" in trouble["reason"]
    assert (line["source"], line["reason"]) == ("常败", "HOST_ERROR")


def test_a_host_that_goes_away_is_missed_until_it_is_unregistered(novel: HostedNovel) -> None:
    with novel.host("fine", GRAPH, name="过客"):
        present = novel.assemble()

    novel.harness.log("context_source_forgotten", where=lambda line: line["source"] == "过客")
    absent = novel.assemble()
    novel.harness.call("context:source:unregister", {"name": "过客"})
    after = novel.assemble()
    assert OF_THE_GRAPH in present["systemPrompt"]
    assert warnings_beside_index(absent) == ["SKILL_UNKNOWN", KG_UNAVAILABLE]
    assert warnings_beside_index(after) == ["SKILL_UNKNOWN"]
    assert refs(absent, "rules") == set()


def test_nobody_waits_for_the_deadline_of_a_host_that_is_gone(novel: HostedNovel) -> None:
    with novel.host("dead", GRAPH, name="猝死", timeoutMs=30_000) as host:
        result = novel.assemble()

    line = novel.harness.log("context_source_failed", where=lambda line: line["source"] == "猝死")
    assert KG_UNAVAILABLE in result["warnings"]
    assert host.returncode == 1
    assert line["kind"] == "DISCONNECTED"
    assert KG_UNAVAILABLE in novel.assemble()["warnings"]
