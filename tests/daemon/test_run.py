"""What the daemon does about memory: what it keeps, and when it collects garbage."""

import gc
import subprocess
import sys
import weakref
from collections.abc import Generator
from pathlib import Path

import anyio
import pytest

from creonowd.daemon import run
from creonowd.rpc.requests import Metrics
from testing.clients import environment

FAULTS = """
import resource
from creonowd.daemon.run import keep_freed_memory
report = {report}
faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def work():
    for _ in range(100):
        text = "春" * 100_000
        text.encode().decode()
work()
before = faults()
work()
print(faults() - before)
"""


def faults(report: str) -> int:
    script = FAULTS.replace("{report}", report)
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, timeout=60
    )
    return int(ran.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc gives back so eagerly")
def test_large_texts_find_the_memory_of_the_last_ones_still_there() -> None:
    if faults("None") < 5000:
        pytest.skip("this C library keeps memory by itself")

    assert faults("keep_freed_memory()") < 500


def test_garbage_is_collected_by_itself_once_the_services_are_loaded(tmp_path: Path) -> None:
    script = (
        "import gc, sys, pathlib\n"
        "from creonowd.daemon import run\n"
        "async def report(metrics): print(gc.isenabled(), file=sys.stderr)\n"
        "run.collect_garbage = report\n"
        "run.serve(run.Options(pathlib.Path(sys.argv[1]), output=1))\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "data")]

    ran = subprocess.run(
        command, input=b"", env=environment(), capture_output=True, check=True, timeout=60
    )

    assert b"True" in ran.stderr.split(), ran.stderr


class Knot:
    """Something that only a collection frees."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def collections_by_hand(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    monkeypatch.setattr(run, "IDLE_SECONDS", 0.001)
    monkeypatch.setattr(run, "BUSY_ROUNDS", 3)
    monkeypatch.setattr(run, "ROUNDS_FROZEN", 6)
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
        tasks.start_soon(run.collect_garbage, metrics)
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
            tasks.start_soon(run.collect_garbage, metrics)
            await anyio.lowlevel.checkpoint()
            metrics.start("app:ping")
            metrics.finish("app:ping", 0, None)
            while knot() is not None:
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
