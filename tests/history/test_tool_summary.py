"""The table of tools: what history keeps of each, whatever the result looks like."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.history.observation import Form, observe
from creonowd.history.tool_result import DEFAULT_LIMITS
from creonowd.history.tool_summary import (
    read_arguments,
    ref_in,
    shorten,
    summarise_result,
    with_ref,
)
from creonowd.redaction import Redactor
from testing.conversations import SECRETS, TOOLS

REDACTOR = Redactor()


def summary(tool: str, result: Any, **arguments: Any) -> str:
    given_arguments = read_arguments(arguments, REDACTOR, "/home/ann/book")
    return summarise_result(tool, given_arguments, observe(result, REDACTOR, "/home/ann/book"))


@pytest.mark.requirement("CB-002")
def test_ls_keeps_the_folder_statistics_and_the_first_entries() -> None:
    entries = [{"name": f"part{n}", "type": "dir"} for n in range(3)] + [
        f"{n}.md" for n in range(30)
    ]

    lines = summary("LS", {"entries": entries}, path="src").split("\n")

    assert lines[0] == "[LS] src: 33 entries (30 files, 3 folders)"
    assert lines[1:4] == ["part0/", "part1/", "part2/"]
    assert lines[-1] == "… 23 more entries"
    assert len(lines) == 12


@pytest.mark.requirement("CB-003")
def test_glob_keeps_the_pattern_the_number_and_the_first_ten() -> None:
    lines = summary("Glob", [f"{n}.md" for n in range(25)], pattern="**/*.md").split("\n")

    assert lines[0] == '[Glob] "**/*.md": 25 matches'
    assert lines[1:11] == [f"{n}.md" for n in range(10)]
    assert lines[11:] == ["… 15 more matches"]


@pytest.mark.requirement("CB-004", "CB-011")
@pytest.mark.parametrize("structured", [True, False])
def test_grep_keeps_five_matches_with_file_and_line(structured: bool) -> None:  # noqa: FBT001
    matches = [{"file": "a.md", "line": n, "text": f"夜 {n}"} for n in range(8)]
    text = "\n".join(f"a.md:{n}:夜 {n}" for n in range(8))

    lines = summary("Grep", {"matches": matches} if structured else text, pattern="夜").split("\n")

    assert lines[0] == '[Grep] "夜": 8 matches in 1 file'
    assert lines[1:6] == [f"a.md:{n}: 夜 {n}" for n in range(5)]
    assert lines[6:] == ["… 3 more matches"]


@pytest.mark.requirement("CB-005", "CB-010")
def test_read_keeps_at_most_500_numbered_lines_of_the_range() -> None:
    text = "\n".join(f"text {n}" for n in range(1, 701))

    whole = summary("Read", text, file_path="/home/ann/book/a.md").split("\n")
    part = summary("Read", text, file_path="a.md", offset=10, limit=3).split("\n")
    given_range = summary("Read", "x\r\ny", path="a.md", start_line=40).split("\n")

    assert whole[:2] == ["[Read] a.md: lines 1-700", "1: text 1"]
    assert whole[500:] == ["500: text 500", "… 200 more lines"]
    assert part == ["[Read] a.md: lines 10-12", "10: text 1", "11: text 2", "12: text 3"]
    assert given_range[1:] == ["40: x", "41: y"]


@pytest.mark.requirement("CB-006", "CB-012")
def test_edits_keep_file_range_and_key_lines_and_big_ones_only_what_they_amount_to() -> None:
    small = summary(
        "Edit", {"start_line": 7}, file_path="a.md", old_string="夜", new_string="日\n光"
    )
    many = [{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "d"}]
    multi = summary("MultiEdit", "ok", file_path="a.md", edits=many)
    diff = "@@ -3,60 +3,60 @@\n" + "\n".join(f"+{n}" for n in range(60))
    big = summary("Edit", {"diff": diff}, file_path="a.md")

    assert small.split("\n") == [
        "[Edit] a.md: 1 edit at lines 7-7, 2 lines added, 1 removed",
        "-夜",
        "+日",
        "+光",
    ]
    assert multi.startswith("[MultiEdit] a.md: 2 edits, 2 lines added, 2 removed\n-a\n+b")
    assert big.split("\n")[0] == "[Edit] a.md: 1 edit at lines 3-62, 60 lines added, 0 removed"
    assert "+5" not in big.split("\n")
    assert 20 <= DEFAULT_LIMITS.edit <= 50


@pytest.mark.requirement("CB-007", "CB-012")
def test_write_says_whether_the_file_is_new_and_keeps_its_first_lines() -> None:
    text = "\n".join(f"line {n}" for n in range(100))

    new = summary("Write", {"created": True}, file_path="a.md", content=text).split("\n")
    old = summary("Write", "The file was overwritten.", file_path="a.md", content="x")

    assert new[0] == "[Write] a.md: new file, 100 lines"
    assert new[1:41] == [f"line {n}" for n in range(40)]
    assert new[41:] == ["… 60 more lines"]
    assert old.startswith("[Write] a.md: overwritten, 1 line")


@pytest.mark.requirement("CB-008", "CB-013")
def test_bash_keeps_a_summary_and_the_last_twenty_lines_of_its_errors() -> None:
    errors = "\n".join(f"error {n}" for n in range(50))
    output = "\n".join(f"out {n}" for n in range(50))

    lines = summary(
        "Bash", {"stdout": output, "stderr": errors, "exit_code": 2}, command="make"
    ).split("\n")

    assert lines[0] == "[Bash] make: exit code 2"
    assert lines[1] == "stdout: 50 lines, 339 characters: out 0 … out 49"
    assert lines[2:4] == ["stderr:", "… 30 lines before"]
    assert lines[4:] == [f"error {n}" for n in range(30, 50)]


@pytest.mark.requirement("CB-009", "CB-043")
def test_todo_write_keeps_the_recap_alone() -> None:
    todos = [
        {"content": "outline", "status": "completed"},
        {"content": "draft", "status": "in_progress"},
        {"content": "polish", "status": "pending"},
    ]

    text = summary("TodoWrite", {"todos": todos})

    assert text == "[TodoWrite] 1 of 3 done; now: draft; next: polish."


@pytest.mark.parametrize(
    ("result", "says"),
    [
        ("", "empty result"),
        ({}, "empty result"),
        (None, "empty result"),
        ("\x00\x01PNG\x1a", "binary, 6 bytes"),
        ("QUJD" * 300, "binary, 1200 bytes"),
        ({"error": {"message": "not there"}}, "failed:\nnot there"),
        ({"status": "error", "message": "not there"}, "failed:\nnot there"),
        ("ValueError: not there", "failed:\nValueError: not there"),
        ('{"a": "b", "n": 3, "cut": "of', "3 fields (its JSON is malformed)\na: b\nn: 3\ncut: of"),
        ({"a": {"b": 1}, "c": [1, 2]}, "2 fields\na: object with b\nc: list of 2"),
        ([{"a": 1}, "x"], "2 items\n- object with a\n- x"),
        (True, "true"),
        ([{"type": "text", "text": "hello"}], "1 line, 5 characters\nhello"),
    ],
)
def test_a_result_of_any_shape_gives_a_useful_summary(result: Any, says: str) -> None:
    text = summary("SomeTool", result)

    assert text == f"[SomeTool] {says}"


def test_a_huge_result_gives_a_bounded_summary() -> None:
    wall, lines = "夜" * 300_000, "x\n" * 300_000

    text = [summary(tool, huge) for tool in TOOLS for huge in (wall, lines)]

    assert max(map(len, text)) <= 64_000


def test_a_summary_shortens_to_its_first_lines_and_its_ref() -> None:
    ref = "ctx_" + "a" * 20
    long = with_ref("[Read] a.md: lines 1-3\n1: a\n2: b\n3: c", ref)

    assert shorten(long) == f"[Read] a.md: lines 1-3\nFull output: {ref}"
    assert shorten(long, 2).split("\n")[1] == "1: a"
    assert ref_in(shorten(long)) == ref


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4)
    ),
    max_leaves=12,
)
_names = st.sampled_from(["password", "apiKey", "access_token", "client_secret", "密码"])


@given(st.sampled_from(TOOLS), _json, _names, st.booleans())
def test_no_summary_repeats_json_or_a_secret(tool: str, value: Any, name: str, text: bool) -> None:  # noqa: FBT001
    hidden = {"data": value, name: SECRETS[0], "deep": {"json": json.dumps({name: SECRETS[0]})}}
    result = json.dumps(hidden) if text else hidden

    observation = observe(result, REDACTOR)
    compressed = summarise_result(tool, {}, observation)

    assert observation.form is Form.JSON
    assert SECRETS[0] not in compressed
    assert SECRETS[0] not in observation.text
    assert json.dumps(hidden) not in compressed
    assert compressed == summarise_result(tool, {}, observe(result, REDACTOR))
