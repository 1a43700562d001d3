from typing import Any

import pytest

from creonowd.context.fragment import Layer, Reason
from creonowd.errors import WarningCode, Wording
from creonowd.sources.file_fragments import (
    FileFaultError,
    FileKind,
    is_json_path,
    is_share,
    own_texts,
    read_files,
)
from creonowd.workspace.creonow_tree import CreonowFolder, Folder
from tests.sources.folders import folder, too_big, unreadable

KIND = FileKind(
    layer=Layer.SETTINGS, source="settings", unavailable=WarningCode.SETTINGS_UNAVAILABLE
)
HERE = ".creonow/settings"


def everything(_path: str) -> bool:
    return True


def no_fields(_path: str, _text: str) -> dict[str, Any] | None:
    return {}


def test_a_text_is_its_body_and_json_is_spelt_in_one_way() -> None:
    files = folder(
        {f"{HERE}/a.md": "---\nname: 甲\n---\n正文。\n", f"{HERE}/b.json": '{"b":1,"a":2}'}
    )

    text, value = read_files(KIND, files, everything, no_fields).fragments

    assert (text.text, text.title, text.first_line) == ("正文。\n", "甲", 4)
    assert (value.text.split(), value.whole) == (['{"a":2,"b":1}'], True)


def test_a_file_that_is_not_selected_or_has_nothing_to_say_is_left_out_without_a_word() -> None:
    files = folder({f"{HERE}/a.md": "正文。", f"{HERE}/b.md": "  \n", f"{HERE}/c.md": "正文。"})

    found = read_files(KIND, files, lambda path: not path.endswith("c.md"), no_fields)

    assert [one.source_ref for one in found.fragments] == [f"{HERE}/a.md"]
    assert (found.left_out, found.warnings) == ((), ())


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [("a.md", b"\xff\xfe\xfa", "UTF-8"), ("a.json", b'{"a":\n}', "line 2: it is no valid JSON")],
)
def test_a_file_that_cannot_be_used_costs_only_itself(name: str, data: bytes, says: str) -> None:
    files = folder({f"{HERE}/{name}": data, f"{HERE}/b.md": "正文。"})

    found = read_files(KIND, files, everything, no_fields)

    assert [one.source_ref for one in found.fragments] == [f"{HERE}/b.md"]
    assert [one.reason for one in found.left_out] == [Reason.INVALID_FORMAT]
    (warning,) = found.warnings
    assert warning.code is WarningCode.SETTINGS_UNAVAILABLE
    assert says in warning.text()


def test_a_fault_is_reported_on_the_line_that_it_is_near() -> None:
    def fields(_path: str, _text: str) -> dict[str, Any] | None:
        raise FileFaultError(Wording("no such place", "没有这个地方"), near="from: Mars")

    found = read_files(KIND, folder({f"{HERE}/a.md": "one\nfrom: Mars\n"}), everything, fields)

    assert dict(found.warnings[0].details) == {"line": 2}


def test_a_file_that_could_not_be_read_is_left_out_with_the_reason() -> None:
    files = folder({}, {f"{HERE}/a.md": unreadable(), f"{HERE}/b.md": too_big()})

    found = read_files(KIND, files, everything, no_fields)

    assert [one.reason for one in found.left_out] == [Reason.READ_ERROR, Reason.TOO_LARGE]
    assert len(found.warnings) == 2


def test_the_authors_own_texts_are_bodies_without_json_and_default_files() -> None:
    given = {
        CreonowFolder.RULES: folder(
            {".creonow/rules/style.md": "# Style\n\n", ".creonow/rules/mine.md": "短句。"}
        ),
        CreonowFolder.SETTINGS: folder(
            {f"{HERE}/a.json": '{"a": 1}', f"{HERE}/b.md": "---\nname: 甲\n---\n正文。"}
        ),
    }

    assert own_texts(lambda scope: given.get(scope, Folder())) == ["短句。", "正文。"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, True), (1, True), (0.5, True), (1.01, False), (-0.1, False), (True, False), ("1", False)],
)
def test_a_share_is_a_number_from_0_to_1(value: object, *, expected: bool) -> None:
    assert is_share(value) is expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [("a/b.json", True), ("a/b.JSON", True), ("a/.json", False), ("b.md", False)],
)
def test_json_is_known_by_its_ending(path: str, *, expected: bool) -> None:
    assert is_json_path(path) is expected
