"""Settings texts claim their confidence in front matter; memory and outline stand apart."""

import pytest

from creonowd.context.fragment import Reason
from creonowd.sources.project_files import outline, settings_texts
from tests.sources.folders import folder

WORLD = ".creonow/settings/世界观.md"


@pytest.mark.requirement("CN-012")
def test_every_text_but_memory_and_outline_is_a_setting() -> None:
    held = folder(
        {
            WORLD: "近未来的海港。",
            ".creonow/settings/地理/港口.txt": "三面环山。",
            ".creonow/settings/纪年.json": '{"b": 1, "a": 2}',
            ".creonow/settings/memory.json": '{"version": 1, "rules": []}',
            ".creonow/settings/outline.md": "第一卷",
            ".creonow/settings/old/outline.md": "旧稿",
        }
    )

    texts, plan = settings_texts(held), outline(held)

    assert [f.source_ref.removeprefix(".creonow/settings/") for f in texts.fragments] == [
        "old/outline.md",
        "世界观.md",
        "地理/港口.txt",
        "纪年.json",
    ]
    assert [f.source_ref for f in plan.fragments] == [".creonow/settings/outline.md"]


@pytest.mark.parametrize(
    ("text", "confidence"),
    [
        ("没有前言。", None),
        ("---\nconfidence: 0.4\n---\n也许有海。", 0.4),
        ("---\nconfidence: 1\n---\n有海。", 1.0),
        ("---\ntitle: x\n---\n有海。", None),
        ("---\n分割线而已", None),
    ],
)
def test_confidence_is_read_from_front_matter(text: str, confidence: float | None) -> None:
    (fragment,) = settings_texts(folder({WORLD: text})).fragments

    assert fragment.confidence == confidence
    assert fragment.text == text


def test_json_claims_its_confidence_in_a_key() -> None:
    held = folder({".creonow/settings/a.json": '{"confidence": 0.25, "x": 1}'})

    (fragment,) = settings_texts(held).fragments

    assert fragment.confidence == 0.25
    assert fragment.whole


@pytest.mark.parametrize("claimed", ["1.5", "-0.1", "high", "true", "[1]"])
def test_a_confidence_that_is_none_leaves_the_file_out(claimed: str) -> None:
    fetched = settings_texts(folder({WORLD: f"---\nconfidence: {claimed}\n---\n有海。"}))

    assert [item.reason for item in fetched.left_out] == [Reason.INVALID_FORMAT]
    assert fetched.warnings == (f"SETTINGS_UNAVAILABLE: {WORLD}",)
