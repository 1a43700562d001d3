"""Reads that many ask for at once are done once, and nobody gets an old one."""

import threading
from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from creonowd.clock import SystemClock
from creonowd.sources.shared_reads import (
    FolderReader,
    ProjectReads,
    ReadRounds,
    RoundCache,
    SharedReads,
)
from creonowd.workspace.creonow_tree import CreonowFolder, Tree, make_tree
from creonowd.workspace.projects import Project


class Disk:
    """Something that changes, and takes time to be read."""

    def __init__(self) -> None:
        self.content = "old"
        self.reads = 0
        self.go = anyio.Event()

    async def read(self) -> str:
        self.reads += 1
        seen = self.content
        await self.go.wait()
        return seen


async def test_those_who_ask_during_a_read_share_the_next_one() -> None:
    disk, shared, got = Disk(), SharedReads[str](), list[str]()

    async def ask() -> None:
        got.append(await shared.read("k", disk.read))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            disk.content = "new"
            for _ in range(100):
                group.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            disk.go.set()

    assert got == ["old", *["new"] * 100]
    assert disk.reads == 2


async def test_finding_nothing_is_shared_too() -> None:
    shared, reads = SharedReads[None](), list[int]()
    go = anyio.Event()

    async def nothing() -> None:
        reads.append(1)
        await go.wait()

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(shared.read, "k", nothing)
            await anyio.wait_all_tasks_blocked()
            go.set()

    assert len(reads) <= 2


async def test_one_after_the_other_each_reads_anew() -> None:
    disk, shared = Disk(), SharedReads[str]()
    disk.go.set()

    first = await shared.read("k", disk.read)
    disk.content = "new"
    second = await shared.read("k", disk.read)

    assert (first, second) == ("old", "new")


async def test_a_read_that_fails_is_tried_again_by_the_next() -> None:
    disk, shared = Disk(), SharedReads[str]()
    disk.go.set()

    async def fail() -> str:
        raise OSError

    with pytest.raises(OSError):  # noqa: PT011 - any failure will do
        await shared.read("k", fail)
    assert await shared.read("k", disk.read) == "old"


async def test_a_reader_that_is_cancelled_leaves_the_others_their_read() -> None:
    disk, shared, got = Disk(), SharedReads[str](), list[str]()

    async def ask() -> None:
        got.append(await shared.read("k", disk.read))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            async with anyio.create_task_group() as doomed:
                doomed.start_soon(ask)
                await anyio.wait_all_tasks_blocked()
                group.start_soon(ask)
                await anyio.wait_all_tasks_blocked()
                doomed.cancel_scope.cancel()
            disk.go.set()

    assert got == ["old"]


async def test_keys_do_not_wait_for_each_other() -> None:
    slow, quick, shared = Disk(), Disk(), SharedReads[str]()
    quick.go.set()

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(shared.read, "slow", slow.read)
            await anyio.wait_all_tasks_blocked()
            assert await shared.read("quick", quick.read) == "old"
            slow.go.set()


@pytest.fixture
def reads(tmp_path: Path) -> ProjectReads:
    make_tree(tmp_path)
    (tmp_path / ".creonow/settings/海港.md").write_text("潮湿。", encoding="utf-8")
    project = Project(project_id="prj", name="x", root=tmp_path)
    return ProjectReads(Tree(SystemClock()), project, SharedReads())


async def test_what_is_asked_for_at_the_same_time_is_read_in_one_thread(
    reads: ProjectReads,
) -> None:
    seen: list[tuple[int, int]] = []

    def read(folders: FolderReader) -> None:
        seen.append((threading.get_ident(), id(folders)))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(reads.get, f"{number}", read)

    assert len(seen) == 8
    assert len(set(seen)) == 1
    assert seen[0][0] != threading.get_ident()


async def test_a_folder_is_read_once_for_all(reads: ProjectReads) -> None:
    with anyio.fail_after(60):
        one = await reads.get("one", lambda folders: [folders.folder(CreonowFolder.SETTINGS)] * 2)
        texts = await reads.get(
            "two",
            lambda folders: [f.data.decode() for f in folders.folder(CreonowFolder.SETTINGS).files],
        )

    assert one[0] is one[1]
    assert texts == ["潮湿。"]


async def test_under_one_name_a_read_is_done_once(reads: ProjectReads) -> None:
    done: list[str] = []

    with anyio.fail_after(60):
        for _ in range(3):
            await reads.get("same", lambda _: done.append("x"))

    assert done == ["x"]


@pytest.mark.parametrize("fault", [ValueError("strange"), RecursionError(), KeyError("k")])
async def test_a_read_that_fails_costs_the_others_nothing(
    reads: ProjectReads, fault: Exception
) -> None:
    got: dict[str, object] = {}

    def fail(folders: FolderReader) -> str:
        raise fault

    async def ask(name: str) -> None:
        try:
            got[name] = await reads.get(name, fail if name == "bad" else lambda _: name)
        except type(fault) as error:
            got[name] = error

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for name in ("good", "bad", "fine"):
                group.start_soon(ask, name)

    assert got == {"good": "good", "bad": fault, "fine": "fine"}


