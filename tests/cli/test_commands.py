"""The command line, as a person and as a script uses it."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from creonowd import __version__
from creonowd.cli import doctor, main
from testing.clients import endpoints_of, environment, running
from testing.privileges import without_privileges


def creonowd(
    user_data: Path, *arguments: str, stdin: bytes = b"", **environ: str
) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        [sys.executable, "-m", "creonowd", *arguments],
        input=stdin,
        capture_output=True,
        check=False,
        timeout=60,
        env=environment(CREONOW_USER_DATA_DIR=str(user_data), **environ),
    )


def test_version_and_help_say_what_it_is(tmp_path: Path) -> None:
    version = creonowd(tmp_path, "--version")
    helped = creonowd(tmp_path, "--help")

    assert version.stdout.decode().strip() == f"creonowd {__version__}"
    assert helped.returncode == 0
    for command in (b"serve", b"call", b"doctor"):
        assert command in helped.stdout


@pytest.mark.parametrize("arguments", [(), ("nonsense",), ("call",), ("serve", "--nonsense")])
def test_wrong_usage_is_told_on_stderr(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    ran = creonowd(tmp_path, *arguments)

    assert ran.returncode == 2
    assert ran.stdout == b""
    assert b"usage" in ran.stderr


def test_call_starts_a_daemon_if_none_runs(tmp_path: Path) -> None:
    ran = creonowd(tmp_path, "call", "app:ping")

    assert ran.returncode == 0
    assert json.loads(ran.stdout)["pong"] is True


def test_call_reads_its_payload_from_stdin(tmp_path: Path) -> None:
    ran = creonowd(tmp_path, "call", "e2e:echo", "-", stdin='{"value": "渡口"}'.encode())

    assert json.loads(ran.stdout) == {"value": "渡口"}
    assert "渡口".encode() in ran.stdout


def test_a_failed_call_tells_the_code_and_fails(tmp_path: Path) -> None:
    ran = creonowd(tmp_path, "call", "no:such")

    assert ran.returncode == 1
    assert ran.stdout == b""
    assert json.loads(ran.stderr)["code"] == "IPC_CHANNEL_FORBIDDEN"
    assert "rpc.discover" in json.loads(ran.stderr)["message"]


def test_a_misspelt_channel_brings_up_the_one_that_was_meant(tmp_path: Path) -> None:
    ran = creonowd(tmp_path, "call", "context:asemble")

    assert "Did you mean context:assemble?" in json.loads(ran.stderr)["message"]


def test_a_daemon_that_cannot_start_is_told_once_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text("{", encoding="utf-8")

    ran = creonowd(tmp_path, "call", "app:ping")

    reason, answer = ran.stderr.decode().splitlines()
    assert ran.returncode == 1
    assert reason.startswith("creonowd: settings.json is not a JSON object")
    assert json.loads(answer)["message"] == "The daemon did not start; it says above why."


def test_without_a_command_the_commands_are_listed(tmp_path: Path) -> None:
    ran = creonowd(tmp_path)

    assert b"find out what is wrong" in ran.stderr


def test_a_payload_that_is_not_json_is_wrong_usage(tmp_path: Path) -> None:
    ran = creonowd(tmp_path, "call", "app:ping", "{")

    assert ran.returncode == 2
    assert b"not JSON" in ran.stderr


@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", b"\r\n "])
def test_a_payload_may_hold_half_an_emoji_and_a_mark(tmp_path: Path, before: bytes) -> None:
    ran = creonowd(tmp_path, "call", "e2e:echo", "-", stdin=before + b'{"value": "\\ud83d"}\r\n')

    assert json.loads(ran.stdout) == {"value": "\ufffd"}


@pytest.mark.parametrize("payload", [b'{"value": "\xff"}', b"[" * 100_000])
def test_a_payload_that_cannot_be_read_is_wrong_usage(tmp_path: Path, payload: bytes) -> None:
    ran = creonowd(tmp_path, "call", "e2e:echo", "-", stdin=payload)

    assert ran.returncode == 2
    assert b"Traceback" not in ran.stderr


def test_an_empty_list_is_sent_as_it_is(tmp_path: Path) -> None:
    ran = creonowd(tmp_path, "call", "app:ping", "[]")

    assert ran.returncode == 1
    assert json.loads(ran.stderr)["code"] == "INVALID_ARGUMENT"


@pytest.mark.parametrize("arguments", [("--socket",), ("--tcp", "0")])
async def test_call_visits_the_daemon_that_runs(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    async with running(tmp_path, *arguments) as process:
        await endpoints_of(tmp_path)

        ran = creonowd(tmp_path, "call", "app:ping")

    assert json.loads(ran.stdout)["pid"] == process.pid


def test_doctor_lists_settings_and_finds_nothing_wrong(tmp_path: Path) -> None:
    ran = creonowd(tmp_path, "doctor", CREONOW_MAX_BATCH="7")
    told = json.loads(ran.stdout)

    assert ran.returncode == 0
    batch = next(s for s in told["settings"] if s["name"] == "maxBatch")
    assert batch == {
        "name": "maxBatch",
        "value": 7,
        "origin": "environment",
        "description": "requests in one batch",
    }
    assert all(finding["state"] != "bad" for finding in told["findings"])


def test_doctor_lists_the_settings_for_people_too(tmp_path: Path) -> None:
    told = creonowd(tmp_path, "doctor", "--settings", CREONOW_MAX_BATCH="7").stdout.decode()

    assert "  maxBatch = 7 (environment)  requests in one batch\n" in told
    assert "  aiProvider = fake (default)  who answers ai:skill:run\n" in told


def test_doctor_names_a_variable_that_sets_nothing(tmp_path: Path) -> None:
    told = json.loads(creonowd(tmp_path, "doctor", CREONOW_MAX_BACH="7").stdout)

    (finding,) = (f for f in told["findings"] if f["part"] == "environment")
    assert finding["found"].startswith("CREONOW_MAX_BACH (did you mean CREONOW_MAX_BATCH?)")


def test_doctor_sends_nobody_to_overwrite_what_a_newer_version_wrote(tmp_path: Path) -> None:
    (tmp_path / "projects.json").write_text('{"version": 99, "projects": []}', encoding="utf-8")

    told = json.loads(creonowd(tmp_path, "doctor").stdout)

    found = {f["part"]: f for f in told["findings"]}
    assert found["projects.json"]["state"] == "bad"
    assert "leaves the file as it is" in found["projects.json"]["remedy"]
    assert "stored files" not in found


def test_doctor_tells_a_file_from_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")

    told = json.loads(creonowd(tmp_path / "file", "doctor").stdout)

    (finding,) = (f for f in told["findings"] if f["part"] == "user data")
    assert finding["found"].endswith("file is not a folder")


async def test_doctor_sees_the_running_daemon(tmp_path: Path) -> None:
    async with running(tmp_path) as process:
        told = json.loads(creonowd(tmp_path, "doctor").stdout)

    (finding,) = (f for f in told["findings"] if f["part"] == "daemon")
    assert str(process.pid) in finding["found"]


def test_doctor_tells_what_is_wrong_and_how_to_mend_it(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text("{", encoding="utf-8")
    (tmp_path / "novel").mkdir()
    (tmp_path / "novel" / ".creonow").write_text("in the way", encoding="utf-8")

    ran = creonowd(tmp_path, "doctor", "--project", str(tmp_path / "novel"))

    bad = {f["part"]: f for f in json.loads(ran.stdout)["findings"] if f["state"] == "bad"}
    assert ran.returncode == 1
    assert set(bad) == {"settings", ".creonow"}
    assert all(finding["remedy"] for finding in bad.values())


def test_doctor_looks_into_every_file_that_an_assembly_reads(tmp_path: Path) -> None:
    tree = tmp_path / "novel" / ".creonow"
    for name in ("rules", "settings", "skills/torn"):
        (tree / name).mkdir(parents=True)
    (tree / "rules/constraints.json").write_text('{"version": 1, "items": [5]}', encoding="utf-8")
    (tree / "rules/terminology.json").write_text("{", encoding="utf-8")
    (tree / "settings/memory.json").write_text('{"version": 1, "rules": []}', encoding="utf-8")
    (tree / "skills/torn/SKILL.md").write_text("no front matter", encoding="utf-8")

    ran = creonowd(tmp_path, "doctor", "--project", str(tree.parent))

    bad = {f["part"]: f for f in json.loads(ran.stdout)["findings"] if f["state"] == "bad"}
    assert ran.returncode == 1
    assert set(bad) == {
        ".creonow/rules/constraints.json",
        ".creonow/rules/terminology.json",
        ".creonow/skills/torn/SKILL.md",
    }
    assert all(finding["found"] and finding["remedy"] for finding in bad.values())


def test_doctor_knows_every_package_and_finds_a_damaged_table(tmp_path: Path) -> None:
    (tmp_path / "o200k_base.tiktoken.gz").write_bytes(b"torn")

    ran = creonowd(tmp_path, "doctor", CREONOW_TOKENIZER_TABLES=str(tmp_path))

    found = {f["part"]: f["state"] for f in json.loads(ran.stdout)["findings"]}
    assert found["o200k_base"] == found["cl100k_base"] == "bad"
    assert {"msgspec", "tiktoken", "google-re2", "websockets", "regex"} <= found.keys()
    assert "openai" not in found


def test_doctor_recognises_what_a_killed_daemon_left(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "endpoint.json").write_text(
        '{"version":1,"pid":1,"endpoints":[]}', encoding="utf-8"
    )

    told = json.loads(creonowd(tmp_path, "doctor").stdout)

    (finding,) = (f for f in told["findings"] if f["part"] == "daemon")
    assert "left an endpoint file behind" in finding["found"]


def test_doctor_tells_of_a_daemon_that_was_killed_before_it_had_logged_anything(
    tmp_path: Path,
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "daemon.pid").write_text("4711", encoding="ascii")

    told = json.loads(creonowd(tmp_path, "doctor").stdout)

    (finding,) = (f for f in told["findings"] if f["part"] == "last end")
    assert "with pid 4711 was killed" in finding["found"]


def test_doctor_says_so_where_nobody_knows_what_is_needed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sources that were never installed, or may not be read by this user."""
    monkeypatch.setattr(doctor, "OURS", "creonowd-nobody-installed")

    failed = main(["doctor", "--user-data", str(tmp_path)])

    findings = json.loads(capsys.readouterr().out)["findings"]
    (finding,) = (f for f in findings if f["part"] == "creonowd-nobody-installed")
    assert (failed, finding["state"], finding["found"]) == (1, "bad", "not installed")


