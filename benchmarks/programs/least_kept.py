"""What a bare Python keeps of memory: it makes small objects, keeps a few of them, frees the rest.

Prints the megabytes that it grew by at most, and those that it keeps. Nothing of ours is imported.
"""

import ctypes
import gc
import os
import sys
from pathlib import Path

MEGABYTE = 1 << 20
ROWS = 50_000


def resident() -> int:
    """Return the bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main(rounds: int, survivors: int) -> None:
    """Make rows as a list of documents has them; every so often one object stays."""
    kept: list[object] = []
    before, most = resident(), 0
    for _ in range(rounds):
        rows: list[object] = []
        for number in range(ROWS):
            marks = tuple(number * 1_000_003 + 1000 * part for part in range(5))
            rows += (f"{number}.md", marks, {"path": f"chapters/{number}.md", "marks": marks})
            if number % (ROWS // survivors) == 0:
                kept.append(("a request", float(number)))
        most = max(most, resident() - before)
        rows.clear()
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    print(f"+{most // MEGABYTE} MB at most, +{(resident() - before) // MEGABYTE} MB kept")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
