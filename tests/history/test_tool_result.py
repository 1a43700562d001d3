"""Results without their secrets, however deep these hide and however broken the result is."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.history.tool_result import Form, cached_redactor, observe, redact_json
from creonowd.history.tool_summary import read_arguments, summarise_result
from creonowd.redaction import Redactor, redact_value

REDACTOR = Redactor()
SECRET = "Zq8vR2mT5wLpK3nY"
WEAK = "correcthorse"
FAILED_FILE = 's.json: lines 1-1\n1: {"status": "failed", "n": 1}'
HIDDEN_FILE = 'a.json: lines 1-1\n1: {"password":"***REDACTED***","a":1}'


def nested_in_texts(value: Any, depth: int) -> str:
    """JSON in a JSON string in a JSON string, and so on."""
    spelled = json.dumps(value)
    for _ in range(depth):
        spelled = json.dumps({"inner": spelled})
    return spelled


@pytest.mark.requirement("CB-015", "CB-047")
@pytest.mark.parametrize("depth", range(8))
def test_a_password_is_found_in_json_within_json_texts(depth: int) -> None:
    spelled = nested_in_texts({"password": WEAK, "keep": "this"}, depth)

    for result in (spelled, json.loads(spelled), {"stdout": spelled, "exit_code": 0}):
        observation = observe(result, REDACTOR)

        assert WEAK not in observation.text
        assert WEAK not in summarise_result("Bash", {}, observation)
        assert "keep" in observation.text


@pytest.mark.requirement("CB-015", "CB-047")
@pytest.mark.parametrize(
    "command",
    [
        f"mysql -uroot -p{SECRET} db",
        f"login --password {SECRET}",
        f"login --token={SECRET}",
        f"curl -u ann:{SECRET} https://example.org",
        f"curl -H 'Authorization: Bearer {SECRET}{SECRET}' https://example.org",
        f"curl https://ann:{SECRET}@example.org/x",
        f"API_KEY={SECRET} ./run",
        f"export DB_PASSWORD={SECRET}",
        f'sh -c \'echo {{"password": "{SECRET}"}}\'',
    ],
)
def test_a_secret_is_found_in_a_command_line(command: str) -> None:
    given_as = ({"command": command}, json.dumps({"command": command}), command)
    failed = {"error": f"failed: {command}"}

    summaries = [
        summarise_result("Bash", read_arguments(arguments, REDACTOR), observe(result, REDACTOR))
        for arguments in given_as
        for result in ({"stdout": command, "stderr": command}, command, failed)
    ]

    assert not [summary for summary in summaries if SECRET in summary]
    assert SECRET not in observe(failed, REDACTOR).text


@pytest.mark.requirement("CB-015")
def test_broken_json_loses_its_secrets_and_nothing_else() -> None:
    inner = json.dumps({"token": SECRET})
    items = [{"password": WEAK, "n": n, "note": f"note {n}", "log": inner} for n in range(5)]
    broken = json.dumps(items)[:-9]

    observation = observe(broken, REDACTOR)

    assert observation.form is Form.MALFORMED
    assert WEAK not in observation.text
    assert SECRET not in observation.text
    assert [n for n in range(5) if f"note {n}" not in observation.text] == []


@pytest.mark.parametrize("depth", [17, 150, 900])
def test_json_that_is_nested_very_deeply_is_survived(depth: int) -> None:
    value: Any = {"password": SECRET}
    for _ in range(depth):
        value = [value]

    for result in (value, "[" * depth + json.dumps({"password": SECRET}) + "]" * depth):
        observation = observe(result, REDACTOR)

        assert SECRET not in observation.text
        assert summarise_result("Web", {}, observation).startswith("[Web] ")


@pytest.mark.parametrize(
    ("result", "arguments", "says"),
    [
        ('{\n "a": 1\n}', {"path": "a.json"}, 'a.json: lines 1-3\n1: {\n2:  "a": 1\n3: }'),
        ('{"a": 1}', {"path": "a.json"}, 'a.json: lines 1-1\n1: {"a": 1}'),
        ('{"a": 1}', {"path": "a.json", "offset": 7}, 'a.json: lines 7-7\n7: {"a": 1}'),
        ('{"text": "x"}', {"path": "a.json"}, 'a.json: lines 1-1\n1: {"text": "x"}'),
        ('{"content": "x"}', {"path": "a.json"}, "a.json: lines 1-1\n1: x"),
        (
            '{"name": "x", "text": "y"}',
            {"path": "a"},
            'a: lines 1-1\n1: {"name": "x", "text": "y"}',
        ),
        ('{"status": "failed", "n": 1}', {"path": "s.json"}, FAILED_FILE),
        ("[1, 2]", {"path": "a.json"}, "a.json: lines 1-1\n1: [1, 2]"),
        ('{"a": 1}\n{"b": 2}', {"path": "a.jsonl"}, 'a.jsonl: lines 1-2\n1: {"a": 1}\n2: {"b": 2}'),
        (f'{{"password":"{WEAK}","a":1}}', {"path": "a.json"}, HIDDEN_FILE),
        ('{"path": "a.md", "content": "x"}', {}, "a.md: lines 1-1\n1: x"),
        (
            {"encoding": "utf-8", "chapters": 3},
            {"path": "a"},
            "a: 2 fields\nencoding: utf-8\nchapters: 3",
        ),
        ({"lines": ["x", "y"]}, {"path": "a.md"}, "a.md: lines 1-2\n1: x\n2: y"),
        ({"content": ""}, {"path": "a.md"}, "a.md: empty"),
        ("Error: x\n" * 30, {"path": "a.log", "limit": 1}, "a.log: lines 1-1\n1: Error: x"),
    ],
)
def test_a_file_is_read_whatever_it_holds(
    result: Any, arguments: dict[str, Any], says: str
) -> None:
    assert summarise_result("Read", arguments, observe(result, REDACTOR)) == f"[Read] {says}"


@pytest.mark.parametrize(
    ("tool", "result", "says"),
    [
        ("Glob", "No files found", '"x": 0 matches'),
        ("Grep", "No matches found", '"x": 0 matches'),
        ("Grep", "Found 2 files\na.md\nb.md", '"x": 2 matches\na.md\nb.md'),
        (
            "Grep",
            {"matches": {"a.md": [{"line": 3, "text": "x"}]}},
            '"x": 1 match in 1 file\na.md:3: x',
        ),
        (
            "LS",
            "total 8\ndrwxr-xr-x 2 a a 4 src\n-rw-r--r-- 1 a a 4 b",
            ".: 2 entries (1 file, 1 folder)",
        ),
        (
            "Bash",
            {"stdout": "\x1b[1;31mred\x1b[0m"},
            "(no command): finished\nstdout: 1 line, 14 characters: red",
        ),
        ("TodoWrite", "Nothing to do.", "Nothing to do."),
        ("Web", 0, "0"),
        ("Web", [1, False], "2 items\n- 1\n- false"),
        ("Web", {"image": "QUJD" * 300}, "1 field\nimage: binary, 1200 characters"),
        (
            "Web",
            [{"type": "text", "text": "hello"}, {"type": "image", "data": "QUJD"}],
            "2 items\n- hello\n- object with type, data",
        ),
    ],
)
def test_a_summary_says_what_the_result_says(tool: str, result: Any, says: str) -> None:
    summary = summarise_result(tool, {"pattern": "x"}, observe(result, REDACTOR))

    assert summary.startswith(f"[{tool}] {says}")


_texts = st.sampled_from(["password", "a", f"key={SECRET}", "夜", f"Bearer {SECRET}{SECRET}", ""])
_values = st.recursive(
    _texts | st.integers() | st.none(),
    lambda inner: (
        st.lists(inner, min_size=3, max_size=9)
        | st.dictionaries(_texts, inner, min_size=2, max_size=6)
    ),
    max_leaves=40,
)


@given(_values)
def test_a_glance_finds_what_a_close_look_finds(value: Any) -> None:
    assert redact_value(value, cached_redactor(value, REDACTOR)) == redact_value(value, REDACTOR)
    assert redact_json(redact_json(value, REDACTOR), REDACTOR) == redact_json(value, REDACTOR)


def test_json_of_very_many_values_is_read_as_a_text() -> None:
    """Decoding it would hold everyone up, also from a thread."""
    text = "[" + "[]," * 200_000 + "[]]"

    read = observe(text, REDACTOR)

    assert (read.form, read.value) == (Form.TEXT, None)
