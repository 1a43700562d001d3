"""Kill a daemon in the middle of its writes, again and again, and look at what is left.

Run as a process of its own: `python -m e2e.killing FOLDER KILLS SEED` loads the daemon once and
forks whole daemons off, each on real pipes. The blow is a SIGKILL: at a chosen touch of the disk,
counted from the first write, or after a chosen time. A rehearsal of each kind of write tells how
many touches and how much time there are to choose from. After each kill the doctor is asked.
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

from e2e.writes import BURST, KINDS, Acknowledged, Kind, World, make_world
from tests.clients import RpcError, environment

TOUCHES = {
    "open",
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.utime",
    "os.link",
    "os.truncate",
}
WARM, BY_TOUCH = 0.9, 0.5
NEVER = (1 << 32) - 1
PATIENCE_S = 60.0
KILLS_PER_WORLD = 3 * len(KINDS)


class DiedError(Exception):
    """The daemon is gone."""


class Pace(NamedTuple):
    """What one write takes, on average."""

    touches: float
    seconds: float


class Report(NamedTuple):
    """What was done to daemons, and what they kept."""

    kills: Counter[str]
    inside: Counter[str]
    told: Counter[str]
    acknowledged: Counter[str]
    refused: Counter[str]
    lost: list[str]


class Daemon:
    """A whole daemon in a forked process."""

    def __init__(self, user_data: Path) -> None:
        self._fuse = mmap.mmap(-1, 4)
        stdin, self._to = os.pipe()
        self._from, stdout = os.pipe()
        self._made = 0
        self._heard = b""
        self.pid = os.fork()
        if self.pid == 0:
            _serve(user_data, stdin, stdout, self._fuse)
        os.close(stdin)
        os.close(stdout)

    def call(self, method: str, params: Any) -> Any:
        """Call and wait; RpcError for an error, DiedError if the daemon has gone."""
        number = self.send(method, params)
        while True:
            reply = self.hear(PATIENCE_S)
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

    def hear(self, seconds: float) -> dict[str, Any]:
        """Take the next message; TimeoutError after a while, DiedError at the end."""
        until = time.monotonic() + seconds
        while b"\n" not in self._heard:
            ready, _, _ = select.select([self._from], [], [], max(0, until - time.monotonic()))
            if not ready:
                raise TimeoutError
            more = os.read(self._from, 1 << 20)
            if not more:
                raise DiedError
            self._heard += more
        line, _, self._heard = self._heard.partition(b"\n")
        return json.loads(line)

    def light(self, touches: int) -> None:
        """Let the daemon die at its so-manieth touch of the disk from now on."""
        self._fuse[:] = touches.to_bytes(4, "little")

    def touches_left(self) -> int:
        """Tell how many touches there are still to come."""
        return int.from_bytes(self._fuse[:], "little")

    def kill(self) -> None:
        """Kill it and bury it, if it has not died already."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.close(self._to)
        os.waitpid(self.pid, 0)

    def last_words(self) -> Generator[dict[str, Any]]:
        """Go through what it said before it died."""
        with contextlib.suppress(DiedError):
            while True:
                yield self.hear(PATIENCE_S)
        os.close(self._from)
        self._fuse.close()


def _serve(user_data: Path, stdin: int, stdout: int, fuse: mmap.mmap) -> NoReturn:
    os.dup2(stdin, 0)
    os.dup2(stdout, 1)
    os.closerange(3, 256)
    places = (str(user_data.parent),)

    def burn(event: str, arguments: tuple[Any, ...]) -> None:
        left = int.from_bytes(fuse[:], "little")
        if left and event in TOUCHES and str(arguments[0]).startswith(places):
            fuse[:] = (left - 1).to_bytes(4, "little")
            if left == 1:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(burn)
    from creonowd.cli import main as creonowd

    status = creonowd(["serve", "--stdio", "--user-data", str(user_data)])
    os._exit(status)


