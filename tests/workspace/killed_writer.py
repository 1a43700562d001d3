"""Kill a writing process some hundred times, and look at what is left after each time.

Run as a process of its own: it imports the stores once and forks cheap children, each of which
counts up in a store and prints every number that was acknowledged, until it is killed.
"""

import asyncio
import os
import random
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from creonowd import logs
from creonowd.clock import SystemClock
from creonowd.redaction import Redactor
from creonowd.workspace.chats import Chats
from creonowd.workspace.constraints import ConstraintPatch, Constraints, NewConstraint
from creonowd.workspace.creonow_tree import Tree
from creonowd.workspace.projects import Project

LONGEST_S = 0.012

Read = Callable[[], Awaitable[int]]
Write = Callable[[int], Awaitable[object]]


def constraints(root: Path) -> tuple[Read, Write]:
    """Count in the text of a constraint."""
    clock = SystemClock()
    redactor = Redactor()
    redactor.redact("warm")
    store = Constraints(Tree(clock), clock, redactor)
    project = Project(project_id="p", name="p", root=root)

    async def read() -> int:
        found = (await store.list(project)).constraints
        return int(found[0].text) if found else -1

    async def write(number: int) -> object:
        found = (await store.list(project)).constraints
        if not found:
            return await store.create(project, NewConstraint(text=str(number)))
        return await store.update(project, found[0].id, ConstraintPatch(text=str(number)))

    return read, write


def conversations(root: Path) -> tuple[Read, Write]:
    """Count in the messages of a conversation, as the list returns them."""
    store = Chats(SystemClock(), Redactor())
    project = Project(project_id="p", name="p", root=root)

    async def read() -> int:
        found = (await store.list(project)).items
        return found[0].entry.message_count if found else -1

    async def write(number: int) -> object:
        messages = [{"role": "user", "content": "x"}] * number
        return await store.save(project, {"id": "one", "messages": messages})

    return read, write


STORES = {"constraints": (constraints, 300), "conversations": (conversations, 100)}


async def count_up(read: Read, write: Write, progress: int) -> None:
    """Print what is there, then write the next number for ever."""
    number = await read()
    os.write(progress, b"%d\n" % number)
    while True:
        number += 1
        await write(number)
        os.write(progress, b"%d\n" % number)


def kill_one(read: Read, write: Write, writes: int, patience: float) -> list[int]:
    """Start a writer and kill it; return what it found and what was acknowledged after that.

    The blow falls in the first write, or after so many.
    """
    reader, progress = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        asyncio.run(count_up(read, write, progress))
    os.close(progress)
    heard = b""
    while heard.count(b"\n") <= writes and (more := os.read(reader, 1 << 20)):
        heard += more
    time.sleep(patience)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    heard += os.read(reader, 1 << 20)
    os.close(reader)
    return [int(line) for line in heard.splitlines()]


def main(store: str, place: str) -> int:
    """Kill, look, repeat; fail at the first number that was lost or came from nowhere."""
    logs.quiet()
    anyio.run(anyio.sleep, 0)
    make, kills = STORES[store]
    read, write = make(Path(place))
    chance = random.Random(7)
    last, total = -1, 0
    for turn in range(kills):
        found, *done = kill_one(read, write, turn % 2, chance.uniform(0, LONGEST_S))
        if found not in {last, last + 1}:
            sys.stderr.write(f"kill {turn}: {found} is there, {last} was acknowledged\n")
            return 1
        last = max([found, *done])
        total += len(done)
    sys.stdout.write(f"{kills} {total}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
