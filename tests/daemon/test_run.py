"""What large messages cost in memory that was there a moment ago."""

import subprocess
import sys

import pytest

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
