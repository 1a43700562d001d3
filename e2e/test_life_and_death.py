"""Story: the daemon starts, is alone, is found, and ends well, whatever ends it."""

import contextlib
import json
import os
import shlex
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from creonowd.daemon import endpoint
from testing.clients import (
    PATIENCE,
    daemon_command,
    endpoints_of,
    environment,
    over_socket,
    over_stdio,
    run_daemon,
)

PING = b'{"jsonrpc":"2.0","id":1,"method":"app:ping"}'
SLOW = b'{"jsonrpc":"2.0","id":9,"method":"e2e:sleep","params":{"ms":%d}}\n'
posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and modes of POSIX")


@pytest.fixture
def user_data(tmp_path: Path) -> Path:
    return tmp_path / "user data 用户"


def spawn(user_data: Path, *arguments: str, **streams: Any) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        daemon_command(user_data, *arguments),
        env=environment(),
        stdin=streams.get("stdin", subprocess.PIPE),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def first_line(process: "subprocess.Popen[bytes]", request: bytes = PING) -> Any:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(request + b"\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def log_lines(user_data: Path) -> list[dict[str, Any]]:
    text = (user_data / "logs" / "main.log").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


ENDING = {"SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGXCPU"}
# A fault of the process itself, or what nobody can catch: it ends at once, and the doctor says so.
AT_ONCE = {"SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV", "SIGKILL"}
STOPPING = {"SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU"}


def signals_but(*others: set[str]) -> list[int]:
    """Return every signal that this system lets a program receive, those for real time too."""
    named = {getattr(signal, name, 0) for names in others for name in names}
    return sorted(signal.valid_signals() - named)


@posix
def test_a_signal_that_means_nothing_does_nothing(user_data: Path) -> None:
    with spawn(user_data) as process:
        first_line(process)

        for number in signals_but(ENDING, AT_ONCE, STOPPING):
            process.send_signal(number)

            assert first_line(process)["result"]["pong"] is True, number
        process.terminate()


@posix
@pytest.mark.parametrize("name", sorted(ENDING))
def test_a_signal_that_means_the_end_is_answered_to_the_end(user_data: Path, name: str) -> None:
    """What was asked before is answered, the reason is in the log, nothing is left in user data."""
    with spawn(user_data) as process:
        first_line(process, b'{"jsonrpc":"2.0","id":1,"method":"project:list"}')
        assert process.stdin is not None
        process.stdin.write(SLOW % 300 + PING + b"\n")
        process.stdin.flush()
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["id"] == 1

        process.send_signal(getattr(signal, name))

        assert json.loads(process.stdout.readline())["id"] == 9
        assert process.wait(PATIENCE) == 0
    assert stop_reason(user_data) == f"signal {name}"
    assert endpoint.read(user_data) is None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits another process")
def test_a_daemon_whose_processor_time_is_used_up_says_so(user_data: Path) -> None:
    import psutil

    with spawn(user_data) as process:
        first_line(process, b'{"jsonrpc":"2.0","id":1,"method":"project:list"}')
        used = sum(psutil.Process(process.pid).cpu_times()[:2])
        psutil.Process(process.pid).rlimit(psutil.RLIMIT_CPU, (int(used) + 1, int(used) + 60))
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            while process.poll() is None:
                process.stdin.write(PING + b"\n")
                process.stdin.flush()
                assert process.stdout is not None
                if not process.stdout.readline():
                    break

        assert process.wait(PATIENCE) == 0
    assert stop_reason(user_data) == "signal SIGXCPU"


def stop_reason(user_data: Path) -> str:
    return next(
        line["reason"] for line in log_lines(user_data) if line["event"] == "daemon_stopped"
    )


@pytest.mark.parametrize("ending", [b"", b"\n"])
def test_a_pipe_from_echo_just_works(user_data: Path, ending: bytes) -> None:
    ran = subprocess.run(
        daemon_command(user_data),
        input=PING + ending,
        env=environment(),
        capture_output=True,
        check=True,
        timeout=60,
    )

    assert json.loads(ran.stdout)["result"]["pong"] is True
    assert ran.stderr == b""
    assert stop_reason(user_data) == "stdin closed"


def test_stdin_and_stdout_may_be_files(user_data: Path, tmp_path: Path) -> None:
    task = b'{"jsonrpc":"2.0","id":2,"method":"project:list"}'
    (tmp_path / "in").write_bytes(PING + b"\n" + task)
    with (tmp_path / "in").open("rb") as source, (tmp_path / "out").open("wb") as target:
        subprocess.run(
            daemon_command(user_data), stdin=source, stdout=target, check=True, timeout=60
        )

    replies = [json.loads(line) for line in (tmp_path / "out").read_bytes().splitlines()]
    assert all("result" in reply for reply in replies)
    assert len(replies) == 2


@posix
def test_stdin_may_be_a_terminal(user_data: Path) -> None:
    import pty

    master, slave = pty.openpty()
    with spawn(user_data, stdin=slave) as process:
        os.close(slave)
        os.write(master, PING + b"\n")
        assert process.stdout is not None
        reply = json.loads(process.stdout.readline())
        # The first is answered once all channels are loaded, the second comes to them directly.
        listed: dict[str, Any] = {}
        for number in (b"2", b"3"):
            call = b'{"jsonrpc":"2.0","id":%s,"method":"project:list"}\n' % number
            os.write(master, call)
            listed = json.loads(process.stdout.readline())
        process.terminate()

        assert process.wait(PATIENCE) == 0
    os.close(master)
    assert reply["result"]["pong"] is True
    assert (listed["id"], listed["result"]["items"]) == (3, [])


@posix
def test_a_person_who_starts_it_can_read_along(user_data: Path) -> None:
    import pty

    master, slave = pty.openpty()
    ran = subprocess.run(
        daemon_command(user_data),
        input=PING,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=slave,
        check=True,
        timeout=60,
    )
    seen = os.read(master, 65536).decode()
    os.close(master)
    os.close(slave)

    assert json.loads(ran.stdout)["result"]["pong"] is True
    assert "daemon_started" in seen
    assert not seen.lstrip().startswith("{")


@posix
@pytest.mark.parametrize(("closed", "answers"), [("0<&-", 0), ("1>&-", 0), ("2>&-", 1)])
def test_a_stream_that_was_closed_is_no_reason_to_crash(
    user_data: Path, tmp_path: Path, closed: str, answers: int
) -> None:
    (tmp_path / "in").write_bytes(PING + b"\n")
    command = shlex.join(daemon_command(user_data))
    with (tmp_path / "in").open("rb") as source:
        ran = subprocess.run(
            ["/bin/sh", "-c", f"exec {command} {closed}"],
            env=environment(),
            stdin=source,
            capture_output=True,
            check=True,
            timeout=60,
        )

    assert len(ran.stdout.splitlines()) == answers
    assert ran.stderr == b""
    assert stop_reason(user_data) in {"stdin closed", "stdout closed"}


def test_a_stray_print_lands_on_stderr(user_data: Path) -> None:
    code = (
        "import sys; sys.argv = ['creonowd', 'serve', '--user-data', sys.argv[1]]\n"
        "import os, creonowd.rpc.server as rpc\n"
        "class Noisy(rpc.Server):\n"
        "    def __init__(self, *a):\n"
        "        print('stray'); os.write(1, b'raw stray\\n'); super().__init__(*a)\n"
        "rpc.Server = Noisy\n"
        "from creonowd.cli import main; raise SystemExit(main())\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, str(user_data)],
        input=PING,
        capture_output=True,
        check=True,
        timeout=60,
    )

    assert json.loads(ran.stdout)["result"]["pong"] is True
    assert b"stray" in ran.stderr
    assert b"raw stray" in ran.stderr


def test_what_was_asked_before_the_end_of_stdin_is_answered(user_data: Path) -> None:
    ran = subprocess.run(
        daemon_command(user_data),
        input=SLOW % 300,
        env=environment(),
        capture_output=True,
        check=True,
        timeout=60,
    )

    assert json.loads(ran.stdout)["result"] == {"slept": 300}


@posix
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_and_ends_with_success(user_data: Path, number: signal.Signals) -> None:
    with spawn(user_data) as process:
        first_line(process)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(SLOW % 400 + SLOW.replace(b"9", b"10", 1) % 600_000)
        process.stdin.flush()
        first_line(process)
        process.send_signal(number)
        replies = {line["id"]: line for line in map(json.loads, process.stdout)}

        assert process.wait(PATIENCE) == 0
    assert replies[9]["result"] == {"slept": 400}
    assert replies[10]["error"]["data"]["code"] == "SHUTTING_DOWN"
    assert stop_reason(user_data) == f"signal {number.name}"


@posix
def test_the_death_of_the_parent_ends_the_daemon(user_data: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as parent:
        with spawn(user_data) as process:
            params = {"parentPid": parent.pid, "clientInfo": {"name": "t", "version": "1"}}
            hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
            first_line(process, json.dumps(hello).encode())
            parent.kill()

            assert process.wait(PATIENCE) == 0
        assert stop_reason(user_data) == f"parent {parent.pid} died"


def test_a_parent_that_cannot_be_seen_is_not_waited_for(user_data: Path) -> None:
    with spawn(user_data) as process:
        hello = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"parentPid":4194304}}'
        first_line(process, hello)

        assert first_line(process)["result"]["pong"] is True
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(PATIENCE) == 0


