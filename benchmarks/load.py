"""One daemon under mixed traffic of 1, 8, 64 and 500 clients, a minute each.

Every client sends its next request as soon as it has a reply: it syncs its document, assembles
prompts, creates and deletes constraints, puts, searches and reads files, runs skills with the fake
provider. At the end it checks all that was acknowledged. `--seconds N` shortens it, `--clients 1,8`
chooses.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import psutil

from benchmarks.novel import make_project
from benchmarks.traffic import (
    Ledger,
    Line,
    RefusedError,
    ask,
    connect,
    daemon,
    percentile,
    percentiles,
)
from creonowd.model import Model
from testing.corpus import chinese

CROWDS = (1, 8, 64, 500)
PROJECTS = 4
SETTLE_SECONDS = 3.0
STALL_MS = 100
PING_SECONDS = 0.02
SAMPLE_SECONDS = 0.25
MEGABYTE = 1 << 20

START = "雨下了一夜。The lamp in the gatehouse burned until four.\n" * 40
LOG_LINES = 400
MOST_CONSTRAINTS = 3
SKILLS = ("builtin:continue", "builtin:polish", "builtin:condense")


class Use(Model):
    """What a process holds at one moment."""

    megabytes: int
    descriptors: int
    threads: int


class Crowd(Model):
    """What one number of clients did, and what the daemon used meanwhile."""

    clients: int
    seconds: float
    ledger: Ledger
    pings: list[float]
    before: Use
    during: list[Use]
    after: Use
    connections: int
    in_flight: int


def main(argv: list[str]) -> None:
    """Print what each number of clients did, then the latencies of each channel."""
    parser = argparse.ArgumentParser(prog="scripts/bench load")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--clients", default=",".join(map(str, CROWDS)))
    asked = parser.parse_args(argv)
    sizes = [int(size) for size in asked.clients.split(",")]
    crowds = asyncio.run(_all(sizes, asked.seconds))
    _print_crowds(crowds)
    _print_channels(crowds)
    for crowd in crowds:
        for what in sorted(set(crowd.ledger.wrong)):
            print(f"\n{crowd.clients} clients: {crowd.ledger.wrong.count(what)} × wrong: {what}")
        for what, times in crowd.ledger.errors.most_common():
            print(f"\n{crowd.clients} clients: {times} × {what}")


async def _all(sizes: list[int], seconds: float) -> list[Crowd]:
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        async with daemon(here / "user data") as socket:
            projects = [await _project(socket, here / f"novel {n}") for n in range(PROJECTS)]
            pid = (await ask(socket, "app:ping", {}))["pid"]
            process = psutil.Process(pid)
            return [await _crowd(socket, process, projects, size, seconds) for size in sizes]


async def _project(socket: Path, root: Path) -> str:
    make_project(root, chinese())
    (root / ".creonow" / "rules" / "constraints.json").unlink()
    project = (await ask(socket, "project:create", {"rootPath": str(root)}))["projectId"]
    await ask(socket, "context:creonow:ensure", {"projectId": project})
    place = {"documentId": "chapters/001.md", "cursorPosition": 0, "query": "雨", "limit": 1}
    waiting = {"wait": True, "_meta": {"timeoutMs": 600_000}}
    await ask(socket, "context:retrieve", {"projectId": project, **place, **waiting})
    return project


async def _crowd(
    socket: Path, process: psutil.Process, projects: list[str], size: int, seconds: float
) -> Crowd:
    ledger, during, done = Ledger(), list[Use](), asyncio.Event()
    alone = await ask(socket, "app:metrics", {})
    before = _use(process)
    began = time.perf_counter()
    pinging = asyncio.create_task(_ping_from_another_process(socket, seconds))
    sampling = asyncio.create_task(_sample(process, during, done))

    async def run_client(number: int) -> None:
        async with connect(socket, ledger) as line:
            author = Author(number, projects[number % len(projects)], line, ledger)
            await author.work(began + seconds)

    async with asyncio.TaskGroup() as group:
        for number in range(size):
            group.create_task(run_client(number))
    spent = time.perf_counter() - began
    done.set()
    await sampling
    pings = await pinging
    await asyncio.sleep(SETTLE_SECONDS)
    report = await ask(socket, "app:metrics", {})
    return Crowd(
        clients=size,
        seconds=spent,
        ledger=ledger,
        pings=pings,
        before=before,
        during=during,
        after=_use(process),
        connections=report["connections"] - alone["connections"],
        in_flight=_in_flight(report) - _in_flight(alone),
    )


def _in_flight(report: dict[str, Any]) -> int:
    return sum(channel["inFlight"] for channel in report["channels"].values())


def _print_crowds(crowds: list[Crowd]) -> None:
    print("| clients | " + " | ".join(str(crowd.clients) for crowd in crowds) + " |")
    print("|---|" + "---|" * len(crowds))
    rows: dict[str, Callable[[Crowd], str]] = {
        "results per second": lambda c: f"{c.ledger.results / c.seconds:.0f}",
        "requests, results, errors, unanswered": lambda c: (
            f"{c.ledger.sent}, {c.ledger.results}, {c.ledger.errors.total()}, {c.ledger.unanswered}"
        ),
        "acknowledged and lost": lambda c: f"{len(c.ledger.wrong)}",
        "a ping meanwhile, ms: p50 / p99 / worst": lambda c: (
            f"{percentile(c.pings, 0.5):.0f} / {percentile(c.pings, 0.99):.0f} / {max(c.pings):.0f}"
        ),
        f"pings that took over {STALL_MS} ms": lambda c: (
            f"{sum(ping > STALL_MS for ping in c.pings) / len(c.pings):.1%}"
        ),
        "memory, MB: before → half-way → peak → after": lambda c: _course(c, "megabytes"),
        "descriptors: before → half-way → peak → after": lambda c: _course(c, "descriptors"),
        "threads: before → half-way → peak → after": lambda c: _course(c, "threads"),
        "connections and requests left behind": lambda c: f"{c.connections}, {c.in_flight}",
    }
    for name, cell in rows.items():
        print(f"| {name} | " + " | ".join(cell(crowd) for crowd in crowds) + " |")


def _course(crowd: Crowd, what: str) -> str:
    values = [int(getattr(use, what)) for use in crowd.during]
    half = values[len(values) // 2]
    ends = getattr(crowd.before, what), getattr(crowd.after, what)
    return f"{ends[0]} → {half} → {max(values)} → {ends[1]}"


def _print_channels(crowds: list[Crowd]) -> None:
    print("\n| p50 / p95 / p99, ms | " + " | ".join(f"{c.clients}" for c in crowds) + " |")
    print("|---|" + "---|" * len(crowds))
    channels = sorted({channel for crowd in crowds for channel in crowd.ledger.milliseconds})
    for channel in channels:
        shares = " | ".join(_latencies(crowd.ledger, channel) for crowd in crowds)
        print(f"| `{channel}` | {shares} |")


def _latencies(ledger: Ledger, channel: str) -> str:
    times = ledger.milliseconds.get(channel)
    return percentiles(times) if times else "–"


def _use(process: psutil.Process) -> Use:
    return Use(
        megabytes=process.memory_info().rss // MEGABYTE,
        descriptors=process.num_fds() if sys.platform != "win32" else process.num_handles(),
        threads=process.num_threads(),
    )


async def _sample(process: psutil.Process, into: list[Use], until: asyncio.Event) -> None:
    while not until.is_set():
        into.append(_use(process))
        await asyncio.sleep(SAMPLE_SECONDS)


async def _ping_from_another_process(socket: Path, seconds: float) -> list[float]:
    """Return the milliseconds of each ping; busy clients here must not make the daemon look busy."""
    call = f"from {__name__} import print_pings; print_pings({str(socket)!r}, {seconds})"
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-c", call, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await other.communicate()
    return msgspec.json.decode(output, type=list[float])


def print_pings(socket: str, seconds: float) -> None:
    """Ping for a while and print the milliseconds of each ping as JSON."""
    ledger = Ledger()
    asyncio.run(_ping(Path(socket), seconds, ledger))
    print(msgspec.json.encode(ledger.milliseconds["app:ping"]).decode())


async def _ping(socket: Path, seconds: float, ledger: Ledger) -> None:
    until = time.perf_counter() + seconds
    async with connect(socket, ledger) as line:
        while time.perf_counter() < until:
            await line.ask("app:ping")
            await asyncio.sleep(PING_SECONDS)


class Author:
    """One client: what it does, and what the daemon has acknowledged to it.

    It has a document, a conversation and constraints of its own in a project shared with others.
    """

    def __init__(self, number: int, project: str, line: Line, ledger: Ledger) -> None:
        self._line = line
        self._ledger = ledger
        self._chance = random.Random(number)
        self._project = project
        self._name = f"v{number:03}"
        self._document = f"drafts/{self._name}.md"
        self._text = ""
        self._version = 0
        self._constraints: dict[str, str] = {}
        self._files: dict[str, str] = {}
        self._made = 0

    async def work(self, until: float) -> None:
        """Send requests until it is time, then check that everything acknowledged is there."""
        await self._retry(lambda: self._sync_all(START))
        await self._retry(self._put)
        actions: list[Callable[[], Awaitable[None]]] = [
            *[self._sync] * 6,
            *[self._assemble] * 5,
            *[self._constrain] * 2,
            *[self._grep] * 2,
            *[self._read] * 3,
            *[self._run] * 1,
            *[self._put] * 1,
        ]
        while time.perf_counter() < until:
            try:
                await self._chance.choice(actions)()
            except RefusedError as refused:
                self._ledger.expect(refused.retryable, f"{refused.code}: {refused}")
        await self._retry(self._check)

    async def _ask(self, channel: str, **payload: Any) -> Any:
        return await self._line.ask(channel, projectId=self._project, **payload)

    async def _retry(self, work: Callable[[], Awaitable[Any]]) -> Any:
        """Repeat as long as the error is a retryable one."""
        while True:
            try:
                return await work()
            except RefusedError as refused:
                if not refused.retryable:
                    raise

    async def _sync_all(self, text: str) -> None:
        got = await self._ask(
            "context:document:sync", documentId=self._document, version=self._version + 1, text=text
        )
        self._text, self._version = text, self._version + 1
        self._ledger.expect(got["length"] == len(text), "length of a synced document")

    async def _sync(self) -> None:
        typed = f"{self._name} wrote 第{self._version}句。\n"
        place = self._chance.randint(0, len(self._text))
        edit = {"from": place, "to": place, "text": typed}
        got = await self._ask(
            "context:document:sync",
            documentId=self._document,
            baseVersion=self._version,
            version=self._version + 1,
            edits=[edit],
        )
        self._text = self._text[:place] + typed + self._text[place:]
        self._version += 1
        self._ledger.expect(got["length"] == len(self._text), "length of an edited document")

    async def _assemble(self) -> None:
        place = {"documentId": self._document, "cursorPosition": len(self._text)}
        got = await self._ask("context:assemble", skillId="bench", **place)
        self._ledger.expect(got["tokenCount"] <= got["budget"]["maxInputTokens"], "budget")
        self._ledger.expect(self._text[-20:].strip() in got["prompt"], "own text in the prompt")

    async def _constrain(self) -> None:
        if len(self._constraints) >= MOST_CONSTRAINTS:
            gone = next(iter(self._constraints))
            await self._ask("constraints:delete", constraintId=gone)
            del self._constraints[gone]
            return
        self._made += 1
        text = f"{self._name} 第{self._made}条：不得提前揭示真相。"
        got = await self._ask("constraints:create", constraint={"text": text})
        self._constraints[got["constraint"]["id"]] = text

    async def _put(self) -> None:
        mark = f"{self._name}-mark-{len(self._files)}"
        lines = [f"{n} INFO the rain went on 雨" for n in range(LOG_LINES)]
        content = "\n".join([*lines, mark, ""])
        got = await self._ask(
            "context:files:put", **self._conversation, kind="artifact", hint="log", content=content
        )
        self._files[got["ref"]["id"]] = mark

    async def _grep(self) -> None:
        file, mark = self._chance.choice(list(self._files.items()))
        got = await self._ask("context.grep", **self._conversation, id=file, pattern=mark)
        self._ledger.expect(got["totalMatches"] == 1, "the marked line of a file")

    async def _read(self) -> None:
        file = self._chance.choice(list(self._files))
        if self._chance.random() < 0.5:
            await self._ask("context.read", **self._conversation, id=file, limit=4096)
            return
        await self._ask("context:creonow:rules:read", path=".creonow/rules/style.md")

    async def _run(self) -> None:
        end = len(self._text)
        place: dict[str, Any] = {"documentId": self._document, "cursorPosition": end}
        skill = self._chance.choice(SKILLS)
        if skill != SKILLS[0]:
            place["selection"] = {"from": max(0, end - 120), "to": end}
        got = await self._ask("ai:skill:run", skillId=skill, stream=True, **place)
        self._ledger.expect(got["output"], "output of a skill")

    async def _check(self) -> None:
        """Check all that was acknowledged, then delete it."""
        for file, mark in self._files.items():
            got = await self._ask("context.grep", **self._conversation, id=file, pattern=mark)
            self._ledger.expect(got["totalMatches"] == 1, "a file that was put")
        listed = await self._ask("constraints:list")
        there = {item["id"]: item["text"] for item in listed["constraints"]}
        for each, text in self._constraints.items():
            self._ledger.expect(there.get(each) == text, "a constraint that was created")
        mine = [each for each, text in there.items() if text.startswith(f"{self._name} ")]
        self._ledger.expect(sorted(mine) == sorted(self._constraints), "a deleted constraint")
        await self._sync()
        await self._ask("context:files:delete", **self._conversation)
        for each in list(self._constraints):
            await self._ask("constraints:delete", constraintId=each)

    @property
    def _conversation(self) -> dict[str, str]:
        return {"conversationId": f"{self._name}-talk"}
