"""What the daemon does about memory: what it keeps, and when it collects garbage."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

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


KEPT_AFTER_THREADS = """
import threading
import psutil
from creonowd.daemon.run import keep_freed_memory
from creonowd.memo import return_freed_memory
keep_freed_memory()
process, all_here = psutil.Process(), threading.Barrier(13)
def work():
    text = ("雨" * 600_000).encode()
    all_here.wait()
    all_here.wait()
    del text
    all_here.wait()
    all_here.wait()
threads = [threading.Thread(target=work) for _ in range(12)]
for thread in threads:
    thread.start()
all_here.wait()
before = process.memory_info().rss
all_here.wait()
all_here.wait()
return_freed_memory()
print(before, process.memory_info().rss)
all_here.wait()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc has a heap for each thread")
def test_what_threads_have_freed_goes_back_to_the_system() -> None:
    ran = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", KEPT_AFTER_THREADS],
        capture_output=True,
        check=True,
        timeout=60,
    )

    before, after = map(int, ran.stdout.split())

    assert after < before - 10 * 1_800_000


SIGNALLED_BEFORE_IT_LOADS = """
import os, signal, sys
from creonowd.__main__ import main

class Signals:
    def find_spec(self, name, *_):
        if name == "creonowd.cli":
            for number in map(int, os.environ["SIGNALS"].split()):
                os.kill(os.getpid(), number)

sys.meta_path.insert(0, Signals())
raise SystemExit(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
@pytest.mark.parametrize(
    "command", [["serve", "--stdio"], ["mcp", "--print-skill"], ["view", "--help"]]
)
def test_signals_that_mean_nothing_do_nothing_from_the_first_moment_on(
    tmp_path: Path, command: list[str]
) -> None:
    named = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGPROF)
    real_time = getattr(signal, "SIGRTMIN", signal.SIGUSR1), getattr(signal, "SIGRTMAX", 0)
    numbers = " ".join(str(int(number)) for number in (*named, *filter(None, real_time)))

    ran = subprocess.run(
        [sys.executable, "-c", SIGNALLED_BEFORE_IT_LOADS, *command],
        input=b'{"jsonrpc":"2.0","id":1,"method":"app:ping"}\n',
        env=environment(CREONOW_USER_DATA_DIR=str(tmp_path / "data"), SIGNALS=numbers),
        capture_output=True,
        timeout=60,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr.decode()
    assert ran.stdout


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
