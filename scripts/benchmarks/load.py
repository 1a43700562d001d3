"""One daemon under mixed traffic of 1, 8, 64 and 500 clients, a minute each.

Everyone asks again as soon as there is an answer: documents are synced, prompts assembled, rules
made and unmade, files put, searched and read, skills run with the fake provider. At the end every
client asks for all that was acknowledged. `--seconds N` shortens it, `--clients 1,8` chooses.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from creonowd.model import Model
from scripts.benchmarks.novel.crowd import ask, daemon, percentile
from scripts.benchmarks.novel.project import make_project, novel
from scripts.benchmarks.traffic.ledger import Ledger
from scripts.benchmarks.traffic.line import dial
from scripts.benchmarks.traffic.visitor import Visitor
from scripts.benchmarks.traffic.watching import Use, pulse, sample, use_of

CROWDS = (1, 8, 64, 500)
PROJECTS = 4
SETTLE_SECONDS = 3.0
STALL_MS = 100


class Crowd(Model):
    """What one crowd did, and what it did to the daemon."""

    clients: int
    seconds: float
    ledger: Ledger
    pulse: list[float]
    before: Use
    during: list[Use]
    after: Use
    connections: int
    in_flight: int


def main(argv: list[str]) -> None:
    """Print what each crowd did, then the latencies of each channel."""
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
        for what, times in crowd.ledger.refused.most_common():
            print(f"\n{crowd.clients} clients: {times} × {what}")


async def _all(sizes: list[int], seconds: float) -> list[Crowd]:
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        async with daemon(sys.executable, here / "user data") as socket:
            projects = [await _project(socket, here / f"novel {n}") for n in range(PROJECTS)]
            pid = (await ask(socket, "app:ping", {}))["pid"]
            process = psutil.Process(pid)
            return [await _crowd(socket, process, projects, size, seconds) for size in sizes]


async def _project(socket: Path, root: Path) -> str:
    make_project(root, novel())
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
    before = use_of(process)
    began = time.perf_counter()
    beating = asyncio.create_task(pulse(socket, seconds))
    watching = asyncio.create_task(sample(process, during, done))

    async def visit(number: int) -> None:
        async with dial(socket, ledger) as line:
            visitor = Visitor(number, projects[number % len(projects)], line, ledger)
            await visitor.stay(began + seconds)

    async with asyncio.TaskGroup() as group:
        for number in range(size):
            group.create_task(visit(number))
    spent = time.perf_counter() - began
    done.set()
    await watching
    beats = await beating
    await asyncio.sleep(SETTLE_SECONDS)
    report = await ask(socket, "app:metrics", {})
    return Crowd(
        clients=size,
        seconds=spent,
        ledger=ledger,
        pulse=beats,
        before=before,
        during=during,
        after=use_of(process),
        connections=report["connections"] - alone["connections"],
        in_flight=_in_flight(report) - _in_flight(alone),
    )


def _in_flight(report: dict[str, Any]) -> int:
    return sum(channel["inFlight"] for channel in report["channels"].values())


def _print_crowds(crowds: list[Crowd]) -> None:
    print("| clients | " + " | ".join(str(crowd.clients) for crowd in crowds) + " |")
    print("|---|" + "---|" * len(crowds))
    rows: dict[str, Callable[[Crowd], str]] = {
        "answers per second": lambda c: f"{c.ledger.answers / c.seconds:.0f}",
        "asked, answered, told to come back, silent": lambda c: (
            f"{c.ledger.sent}, {c.ledger.answers}, {c.ledger.refused.total()}, {c.ledger.silent}"
        ),
        "acknowledged but not there": lambda c: f"{len(c.ledger.wrong)}",
        "a ping meanwhile, ms: p50 / p99 / worst": lambda c: (
            f"{percentile(c.pulse, 0.5):.0f} / {percentile(c.pulse, 0.99):.0f} / {max(c.pulse):.0f}"
        ),
        f"pings that took over {STALL_MS} ms": lambda c: (
            f"{sum(beat > STALL_MS for beat in c.pulse) / len(c.pulse):.1%}"
        ),
        "memory, MB: before → half-way → peak → after": lambda c: _course(c, "megabytes"),
        "descriptors: before → half-way → peak → after": lambda c: _course(c, "descriptors"),
        "threads: before → half-way → peak → after": lambda c: _course(c, "threads"),
        "connections and requests left behind": lambda c: f"{c.connections}, {c.in_flight}",
    }
    for name, tell in rows.items():
        print(f"| {name} | " + " | ".join(tell(crowd) for crowd in crowds) + " |")


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
        shares = " | ".join(crowd.ledger.shares(channel) for crowd in crowds)
        print(f"| `{channel}` | {shares} |")