def test_shutdown_drains_and_exit_ends(user_data: Path) -> None:
    with spawn(user_data) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(SLOW % 200)
        done = first_line(process, b'{"jsonrpc":"2.0","id":2,"method":"shutdown"}')
        shut = json.loads(process.stdout.readline())
        late = first_line(process, b'{"jsonrpc":"2.0","id":3,"method":"project:list"}')
        process.stdin.write(b'{"jsonrpc":"2.0","method":"exit"}\n')
        process.stdin.flush()

        assert process.wait(PATIENCE) == 0
    assert (done["id"], shut["id"]) == (9, 2)
    assert shut["result"] is None
    assert late["error"]["data"]["code"] == "SHUTTING_DOWN"
    assert stop_reason(user_data) == "shutdown requested"


@posix
def test_a_stuck_daemon_is_ended_by_its_watchdog(user_data: Path) -> None:
    code = (
        "import sys, time; sys.argv = ['creonowd', 'serve', '--user-data', sys.argv[1]]\n"
        "from creonowd.rpc.server import Server\n"
        "async def stuck(self, seconds): time.sleep(60)\n"
        "Server.drain = stuck\n"
        "from creonowd.cli import main; raise SystemExit(main())\n"
    )
    started = time.monotonic()
    ran = subprocess.run(
        [sys.executable, "-c", code, str(user_data)],
        input=PING,
        capture_output=True,
        check=False,
        timeout=60,
    )

    assert ran.returncode == 70
    assert json.loads(ran.stdout)["result"]["pong"] is True
    assert time.monotonic() - started < 30


