"""The memory file: each rule is a fragment of its own."""

import json

import pytest

from creonowd.context.fragment import Reason
from creonowd.sources.project_files import preferences
from tests.sources.folders import folder, unreadable

PATH = ".creonow/settings/memory.json"
LOST = ("MEMORY_UNAVAILABLE: 记忆数据未注入",)


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

    assert fetched.warnings == LOST
    assert [(item.source_ref, item.reason) for item in fetched.left_out] == [
        (PATH, Reason.INVALID_FORMAT)
    ]


def test_a_file_that_cannot_be_read_does_too() -> None:
    fetched = preferences(folder({}, {PATH: unreadable()}))

    assert fetched.warnings == LOST
    assert fetched.left_out[0].reason is Reason.READ_ERROR


@pytest.mark.parametrize(
    "rule", [{"text": "x", "confidence": 1.5}, {"text": ""}, {"text": 7}, "x", {"confidence": 1}]
)
def test_a_rule_that_makes_no_sense_costs_only_itself(rule: object) -> None:
    rules = [rule, {"text": "少用成语"}]

    fetched = preferences(folder({PATH: json.dumps({"version": 1, "rules": rules})}))

    assert [f.text for f in fetched.fragments] == ["少用成语"]
    assert [item.source_ref for item in fetched.left_out] == [f"{PATH}#1"]
    assert fetched.warnings == LOST
