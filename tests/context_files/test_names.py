"""Files are called as the specification suggests, and no name is unsafe anywhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.context_files import records
from creonowd.context_files.records import Origin
from creonowd.errors import DaemonError

AT = 1_700_000_000_000
NONE_TAKEN: frozenset[str] = frozenset()


@pytest.mark.requirement("CF-007", "CF-008", "CF-009", "CF-010")
@pytest.mark.parametrize(
    ("origin", "label", "mime_type", "path"),
    [
        (Origin.TOOL, "call_1", "application/json", "artifacts/tool/call_1.json"),
        (Origin.TOOL, "call_1", "text/plain", "artifacts/tool/call_1.txt"),
        (Origin.TOOL, "call_1", "image/png", "artifacts/tool/call_1.bin"),
        (Origin.TERMINAL, "snippet-7", "text/plain", "artifacts/terminal/snippet-7.log"),
        (Origin.ARCHIVE, "1-20", "text/markdown", f"history/archive/{AT}-1-20.md"),
        (Origin.SUMMARY, "any", "text/markdown", f"history/summary/{AT}.md"),
        (Origin.CATALOG, "mcp", "application/json; charset=utf-8", "catalog/tools/mcp.json"),
    ],
)
def test_a_file_is_called_after_its_origin(
    origin: Origin, label: str, mime_type: str, path: str
) -> None:
    assert records.choose(origin, label, AT, mime_type, NONE_TAKEN) == path


@pytest.mark.requirement("CF-039")
@given(st.sampled_from(Origin), st.text(min_size=1, max_size=300), st.text(max_size=20))
def test_any_label_becomes_a_safe_path_of_its_folder(
    origin: Origin, label: str, mime_type: str
) -> None:
    path = records.choose(origin, label, AT, mime_type, NONE_TAKEN)

    folder, _, name = path.rpartition("/")
    assert records.is_path(path)
    assert records.origin_of(path) is origin
    assert folder == records.PLACES[origin]
    assert ".." not in path
    assert not name.startswith((".", "-"))


def test_names_that_differ_only_in_case_do_not_meet() -> None:
    taken = {"artifacts/tool/call.txt"}

    assert (
        records.choose(Origin.TOOL, "CALL", AT, "text/plain", taken) == "artifacts/tool/CALL-2.txt"
    )


def test_keys_that_differ_in_what_no_name_can_hold_are_told_apart_at_once() -> None:
    keys = [f"第{chr(0x4E00 + number)}次调用" for number in range(2000)]

    paths = {records.choose(Origin.TOOL, key, AT, "text/plain", NONE_TAKEN) for key in keys}

    assert len(paths) == len(keys)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "artifacts/tool/",
        "artifacts/tool/../../x",
        "/artifacts/tool/x",
        "artifacts/x",
        "artifacts/tool/a/b",
        "artifacts\\tool\\x",
        "artifacts/tool/.hidden",
        "artifacts/tool/x\n",
        "artifacts/tool/con.txt",
        "artifacts/tool/x.",
        "history/refs/x.json",
        "artifacts/tool/红.txt",
    ],
)
def test_no_other_path_is_one_of_a_context_file(path: str) -> None:
    assert not records.is_path(path)


@pytest.mark.parametrize("given_id", ["a", "A_b-9", "x" * 64, "conv", "con-1"])
def test_a_conversation_id_is_letters_digits_and_two_signs(given_id: str) -> None:
    records.check_conversation_id(given_id)


@pytest.mark.parametrize(
    "given_id",
    ["", " ", "x" * 65, "a/b", "..", ".", "a.b", "会话", "a\n", "a\0", "con", "NUL", "com1"],
)
def test_any_other_conversation_id_is_refused(given_id: str) -> None:
    with pytest.raises(DaemonError, match="INVALID_ARGUMENT") as caught:
        records.check_conversation_id(given_id)

    assert caught.value.details["field"] == "conversationId"