def test_a_second_daemon_is_refused_with_the_pid_of_the_first(user_data: Path) -> None:
    with spawn(user_data) as first:
        first_line(first)
        second = subprocess.run(
            daemon_command(user_data), input=PING, capture_output=True, check=False, timeout=60
        )

        assert second.returncode == 1
        assert str(first.pid).encode() in second.stderr
        assert first_line(first)["result"]["pong"] is True
        assert first.stdin is not None
        first.stdin.close()


@posix
async def test_a_killed_daemon_leaves_nothing_that_stops_the_next(user_data: Path) -> None:
    with spawn(user_data, "--socket") as first:
        await endpoints_of(user_data)
        first.kill()
        first.wait(PATIENCE)
    stale = (user_data / "run" / endpoint.FILE).exists()

    assert stale
    assert endpoint.read(user_data) is None
    async with run_daemon(user_data):
        ways = await endpoints_of(user_data)
        async with over_socket(Path(ways["unix"].address)) as client:
            assert (await client.call("app:ping"))["pong"] is True
    assert not (user_data / "run" / endpoint.FILE).exists()


@posix
async def test_the_endpoint_is_for_this_user_only(user_data: Path) -> None:
    async with over_stdio(user_data) as client:
        await client.call("app:ping")
        ways = await endpoints_of(user_data)
        path = Path(ways["unix"].address)

        modes = [
            stat.S_IMODE(place.stat().st_mode)
            for place in (path, path.parent, user_data / "run" / endpoint.FILE)
        ]

        assert modes == [0o600, 0o700, 0o600]
        async with over_socket(path) as visitor:
            assert (await visitor.call("initialize"))["role"] == "owner"