@pytest.mark.skipif(os.name == "nt", reason="rights are not modes on Windows")
def test_doctor_says_so_if_it_may_not_look(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has looked before: what it is made of may lie where only root can read."""
    main(["doctor", "--user-data", str(tmp_path)])
    with without_privileges() as place:
        capsys.readouterr()
        place.chmod(0o000)
        failed = main(["doctor", "--user-data", str(place)])
        place.chmod(0o700)

    told = json.loads(capsys.readouterr().out)
    (finding,) = (f for f in told["findings"] if f["part"] == "user data")
    assert (failed, finding["state"]) == (1, "bad")
    assert "cannot be read" in finding["found"]


def test_a_setting_that_does_not_fit_stops_the_start_in_words(tmp_path: Path) -> None:
    ran = creonowd(tmp_path, "serve", CREONOW_MAX_BATCH="0")

    assert ran.returncode == 1
    assert b"maxBatch" in ran.stderr
    assert b"Traceback" not in ran.stderr


def test_user_data_that_cannot_be_used_stops_the_start_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")

    ran = creonowd(tmp_path / "file", "serve")

    assert ran.returncode == 1
    assert b"it is not a folder" in ran.stderr
    assert b"--user-data" in ran.stderr
    assert b"Traceback" not in ran.stderr


@pytest.mark.parametrize("flag", ["--tcp", "--websocket"])
def test_an_address_that_is_taken_stops_the_start_in_words(tmp_path: Path, flag: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])

        ran = creonowd(tmp_path, "serve", flag, port)

    assert ran.returncode == 1
    assert f"Port {port} cannot be opened".encode() in ran.stderr
    assert f"{flag} 0 picks one".encode() in ran.stderr
    assert b"Traceback" not in ran.stderr


@pytest.mark.parametrize("port", ["-1", "65536", "x"])
def test_what_is_no_port_is_wrong_usage(tmp_path: Path, port: str) -> None:
    ran = creonowd(tmp_path, "serve", "--tcp", port)

    assert ran.returncode == 2
    assert b"--tcp: a port is a number between 0 and 65535" in ran.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
def test_a_person_at_a_terminal_gets_a_readable_form(tmp_path: Path) -> None:
    called = at_a_terminal(tmp_path, "call", "e2e:echo", '{"value": "渡口"}')
    examined = at_a_terminal(tmp_path, "doctor")

    assert called.splitlines() == ["{", '  "value": "渡口"', "}"]
    assert "✓ python: " in examined


def at_a_terminal(user_data: Path, *arguments: str) -> str:
    import pty

    master, slave = pty.openpty()
    subprocess.run(
        [sys.executable, "-m", "creonowd", *arguments],
        stdout=slave,
        stderr=slave,
        check=True,
        timeout=60,
        env=environment(CREONOW_USER_DATA_DIR=str(user_data)),
    )
    seen = os.read(master, 65536)
    os.close(master)
    os.close(slave)
    return seen.decode()
