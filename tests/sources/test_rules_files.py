"""Rule texts: what is in them goes in as it is, what is empty or broken does not."""

import pytest

from creonowd.context.fragment import Reason
from creonowd.sources.project_files import other_rules, style_guide
from creonowd.workspace.creonow_tree import DEFAULTS
from tests.sources.folders import folder, too_big, unreadable

STYLE = ".creonow/rules/style.md"
TERMS = ".creonow/rules/terminology.json"


@pytest.mark.requirement("CN-002")
def test_style_and_terminology_are_the_guide_and_the_rest_is_not() -> None:
    held = folder(
        {
            STYLE: "# Style\n\n短句为主。\r\n",
            TERMS: '{"terms": [{"term": "灵脉", "note": "不译"}]}',
            ".creonow/rules/对白.md": "不用感叹号。",
            ".creonow/rules/constraints.json": '{"version": 1, "items": []}',
        }
    )

    guide, rest = style_guide(held), other_rules(held)

    assert [(f.source_ref, f.text, f.whole) for f in guide.fragments] == [
        (STYLE, "# Style\n\n短句为主。\r\n", False),
        (TERMS, '{"terms":[{"note":"不译","term":"灵脉"}]}', True),
    ]
    assert [f.source_ref for f in rest.fragments] == [".creonow/rules/对白.md"]


def test_files_that_ensure_made_say_nothing() -> None:
    held = folder({f".creonow/{path}": data for path, data in DEFAULTS.items()})

    assert not style_guide(held).fragments
    assert not other_rules(held).fragments


def test_a_blank_file_is_no_candidate() -> None:
    held = folder({".creonow/rules/空.md": " \n\n", STYLE: ""})

    assert not other_rules(held).fragments
    assert not style_guide(held).fragments


@pytest.mark.requirement("CN-043")
def test_what_cannot_be_used_is_left_out_with_its_reason_and_a_warning() -> None:
    held = folder(
        {".creonow/rules/a.json": "{broken", ".creonow/rules/b.md": b"\xff\xfe\xff"},
        {".creonow/rules/c.md": unreadable(), ".creonow/rules/d.md": too_big()},
    )

    fetched = other_rules(held)

    assert {item.source_ref[-6:]: item.reason for item in fetched.left_out} == {
        "a.json": Reason.INVALID_FORMAT,
        "s/b.md": Reason.INVALID_FORMAT,
        "s/c.md": Reason.READ_ERROR,
        "s/d.md": Reason.TOO_LARGE,
    }
    assert "RULES_UNAVAILABLE: .creonow/rules/c.md" in fetched.warnings
    assert not fetched.fragments


def test_a_byte_order_mark_is_not_text() -> None:
    fetched = style_guide(folder({STYLE: b"\xef\xbb\xbfx"}))

    assert [f.text for f in fetched.fragments] == ["x"]
