"""How the C library treats memory that was freed. Knows glibc; elsewhere nothing needs to be done."""

import ctypes
import sys
from typing import Any

KEPT = 4 * 1024 * 1024
_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3


def keep_freed_memory() -> bool:
    """Keep a few megabytes of freed memory at hand; whether the C library can be told so.

    Else glibc hands every large text back to the system and asks for it again: with a message of
    300 KB a third of the processor's time went into pages that had just been there.
    """
    if sys.platform != "linux":
        return False
    tune: Any = getattr(ctypes.CDLL(None), "mallopt", None)
    if tune is None:
        return False
    return bool(tune(_MMAP_THRESHOLD, KEPT)) and bool(tune(_TRIM_THRESHOLD, KEPT))