class Siege:
    """Kills daemons of one user-data folder and keeps count."""

    def __init__(self, user_data: Path, seed: int) -> None:
        self._user_data = user_data
        self._chance = random.Random(seed)
        self._kept: dict[str, Acknowledged] = {}
        self._paces: dict[str, Pace] = {}
        self.report = Report(Counter(), Counter(), Counter(), Counter(), Counter(), [])

    def spend(self, home: Path, kills: int) -> None:
        """Make a project, kill daemons while they write in it, and forget it."""
        daemon = Daemon(self._user_data)
        world = make_world(home, self._user_data, daemon.call)
        self._kept = {kind.name: {} for kind in KINDS}
        for number in range(kills):
            kind = KINDS[number % len(KINDS)]
            if kind.name not in self._paces:
                self._rehearse(daemon, kind, world, 2 * number * BURST)
            first = (2 * number + 1) * BURST
            self._keep(kind, self._kill_within(daemon, kind, world, first))
            self.report.told[kind.name] += _doctor_tells_of_a_kill(self._user_data)
            daemon = Daemon(self._user_data)
            self._look(daemon, kind, world)
        for kind in KINDS:
            self._look(daemon, kind, world)
        for project in daemon.call("project:list", {})["items"]:
            daemon.call("project:delete", {"projectId": project["projectId"]})
        daemon.kill()
        list(daemon.last_words())

    def _rehearse(self, daemon: Daemon, kind: Kind, world: World, first: int) -> None:
        """Let a burst come to its end, and note what it took."""
        daemon.call("project:list", {})
        daemon.light(NEVER)
        started = time.monotonic()
        asked = self._ask(daemon, kind, world, range(first, first + BURST))
        heard = _listen(daemon, len(asked), PATIENCE_S)
        seconds = time.monotonic() - started
        self._paces[kind.name] = Pace((NEVER - daemon.touches_left()) / BURST, seconds / BURST)
        daemon.light(0)
        self._keep(kind, _done(asked, heard))

    def _kill_within(self, daemon: Daemon, kind: Kind, world: World, first: int) -> Acknowledged:
        """Ask for several writes at once and kill the daemon somewhere among them."""
        numbers = range(first, first + self._chance.randint(1, BURST))
        if self._chance.random() < WARM:
            daemon.call("project:list", {})
        pace = self._paces[kind.name]
        by_touch = self._chance.random() < BY_TOUCH
        if by_touch:
            daemon.light(self._chance.randint(1, max(1, round(pace.touches * len(numbers)))))
        asked = self._ask(daemon, kind, world, numbers)
        seconds = PATIENCE_S if by_touch else self._chance.uniform(0, pace.seconds * len(numbers))
        heard = _listen(daemon, len(asked), seconds)
        daemon.kill()
        heard += list(daemon.last_words())
        answered = [reply for reply in heard if reply.get("id") in asked]
        self.report.kills[kind.name] += 1
        self.report.inside[kind.name] += len(answered) < len(asked)
        for code in (reply["error"]["data"]["code"] for reply in answered if "error" in reply):
            self.report.refused[f"{kind.name} {code}"] += 1
        return _done(asked, heard)

    def _ask(self, daemon: Daemon, kind: Kind, world: World, numbers: range) -> dict[int, int]:
        return {daemon.send(*kind.ask(world, number)): number for number in numbers}

    def _keep(self, kind: Kind, done: Acknowledged) -> None:
        self._kept[kind.name] |= done
        self.report.acknowledged[kind.name] += len(done)

    def _look(self, daemon: Daemon, kind: Kind, world: World) -> None:
        kept = self._kept[kind.name]
        try:
            missing = list(kind.missing(world, daemon.call, kept))
        except RpcError:
            missing = list(kept)
        self.report.lost.extend(f"{kind.name} {n}" for n in missing)


def _doctor_tells_of_a_kill(user_data: Path) -> bool:
    from creonowd.cli import main as creonowd

    heard = io.BytesIO()
    with contextlib.redirect_stdout(io.TextIOWrapper(heard, encoding="utf-8")):
        creonowd(["doctor", "--user-data", str(user_data)])
        findings = json.loads(heard.getvalue())["findings"]
    return any(one["part"] == "last end" and "was killed" in one["found"] for one in findings)


def _done(asked: dict[int, int], heard: list[dict[str, Any]]) -> Acknowledged:
    replies = (reply for reply in heard if reply.get("id") in asked and "result" in reply)
    return {asked[reply["id"]]: reply["result"] for reply in replies}


def _listen(daemon: Daemon, wanted: int, seconds: float) -> list[dict[str, Any]]:
    """Hear replies until there are enough, the time is over or the daemon is dead."""
    heard: list[dict[str, Any]] = []
    until = time.monotonic() + seconds
    with contextlib.suppress(TimeoutError, DiedError):
        while sum("id" in reply for reply in heard) < wanted:
            heard.append(daemon.hear(max(0, until - time.monotonic())))
    return heard


def main(place: str, kills: str, seed: str) -> None:
    """Kill and tell; every kind of write in turn, in a new project now and then."""
    os.environ |= environment()
    for name in ("daemon.build", "daemon.run", "transports.stdio"):
        import_module(f"creonowd.{name}")
    siege = Siege(Path(place) / "user data 用户", int(seed))
    for start in range(0, int(kills), KILLS_PER_WORLD):
        home = Path(place) / f"world {start}"
        siege.spend(home, min(KILLS_PER_WORLD, int(kills) - start))
        shutil.rmtree(home)
    print(json.dumps(siege.report._asdict(), ensure_ascii=False))


if __name__ == "__main__":
    main(*sys.argv[1:])
