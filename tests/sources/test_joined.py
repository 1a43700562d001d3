"""Many who ask at once share a read, and nobody gets an old one."""

import anyio
import pytest

from creonowd.sources.batched_reads import SharedReads


class Disk:
    """Something that changes, and takes its time to be read."""

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
    disk, joined, got = Disk(), SharedReads[str](), list[str]()

    async def ask() -> None:
        got.append(await joined.read("k", disk.read))

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
    joined, reads = SharedReads[None](), list[int]()
    go = anyio.Event()

    async def nothing() -> None:
        reads.append(1)
        await go.wait()

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(joined.read, "k", nothing)
            await anyio.wait_all_tasks_blocked()
            go.set()

    assert len(reads) <= 2


async def test_one_after_the_other_each_reads_anew() -> None:
    disk, joined = Disk(), SharedReads[str]()
    disk.go.set()

    first = await joined.read("k", disk.read)
    disk.content = "new"
    second = await joined.read("k", disk.read)

    assert (first, second) == ("old", "new")


async def test_a_read_that_fails_is_tried_again_by_the_next() -> None:
    disk, joined = Disk(), SharedReads[str]()
    disk.go.set()

    async def fail() -> str:
        raise OSError

    with pytest.raises(OSError):  # noqa: PT011 - any failure will do
        await joined.read("k", fail)
    assert await joined.read("k", disk.read) == "old"


async def test_a_reader_that_is_cancelled_leaves_the_others_their_read() -> None:
    disk, joined, got = Disk(), SharedReads[str](), list[str]()

    async def ask() -> None:
        got.append(await joined.read("k", disk.read))

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
    slow, quick, joined = Disk(), Disk(), SharedReads[str]()
    quick.go.set()

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(joined.read, "slow", slow.read)
            await anyio.wait_all_tasks_blocked()
            assert await joined.read("quick", quick.read) == "old"
            slow.go.set()