@posix
async def test_a_long_folder_name_still_gets_a_socket(tmp_path: Path) -> None:
    user_data = tmp_path / ("很长的名字" * 12)
    async with run_daemon(user_data):
        path = Path((await endpoints_of(user_data))["unix"].address)

        assert len(os.fsencode(path)) <= 100
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        async with over_socket(path) as client:
            assert (await client.call("app:ping"))["pong"] is True


@posix
async def test_what_is_no_socket_is_not_removed(user_data: Path) -> None:
    path = endpoint.socket_path(user_data)
    path.parent.mkdir(parents=True)
    path.write_text("precious", encoding="utf-8")

    ran = subprocess.run(
        daemon_command(user_data), input=PING, capture_output=True, check=False, timeout=60
    )

    assert ran.returncode == 1
    assert b"not a socket" in ran.stderr
    assert b"Traceback" not in ran.stderr
    assert path.read_text(encoding="utf-8") == "precious"


@posix
async def test_a_socket_in_a_folder_of_the_user_leaves_the_folder_as_it_is(tmp_path: Path) -> None:
    theirs, missing = tmp_path / "theirs", tmp_path / "missing"
    theirs.mkdir()
    theirs.chmod(0o755)

    for folder, mode in ((theirs, 0o755), (missing, 0o700)):
        async with run_daemon(tmp_path / "data", "--socket", str(folder / "s")):
            await endpoints_of(tmp_path / "data")

            modes = [stat.S_IMODE(place.stat().st_mode) for place in (folder / "s", folder)]

        assert modes == [0o600, mode]


@posix
async def test_many_connections_and_one_that_leaves_in_the_middle_of_a_reply(
    user_data: Path,
) -> None:
    async with run_daemon(user_data):
        path = Path((await endpoints_of(user_data))["unix"].address)
        rude = socket.socket(socket.AF_UNIX)
        rude.connect(str(path))
        rude.sendall(b'{"jsonrpc":"2.0","id":1,"method":"rpc.discover"}\n' * 50)
        rude.close()

        async def ask() -> None:
            async with over_socket(path) as client:
                assert (await client.call("app:ping"))["pong"] is True

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                for _ in range(200):
                    tasks.start_soon(ask)
            async with over_socket(path) as client:
                while (await client.call("app:metrics"))["connections"] > 1:
                    await anyio.lowlevel.checkpoint()


@posix
async def test_a_visitor_that_closes_its_sending_half_gets_its_answers(user_data: Path) -> None:
    async with run_daemon(user_data):
        path = Path((await endpoints_of(user_data))["unix"].address)

        async with await anyio.connect_unix(path) as stream:
            await stream.send(SLOW % 100)
            await stream.send_eof()
            with anyio.fail_after(PATIENCE):
                reply = await stream.receive()

    assert json.loads(reply)["result"] == {"slept": 100}


async def test_logs_rotate_and_hold_no_payload(user_data: Path) -> None:
    async with over_stdio(user_data, CREONOW_LOG_MAX_BYTES="2000") as client:
        for _ in range(30):
            await client.failure("e2e:fail", {"secret": "sk-THIS_SHOULD_BE_REDACTED_0123"})

    logs = sorted(path.name for path in (user_data / "logs").iterdir())
    texts = [path.read_text(encoding="utf-8") for path in (user_data / "logs").iterdir()]

    assert logs == ["main.log", "main.log.1", "main.log.2", "main.log.3"]
    assert not any("SHOULD_BE_REDACTED" in text for text in texts)
