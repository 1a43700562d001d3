"""The table of tools: what history keeps of each, whatever the result looks like."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from creonowd.history.tool_result import DEFAULT_LIMITS, Form, line_limits, observe
from creonowd.history.tool_summary import (
    read_arguments,
    ref_in,
    shorten_summary,
    summarise_result,
    with_ref,
)
from creonowd.redaction import Redactor
from creonowd.settings import Settings
from testing.conversations import SECRETS, TOOLS

REDACTOR = Redactor()
BROKEN = (
    "x: finished (its JSON is malformed)\n"
    'stdout: 1 line, 21 characters, structured: {"a": "b", "cut": "of'
)
GREPPED = '"p": 1 match in 1 file\na.md:3: y'
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4)
    ),
    max_leaves=12,
)

_names = st.sampled_from(["password", "apiKey", "access_token", "client_secret", "密码"])


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
    own = summary("TodoWrite", {"todos": todos, "recap": "two chapters left"})

    assert text == "[TodoWrite] 1 of 3 done; now: draft; next: polish."
    assert own == "[TodoWrite] two chapters left"


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


@pytest.mark.parametrize(
    ("tool", "result", "says"),
    [
        ("Bash", '{"a": 1}', "x: finished\nstdout: 1 line, 8 characters, object with a"),
        ("Bash", '{\n "a": 1\n}', "x: finished\nstdout: 3 lines, 11 characters, object with a"),
        ("Bash", "[1, 2]", "x: finished\nstdout: 1 line, 6 characters, list of 2"),
        (
            "Bash",
            '{"a": 1}\n{"b": 2}',
            "x: finished\nstdout: 2 lines, 17 characters: object with a … object with b",
        ),
        (
            "Bash",
            '{"code": 7, "status": "error", "id": 1}',
            "x: finished\nstdout: 1 line, 39 characters, object with code, status, id",
        ),
        (
            "Bash",
            '{"status": "ok"}',
            "x: finished\nstdout: 1 line, 16 characters, object with status",
        ),
        ("Bash", '{"a": "b", "cut": "of', BROKEN),
        (
            "Bash",
            '{"stdout": "y", "exit_code": 1}',
            "x: exit code 1\nstdout: 1 line, 1 character: y",
        ),
        ("Bash", {"a": 1}, "x: finished\nstdout: 1 field\na: 1"),
        (
            "Bash",
            {"exit_code": 0, "logs": "y"},
            "x: exit code 0\nstdout: 2 fields\nexit_code: 0\nlogs: y",
        ),
        ("Bash", {"stdout": ["y", "z"]}, "x: finished\nstdout: 2 lines, 3 characters: y … z"),
        ("Bash", {"stdout": {"a": 1}}, "x: finished\nstdout: object with a"),
        ("Bash", {"stdout": "", "exit_code": 0}, "x: exit code 0\nstdout: empty"),
        ("Bash", ["y", "z"], "x: finished\nstdout: 2 items\n- y\n- z"),
        ("Bash", 5, "x: finished\nstdout: 5"),
        ("Bash", "", "x: finished\nstdout: empty"),
        ("LS", {"tree": {"a": 1}}, ".: 1 field\ntree: object with a"),
        ("LS", '{"count": 3}', ".: 1 field\ncount: 3"),
        ("LS", {"files": 3, "directories": 1}, ".: 2 fields\nfiles: 3\ndirectories: 1"),
        (
            "LS",
            {"files": ["a.md"], "directories": ["src", "lib/"]},
            ".: 3 entries (1 file, 2 folders)\nsrc/\nlib/\na.md",
        ),
        ("LS", {"dirs": ["src"]}, ".: 1 entry (0 files, 1 folder)\nsrc/"),
        (
            "LS",
            {"entries": {"a.md": "file", "src": {"type": "dir"}}},
            ".: 2 entries (1 file, 1 folder)\na.md\nsrc/",
        ),
        ("LS", {"entries": "a.md\nsrc/"}, ".: 2 entries (1 file, 1 folder)\na.md\nsrc/"),
        ("LS", "[DIR] src\n[FILE] a.md", ".: 2 entries (1 file, 1 folder)\n[DIR] src\n[FILE] a.md"),
        ("LS", [{"size": 3}], ".: 1 entry (1 file, 0 folders)\nobject with size"),
        ("LS", '{"entries": ["a", "b', '.: 1 line, 20 characters\n{"entries": ["a", "b'),
        ("LS", {"entries": []}, ".: 0 entries (0 files, 0 folders)"),
        ("Glob", {"filenames": ["a.md"], "numFiles": 1}, '"p": 1 match\na.md'),
        ("Glob", {"found": {"a": 1}}, '"p": 1 field\nfound: object with a'),
        ("Grep", {"mode": "content", "filenames": [], "content": "a.md:3:y"}, GREPPED),
        ("Grep", {"filenames": ["a.md", "b.md"]}, '"p": 2 matches\na.md\nb.md'),
        ("Grep", {"a.md": [{"line": 3}]}, '"p": 1 field\na.md: list of 1'),
        ("Grep", {"matches": [{"n": 3}]}, '"p": 1 match\nobject with n'),
        ("Grep", {"count": 0}, '"p": 0 matches'),
        (
            "Grep",
            (
                '{"type":"begin","data":{"path":{"text":"a.md"}}}\n{"type":"match","data":'
                '{"path":{"text":"a.md"},"lines":{"text":"y\\n"},"line_number":3}}'
            ),
            GREPPED,
        ),
        (
            "Edit",
            "3 replacements in a.md",
            "(no path): 1 line, 22 characters\n3 replacements in a.md",
        ),
        ("Write", {"bytes": 9}, "(no path): 1 field\nbytes: 9"),
        ("TodoWrite", {"saved": 3}, "1 field\nsaved: 3"),
        (
            "TodoWrite",
            {"oldTodos": [], "newTodos": [{"content": "draft"}]},
            "0 of 1 done; next: draft.",
        ),
        ("TodoWrite", {"todos": []}, "0 of 0 done."),
        ("Web", '{"a": 1}\n{"b": 2}', "2 lines, 17 characters\nobject with a\nobject with b"),
    ],
)
def test_what_is_not_understood_is_summarised_as_text(tool: str, result: Any, says: str) -> None:
    arguments = {"Bash": {"command": "x"}, "Glob": {"pattern": "p"}, "Grep": {"pattern": "p"}}

    assert summary(tool, result, **arguments.get(tool, {})) == f"[{tool}] {says}"


@given(st.sampled_from(TOOLS), _json, st.booleans())
def test_no_result_is_summarised_as_nothing(tool: str, value: Any, text: bool) -> None:  # noqa: FBT001
    """A word that only the result has is in the summary, or at least the name that it stands under."""
    result = {"unheard": {"of": value}, "shape": "Rosencrantz"}

    found = summary(tool, json.dumps(result) if text else result)

    assert "shape" in found
    assert "unheard" in found


@pytest.mark.parametrize(
    ("result", "headline"),
    [
        ({"error": {"code": "ENOENT", "message": "gone"}}, "failed (a.md), code ENOENT:"),
        ({"error": "gone", "code": "ENOENT"}, "failed (a.md), code ENOENT:"),
        ({"error": "gone", "code": 404}, "failed (a.md), code 404:"),
        ({"error": "gone", "errorCode": "E7"}, "failed (a.md), code E7:"),
        (
            {"ok": False, "error": {"code": "NOT_FOUND", "message": "gone"}},
            "failed (a.md), code NOT_FOUND:",
        ),
        (
            {"error": {"code": -32803, "message": "gone", "data": {"code": "NOT_FOUND"}}},
            "failed (a.md), code NOT_FOUND, -32803:",
        ),
        ({"error": {"type": "not_found", "message": "gone"}}, "failed (a.md), code not_found:"),
        ('{"error": {"code": "ENOENT", "message": "gone"}}', "failed (a.md), code ENOENT:"),
        (
            {"isError": True, "content": [{"type": "text", "text": "gone"}], "code": "E7"},
            "failed (a.md), code E7:",
        ),
        ({"error": '{"code": "ENOENT", "message": "gone"}'}, "failed (a.md), code ENOENT:"),
        ({"status": "error", "message": "gone", "exit_code": 2}, "failed (a.md), exit code 2:"),
        ({"error": "gone"}, "failed (a.md):"),
    ],
)
def test_the_code_of_an_error_is_kept(result: Any, headline: str) -> None:
    for tool in ("Read", "Web"):
        assert summary(tool, result, path="a.md") == f"[{tool}] {headline}\ngone"


def test_the_code_of_a_failed_command_is_kept_beside_its_exit_code() -> None:
    error = {"code": "ETIMEDOUT", "message": "too slow"}

    plain = summary("Bash", {"error": error, "exit_code": 124}, command="make")
    streams = {"error": error, "stdout": "", "stderr": "killed", "exit_code": 124}
    with_errors = summary("Bash", streams, command="make")

    assert plain == "[Bash] failed (make), exit code 124, code ETIMEDOUT:\ntoo slow"
    assert with_errors.startswith("[Bash] make: exit code 124, code ETIMEDOUT\n")
    assert summary("Bash", {"error": "no", "code": 1}, command="x").startswith(
        "[Bash] failed (x), exit code 1:"
    )


def test_an_error_of_unknown_shape_is_kept_field_by_field() -> None:
    text = summary("Web", {"error": {"code": "E7", "hint": "try again"}})

    assert text == "[Web] failed, code E7:\ncode: E7\nhint: try again"


def test_a_huge_result_gives_a_bounded_summary() -> None:
    wall, lines = "夜" * 300_000, "x\n" * 300_000

    text = [summary(tool, huge) for tool in TOOLS for huge in (wall, lines)]

    assert max(map(len, text)) <= 64_000


def test_a_summary_shortens_to_its_first_lines_and_its_ref() -> None:
    ref = "ctx_" + "a" * 20
    long = with_ref("[Read] a.md: lines 1-3\n1: a\n2: b\n3: c", ref)

    assert shorten_summary(long) == f"[Read] a.md: lines 1-3\nFull output: {ref}"
    assert shorten_summary(long, 2).split("\n")[1] == "1: a"
    assert ref_in(shorten_summary(long)) == ref


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


@pytest.mark.parametrize(
    "context",
    [
        {"path": "a.md", "start_line": 7},
        {"file_path": "a.md", "startLine": "7"},
        {"params_input": {"path": "a.md", "offset": 7}},
        {"arguments": {"filePath": "a.md", "line_start": 7}},
    ],
)
def test_path_and_range_are_taken_from_the_context_of_a_result(context: dict[str, Any]) -> None:
    text = summary("Read", {"content": "one\ntwo", "context": context})

    assert text == "[Read] a.md: lines 7-8\n7: one\n8: two"


def test_path_and_range_are_taken_from_the_arguments_before_the_context() -> None:
    result = {"content": "one\ntwo", "context": {"path": "b.md"}}

    assert summary("Read", result, file_path="a.md", offset=3).startswith("[Read] a.md: lines 3-4")


@pytest.mark.parametrize("context", ["before\nafter", ["a", "b"], 7, None, {}, {"path": 7}])
def test_a_context_of_another_shape_says_nothing_about_the_call(context: Any) -> None:
    text = summary("Read", {"content": "one", "context": context}, path="a.md")

    assert text == "[Read] a.md: lines 1-1\n1: one"


@pytest.mark.parametrize(
    ("tool", "setting", "result", "arguments"),
    [
        ("LS", "tool_ls_lines", {"entries": list("abcdefgh")}, {}),
        ("Glob", "tool_glob_lines", {"matches": list("abcdefgh")}, {"pattern": "*"}),
        ("Grep", "tool_grep_lines", "\n".join(f"a:{n}:x" for n in range(8)), {"pattern": "x"}),
        ("Read", "tool_read_lines", "x\n" * 8, {"path": "a"}),
        ("Write", "tool_edit_lines", "ok", {"path": "a", "content": "x\n" * 8}),
        ("Web", "tool_other_lines", "x\n" * 8, {}),
    ],
)
def test_the_limit_of_each_tool_is_a_setting(
    tool: str, setting: str, result: Any, arguments: dict[str, Any]
) -> None:
    limits = line_limits(replace(Settings(), **{setting: 3}))
    text = summarise_result(tool, arguments, observe(result, REDACTOR), limits)

    lines = text.split("\n")
    assert len(lines) == 5
    assert re.fullmatch(r"… 5 more \w+", lines[-1])
