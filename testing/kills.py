"""Kill a daemon during its writes, again and again, and check that nothing acknowledged is lost.

`python -m testing.kills FOLDER KILLS SEED` runs as a process of its own: it loads the daemon once
and forks whole daemons, each on real pipes. A kill is a SIGKILL at a random disk operation, counted
from the first write, or after a random time. A burst without a kill comes first and measures how
many disk operations and how much time each kind of write takes. After each kill the doctor is run.
Prints a report as JSON.
"""

import contextlib
import io
import json
import mmap
import os
import random
import select
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Generator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from testing.clients import RpcError, environment
from testing.writes import BURST, KINDS, Acknowledged, WriteKind, WriteProject, make_project

DISK_OPERATIONS = {
    "open",
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.utime",
    "os.link",
    "os.truncate",
}
WARM, BY_OPERATION = 0.9, 0.5
NEVER = (1 << 32) - 1
PATIENCE_S = 60.0
KILLS_PER_WORLD = 3 * len(KINDS)


class DiedError(Exception):
    """The daemon has ended."""


class Pace(NamedTuple):
    """How many disk operations and seconds one write takes, on average."""

    operations: float
    seconds: float


class Report(NamedTuple):
    """How many daemons were killed, by kind of write, and what was lost.

    `inside`: before all writes were answered; `reported`: the doctor reported the kill.
    """

    kills: Counter[str]
    inside: Counter[str]
    reported: Counter[str]
    acknowledged: Counter[str]
    refused: Counter[str]
    lost: list[str]


