"""One trip to the disk for all sources of an assembly."""

import threading
from pathlib import Path

import anyio
import pytest

from creonowd.clock import SystemClock
from creonowd.sources.batched_reads import BatchedReads, FolderReader, SharedReads
from creonowd.storage.relative_paths import CreonowFolder
from creonowd.workspace.creonow_tree import Tree, make_tree
from creonowd.workspace.projects import Project


@pytest.fixture
def shelves(tmp_path: Path) -> BatchedReads:
    make_tree(tmp_path)
    (tmp_path / ".creonow/settings/海港.md").write_text("潮湿。", encoding="utf-8")
    project = Project(project_id="prj", name="x", root=tmp_path)
    return BatchedReads(Tree(SystemClock()), project, SharedReads())


async def test_what_is_wanted_at_the_same_time_is_fetched_in_one_thread(
    shelves: BatchedReads,
) -> None:
    seen: list[tuple[int, int]] = []

    def work(shelf: FolderReader) -> None:
        seen.append((threading.get_ident(), id(shelf)))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(shelves.make, f"{number}", work)

    assert len(seen) == 8
    assert len(set(seen)) == 1
    assert seen[0][0] != threading.get_ident()


async def test_a_folder_is_read_once_per_trip(shelves: BatchedReads) -> None:
    with anyio.fail_after(60):
        one = await shelves.make("one", lambda shelf: [shelf.folder(CreonowFolder.SETTINGS)] * 2)
        texts = await shelves.make(
            "two",
            lambda shelf: [f.data.decode() for f in shelf.folder(CreonowFolder.SETTINGS).files],
        )

    assert one[0] is one[1]
    assert texts == ["潮湿。"]


async def test_work_that_was_done_is_not_done_again(shelves: BatchedReads) -> None:
    done: list[str] = []

    with anyio.fail_after(60):
        for _ in range(3):
            await shelves.make("same", lambda _: done.append("x"))

    assert done == ["x"]


@pytest.mark.parametrize("fault", [ValueError("strange"), RecursionError(), KeyError("k")])
async def test_work_that_fails_costs_the_others_nothing(
    shelves: BatchedReads, fault: Exception
) -> None:
    got: dict[str, object] = {}

    def fail(shelf: FolderReader) -> str:
        raise fault

    async def ask(name: str) -> None:
        try:
            got[name] = await shelves.make(name, fail if name == "bad" else lambda _: name)
        except type(fault) as error:
            got[name] = error

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for name in ("good", "bad", "fine"):
                group.start_soon(ask, name)

    assert got == {"good": "good", "bad": fault, "fine": "fine"}


async def test_work_that_hangs_costs_the_others_nothing(shelves: BatchedReads) -> None:
    got: dict[str, object] = {}
    free = threading.Event()

    def hang(shelf: FolderReader) -> None:
        free.wait(60)

    async def ask(name: str) -> None:
        try:
            with anyio.fail_after(2):
                got[name] = await shelves.make(name, hang if name == "bad" else lambda _: name)
        except TimeoutError:
            got[name] = "timeout"

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for name in ("after", "bad", "one more"):
                group.start_soon(ask, name)
    free.set()

    assert got == {"after": "after", "bad": "timeout", "one more": "one more"}


async def test_of_a_party_only_who_hangs_does_not_come_back(shelves: BatchedReads) -> None:
    free = threading.Event()
    shelves.offer("hangs", lambda _: free.wait(60))
    shelves.offer("works", lambda _: "done")
    shelves.offer("unasked", lambda _: "never")

    with anyio.fail_after(60), anyio.move_on_after(2):
        await shelves.go(["hangs", "works"])
    free.set()

    assert shelves.told("works") == "done"
    assert shelves.told("hangs") is None
    assert shelves.told("unasked") is None
