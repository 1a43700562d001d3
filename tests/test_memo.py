"""What is used stays, what is not is forgotten, and the bound holds."""

import ctypes
import gc
import subprocess
import sys
import weakref
from collections.abc import Generator

import anyio
import anyio.lowlevel
import pytest

from creonowd import memo as memory
from creonowd.memo import Memo, collect_garbage
from creonowd.rpc.requests import Metrics


def test_a_value_is_made_once() -> None:
    memo: Memo[str, int] = Memo(100, lambda key, value: 1)
    made: list[str] = []

    for _ in range(3):
        memo.get("a", lambda: made.append("a") or 7)

    assert made == ["a"]
    assert memo.get("a", lambda: 8) == 7


def test_what_is_used_survives_many_that_are_not() -> None:
    memo: Memo[int, int] = Memo(20, lambda key, value: 1)
    memo.get(-1, lambda: 1)

    for number in range(1000):
        memo.get(number, lambda: 0)
        memo.get(-1, lambda: 2)

    assert memo.get(-1, lambda: 3) == 1


def test_it_never_holds_more_than_its_capacity() -> None:
    memo: Memo[int, str] = Memo(1000, lambda key, value: len(value))

    for number in range(500):
        memo.get(number, lambda: "x" * 30)

    assert len(memo) * 30 <= 1000


def test_what_is_too_heavy_is_not_kept() -> None:
    memo: Memo[str, str] = Memo(10, lambda key, value: len(value))

    memo.get("big", lambda: "x" * 100)

    assert len(memo) == 0
    assert memo.get("big", lambda: "y") == "y"


def test_a_value_that_is_forgotten_is_made_again() -> None:
    memo: Memo[str, int] = Memo(4)
    memo.put("a", 1)
    memo.put("b", 2)

    memo.forget("a")
    memo.forget("never kept")

    assert memo.peek("a") is None
    assert memo.peek("b") == 2


def test_a_value_that_is_replaced_counts_once() -> None:
    memo: Memo[str, str] = Memo(100, lambda key, value: len(value))

    for _ in range(10):
        memo.put("a", "x" * 40)
    memo.put("b", "y" * 10)

    assert memo.peek("a") == "x" * 40
    assert memo.peek("b") == "y" * 10


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "malloc_trim"),
    reason="only glibc keeps what is freed",
)
def test_freed_memory_goes_back_to_the_system() -> None:
    """In a process of its own: another thread's memory would count too."""
    code = (
        "import ctypes, psutil; from creonowd.memo import return_freed_memory\n"
        "rss = lambda: psutil.Process().memory_info().rss\n"
        "system = ctypes.CDLL(None); system.malloc.restype = ctypes.c_void_p\n"
        "blocks = [ctypes.c_void_p(system.malloc(100_000)) for _ in range(400)]\n"
        "[ctypes.memset(block, 1, 100_000) for block in blocks]\n"
        "[system.free(block) for block in blocks[:-1]]\n"
        "kept = rss(); return_freed_memory(); print(kept - rss())"
    )

    command = [sys.executable, "-c", code]
    freed = subprocess.run(command, capture_output=True, check=True, encoding="utf-8")

    assert int(freed.stdout) > 30_000_000


class Knot:
    """Something that only a collection frees."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def collections_by_hand(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    monkeypatch.setattr(memory, "IDLE_SECONDS", 0.001)
    monkeypatch.setattr(memory, "BUSY_ROUNDS", 3)
    monkeypatch.setattr(memory, "ROUNDS_FROZEN", 6)
    gc.disable()
    yield
    gc.enable()
    gc.unfreeze()


@pytest.mark.usefixtures("collections_by_hand")
async def test_garbage_is_collected_while_somebody_always_asks() -> None:
    metrics = Metrics()
    knot = weakref.ref(Knot())

    with anyio.fail_after(30):
        await collect_until_gone(metrics, knot)


@pytest.mark.usefixtures("collections_by_hand")
async def test_what_was_kept_by_a_collection_and_died_later_is_freed() -> None:
    metrics = Metrics()
    kept = [Knot()]
    knot = weakref.ref(kept[0])
    gc.freeze()

    kept.clear()

    with anyio.fail_after(30):
        await collect_until_gone(metrics, knot)


async def collect_until_gone(metrics: Metrics, knot: "weakref.ref[Knot]") -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(collect_garbage, metrics)
        while knot() is not None:
            metrics.start("app:ping")
            metrics.finish("app:ping", 0, None)
            await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()


@pytest.mark.usefixtures("collections_by_hand")
async def test_garbage_is_collected_when_nobody_asks_any_more() -> None:
    metrics = Metrics()
    knot = weakref.ref(Knot())

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(collect_garbage, metrics)
            await anyio.lowlevel.checkpoint()
            metrics.start("app:ping")
            metrics.finish("app:ping", 0, None)
            while knot() is not None:
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