@pytest.mark.parametrize("names", [("after", "bad", "one more"), ("bad", "after", "one more")])
async def test_a_read_that_hangs_costs_the_others_nothing(
    reads: ProjectReads, names: tuple[str, ...]
) -> None:
    """Whether the first to ask or another one hangs makes no difference.

    A quarter of the time goes by before each reads alone; the rest is for a machine that is busy.
    """
    got: dict[str, object] = {}
    free = threading.Event()

    def hang(folders: FolderReader) -> None:
        free.wait(60)

    async def ask(name: str) -> None:
        got[name] = await reads.get(name, lambda _: name)

    try:
        with anyio.fail_after(6):
            async with anyio.create_task_group() as doomed:
                async with anyio.create_task_group() as group:
                    for name in names:
                        if name == "bad":
                            doomed.start_soon(reads.get, name, hang)
                        else:
                            group.start_soon(ask, name)
                doomed.cancel_scope.cancel()
    finally:
        free.set()

    assert got == {"after": "after", "one more": "one more"}


async def test_if_the_first_to_ask_is_cancelled_the_others_read_alone(reads: ProjectReads) -> None:
    got: list[str] = []
    free = threading.Event()

    def slow(folders: FolderReader) -> str:
        free.wait(60)
        return "first"

    async def ask() -> None:
        got.append(await reads.get("second", lambda _: "second"))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group, anyio.create_task_group() as doomed:
            doomed.start_soon(reads.get, "first", slow)
            group.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            doomed.cancel_scope.cancel()
    free.set()

    assert got == ["second"]


class SlowDisk:
    """Something that is read in a thread, and blocks it until it may go on."""

    def __init__(self) -> None:
        self.content = "old"
        self.rounds: list[list[str]] = []
        self.begun, self.go = threading.Event(), threading.Event()

    def reader(self, name: str) -> Callable[[RoundCache], str]:
        def read(cache: RoundCache) -> str:
            names = cache.once("names", list[str])
            if not names:
                self.rounds.append(names)
            names.append(name)
            seen = self.content
            self.begun.set()
            self.go.wait(60)
            return f"{name} {seen}"

        return read


async def test_all_who_ask_during_a_round_share_the_next_one() -> None:
    disk, rounds, got = SlowDisk(), ReadRounds(), dict[str, str]()

    async def ask(name: str) -> None:
        got[name] = await rounds.read("project", name, disk.reader(name))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(ask, "first")
            await anyio.to_thread.run_sync(disk.begun.wait, 60)
            disk.content = "new"
            for number in range(100):
                group.start_soon(ask, f"n{number}")
            await anyio.wait_all_tasks_blocked()
            disk.go.set()

    assert got == {"first": "first old"} | {f"n{n}": f"n{n} new" for n in range(100)}
    assert list(map(len, disk.rounds)) == [1, 100]


async def test_if_the_one_who_leads_is_cancelled_another_reads_for_all() -> None:
    disk, rounds, got = SlowDisk(), ReadRounds(), list[str]()

    async def ask(name: str, scope: anyio.CancelScope) -> None:
        with scope:
            got.append(await rounds.read("project", name, disk.reader(name)))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            leader = anyio.CancelScope()
            group.start_soon(ask, "leader", leader)
            for number in range(3):
                group.start_soon(ask, f"n{number}", anyio.CancelScope())
            await anyio.to_thread.run_sync(disk.begun.wait, 60)
            leader.cancel()
            await anyio.wait_all_tasks_blocked()
            disk.go.set()

    assert sorted(got) == ["n0 old", "n1 old", "n2 old"]


async def test_what_fails_in_a_round_costs_the_others_nothing() -> None:
    rounds, got = ReadRounds(), list[object]()

    def fail(_cache: RoundCache) -> str:
        raise OSError("gone")

    def succeed(_cache: RoundCache) -> str:
        return "read"

    async def ask(name: str, work: Callable[[RoundCache], str]) -> None:
        try:
            got.append(await rounds.read("project", name, work))
        except OSError as error:
            got.append(str(error))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(ask, "bad", fail)
            group.start_soon(ask, "good", succeed)

    assert got == ["gone", "read"]


async def test_a_project_that_hangs_does_not_hold_up_another() -> None:
    slow, rounds, quick = SlowDisk(), ReadRounds(), ""

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(rounds.read, "slow", "x", slow.reader("x"))
            await anyio.to_thread.run_sync(slow.begun.wait, 60)
            quick = await rounds.read("quick", "x", lambda _cache: "read")
            slow.go.set()

    assert quick == "read"


async def test_a_round_that_hangs_is_given_up_by_all_who_wait_and_the_next_one_reads() -> None:
    disk, rounds, failed = SlowDisk(), ReadRounds(), list[str]()

    async def ask(name: str) -> None:
        try:
            await rounds.read("project", name, disk.reader(name), seconds=0.05)
        except TimeoutError:
            failed.append(name)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for name in ("first", "second", "third"):
                group.start_soon(ask, name)
        disk.go.set()
        after = await rounds.read("project", "after", lambda _cache: "read")

    assert sorted(failed) == ["first", "second", "third"]
    assert after == "read"
