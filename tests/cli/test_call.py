"""`creonowd call`: one request from the shell."""

import json
import re
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from creonowd.channels import ALL_CHANNELS
from creonowd.cli.call import kind, limits, list_channels
from creonowd.testing.harness import Harness
from testing.clients import endpoints_of, run_daemon
from tests.cli.commands import creonowd, creonowd_process


@pytest.fixture(scope="module")
def user_data(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    """That of a daemon which is running already."""
    with Harness(tmp_path_factory.mktemp("daemon")) as daemon:
        yield daemon.user_data


def test_call_starts_a_daemon_if_none_runs(tmp_path: Path) -> None:
    ran = creonowd_process(tmp_path, "call", "app:ping")

    assert ran.returncode == 0
    assert json.loads(ran.stdout)["pong"] is True


def test_call_reads_its_payload_from_stdin(user_data: Path) -> None:
    ran = creonowd(user_data, "call", "e2e:echo", "-", stdin='{"value": "渡口"}'.encode())

    assert json.loads(ran.stdout) == {"value": "渡口"}
    assert "渡口".encode() in ran.stdout


def test_a_failed_call_prints_the_code_and_fails(user_data: Path) -> None:
    ran = creonowd(user_data, "call", "no:such")

    assert ran.returncode == 1
    assert ran.stdout == b""
    assert json.loads(ran.stderr)["code"] == "IPC_CHANNEL_FORBIDDEN"
    assert "call --list" in json.loads(ran.stderr)["message"]


def test_a_misspelt_channel_brings_up_the_one_that_was_meant(user_data: Path) -> None:
    ran = creonowd(user_data, "call", "context:asemble")

    assert "Did you mean context:assemble?" in json.loads(ran.stderr)["message"]


def test_the_list_names_every_channel_and_needs_no_daemon(tmp_path: Path) -> None:
    ran = creonowd(tmp_path, "call", "--list")

    listed = {line.split()[0] for line in ran.stdout.decode().splitlines() if line[0] != " "}
    assert listed == {channel.name for channel in ALL_CHANNELS}
    assert not (tmp_path / "endpoint.json").exists()


def test_help_on_a_channel_has_its_fields_errors_and_an_example(tmp_path: Path) -> None:
    ran = creonowd(tmp_path, "call", "context:budget:update", "--help")

    shown = ran.stdout.decode()
    assert ran.returncode == 0
    assert shown.startswith("context:budget:update — Change the budget")
    assert "  projectId " in shown
    assert "  totalBudgetTokens " in shown
    assert "CONTEXT_BUDGET_CONFLICT" in shown
    assert "creonowd call context:budget:update '{" in shown
    assert max(map(len, shown.partition("Example")[0].splitlines()[1:])) < 80


def test_help_on_a_misspelt_channel_brings_up_the_one_that_was_meant(tmp_path: Path) -> None:
    ran = creonowd(tmp_path, "call", "context:asemble", "--help")

    assert ran.returncode == 1
    assert "Did you mean context:assemble?" in ran.stderr.decode()


@pytest.mark.parametrize(("words", "status"), [(("--help",), 0), ((), 2)])
def test_without_a_channel_the_usage_is_shown(
    tmp_path: Path, words: tuple[str, ...], status: int
) -> None:
    ran = creonowd(tmp_path, "call", *words)

    assert ran.returncode == status
    assert b"--list" in (ran.stderr if status else ran.stdout)


def test_a_daemon_that_cannot_start_is_reported_once_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text("{", encoding="utf-8")

    ran = creonowd(tmp_path, "call", "app:ping")

    reason, answer = ran.stderr.decode().splitlines()
    assert ran.returncode == 1
    assert reason.startswith("creonowd: settings.json is not a JSON object")
    assert json.loads(answer)["message"] == "The daemon did not start; the reason is printed above."


def test_a_payload_that_is_not_json_is_wrong_usage(tmp_path: Path) -> None:
    ran = creonowd(tmp_path, "call", "app:ping", "{")

    assert ran.returncode == 2
    assert b"not JSON" in ran.stderr


@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", b"\r\n "])
def test_a_payload_may_hold_half_an_emoji_and_a_mark(user_data: Path, before: bytes) -> None:
    ran = creonowd(user_data, "call", "e2e:echo", "-", stdin=before + b'{"value": "\\ud83d"}\r\n')

    assert json.loads(ran.stdout) == {"value": "\ufffd"}


@pytest.mark.parametrize("payload", [b'{"value": "\xff"}', b"[" * 100_000])
def test_a_payload_that_cannot_be_read_is_wrong_usage(tmp_path: Path, payload: bytes) -> None:
    ran = creonowd(tmp_path, "call", "e2e:echo", "-", stdin=payload)

    assert ran.returncode == 2
    assert b"Traceback" not in ran.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere arguments are Unicode")
@pytest.mark.parametrize("words", [("e2e:\udcff", "{}"), ("e2e:echo", '{"value": "\udcff"}')])
def test_an_argument_that_is_not_utf8_is_said_to_be_that(
    user_data: Path, words: tuple[str, ...]
) -> None:
    ran = creonowd(user_data, "call", *words)

    assert ran.returncode in {1, 2}
    assert re.search(rb"UTF-8|utf-8", ran.stderr)
    assert b"Traceback" not in ran.stderr


def test_an_empty_list_is_sent_as_it_is(user_data: Path) -> None:
    ran = creonowd(user_data, "call", "app:ping", "[]")

    assert ran.returncode == 1
    assert json.loads(ran.stderr)["code"] == "INVALID_ARGUMENT"


@pytest.mark.parametrize("arguments", [("--socket",), ("--tcp", "0")])
async def test_call_uses_the_daemon_that_runs(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    async with run_daemon(tmp_path, *arguments) as process:
        await endpoints_of(tmp_path)

        ran = creonowd(tmp_path, "call", "app:ping")

    assert json.loads(ran.stdout)["pid"] == process.pid


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ('{"text": "a", "txt": 1}', "takes no field `txt`; it is ignored. Did you mean text?"),
        ('{"text": "a", "\\u001b[2J": 1}', "takes no field `\\x1b[2J`; it is ignored.\n"),
        ('{"text": "a", "_meta": {"timeoutMs": 5000}}', ""),
    ],
)
def test_a_field_that_a_channel_does_not_know_is_named(
    user_data: Path, payload: str, said: str
) -> None:
    ran = creonowd(user_data, "call", "tokens:count", payload, LC_ALL="C")

    assert ran.returncode == 0
    assert said in ran.stderr.decode()
    assert bool(said) == bool(ran.stderr)


