"""What hosts answer, checked and made into fragments; hosts that keep failing get a rest."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.context.fragment import (
    DEFAULT_PRIORITY,
    ConstraintOrigin,
    FragmentKind,
    Layer,
    Reason,
    show,
)
from creonowd.context.source import SourceResult
from creonowd.errors import DaemonError, ErrorCode, Language
from creonowd.sources.hosts import Breaker, HostKind, Offer, UncheckedAnswer, read_answer

GOOD = {"source": "kg:林远", "content": "林远是北城的更夫。"}

KEYS = st.sampled_from(["source", "content", "score", "priority", "names", "tokenCount"])
PLAIN = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text()


def read(
    *chunks: Any,
    layer: Layer = Layer.RULES,
    kind: HostKind = HostKind.KG,
    warnings: Any = None,
) -> SourceResult:
    sent = msgspec.json.encode({"chunks": chunks, "warnings": warnings})
    answer = msgspec.json.decode(sent, type=UncheckedAnswer)
    return read_answer(answer, Offer(kind=kind, layer=layer, name="图谱"), "prj_a")


def test_a_chunk_of_a_graph_is_an_entity_that_may_leave():
    (fragment,) = read(GOOD).fragments

    assert fragment.kind is FragmentKind.ENTITY
    assert fragment.origin is ConstraintOrigin.KG
    assert fragment.names == ("林远",)
    assert (fragment.source, fragment.source_ref) == ("图谱", "kg:林远")
    assert fragment.priority == DEFAULT_PRIORITY
    assert fragment.hosted


def test_a_host_may_say_what_an_entity_is_called():
    (fragment,) = read(GOOD | {"names": ["林远", " 老林 ", "林远"]}).fragments

    assert fragment.names == ("林远", "老林")


def test_a_constraint_of_a_graph_is_one_line():
    (fragment,) = read(
        {"source": "kg:1", "content": "林远\n不会大声喊叫", "constraint": True, "priority": 7}
    ).fragments

    assert fragment.kind is FragmentKind.CONSTRAINT
    assert fragment.text == "林远 不会大声喊叫"
    assert fragment.priority == 7


@pytest.mark.parametrize("kind", [HostKind.MEMORY, HostKind.RAG, HostKind.CUSTOM])
def test_only_a_graph_lays_down_constraints(kind: HostKind):
    (fragment,) = read(GOOD | {"constraint": True}, kind=kind).fragments

    assert fragment.kind is FragmentKind.TEXT
    assert fragment.origin is ConstraintOrigin.USER


def test_ranks_are_taken_over():
    (fragment,) = read(
        GOOD | {"score": 0.5, "confidence": 1, "tokenCount": 5, "projectId": "prj_a"},
        layer=Layer.RETRIEVED,
    ).fragments

    assert (fragment.score, fragment.confidence, fragment.token_count) == (0.5, 1.0, 5)


def test_json_is_spelled_canonically_without_noise():
    content = '{"b": 1, "a": {"nonce": "x", "t": [1, 2]}, "timestamp": 5, "requestId": "r"}'

    (fragment,) = read(GOOD | {"content": content}).fragments

    assert fragment.text == '{"a":{"t":[1,2]},"b":1}'
    assert fragment.whole


@pytest.mark.parametrize("content", ["{not json", "[画外音] 雪停了。", ""])
def test_what_only_looks_like_json_stays_text(content: str):
    (fragment,) = read(GOOD | {"content": content}).fragments

    assert fragment.text == content
    assert not fragment.whole


@pytest.mark.requirement("CE-071", "CE-072")
@pytest.mark.parametrize(
    "chunk",
    [
        None,
        "text",
        {},
        {"source": "a"},
        {"source": "", "content": "x"},
        {"source": "  ", "content": "x"},
        {"source": "a", "content": 5},
        {"source": "a" * 2000, "content": "x"},
        GOOD | {"score": 1.5},
        GOOD | {"score": -0.1},
        GOOD | {"score": "high"},
        GOOD | {"confidence": 2},
        GOOD | {"priority": 1.5},
        GOOD | {"priority": 10**9},
        GOOD | {"tokenCount": -1},
        GOOD | {"tokenCount": 10**12},
        GOOD | {"tokenCount": 10**30},
        GOOD | {"tokenCount": 1000},
        GOOD | {"projectId": 5},
        GOOD | {"names": "林远"},
    ],
)
def test_a_malformed_chunk_costs_itself_and_a_warning(chunk: Any):
    fetched = read(chunk, {"source": "ok", "content": "好"})

    assert [fragment.source_ref for fragment in fetched.fragments] == ["ok"]
    assert [item.reason for item in fetched.left_out] == [Reason.INVALID_FORMAT]
    (ref,) = [item.source_ref for item in fetched.left_out]
    assert show(fetched.warnings).warnings == [
        f"KG_UNAVAILABLE: 图谱：2 块数据中有 1 块不合格式，未注入（{ref}）"
    ]


def test_a_malformed_chunk_is_named_as_it_names_itself():
    chunks = ({"source": "kg:林远", "content": "x", "score": 7}, {"content": "x"}, GOOD)

    fetched = read(*chunks, layer=Layer.RETRIEVED)

    assert [item.source_ref for item in fetched.left_out] == ["kg:林远", "图谱#2"]


@pytest.mark.parametrize("chunk", [GOOD, {"source": 5, "content": None}, GOOD | {"score": 9}])
def test_text_of_another_project_ends_the_request(chunk: dict[str, Any]):
    with pytest.raises(DaemonError) as caught:
        read({"source": "ok", "content": "好"}, chunk | {"projectId": "prj_b"})

    assert caught.value.code is ErrorCode.CONTEXT_SCOPE_VIOLATION
    assert "prj_b" not in caught.value.message


def test_the_order_of_arrival_does_not_matter():
    chunks = [{"source": f"a.md#L{n}-L{n + 1}", "content": f"{n}"} for n in (10, 9, 100)]

    given = read(*chunks, layer=Layer.RETRIEVED, kind=HostKind.RAG)
    turned = read(*reversed(chunks), layer=Layer.RETRIEVED, kind=HostKind.RAG)

    assert given == turned
    assert [fragment.text for fragment in given.fragments] == ["9", "10", "100"]


@pytest.mark.parametrize(
    ("kind", "warning"),
    [
        (HostKind.KG, "KG_UNAVAILABLE: 知识图谱数据未注入"),
        (HostKind.MEMORY, "MEMORY_UNAVAILABLE: 记忆数据未注入"),
        (HostKind.RAG, "RAG_UNAVAILABLE: 检索数据未注入"),
        (HostKind.CUSTOM, "SOURCE_UNAVAILABLE: 图谱"),
    ],
)
def test_the_warning_is_named_by_the_kind(kind: HostKind, warning: str):
    assert show(read(None, kind=kind).warnings, Language.CHINESE).warnings == [warning]


def test_a_hosts_warnings_are_passed_on_under_its_name():
    fetched = read(GOOD, warnings=["stale\nindex", 5, ""] + ["x"] * 50)

    assert show(fetched.warnings[:2]).warnings == [
        "SOURCE_WARNING: 图谱: stale index",
        "SOURCE_WARNING: 图谱: 5",
    ]
    assert len(fetched.warnings) < 21


@given(st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner)))
def test_no_chunk_can_break_the_reading(chunk: Any):
    fetched = read(chunk)

    assert len(fetched.fragments) + len(fetched.left_out) == 1


def failing(times: int) -> Breaker:
    breaker = Breaker(most_failures=3, pause_seconds=30)
    for _ in range(times):
        breaker.count_failure(100.0, "timeout")
    return breaker


def test_after_a_few_failures_it_is_still_asked():
    assert failing(2).allows(100.0)


def test_a_success_starts_the_count_anew():
    breaker = failing(2)

    breaker.count_success()

    assert not breaker.count_failure(101.0, "timeout")
    assert breaker.allows(101.0)


def test_too_many_failures_in_a_row_begin_a_rest():
    breaker = failing(3)

    assert breaker.is_open
    assert not breaker.allows(129.9)


def test_after_the_rest_one_question_is_let_through():
    breaker = failing(3)

    assert breaker.allows(130.0)
    assert not breaker.allows(130.1)


def test_a_failure_after_the_rest_begins_another():
    breaker = failing(3)
    breaker.allows(130.0)

    assert not breaker.count_failure(135.0, "timeout")
    assert not breaker.allows(164.9)
    assert breaker.allows(165.0)


def test_an_answer_after_the_rest_ends_it():
    breaker = failing(3)
    breaker.allows(130.0)

    breaker.count_success()

    assert not breaker.is_open
    assert breaker.allows(130.1)


def test_only_the_failure_that_begins_the_rest_is_reported():
    breaker = Breaker(most_failures=2)

    assert [breaker.count_failure(0.0, "timeout") for _ in range(3)] == [False, True, False]
