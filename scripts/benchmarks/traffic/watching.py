"""What the daemon uses while it is asked, and how long its event loop lets nobody in.

The pulse is taken by a process of its own, so that a busy crowd is not mistaken for a busy daemon.
"""

import asyncio
import sys
import time
from pathlib import Path

import msgspec
import psutil

from creonowd.model import Model
from scripts.benchmarks.traffic.ledger import Ledger
from scripts.benchmarks.traffic.line import dial

BEAT_SECONDS = 0.02
SAMPLE_SECONDS = 0.25
MEGABYTE = 1 << 20


class Use(Model):
    """What a process holds at one moment."""

    megabytes: int
    descriptors: int
    threads: int


def use_of(process: psutil.Process) -> Use:
    """Look at a process."""
    return Use(
        megabytes=process.memory_info().rss // MEGABYTE,
        descriptors=process.num_fds() if sys.platform != "win32" else process.num_handles(),
        threads=process.num_threads(),
    )


async def sample(process: psutil.Process, into: list[Use], until: asyncio.Event) -> None:
    """Look at a process again and again."""
    while not until.is_set():
        into.append(use_of(process))
        await asyncio.sleep(SAMPLE_SECONDS)


async def pulse(socket: Path, seconds: float) -> list[float]:
    """Take the pulse from another process: the milliseconds that each ping took."""
    call = f"from {__name__} import beat; beat({str(socket)!r}, {seconds})"
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-c", call, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await other.communicate()
    return msgspec.json.decode(said, type=list[float])


def beat(socket: str, seconds: float) -> None:
    """Ping for a while and print what each ping took."""
    ledger = Ledger()
    asyncio.run(_beat(Path(socket), seconds, ledger))
    print(msgspec.json.encode(ledger.milliseconds["app:ping"]).decode())


async def _beat(socket: Path, seconds: float, ledger: Ledger) -> None:
    until = time.perf_counter() + seconds
    async with dial(socket, ledger) as line:
        while time.perf_counter() < until:
            await line.ask("app:ping")
            await asyncio.sleep(BEAT_SECONDS)