class Daemon:
    """A whole daemon in a forked process."""

    def __init__(self, user_data: Path) -> None:
        self._countdown = mmap.mmap(-1, 4)
        stdin, self._to = os.pipe()
        self._from, stdout = os.pipe()
        self._made = 0
        self._received = b""
        self.pid = os.fork()
        if self.pid == 0:
            _serve(user_data, stdin, stdout, self._countdown)
        os.close(stdin)
        os.close(stdout)

    def call(self, method: str, params: Any) -> Any:
        """Call and wait; RpcError for an error, DiedError if the daemon has ended."""
        number = self.send(method, params)
        while True:
            reply = self.receive(PATIENCE_S)
            if reply.get("id") == number:
                if "error" in reply:
                    raise RpcError(reply["error"])
                return reply["result"]

    def send(self, method: str, params: Any) -> int:
        """Ask without waiting."""
        self._made += 1
        message = {"jsonrpc": "2.0", "id": self._made, "method": method, "params": params}
        with contextlib.suppress(BrokenPipeError):
            os.write(self._to, json.dumps(message).encode() + b"\n")
        return self._made

    def receive(self, seconds: float) -> dict[str, Any]:
        """Return the next message; TimeoutError if none comes in time, DiedError at the end."""
        until = time.monotonic() + seconds
        while b"\n" not in self._received:
            ready, _, _ = select.select([self._from], [], [], max(0, until - time.monotonic()))
            if not ready:
                raise TimeoutError
            more = os.read(self._from, 1 << 20)
            if not more:
                raise DiedError
            self._received += more
        line, _, self._received = self._received.partition(b"\n")
        return json.loads(line)

    def kill_after(self, operations: int) -> None:
        """Kill the daemon at this disk operation, counted from now on; 0 for never."""
        self._countdown[:] = operations.to_bytes(4, "little")

    def operations_left(self) -> int:
        """Return how many disk operations are left until the kill."""
        return int.from_bytes(self._countdown[:], "little")

    def kill(self) -> None:
        """Kill it, if it still runs, and reap it."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.close(self._to)
        os.waitpid(self.pid, 0)

    def rest(self) -> Generator[dict[str, Any]]:
        """Yield what it had sent before it ended."""
        with contextlib.suppress(DiedError):
            while True:
                yield self.receive(PATIENCE_S)
        os.close(self._from)
        self._countdown.close()


def _serve(user_data: Path, stdin: int, stdout: int, countdown: mmap.mmap) -> NoReturn:
    os.dup2(stdin, 0)
    os.dup2(stdout, 1)
    os.closerange(3, 256)
    place = str(user_data.parent)

    def count_down(event: str, arguments: tuple[Any, ...]) -> None:
        left = int.from_bytes(countdown[:], "little")
        if left and event in DISK_OPERATIONS and _is_within(arguments[0], place):
            countdown[:] = (left - 1).to_bytes(4, "little")
            if left == 1:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count_down)
    from creonowd.cli import main as creonowd

    status = creonowd(["serve", "--stdio", "--user-data", str(user_data)])
    os._exit(status)


def _is_within(path: Any, place: str) -> bool:
    """Return whether a file is below the place: by its path, or by a name in a folder that is open.

    Only folders of projects and of user data are opened to name files in them.
    """
    if isinstance(path, int):
        return False
    name = os.fsdecode(path)
    return not Path(name).is_absolute() or name.startswith(place)


class KillSeries:
    """Kills daemons of one user-data folder and counts what they kept."""

    def __init__(self, user_data: Path, seed: int) -> None:
        self._user_data = user_data
        self._chance = random.Random(seed)
        self._kept: dict[str, Acknowledged] = {}
        self._paces: dict[str, Pace] = {}
        self.report = Report(Counter(), Counter(), Counter(), Counter(), Counter(), [])

    def run(self, home: Path, kills: int) -> None:
        """Make a project, kill daemons while they write in it, and delete it."""
        daemon = Daemon(self._user_data)
        project = make_project(home, self._user_data, daemon.call)
        self._kept = {kind.name: {} for kind in KINDS}
        for number in range(kills):
            kind = KINDS[number % len(KINDS)]
            if kind.name not in self._paces:
                self._measure(daemon, kind, project, 2 * number * BURST)
            first = (2 * number + 1) * BURST
            self._keep(kind, self._kill_within(daemon, kind, project, first))
            self.report.reported[kind.name] += _doctor_reports_a_kill(self._user_data)
            daemon = Daemon(self._user_data)
            self._check(daemon, kind, project)
        for kind in KINDS:
            self._check(daemon, kind, project)
        for item in daemon.call("project:list", {})["items"]:
            daemon.call("project:delete", {"projectId": item["projectId"]})
        daemon.kill()
        list(daemon.rest())

    def _measure(self, daemon: Daemon, kind: WriteKind, project: WriteProject, first: int) -> None:
        """Measure what a burst without a kill takes."""
        daemon.call("project:list", {})
        daemon.kill_after(NEVER)
        started = time.monotonic()
        asked = self._ask(daemon, kind, project, range(first, first + BURST))
        received = _replies(daemon, len(asked), PATIENCE_S)
        seconds = time.monotonic() - started
        self._paces[kind.name] = Pace((NEVER - daemon.operations_left()) / BURST, seconds / BURST)
        daemon.kill_after(0)
        self._keep(kind, _acknowledged(asked, received))

    def _kill_within(
        self, daemon: Daemon, kind: WriteKind, project: WriteProject, first: int
    ) -> Acknowledged:
        """Request several writes at once and kill the daemon somewhere among them."""
        numbers = range(first, first + self._chance.randint(1, BURST))
        if self._chance.random() < WARM:
            daemon.call("project:list", {})
        pace = self._paces[kind.name]
        by_operation = self._chance.random() < BY_OPERATION
        if by_operation:
            daemon.kill_after(
                self._chance.randint(1, max(1, round(pace.operations * len(numbers))))
            )
        asked = self._ask(daemon, kind, project, numbers)
        seconds = (
            PATIENCE_S if by_operation else self._chance.uniform(0, pace.seconds * len(numbers))
        )
        received = _replies(daemon, len(asked), seconds)
        daemon.kill()
        received += list(daemon.rest())
        answered = [reply for reply in received if reply.get("id") in asked]
        self.report.kills[kind.name] += 1
        if len(answered) < len(asked):
            self.report.inside[kind.name] += 1
        for code in (reply["error"]["data"]["code"] for reply in answered if "error" in reply):
            self.report.refused[f"{kind.name} {code}"] += 1
        return _acknowledged(asked, received)

    def _ask(
        self, daemon: Daemon, kind: WriteKind, project: WriteProject, numbers: range
    ) -> dict[int, int]:
        return {daemon.send(*kind.request(project, number)): number for number in numbers}

    def _keep(self, kind: WriteKind, done: Acknowledged) -> None:
        self._kept[kind.name] |= done
        self.report.acknowledged[kind.name] += len(done)

    def _check(self, daemon: Daemon, kind: WriteKind, project: WriteProject) -> None:
        kept = self._kept[kind.name]
        try:
            missing = list(kind.missing(project, daemon.call, kept))
        except RpcError:
            missing = list(kept)
        self.report.lost.extend(f"{kind.name} {n}" for n in missing)


def _doctor_reports_a_kill(user_data: Path) -> bool:
    from creonowd.cli import main as creonowd

    received = io.BytesIO()
    with contextlib.redirect_stdout(io.TextIOWrapper(received, encoding="utf-8")):
        creonowd(["doctor", "--json", "--user-data", str(user_data)])
        findings = json.loads(received.getvalue())["findings"]
    return any(one["part"] == "last end" and "was killed" in one["found"] for one in findings)


def _acknowledged(asked: dict[int, int], received: list[dict[str, Any]]) -> Acknowledged:
    replies = (reply for reply in received if reply.get("id") in asked and "result" in reply)
    return {asked[reply["id"]]: reply["result"] for reply in replies}


def _replies(daemon: Daemon, wanted: int, seconds: float) -> list[dict[str, Any]]:
    """Return the replies until there are enough, the time is over or the daemon has ended."""
    received: list[dict[str, Any]] = []
    until = time.monotonic() + seconds
    with contextlib.suppress(TimeoutError, DiedError):
        while sum("id" in reply for reply in received) < wanted:
            received.append(daemon.receive(max(0, until - time.monotonic())))
    return received


def main(place: str, kills: str, seed: str) -> None:
    """Kill during every kind of write in turn, now and then in a new project, and print the report."""
    os.environ |= environment()
    for name in ("daemon.build", "daemon.run", "transports.stdio"):
        import_module(f"creonowd.{name}")
    series = KillSeries(Path(place) / "user data 用户", int(seed))
    for start in range(0, int(kills), KILLS_PER_WORLD):
        home = Path(place) / f"home {start}"
        series.run(home, min(KILLS_PER_WORLD, int(kills) - start))
        shutil.rmtree(home)
    print(json.dumps(series.report._asdict(), ensure_ascii=False))


if __name__ == "__main__":
    main(*sys.argv[1:])