DOCUMENT = {
    "methods": [
        {"name": "pen:dip", "summary": "Take ink."},
        {"name": "pen:" + "write:" * 6 + "on", "summary": "Write on."},
    ]
}


def test_a_long_name_has_a_line_of_its_own() -> None:
    lines = list_channels(DOCUMENT, 100).splitlines()

    assert lines[0] == f"pen:dip{' ' * 25}Take ink."
    assert lines[1:] == [DOCUMENT["methods"][1]["name"], f"{' ' * 32}Write on."]


def test_a_narrow_terminal_gets_the_text_below_the_name() -> None:
    lines = list_channels(DOCUMENT, 44).splitlines()

    assert lines[:2] == ["pen:dip", "    Take ink."]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"$ref": "#/components/schemas/Layer"}, "Layer"),
        ({"type": "array", "items": {"type": "string"}}, "list of string"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "map of integer"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string or null"),
        ({"enum": ["utf-8", "base64"]}, "`utf-8` or `base64`"),
        ({}, "anything"),
    ],
)
def test_a_type_is_spelled_in_words(schema: dict[str, Any], expected: str) -> None:
    assert kind(schema) == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"minimum": 1, "maximum": 200}, ["1 to 200"]),
        ({"anyOf": [{"minimum": 0}, {"type": "null"}]}, ["at least 0"]),
        ({"exclusiveMinimum": 0, "maximum": 1}, ["over 0, at most 1"]),
        ({"minLength": 1}, ["not empty"]),
        ({"maxItems": 5}, ["at most 5 items"]),
    ],
)
def test_limits_are_spelled_in_words(schema: dict[str, Any], expected: list[str]) -> None:
    assert list(limits(schema)) == expected
