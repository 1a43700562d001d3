"""Story: whatever happens to the daemon, its disk or its lines, what it acknowledged is there.

After each fault the daemon is started again, `creonowd doctor` says what happened, and every
kind of write is looked at. `scripts/bench faults` kills by the thousand.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import psutil
import pytest

from creonowd.cli import main as creonowd
from creonowd.daemon import endpoint
from creonowd.testing.harness import Harness
from testing.writes import Acknowledged, constrain, refusals, write_all_kinds

KILLS = int(os.environ.get("CREONOW_TEST_KILLS", "24"))
ANOTHER_DAY = """
import datetime, time
real, real_day = time.time_ns, datetime.datetime
class AnotherDay(real_day):
    @classmethod
    def now(cls, tz=None):
        return real_day.now(tz) + datetime.timedelta(days={days})
time.time_ns = lambda: real() + {days} * 86_400 * 10**9
datetime.datetime = AnotherDay
"""
STANDARD_STREAMS = 3
posix = pytest.mark.skipif(os.name == "nt", reason="signals, limits and mounts of POSIX")


def doctored(daemon: Harness, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """Ask the doctor; give what it found that is not in order, by part."""
    capsys.readouterr()
    creonowd(["doctor", "--json", "--user-data", str(daemon.user_data)])
    findings = json.loads(capsys.readouterr().out)["findings"]
    return {
        one["part"]: f"{one['found']} → {one['remedy']}" for one in findings if one["state"] != "ok"
    }


def restarted(daemon: Harness) -> Harness:
    """Kill the daemon and start it again."""
    daemon.kill()
    daemon.start()
    return daemon


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills by the dozen need cheap processes")
def test_a_kill_at_any_moment_of_any_write_loses_nothing(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "testing.kills", str(tmp_path), str(KILLS), "7"],
        capture_output=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr.decode()
    report = json.loads(ran.stdout)

    assert report["lost"] == []
    assert report["refused"] == {}
    assert sum(report["kills"].values()) == KILLS
    assert report["reported"] == report["kills"]
    assert sum(report["inside"].values()) >= KILLS // 2
    assert sum(report["acknowledged"].values()) >= KILLS


def test_a_killed_daemon_is_reported_and_nothing_is_lost(
    daemon: Harness, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = write_all_kinds(daemon)

    restarted(daemon)

    assert "was killed" in doctored(daemon, capsys)["last end"]
    daemon.kill()
    assert "was killed" in doctored(daemon, capsys)["last end"]
    daemon.start()
    assert kept.find_lost(daemon) == []


def test_broken_files_are_named_repaired_and_cost_no_record(
    daemon: Harness, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = write_all_kinds(daemon)
    daemon.kill()
    files = {
        "projects.json": daemon.user_data / "projects.json",
        **_found(daemon.user_data, "retrieval/*"),
        **_found(daemon.user_data, "context/*/manifest.json"),
        **_found(daemon.user_data, "context/*/conversation.json"),
    }
    for file in files.values():
        file.write_bytes(b"\xff" * (file.stat().st_size // 2))
    for index in (kept.project.root / ".creonow" / "conversations").glob("index*"):
        index.write_bytes(b"\xff{")

    findings = doctored(daemon, capsys)
    daemon.start()

    assert len(files) > 4
    assert {part for part in files if not part.endswith(("-wal", "-shm"))} <= set(findings)
    assert kept.find_lost(daemon) == []
    assert "projects.damaged-1.json" in doctored(daemon, capsys)


def test_a_broken_budget_is_kept_aside_and_reported(
    daemon: Harness, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = write_all_kinds(daemon)
    daemon.kill()
    ((part, file),) = _found(daemon.user_data, "budgets/*.json").items()
    file.write_bytes(b'{"version": 1, "profile": {"version"')

    findings = doctored(daemon, capsys)
    daemon.start()
    profile = daemon.call("context:budget:get", kept.project.params())
    after = doctored(daemon, capsys)

    assert "set the budget again" in findings[part]
    assert profile["warnings"][0].startswith("CONTEXT_BUDGET_FALLBACK")
    assert "kept as" in after["budgets"]
    kept.replies["budget"].clear()
    assert kept.find_lost(daemon) == []


def test_a_torn_history_keeps_what_was_whole(
    daemon: Harness, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = write_all_kinds(daemon)
    daemon.kill()
    ((part, file),) = _found(daemon.user_data, "histories/*/*.jsonl").items()
    with file.open("ab") as log:
        log.write(b'{"version":1,"checksum":"00')

    findings = doctored(daemon, capsys)
    daemon.start()

    assert "incomplete" in findings[part]
    assert kept.find_lost(daemon) == []


def test_a_project_folder_that_goes_away_and_comes_back(
    daemon: Harness, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = write_all_kinds(daemon)
    root, away = kept.project.root, kept.project.home / "away"
    root.rename(away)

    codes = set(refusals(daemon, kept).values())
    restarted(daemon)
    findings = doctored(daemon, capsys)
    if root.exists():
        shutil.rmtree(root)
    away.rename(root)

    assert "INTERNAL" not in codes
    assert "is not there" in findings[kept.project.project_id]
    assert kept.find_lost(daemon) == []


@posix
@pytest.mark.parametrize("days", [-3650, 30])
def test_a_clock_that_jumps_is_reported_and_nothing_is_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], days: int
) -> None:
    """A day is found in which the machine believed itself ten years back, or a month ahead."""
    code = ANOTHER_DAY.format(days=days)
    (tmp_path / "sitecustomize.py").write_text(code, encoding="utf-8")
    home = tmp_path / "home"
    with Harness(home) as today:
        kept = write_all_kinds(today)
    with Harness(home, PYTHONPATH=f"{tmp_path}{os.pathsep}{Path.cwd()}") as another_day:
        assert refusals(another_day, kept) == {}
        keys = [
            item["hint"] for item in another_day.call("context.list", kept.project.chat())["items"]
        ]
    with Harness(home) as today_again:
        assert kept.find_lost(today_again) == []
        findings = doctored(today_again, capsys)

    assert "set back" in findings["clock"]
    assert keys[-1] == f"file {kept.bursts[-1]}" or days < 0


@posix
def test_a_daemon_that_was_stopped_goes_on_where_it_was(
    daemon: Harness, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = write_all_kinds(daemon)
    pid = _pid(daemon)
    os.kill(pid, signal.SIGSTOP)
    findings = doctored(daemon, capsys)
    os.kill(pid, signal.SIGCONT)

    assert refusals(daemon, kept) == {}
    assert "does not answer" in findings["daemon"]
    assert "daemon" not in doctored(daemon, capsys)
    restarted(daemon)
    assert kept.find_lost(daemon) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits a process that runs")
def test_without_file_descriptors_requests_fail_one_by_one(
    daemon: Harness, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = write_all_kinds(daemon)
    pid = _pid(daemon)
    process = psutil.Process(pid)
    before = process.rlimit(psutil.RLIMIT_NOFILE)
    process.rlimit(psutil.RLIMIT_NOFILE, (STANDARD_STREAMS, before[1]))
    codes = refusals(daemon, kept)
    alive = daemon.call("app:ping")["pong"]
    process.rlimit(psutil.RLIMIT_NOFILE, before)

    assert alive
    assert codes
    assert codes == dict.fromkeys(codes, "IO_ERROR")
    assert "disk_error (IO_ERROR)" in doctored(daemon, capsys)["log"]
    assert refusals(daemon, kept) == {}
    restarted(daemon)
    assert kept.find_lost(daemon) == []


@posix
def test_lines_that_are_cut_in_the_middle_lose_nothing_that_was_answered(
    daemon: Harness, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = write_all_kinds(daemon)
    found = endpoint.read(daemon.user_data)
    assert found is not None
    for cut in range(20):
        numbers = range(100 + cut * 5, 105 + cut * 5)
        lines = [_line(n, *constrain(kept.project, n)) for n in numbers]
        kept.replies["constraints"] |= _cut(found.endpoints[0].address, b"".join(lines), cut % 6)

    assert doctored(daemon, capsys).keys().isdisjoint({"daemon", "log", "last end"})
    assert refusals(daemon, kept) == {}
    restarted(daemon)
    assert kept.find_lost(daemon) == []


@posix
def test_a_full_disk_refuses_writes_and_loses_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    disk = tmp_path / "disk"
    with mounted(disk, "-t", "tmpfs", "-o", "size=8m", "tmpfs"), Harness(disk) as daemon:
        kept = write_all_kinds(daemon)
        _fill(disk / "ballast")
        codes = refusals(daemon, kept)
        findings = doctored(daemon, capsys)
        restarted(daemon)
        lost_while_full = kept.find_lost(daemon, "retrieval index")
        (disk / "ballast").unlink()
        codes_after = refusals(daemon, kept)
        restarted(daemon)
        lost = kept.find_lost(daemon)

    assert codes
    assert set(codes.values()) == {"STORAGE_FULL"}
    assert "free" in findings["disk"]
    assert (lost_while_full, codes_after, lost) == ([], {}, [])


@posix
def test_a_read_only_folder_refuses_writes_and_loses_none(
    daemon: Harness, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = write_all_kinds(daemon)
    with contextlib.ExitStack() as stack:
        for folder in (
            kept.project.root,
            daemon.user_data / "context",
            daemon.user_data / "budgets",
        ):
            stack.enter_context(_read_only(folder))
        codes = refusals(daemon, kept)
        findings = doctored(daemon, capsys)
        lost = kept.find_lost(restarted(daemon))

    assert {"constraints", "budget", "context file put", "skill write"} <= set(codes)
    assert set(codes.values()) == {"IO_ERROR"}
    assert lost == []
    assert "disk_error (IO_ERROR)" in findings["log"]
    for part in (kept.project.project_id, "context", "budgets"):
        assert "cannot be written" in findings[part]
    assert refusals(daemon, kept) == {}
    assert kept.find_lost(restarted(daemon)) == []


@contextlib.contextmanager
def mounted(place: Path, *how: str) -> Generator[Path]:
    """Mount a file system for the block; without the right to, the test cannot be made."""
    place.mkdir(exist_ok=True)
    ran = subprocess.run(["mount", *how, str(place)], capture_output=True, check=False)
    if ran.returncode:
        pytest.skip(f"this user may not mount a file system: {ran.stderr.decode().strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@contextlib.contextmanager
def _read_only(folder: Path) -> Generator[None]:
    """Root is not held back by permissions, so for root the folder is mounted read-only."""
    if os.geteuid():
        folder.chmod(0o500)
        yield
        folder.chmod(0o700)
        return
    with mounted(folder, "--bind", str(folder)):
        subprocess.run(["mount", "-o", "remount,bind,ro", str(folder)], check=True)
        yield


def _found(user_data: Path, pattern: str) -> dict[str, Path]:
    return {path.relative_to(user_data).as_posix(): path for path in user_data.glob(pattern)}


def _pid(daemon: Harness) -> int:
    found = endpoint.read(daemon.user_data)
    assert found is not None
    return found.pid


def _fill(ballast: Path) -> None:
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 9, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"x" * size)


def _line(number: int, method: str, params: Any) -> bytes:
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return json.dumps(message).encode() + b"\n"


def _cut(address: str, data: bytes, replies: int) -> Acknowledged:
    """Send, read so many replies, and hang up without another word."""
    heard: Acknowledged = {}
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(60)
        line.connect(address)
        line.sendall(data)
        with line.makefile("rb") as stream:
            for _ in range(min(replies, 5)):
                reply = json.loads(stream.readline())
                heard[reply["id"]] = reply["result"]
    return heard
