"""Every line is JSON, redacted, and on the disk."""

import contextlib
import json
import logging
import os
import sys
from collections.abc import Generator
from pathlib import Path

import anyio
import pytest
import structlog

from creonowd import logs
from creonowd.redaction import Redactor
from creonowd.settings import Settings

SECRET = "sk-proj-Zq8vT2nLw5RkXc7bYp3HdJf9MsGa4EuK6WoNi1"


@pytest.fixture(autouse=True)
def _quiet_afterwards() -> Generator[None]:
    yield
    logs.close()
    logs.quiet()


def lines(user_data: Path) -> list[dict[str, object]]:
    logs.close()
    text = (user_data / "logs" / "main.log").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")
def test_a_pipe_in_the_place_of_the_log_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    os.mkfifo(tmp_path / "logs" / "main.log")

    with pytest.raises(OSError, match=r"main\.log is no plain file"):
        logs.configure(tmp_path, Settings())


def test_a_line_has_event_level_time_and_values(tmp_path: Path) -> None:
    logs.configure(tmp_path, Settings())
    structlog.stdlib.get_logger("part").info("something_happened", count=3, name="林远")

    (line,) = lines(tmp_path)

    assert (line["event"], line["level"], line["count"]) == ("something_happened", "info", 3)
    assert line["name"] == "林远"
    assert str(line["time"]).endswith("Z")


def test_secrets_do_not_reach_the_file(tmp_path: Path) -> None:
    logs.configure(tmp_path, Settings())
    log = structlog.stdlib.get_logger("part")
    log.info("event", deep={"list": [{"key": SECRET}]})
    log.error("failed", exc_info=ValueError(SECRET))
    logging.getLogger("foreign.library").warning("the key is %s", SECRET)

    assert len(lines(tmp_path)) == 3
    text = (tmp_path / "logs" / "main.log").read_text(encoding="utf-8")
    assert SECRET not in text
    assert "***REDACTED***" in text


def test_the_home_folder_and_keys_of_one_user_do_not_reach_the_file(tmp_path: Path) -> None:
    home = Path("/workspace/mei").absolute()  # on Windows with a drive
    own = Redactor(home, ["open sesame"])
    logs.configure(tmp_path, Settings(), redactor=own)
    log = structlog.stdlib.get_logger("part")
    log.error("open sesame at %s", home, exc_info=ValueError("open sesame"))

    text = (tmp_path / "logs" / "main.log").read_text(encoding="utf-8")

    assert "sesame" not in text
    assert "workspace" not in text


def test_below_the_level_nothing_is_written(tmp_path: Path) -> None:
    logs.configure(tmp_path, Settings(log_level="warning"))
    structlog.stdlib.get_logger("part").info("quiet")

    assert lines(tmp_path) == []


async def test_a_warning_is_written_at_once_with_all_that_waited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "PAUSE_SECONDS", 3600)
    logs.configure(tmp_path, Settings())
    log = structlog.stdlib.get_logger("part")
    log.info("first")
    log.info("second")
    log.warning("third")
    log.warning("fourth")

    file = anyio.Path(tmp_path / "logs" / "main.log")
    with anyio.fail_after(60):
        while (await file.read_bytes()).count(b"\n") < 4:
            await anyio.lowlevel.checkpoint()

    assert [line["event"] for line in lines(tmp_path)] == ["first", "second", "third", "fourth"]


def test_what_waits_to_be_written_is_there_after_closing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "PAUSE_SECONDS", 3600)
    logs.configure(tmp_path, Settings())
    structlog.stdlib.get_logger("part").info("last_words")

    assert [line["event"] for line in lines(tmp_path)] == ["last_words"]


@pytest.mark.skipif(os.name == "nt", reason="rights are not modes on Windows")
def test_the_folder_is_private(tmp_path: Path) -> None:
    logs.configure(tmp_path, Settings())

    assert (tmp_path / "logs").stat().st_mode & 0o077 == 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a disk that is always full")
def test_a_full_disk_costs_the_line_and_fails_nobody_else(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "main.log").symlink_to("/dev/full")
    logs.configure(tmp_path, Settings())

    structlog.stdlib.get_logger("part").info("event", key=SECRET)
    with contextlib.suppress(OSError):
        logs.close()

    assert capfd.readouterr() == ("", "")


def test_lines_that_the_disk_cannot_follow_are_dropped_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "MOST_QUEUED", 0)
    logs.configure(tmp_path, Settings())
    log = structlog.stdlib.get_logger("part")
    for _ in range(7):
        log.info("something_happened")
    monkeypatch.setattr(logs, "MOST_QUEUED", 10)
    log.info("the_last")

    dropped, last = lines(tmp_path)

    assert (dropped["event"], last["event"]) == ("log_lines_dropped: 7", "the_last")
