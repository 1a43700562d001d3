"""Flags win over the environment, which wins over the file; what does not fit is named."""

import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from creonowd.errors import DaemonError, ErrorCode
from creonowd.settings import (
    Settings,
    backend_key,
    load,
    origins,
    own_backend,
    unknown_variables,
    user_data_dir,
    variable,
    windows_program,
)


def write(user_data: Path, content: str) -> None:
    data = content.encode("utf-8", "surrogateescape")
    (user_data / "settings.json").write_bytes(data)


def test_without_anything_the_defaults_hold(tmp_path: Path) -> None:
    assert load(tmp_path, {}, {}) == Settings()


@pytest.mark.requirement("CB-003", "CB-010", "CB-011", "CB-013", "CB-025", "CB-026", "CB-028")
@pytest.mark.requirement("CB-042", "CE-094", "CE-096", "CF-019", "CF-021", "CF-033")
def test_the_numbers_of_the_specification_are_the_defaults() -> None:
    usual = Settings()

    assert (usual.tool_glob_lines, usual.tool_grep_lines, usual.tool_read_lines) == (10, 5, 500)
    assert 20 <= usual.tool_edit_lines <= 50
    assert usual.tool_stderr_lines == 20
    assert (usual.history_rounds, usual.history_rounds_floor) == (5, 2)
    assert (usual.history_budget_tokens, usual.history_summary_at) == (16_000, 0.5)
    assert (usual.assemble_running, usual.assemble_waiting) == (4, 16)
    assert (usual.context_read_max_bytes, usual.context_tail_max_lines) == (65_536, 2000)
    assert (usual.max_inline_bytes, usual.max_inline_chars) == (16_384, 4000)


def test_flags_win_over_environment_over_file(tmp_path: Path) -> None:
    write(tmp_path, json.dumps({"maxBatch": 1, "maxInFlight": 1, "drainMs": 1}))
    environ = {"CREONOW_MAX_BATCH": "2", "CREONOW_MAX_IN_FLIGHT": "2"}

    found = load(tmp_path, {"maxBatch": 3, "debug": None}, environ)

    assert (found.max_batch, found.max_in_flight, found.drain_ms) == (3, 2, 1)
    assert found.debug is False


@pytest.mark.parametrize(
    ("text", "value"), [("1", True), ("true", True), ("0", False), ("false", False)]
)
def test_a_harness_may_say_yes_in_several_ways(tmp_path: Path, text: str, value: bool) -> None:  # noqa: FBT001
    assert load(tmp_path, {}, {"CREONOW_E2E": text}).e2e is value


def test_every_setting_reports_where_it_came_from(tmp_path: Path) -> None:
    write(tmp_path, '{"logLevel": "debug"}')

    origin_of = {p.name: p.origin for p in origins(tmp_path, {"debug": True}, {"CREONOW_E2E": "1"})}

    assert origin_of["logLevel"] == "settings.json"
    assert origin_of["debug"] == "flag"
    assert origin_of["e2e"] == "environment"
    assert origin_of["maxBatch"] == "default"
    assert len(origin_of) == len(Settings.__struct_fields__)


def test_every_setting_says_what_it_does(tmp_path: Path) -> None:
    assert [place.name for place in origins(tmp_path, {}, {}) if not place.description] == []


def test_a_variable_that_is_no_setting_is_noticed() -> None:
    ours = {"CREONOW_USER_DATA_DIR": "x", "CREONOW_OPENAI_API_KEY": "x", "CREONOW_DEBUG": "1"}

    assert unknown_variables({**ours, "PATH": "x"}) == []
    assert unknown_variables({**ours, "CREONOW_DEBUGG": "1", "CREONOW_ZZZ": "1"}) == [
        "CREONOW_DEBUGG (did you mean CREONOW_DEBUG?)",
        "CREONOW_ZZZ",
    ]


@pytest.mark.parametrize(
    ("content", "environ", "named"),
    [
        ('{"maxBatch": "many"}', {}, "maxBatch"),
        ('{"maxBatch": 0}', {}, "maxBatch"),
        ('{"maxBatches": 5}', {}, "maxBatches (did you mean maxBatch?)"),
        ("[1]", {}, "settings.json"),
        ("{", {}, "move it away for the defaults"),
        pytest.param('{"a":' + "[" * 200_000, {}, "move it away for the defaults", id="deep"),
        ('{"\udcff": 1}', {}, "move it away for the defaults"),
        pytest.param('{"maxBatch": 5' + " " * 2**20 + "}", {}, "settings.json", id="large"),
        ("{}", {"CREONOW_MAX_BATCH": "many"}, "maxBatch (CREONOW_MAX_BATCH)"),
        ("{}", {"CREONOW_MAX_BATCH": "many"}, "a whole number: requests in one batch"),
        ("{}", {"CREONOW_LOG_LEVEL": "loud"}, "debug, info, warning or error"),
        ("{}", {"CREONOW_AI_PROVIDER": "gemini"}, "one of fake, openai, anthropic"),
        ("{}", {"CREONOW_DEBUG": "perhaps"}, "true or false"),
    ],
)
def test_what_does_not_fit_is_named(
    tmp_path: Path, content: str, environ: dict[str, str], named: str
) -> None:
    write(tmp_path, content)

    with pytest.raises(DaemonError) as caught:
        load(tmp_path, {}, environ)

    assert caught.value.code is ErrorCode.INVALID_ARGUMENT
    assert named in caught.value.message


def make_pipe(path: Path) -> None:
    os.mkfifo(path, 0o600)


def make_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")
@pytest.mark.parametrize("make", [make_pipe, make_device])
def test_no_pipe_and_no_device_is_read_as_settings_or_a_key(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    (tmp_path / "keys").mkdir()
    for name in ("settings.json", "keys/openai"):
        make(tmp_path / name)

    settings = load(tmp_path, {}, {"CREONOW_AI_PROVIDER": "openai"})

    assert settings.max_batch == Settings().max_batch
    with contextlib.suppress(DaemonError):  # others may write to /dev/zero, and so it is refused
        assert backend_key("default", own_backend(settings), tmp_path, {}) is None


def test_a_file_from_the_future_is_refused(tmp_path: Path) -> None:
    write(tmp_path, '{"version": 2}')

    with pytest.raises(DaemonError) as caught:
        load(tmp_path, {}, {})

    assert caught.value.code is ErrorCode.VERSION_TOO_NEW


@pytest.mark.parametrize(
    ("flag", "environ", "expected"),
    [
        ("flag", {"CREONOW_USER_DATA_DIR": "env"}, "flag"),
        (None, {"CREONOW_USER_DATA_DIR": "env"}, "env"),
        (None, {}, "CreoNow"),
    ],
)
def test_user_data_is_where_one_says(flag: str | None, environ: Any, expected: str) -> None:
    place = user_data_dir(Path(flag) if flag else None, environ)

    assert place.is_absolute()
    assert place.name == expected


def test_the_variable_of_a_setting_can_be_guessed() -> None:
    assert variable("maxInFlight") == "CREONOW_MAX_IN_FLIGHT"


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"SYSTEMROOT": r"D:\Win"}, r"D:\Win\System32\icacls.exe"),
        ({}, r"C:\Windows\System32\icacls.exe"),
    ],
)
def test_a_program_of_windows_is_not_looked_for_in_the_current_folder(
    environ: dict[str, str], expected: str
) -> None:
    assert str(windows_program("icacls.exe", environ)) == expected
