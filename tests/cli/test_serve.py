"""`creonowd serve`: what stops a start is reported in words."""

import socket
from pathlib import Path

import pytest

from tests.cli.commands import creonowd_process


def test_a_setting_that_does_not_fit_stops_the_start_in_words(tmp_path: Path) -> None:
    ran = creonowd_process(tmp_path, "serve", CREONOW_MAX_BATCH="0")

    assert ran.returncode == 1
    assert b"maxBatch" in ran.stderr
    assert b"Traceback" not in ran.stderr


def test_the_start_is_refused_in_the_language_of_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text('{"logLevl": "info"}', encoding="utf-8")
    file = tmp_path / "file"
    file.touch()

    unknown = creonowd_process(tmp_path, "serve", LC_ALL="zh_CN.UTF-8")
    no_folder = creonowd_process(file, "serve", LC_ALL="zh_CN.UTF-8")

    assert "settings.json 含有未知的设置项：logLevl" in unknown.stderr.decode()
    assert "无法使用：它不是文件夹。请移走它" in no_folder.stderr.decode()


def test_user_data_that_cannot_be_used_stops_the_start_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")

    ran = creonowd_process(tmp_path / "file", "serve")

    assert ran.returncode == 1
    assert b"it is not a folder" in ran.stderr
    assert b"--user-data" in ran.stderr
    assert b"Traceback" not in ran.stderr


@pytest.mark.parametrize("flag", ["--tcp", "--websocket"])
def test_an_address_that_is_taken_stops_the_start_in_words(tmp_path: Path, flag: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])

        ran = creonowd_process(tmp_path, "serve", flag, port)

    assert ran.returncode == 1
    assert f"Port {port} cannot be opened".encode() in ran.stderr
    assert f"{flag} 0 picks one".encode() in ran.stderr
    assert b"Traceback" not in ran.stderr


@pytest.mark.parametrize("port", ["-1", "65536", "x"])
def test_what_is_no_port_is_wrong_usage(tmp_path: Path, port: str) -> None:
    ran = creonowd_process(tmp_path, "serve", "--tcp", port)

    assert ran.returncode == 2
    assert b"--tcp: a port is a number between 0 and 65535" in ran.stderr
